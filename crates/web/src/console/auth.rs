//! Signing up, logging in and out, resetting passwords.

use askama::Template;
use axum::{
    Router,
    extract::{RawQuery, Request, State as Extracted},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use model::accounts::{CompleteSignUp, Login, PasswordReset, PasswordResetRequest, SignUp};
use operations::{
    Client, Error, ErrorKind, Result,
    accounts::{
        self, OpenedSession,
        sign_up::{self as signing_up, SignUpOutcome},
        verification::{self, SignUpRequest},
    },
    password_resets,
};
use serde_json::json;

use super::{
    fields::{Fields, input},
    flash,
    form_state::{FormState, Labels},
    links::safe_next,
    page::{self, Head, html},
    session_api::{affiliate_cookie, client, set_cookie, set_cookies, set_device_cookie},
    visit::{Visit, recognise},
};
use crate::{
    State,
    request::{client_address, require_own_site},
};

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/login", get(login_page).post(log_in))
        .route("/console/sign-up", get(sign_up_page).post(sign_up))
        .route("/console/verify", get(verify_page).post(verify))
        .route("/console/forgot", get(forgot_page).post(forgot))
        .route("/console/reset", get(reset_page).post(reset))
        .route("/console/logout", axum::routing::post(log_out))
        .route("/login", get(async || redirect("/console/login")))
        .route("/sign-up", get(async || redirect("/console/sign-up")))
}

pub(super) fn redirect(target: &str) -> Response {
    page::go_to(&HeaderMap::new(), target)
}

const FORGOT: &str = "Reset your password";

/// The fields of all forms for visitors.
const LABELS: Labels = &[
    ("email", "email", "Email"),
    ("password", "password", "Password"),
    ("name", "name", "Your name"),
    ("workspace_name", "workspace_name", "Workspace name"),
    ("code", "code", "Server code"),
    ("token", "token", "Code"),
];

/// A form for a visitor who is not logged in.
pub(super) struct Form {
    pub(super) head: Head,
    pub(super) flash: Option<flash::Flash>,
    pub(super) said: String,
    pub(super) email: String,
    pub(super) next: String,
    /// What is wrong with its fields.
    pub(super) state: FormState,
}

impl Form {
    pub(super) fn new(headers: &HeaderMap, title: &str) -> Self {
        Self {
            head: Head::new(headers, title),
            flash: flash::read(headers),
            said: String::new(),
            email: String::new(),
            next: String::new(),
            state: FormState::default(),
        }
    }

    /// What is wrong with a field; empty if nothing is.
    pub(super) fn error(&self, field: &str) -> &str {
        self.state.error(field)
    }

