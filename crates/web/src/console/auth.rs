//! Getting in and out: signing up, logging in, invitations, new passwords.

use askama::Template;
use axum::{
    Router,
    extract::{RawQuery, Request, State as Extracted},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use model::{
    accounts::{Login, PasswordReset, PasswordResetRequest, SignUp},
    members::AcceptInvite,
};
use operations::{
    Error, ErrorKind, Result,
    accounts::{self, Opened, SESSION_SECONDS},
    password_resets,
};
use serde_json::json;

use super::{
    flash,
    page::{self, Head, explain, html},
    session_api::{affiliate_cookie, set_cookie, try_password, user_agent},
    visit::{Fields, Visit, input, recognise},
};
use crate::{
    State,
    request::{client_address, require_own_site},
};

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/login", get(login_page).post(log_in))
        .route("/console/sign-up", get(sign_up_page).post(sign_up))
        .route("/console/invite", get(invite_page).post(accept_invite))
        .route("/console/forgot", get(forgot_page).post(forgot))
        .route("/console/reset", get(reset_page).post(reset))
        .route("/console/logout", axum::routing::post(log_out))
        .route("/login", get(async || redirect("/console/login")))
        .route("/sign-up", get(async || redirect("/console/sign-up")))
        // The token stands behind the # of the link, which browsers take along.
        .route("/invite", get(async || redirect("/console/invite")))
}

fn redirect(target: &str) -> Response {
    page::go_to(&HeaderMap::new(), target)
}

/// A form for somebody who is not logged in.
struct Form {
    head: Head,
    flash: Option<flash::Flash>,
    said: String,
    email: String,
    next: String,
}

impl Form {
    fn new(headers: &HeaderMap, title: &str) -> Self {
        Self {
            head: Head::new(headers, title),
            flash: flash::read(headers),
            said: String::new(),
            email: String::new(),
            next: String::new(),
        }
    }

    fn again(headers: &HeaderMap, title: &str, fields: &Fields, refused: &Error) -> Self {
        Self {
            said: explain(refused),
            email: fields.get("email").to_owned(),
            next: safe_next(fields.get("next")).to_owned(),
            ..Self::new(headers, title)
        }
    }
}

#[derive(Template)]
#[template(path = "console/login.html")]
struct LoginPage {
    form: Form,
    open: bool,
}

#[derive(Template)]
#[template(path = "console/sign_up.html")]
struct SignUpPage {
    form: Form,
    open: bool,
    name: String,
    workspace: String,
}

#[derive(Template)]
#[template(path = "console/invite.html")]
struct InvitePage {
    form: Form,
    token: String,
    name: String,
}

#[derive(Template)]
#[template(path = "console/forgot.html")]
struct ForgotPage {
    form: Form,
    sent: bool,
}

#[derive(Template)]
#[template(path = "console/reset.html")]
struct ResetPage {
    form: Form,
    token: String,
}

/// Where to go after logging in: a path of this server, and nothing that a browser could take for another one.
pub(super) fn safe_next(next: &str) -> &str {
    let plain = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= 2000
        && !next.chars().any(|c| c == '\\' || c.is_control() || c.is_whitespace());
    // Only the console's own pages: nothing else needs the cookie and shows something.
    let inside = next == "/console" || next.starts_with("/console/") || next.starts_with("/console?");
    let ends_session = next.starts_with("/console/log");
    if plain && inside && !ends_session && !next.contains("/../") { next } else { "/console" }
}

async fn login_page(
    Extracted(state): Extracted<State>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    if recognise(&state, &headers).await.is_ok() {
        return page::go_to(&headers, safe_next(fields.get("next")));
    }
    let form = Form { next: safe_next(fields.get("next")).to_owned(), ..Form::new(&headers, "Log in") };
    shown(&headers, html(&LoginPage { form, open: state.app.settings().open_sign_up }))
}

/// A form that anybody can send: from this site, in moderation.
async fn open_form(state: &State, request: Request) -> Result<Fields> {
    let address = client_address(&request);
    state.anonymous.count(address, state.app.now())?;
    require_own_site(&state.app, request.headers())?;
    Fields::read(request).await
}

fn shown(headers: &HeaderMap, page: Result<Response>) -> Response {
    page.unwrap_or_else(|refused| page::failure(headers, &refused))
}

/// The page of a form once more, with what was wrong and the status that says so.
fn again(headers: &HeaderMap, refused: &Error, page: &impl Template) -> Response {
    let mut response = shown(headers, html(page));
    *response.status_mut() = crate::error::status(refused.kind());
    response
}

fn enter(state: &State, headers: &HeaderMap, opened: &Opened, next: &str, said: &str) -> Response {
    let mut response = page::go_to(headers, next);
    set_cookie(state, &mut response, &opened.secret, SESSION_SECONDS);
    flash::told(response, flash::Kind::Done, said)
}

async fn log_in(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let address = client_address(&request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let login: Login =
            input(&json!({ "email": fields.get("email"), "password": fields.get("password") }))?;
        try_password(&state, address, login, &headers).await
    };
    match work.await {
        Ok(opened) => enter(&state, &headers, &opened, safe_next(fields.get("next")), ""),
        Err(refused) => {
            let mut form = Form::again(&headers, "Log in", &fields, &refused);
            let said = match refused.kind() {
                ErrorKind::Unauthorized => Some("The address or the password is wrong."),
                ErrorKind::RateLimited => Some("Too many attempts. Wait a while."),
                _ => None,
            };
            if let Some(said) = said {
                said.clone_into(&mut form.said);
            }
            again(&headers, &refused, &LoginPage { form, open: state.app.settings().open_sign_up })
        }
    }
}

