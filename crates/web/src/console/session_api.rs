//! The console's session as JSON: signing up, logging in and out, choosing a workspace.
//!
//! Neither metered nor part of the catalogue; rate-limited by client address.

use axum::{
    Router,
    extract::{Request, State as Extracted},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::{Next, from_fn},
    response::Response,
    routing::{delete, get, post},
};
use model::{
    accounts::{CompleteSignUp, Login, SignUp, SwitchWorkspace},
    members::AcceptInvite,
};
use operations::{
    Caller, Client, Credential, DEVICE_SECONDS, Error, ErrorKind, Result,
    accounts::{
        self, OpenedSession, SESSION_SECONDS,
        invitations::{self, InviteOutcome},
        sign_up::{self, SignUpOutcome},
        verification,
    },
};
use std::sync::Arc;

use crate::{
    State,
    body::{self, BodyLimit},
    error,
    input::{refuse_query, together},
    json_body::read_json,
    limits::network,
    request::{
        self, client_address, cookie, cookie_name, credential, device_cookie_name, is_secure,
        path_parameters, refuse_cross_site, request_info, require_own_site,
    },
};

/// The largest body of these routes.
const MAX_BODY_BYTES: u64 = 64 * 1024;

pub(crate) fn routes() -> Router<State> {
    Router::new()
        .route("/api/console/sign-up", post(sign_up))
        .route("/api/console/sign-up/complete", post(complete_sign_up))
        .route("/api/console/login", post(log_in))
        .route("/api/console/logout", post(log_out))
        .route("/api/console/logout-everywhere", post(log_out_everywhere))
        .route("/api/console/me", get(me))
        .route("/api/console/workspace", post(switch_workspace))
        .route("/api/console/sessions", get(sessions))
        .route("/api/console/sessions/{sessionId}", delete(revoke_session))
        .route("/api/console/invites/accept", post(accept_invite))
        .route_layer(from_fn(require_json_answer))
}

async fn require_json_answer(request: Request, next: Next) -> Response {
    match request::require_json_answer(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => error::response(&refused),
    }
}

async fn sign_up(Extracted(state): Extracted<State>, request: Request) -> Response {
    answer(async {
        let client = client(&state, &request);
        let (headers, mut input): (_, SignUp) = open_request(&state, request).await?;
        if input.affiliate_code.is_none() {
            input.affiliate_code = affiliate_cookie(&headers);
        }
        Ok(match sign_up::sign_up(&state.app, input, &client).await? {
            SignUpOutcome::Opened(opened) => logged_in(&state, StatusCode::CREATED, &opened),
            SignUpOutcome::Sent(sent) => error::json_of(StatusCode::ACCEPTED, &sent),
        })
    })
    .await
}

async fn complete_sign_up(Extracted(state): Extracted<State>, request: Request) -> Response {
    answer(async {
        let client = client(&state, &request);
        let (_, input): (_, CompleteSignUp) = open_request(&state, request).await?;
        let opened = verification::complete(&state.app, input, &client).await?;
        Ok(logged_in(&state, StatusCode::CREATED, &opened))
    })
    .await
}

async fn log_in(Extracted(state): Extracted<State>, request: Request) -> Response {
    answer(async {
        let client = client(&state, &request);
        let (_, input): (_, Login) = open_request(&state, request).await?;
        let opened = accounts::log_in(&state.app, input, &client).await.map_err(|refused| {
            let is_wrong = refused.kind() == ErrorKind::Unauthorized;
            if is_wrong { refused.with_fix("Check the email address and the password.") } else { refused }
        })?;
        Ok(logged_in(&state, StatusCode::OK, &opened))
    })
    .await
}

/// The client of a route that takes passwords.
pub(super) fn client(state: &State, request: &Request) -> Client {
    let headers = request.headers();
    let user_agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    Client {
        network: network(client_address(request)),
        device: cookie(headers, device_cookie_name(&state.app)).map(ToOwned::to_owned),
        user_agent: user_agent.unwrap_or_default().to_owned(),
        request: request_info(request.extensions(), request.uri()),
    }
}

async fn accept_invite(Extracted(state): Extracted<State>, request: Request) -> Response {
    answer(async {
        let client = client(&state, &request);
        let (headers, input): (_, AcceptInvite) = open_request(&state, request).await?;
        // Without a password the session accepts.
        let caller = match input.password {
            Some(_) => None,
            None => Some(person(&state, &headers, true).await?),
        };
        Ok(match invitations::accept(&state.app, input, caller.as_deref(), &client).await? {
            InviteOutcome::Joined(me) => error::json_of(StatusCode::OK, &me),
            InviteOutcome::Opened(opened) => logged_in(&state, StatusCode::OK, &opened),
            InviteOutcome::Sent(sent) => error::json_of(StatusCode::ACCEPTED, &sent),
        })
    })
    .await
}

async fn log_out(Extracted(state): Extracted<State>, parts: Parts) -> Response {
    answer(async {
        let caller = person_alone(&state, &parts, true).await?;
        accounts::log_out(&state.app, &caller, &request_info(&parts.extensions, &parts.uri)).await?;
        Ok(logged_out(&state))
    })
    .await
}