    pub(super) fn again(headers: &HeaderMap, title: &str, fields: &Fields, refused: &Error) -> Self {
        let state = FormState::refused(fields.clone(), refused, LABELS);
        Self {
            said: state.said().to_owned(),
            email: fields.get("email").to_owned(),
            next: safe_next(fields.get("next")).to_owned(),
            state,
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
    /// Whether the password is chosen later, through the link in an email.
    verify: bool,
    /// Whether this is the first account of a publicly reachable server.
    first: bool,
    name: String,
    workspace: String,
    code: String,
}

/// Confirms that an email is on its way.
#[derive(Template)]
#[template(path = "console/sent.html")]
pub(super) struct SentPage {
    pub(super) form: Form,
}

#[derive(Template)]
#[template(path = "console/verify.html")]
struct VerifyPage {
    form: Form,
    token: String,
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
    respond(&headers, html(&LoginPage { form, open: state.app.settings().sign_up.open }))
}

/// A form that needs no session: same-site and rate-limited.
pub(super) async fn open_form(state: &State, request: Request) -> Result<Fields> {
    let address = client_address(&request);
    state.anonymous.count(address, state.app.now())?;
    require_own_site(&state.app, request.headers())?;
    Fields::read(request).await
}

pub(super) fn respond(headers: &HeaderMap, page: Result<Response>) -> Response {
    page.unwrap_or_else(|refused| page::failure(headers, &refused))
}

/// The form's page again, with the error and its status.
pub(super) fn again(headers: &HeaderMap, refused: &Error, page: &impl Template) -> Response {
    let mut response = respond(headers, html(page));
    *response.status_mut() = crate::error::status(refused.kind());
    response
}

pub(super) fn enter(
    state: &State,
    headers: &HeaderMap,
    opened: &OpenedSession,
    next: &str,
    said: &str,
) -> Response {
    let mut response = page::go_to(headers, next);
    set_cookies(state, &mut response, opened);
    flash::set(response, flash::Kind::Done, said)
}

async fn log_in(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let client = client(&state, &request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let login: Login =
            input(&json!({ "email": fields.get("email"), "password": fields.get("password") }))?;
        accounts::log_in(&state.app, login, &client).await
    };
    match work.await {
        Ok(opened) => enter(&state, &headers, &opened, safe_next(fields.get("next")), ""),
        Err(refused) => {
            let mut form = Form::again(&headers, "Log in", &fields, &refused);
            let said = match refused.kind() {
                ErrorKind::Unauthorized => Some("Wrong email or password."),
                ErrorKind::RateLimited => Some("Too many attempts. Wait a few minutes, then try again."),
                _ => None,
            };
            if let Some(said) = said {
                said.clone_into(&mut form.said);
            }
            again(&headers, &refused, &LoginPage { form, open: state.app.settings().sign_up.open })
        }
    }
}

async fn sign_up_page(Extracted(state): Extracted<State>, headers: HeaderMap) -> Response {
    if recognise(&state, &headers).await.is_ok() {
        return page::go_to(&headers, "/console");
    }
    let form = Form::new(&headers, "Create account");
    let page = SignUpPage::new(&state, form, &Fields::default()).await;
    respond(&headers, page.and_then(|page| html(&page)))
}

impl SignUpPage {
    async fn new(state: &State, form: Form, fields: &Fields) -> Result<Self> {
        let settings = state.app.settings();
        let (empty, first) = signing_up::first_account(&state.app).await?;
        Ok(Self {
            form,
            open: settings.sign_up.open,
            verify: settings.sign_up.verify && !empty,
            first,
            name: fields.get("name").to_owned(),
            workspace: fields.get("workspace_name").to_owned(),
            code: fields.get("code").to_owned(),
        })
    }
}

async fn sign_up(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let client = client(&state, &request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    match try_sign_up(&state, &headers, &fields, &client).await {
        Ok(SignUpOutcome::Opened(opened)) => enter(&state, &headers, &opened, "/console", ""),
        Ok(SignUpOutcome::Sent(sent)) => {
            let form = Form { email: sent.email, ..Form::new(&headers, "Create account") };
            respond(&headers, html(&SentPage { form }))
        }
        Err(refused) => {
            let form = Form::again(&headers, "Create account", &fields, &refused);
            match SignUpPage::new(&state, form, &fields).await {
                Ok(page) => again(&headers, &refused, &page),
                Err(refused) => page::failure(&headers, &refused),
            }
        }
    }
}

async fn try_sign_up(
    state: &State,
    headers: &HeaderMap,
    fields: &Fields,
    client: &Client,
) -> Result<SignUpOutcome> {
    let given = |name: &str| fields.given(name).map(ToOwned::to_owned);
    let code = affiliate_cookie(headers);
    let (empty, _) = signing_up::first_account(&state.app).await?;
    if state.app.settings().sign_up.verify && !empty {
        // The form has no password field: it is chosen after following the link.
        let email = fields.get("email").trim().to_owned();
        let wanted = SignUpRequest::new(email, given("name"), given("workspace_name"), code);
        return verification::request(&state.app, wanted).await.map(SignUpOutcome::Sent);
    }
    let mut wanted: SignUp = input(&json!({
        "email": fields.get("email").trim(), "password": fields.get("password"), "name": given("name"),
        "workspace_name": given("workspace_name"), "code": given("code"),
    }))?;
    wanted.affiliate_code = code;
    signing_up::sign_up(&state.app, wanted, client).await
}

async fn verify_page(headers: HeaderMap) -> Response {
    let form = Form::new(&headers, "Choose a password");
    respond(&headers, html(&VerifyPage { form, token: String::new() }))
}

async fn verify(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let client = client(&state, &request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let wanted: CompleteSignUp =
            input(&json!({ "token": fields.get("token").trim(), "password": fields.get("password") }))?;
        verification::complete(&state.app, wanted, &client).await
    };
    match work.await {
        Ok(opened) => enter(&state, &headers, &opened, "/console", ""),
        Err(refused) => {
            let form = Form::again(&headers, "Choose a password", &fields, &refused);
            again(&headers, &refused, &VerifyPage { form, token: fields.get("token").to_owned() })
        }
    }
}

async fn forgot_page(headers: HeaderMap) -> Response {
    respond(&headers, html(&ForgotPage { form: Form::new(&headers, FORGOT), sent: false }))
}

async fn forgot(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    match input::<PasswordResetRequest>(&json!({ "email": fields.get("email") })) {
        Ok(wanted) => {
            password_resets::request(&state.app, wanted);
            respond(&headers, html(&ForgotPage { form: Form::new(&headers, FORGOT), sent: true }))
        }
        Err(refused) => {
            let form = Form::again(&headers, FORGOT, &fields, &refused);
            again(&headers, &refused, &ForgotPage { form, sent: false })
        }
    }
}

async fn reset_page(headers: HeaderMap) -> Response {
    let form = Form::new(&headers, "Choose a new password");
    respond(&headers, html(&ResetPage { form, token: String::new() }))
}

async fn reset(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let client = client(&state, &request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        let wanted: PasswordReset =
            input(&json!({ "token": fields.get("token").trim(), "password": fields.get("password") }))?;
        password_resets::reset(&state.app, wanted, &client).await
    };
    match work.await {
        Ok(device) => {
            let mut response = page::go_to(&headers, "/console/login");
            set_device_cookie(&state, &mut response, &device);
            flash::set(response, flash::Kind::Done, "Password changed. Log in with the new one.")
        }
        Err(refused) => {
            let form = Form::again(&headers, "Choose a new password", &fields, &refused);
            again(&headers, &refused, &ResetPage { form, token: fields.get("token").to_owned() })
        }
    }
}

async fn log_out(visit: Visit) -> Response {
    let ended = accounts::log_out(visit.app(), &visit.caller, &visit.request).await;
    after_log_out(&visit, ended, "You are logged out.")
}

/// The response after a session has ended.
pub(super) fn after_log_out(visit: &Visit, ended: Result<()>, said: &str) -> Response {
    match ended {
        Ok(()) => {
            let mut response = page::go_to(&visit.headers, "/console/login");
            set_cookie(&visit.state, &mut response, "", 0);
            *response.status_mut() = StatusCode::SEE_OTHER;
            flash::set(response, flash::Kind::Done, said)
        }
        Err(refused) => page::failure(&visit.headers, &refused),
    }
}