async fn sign_up_page(Extracted(state): Extracted<State>, headers: HeaderMap) -> Response {
    if recognise(&state, &headers).await.is_ok() {
        return page::go_to(&headers, "/console");
    }
    let open = state.app.settings().open_sign_up;
    let form = Form::new(&headers, "Sign up");
    shown(&headers, html(&SignUpPage { form, open, name: String::new(), workspace: String::new() }))
}

async fn sign_up(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let mut wanted: SignUp = input(&json!({
            "email": fields.get("email").trim(), "password": fields.get("password"),
            "name": fields.given("name"), "workspace_name": fields.given("workspace_name"),
        }))?;
        wanted.affiliate_code = affiliate_cookie(&headers);
        accounts::sign_up(&state.app, wanted, user_agent(&headers)).await
    };
    match work.await {
        Ok(opened) => enter(&state, &headers, &opened, "/console", ""),
        Err(refused) => {
            let page = SignUpPage {
                form: Form::again(&headers, "Sign up", &fields, &refused),
                open: state.app.settings().open_sign_up,
                name: fields.get("name").to_owned(),
                workspace: fields.get("workspace_name").to_owned(),
            };
            again(&headers, &refused, &page)
        }
    }
}

async fn invite_page(headers: HeaderMap) -> Response {
    let form = Form::new(&headers, "Accept an invitation");
    shown(&headers, html(&InvitePage { form, token: String::new(), name: String::new() }))
}

async fn accept_invite(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let accept: AcceptInvite = input(&json!({
            "token": fields.get("token").trim(), "password": fields.get("password"), "name": fields.given("name"),
        }))?;
        accounts::accept_invite(&state.app, accept, user_agent(&headers)).await
    };
    match work.await {
        Ok(opened) => enter(&state, &headers, &opened, "/console", "Welcome to the workspace."),
        Err(refused) => {
            let mut form = Form::again(&headers, "Accept an invitation", &fields, &refused);
            match refused.kind() {
                ErrorKind::Unauthorized => {
                    "This address has an account already, and the password is not the one of that account."
                        .clone_into(&mut form.said);
                }
                ErrorKind::NotFound => {
                    "This invitation does not work any more. Ask for a new one.".clone_into(&mut form.said);
                }
                _ => {}
            }
            let (token, name) = (fields.get("token").to_owned(), fields.get("name").to_owned());
            again(&headers, &refused, &InvitePage { form, token, name })
        }
    }
}

async fn forgot_page(headers: HeaderMap) -> Response {
    shown(&headers, html(&ForgotPage { form: Form::new(&headers, "Forgotten password"), sent: false }))
}

async fn forgot(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let work = async {
        let fields = open_form(&state, request).await?;
        let wanted: PasswordResetRequest = input(&json!({ "email": fields.get("email") }))?;
        password_resets::request(&state.app, wanted);
        html(&ForgotPage { form: Form::new(&headers, "Forgotten password"), sent: true })
    };
    shown(&headers, work.await)
}

async fn reset_page(headers: HeaderMap) -> Response {
    let form = Form::new(&headers, "Choose a new password");
    shown(&headers, html(&ResetPage { form, token: String::new() }))
}

async fn reset(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let wanted: PasswordReset =
            input(&json!({ "token": fields.get("token").trim(), "password": fields.get("password") }))?;
        password_resets::reset(&state.app, wanted).await
    };
    match work.await {
        Ok(()) => {
            let response = page::go_to(&headers, "/console/login");
            flash::told(response, flash::Kind::Done, "Your password is changed. Log in with the new one.")
        }
        Err(refused) => {
            let form = Form::again(&headers, "Choose a new password", &fields, &refused);
            again(&headers, &refused, &ResetPage { form, token: fields.get("token").to_owned() })
        }
    }
}

async fn log_out(visit: Visit) -> Response {
    let ended = accounts::log_out(visit.app(), &visit.caller).await;
    left(&visit, ended, "You are logged out.")
}

/// The way out, once a session has ended.
pub(super) fn left(visit: &Visit, ended: Result<()>, said: &str) -> Response {
    match ended {
        Ok(()) => {
            let mut response = page::go_to(&visit.headers, "/console/login");
            set_cookie(&visit.state, &mut response, "", 0);
            *response.status_mut() = StatusCode::SEE_OTHER;
            flash::told(response, flash::Kind::Done, said)
        }
        Err(refused) => page::failure(&visit.headers, &refused),
    }
}

#[cfg(test)]
mod tests {
    use super::safe_next;

    // rules: CONSOLE-7
    #[test]
    fn only_paths_of_the_console_are_followed() {
        for good in ["/console", "/console/keys", "/console/m/mbx_1/inbox?q=a%20b", "/console?x=1"] {
            assert_eq!(safe_next(good), good);
        }
        for bad in [
            "",
            "//evil.test",
            "/\\evil.test",
            "https://evil.test",
            "javascript:alert(1)",
            "/console\\..",
            "/consolex",
            "/console/../evil",
            "\t//evil.test",
            "/console/a b",
            "/console/logout",
            "/api/v1/x",
            "//console/x",
            "/console/\u{0}",
            "/console//\nevil",
        ] {
            assert_eq!(safe_next(bad), "/console", "{bad:?}");
        }
    }
}
