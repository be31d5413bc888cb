//! Accepting an invite: as the account that is logged in, by signing up, or after logging in.
//!
//! The token is in the fragment of the link. While the visitor logs in, it is kept in a cookie of this page alone.

use std::sync::Arc;

use askama::Template;
use axum::{
    Router,
    extract::{Request, State as Extracted},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
    routing::{get, post},
};
use model::members::AcceptInvite;
use operations::{
    Caller, Credential, Error, ErrorKind, Result,
    accounts::{
        self,
        invitations::{self, InviteOutcome},
    },
};
use serde_json::json;

use super::{
    auth::{Form, SentPage, again, enter, open_form, redirect, respond},
    fields::{Fields, input},
    flash,
    page::{self, html},
    session_api::{client, set_cookie},
};
use crate::{
    State,
    request::{cookie, credential, request_info},
};

const TITLE: &str = "Accept your invite";
const COOKIE: &str = "agent_mailbox_invite";
/// How long the token is kept while the visitor logs in.
const COOKIE_SECONDS: i64 = 900;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/invite", get(show).post(accept))
        .route("/console/invite/login", post(log_in_first))
        // The token is in the fragment, which browsers keep across redirects.
        .route("/invite", get(async || redirect("/console/invite")))
}

#[derive(Template)]
#[template(path = "console/invite.html")]
struct InvitePage {
    form: Form,
    token: String,
    name: String,
    /// The address of the account that is logged in; empty if there is none.
    account: String,
}

impl InvitePage {
    async fn new(state: &State, headers: &HeaderMap, form: Form, fields: &Fields) -> Result<Self> {
        let account = match signed_in(state, headers).await {
            Some(caller) => accounts::me(&state.app, &caller).await?.account.email,
            None => String::new(),
        };
        let token = fields.given("token").or_else(|| cookie(headers, COOKIE)).unwrap_or_default().to_owned();
        Ok(Self { form, token, name: fields.get("name").to_owned(), account })
    }
}

/// The person of the session, also without a workspace: accepting is how to get one.
async fn signed_in(state: &State, headers: &HeaderMap) -> Option<Arc<Caller>> {
    let credential = credential(&state.app, headers).ok()?;
    if !matches!(credential, Credential::Session(_)) {
        return None;
    }
    state.app.authenticate(&credential).await.ok()
}

async fn show(Extracted(state): Extracted<State>, headers: HeaderMap) -> Response {
    let form = Form::new(&headers, TITLE);
    let page = InvitePage::new(&state, &headers, form, &Fields::default()).await;
    respond(&headers, page.and_then(|page| html(&page)))
}

async fn accept(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let client = client(&state, &request);
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let work = async {
        // The form of a logged-in person sends no password.
        let caller = match fields.given("password") {
            Some(_) => None,
            None => signed_in(&state, &headers).await,
        };
        let password = if caller.is_some() { None } else { Some(fields.get("password")) };
        let accept: AcceptInvite = input(&json!({
            "token": fields.get("token").trim(), "password": password, "name": fields.given("name"),
        }))?;
        invitations::accept(&state.app, accept, caller.as_deref(), &client).await
    };
    let welcome = "Welcome to the workspace.";
    match work.await {
        Ok(InviteOutcome::Joined(_)) => {
            let response = page::go_to(&headers, "/console");
            with_token(flash::set(response, flash::Kind::Done, welcome), "", 0)
        }
        Ok(InviteOutcome::Opened(opened)) => {
            with_token(enter(&state, &headers, &opened, "/console", welcome), "", 0)
        }
        Ok(InviteOutcome::Sent(sent)) => {
            let form = Form { email: sent.email, ..Form::new(&headers, TITLE) };
            with_token(respond(&headers, html(&SentPage { form })), "", 0)
        }
        Err(refused) => refuse(&state, &headers, &fields, &refused).await,
    }
}

async fn refuse(state: &State, headers: &HeaderMap, fields: &Fields, refused: &Error) -> Response {
    let mut form = Form::again(headers, TITLE, fields, refused);
    let said = match refused.kind() {
        ErrorKind::NotFound => Some("This invite is no longer valid. Ask for a new one."),
        ErrorKind::AccountExists => {
            Some("You already have an account with this email. Log in to accept the invite.")
        }
        _ => None,
    };
    if let Some(said) = said {
        said.clone_into(&mut form.said);
    }
    match InvitePage::new(state, headers, form, fields).await {
        Ok(page) => again(headers, refused, &page),
        Err(refused) => page::failure(headers, &refused),
    }
}

/// Redirects to the login and back. A person logged in with another account is logged out first.
async fn log_in_first(Extracted(state): Extracted<State>, request: Request) -> Response {
    let headers = request.headers().clone();
    let info = request_info(request.extensions(), request.uri());
    let work = async {
        let fields = open_form(&state, request).await?;
        let mut response = page::go_to(&headers, "/console/login?next=%2Fconsole%2Finvite");
        if let Some(caller) = signed_in(&state, &headers).await {
            accounts::log_out(&state.app, &caller, &info).await?;
            set_cookie(&state, &mut response, "", 0);
        }
        // Only characters that a token consists of.
        let token: String =
            fields.get("token").chars().filter(char::is_ascii_alphanumeric).take(100).collect();
        Ok(with_token(response, &token, COOKIE_SECONDS))
    };
    respond(&headers, work.await)
}

/// Sets the cookie with the token, or clears it.
fn with_token(mut response: Response, token: &str, seconds: i64) -> Response {
    let cookie = format!("{COOKIE}={token}; Path=/console/invite; HttpOnly; SameSite=Lax; Max-Age={seconds}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}