async fn log_out_everywhere(Extracted(state): Extracted<State>, parts: Parts) -> Response {
    answer(async {
        let caller = person_alone(&state, &parts, true).await?;
        accounts::log_out_everywhere(&state.app, &caller, &request_info(&parts.extensions, &parts.uri))
            .await?;
        Ok(logged_out(&state))
    })
    .await
}

async fn me(Extracted(state): Extracted<State>, parts: Parts) -> Response {
    answer(async {
        let caller = person_alone(&state, &parts, false).await?;
        Ok(error::json_of(StatusCode::OK, &accounts::me(&state.app, &caller).await?))
    })
    .await
}

async fn switch_workspace(Extracted(state): Extracted<State>, request: Request) -> Response {
    answer(async {
        let caller = person(&state, request.headers(), true).await?;
        let (_, input): (_, SwitchWorkspace) = json_request(request).await?;
        let me = accounts::switch_workspace(&state.app, &caller, input).await?;
        Ok(error::json_of(StatusCode::OK, &me))
    })
    .await
}

async fn sessions(Extracted(state): Extracted<State>, parts: Parts) -> Response {
    answer(async {
        let caller = person_alone(&state, &parts, false).await?;
        Ok(error::json_of(StatusCode::OK, &accounts::list_sessions(&state.app, &caller).await?))
    })
    .await
}

async fn revoke_session(Extracted(state): Extracted<State>, parts: Parts) -> Response {
    answer(async {
        let caller = person_alone(&state, &parts, true).await?;
        let session = path_parameters(&parts).pop().unwrap_or_default().1;
        let info = request_info(&parts.extensions, &parts.uri);
        accounts::revoke_session(&state.app, &caller, session.into(), &info).await?;
        Ok(empty())
    })
    .await
}

async fn answer(work: impl Future<Output = Result<Response>>) -> Response {
    work.await.unwrap_or_else(|refused| error::response(&refused))
}

/// A request that needs no session: same-site, rate-limited, with a small JSON body.
pub(super) async fn open_request<T>(state: &State, request: Request) -> Result<(HeaderMap, T)>
where
    T: serde::de::DeserializeOwned + garde::Validate<Context = ()> + schemars::JsonSchema,
{
    let address = client_address(&request);
    state.anonymous.count(address, state.app.now())?;
    refuse_cross_site(&state.app, request.headers())?;
    json_request(request).await
}

async fn json_request<T>(request: Request) -> Result<(HeaderMap, T)>
where
    T: serde::de::DeserializeOwned + garde::Validate<Context = ()> + schemars::JsonSchema,
{
    let (parts, body) = request.into_parts();
    body::refuse_encoding(&parts.headers)?;
    body::require_type(&parts.headers, &[body::JSON])?;
    let limit = BodyLimit { max: MAX_BODY_BYTES, refusal: ErrorKind::PayloadTooLarge };
    let bytes = body::read(&parts.headers, body, limit).await?;
    let ((), value) = together(refuse_query(parts.uri.query().unwrap_or_default()), read_json(&bytes))?;
    Ok((parts.headers, value))
}

/// The person of the session. An API key is not a person.
async fn person(state: &State, headers: &HeaderMap, changes: bool) -> Result<Arc<Caller>> {
    let credential = credential(&state.app, headers)?;
    if !matches!(credential, Credential::Session(_)) {
        return Err(Error::new(ErrorKind::Unauthorized));
    }
    if changes {
        require_own_site(&state.app, headers)?;
    }
    state.app.authenticate(&credential).await
}

/// The same for a request without a body.
async fn person_alone(state: &State, parts: &Parts, changes: bool) -> Result<Arc<Caller>> {
    let caller = person(state, &parts.headers, changes).await?;
    refuse_query(parts.uri.query().unwrap_or_default())?;
    Ok(caller)
}

pub(super) fn affiliate_cookie(headers: &HeaderMap) -> Option<String> {
    cookie(headers, crate::public::AFFILIATE_COOKIE).map(ToOwned::to_owned)
}

fn logged_in(state: &State, status: StatusCode, opened: &OpenedSession) -> Response {
    let mut response = error::json_of(status, &opened.me);
    set_cookies(state, &mut response, opened);
    response
}

/// The cookies after a login.
pub(super) fn set_cookies(state: &State, response: &mut Response, opened: &OpenedSession) {
    set_cookie(state, response, &opened.secret, SESSION_SECONDS);
    set_device_cookie(state, response, &opened.device);
}

/// Marks a browser as known to the account.
pub(super) fn set_device_cookie(state: &State, response: &mut Response, device: &str) {
    append_cookie(state, response, device_cookie_name(&state.app), device, DEVICE_SECONDS);
}

fn logged_out(state: &State) -> Response {
    let mut response = empty();
    set_cookie(state, &mut response, "", 0);
    response
}

fn empty() -> Response {
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(super) fn set_cookie(state: &State, response: &mut Response, secret: &str, seconds: i64) {
    append_cookie(state, response, cookie_name(&state.app), secret, seconds);
}

fn append_cookie(state: &State, response: &mut Response, name: &str, value: &str, seconds: i64) {
    let secure = if is_secure(&state.app) { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}
