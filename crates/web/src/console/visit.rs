//! A request for a page: the person of the session, what they may do, and how a page responds.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, request::Parts},
    response::Response,
};
use operations::{
    App, Author, Call, Caller, Credential, Error, ErrorKind, Operation, RequestInfo, Result, accounts, events,
};

use serde_json::json;

use super::{flash, limits::ConsoleLimits, page, time::Zone, undo::Outcome};
use crate::{
    State, error,
    request::{credential, request_info, require_own_site},
};

/// A logged-in person's request for a page.
pub(super) struct Visit {
    pub(super) state: State,
    pub(super) caller: Arc<Caller>,
    pub(super) headers: HeaderMap,
    /// The last event before the page was rendered.
    pub(super) after: i64,
    /// What the audit log says of the request.
    pub(super) request: RequestInfo,
}

impl FromRequestParts<State> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Response> {
        let changes = !parts.method.is_safe();
        if changes && let Err(refused) = require_own_site(&state.app, &parts.headers) {
            return Err(page::failure(&parts.headers, &refused));
        }
        let caller = match recognise(state, &parts.headers).await {
            Ok(caller) => caller,
            Err(refused) if refused.kind() == ErrorKind::Unauthorized => return Err(to_login(parts)),
            Err(refused) => return Err(page::failure(&parts.headers, &refused)),
        };
        // Read before anything that the page shows, so that no event falls between the page and its stream. A form
        // may be answered with a page too; a part of a page uses the open page's stream.
        let partial = page::is_partial(&parts.headers);
        let after = if partial { Ok(0) } else { last_event(&state.app, &caller).await };
        Ok(Self {
            state: state.clone(),
            caller,
            headers: parts.headers.clone(),
            after: after.map_err(|refused| page::failure(&parts.headers, &refused))?,
            request: request_info(&parts.extensions, &parts.uri),
        })
    }
}

async fn last_event(app: &App, caller: &Caller) -> Result<i64> {
    events::last_sequence(app, &caller.access(None)?.workspace).await
}

/// The person of the session. An API key is not a person.
pub(super) async fn recognise(state: &State, headers: &HeaderMap) -> Result<Arc<Caller>> {
    let credential = credential(&state.app, headers)?;
    if !matches!(credential, Credential::Session(_)) {
        return Err(Error::new(ErrorKind::Unauthorized));
    }
    let caller = state.app.authenticate(&credential).await?;
    // A person who was removed from every workspace has nothing to see.
    caller.access(None).map_err(|_| Error::new(ErrorKind::Unauthorized))?;
    Ok(caller)
}

fn to_login(parts: &Parts) -> Response {
    let wanted = parts.uri.path_and_query().map_or("/console", |all| all.as_str());
    // A form whose session has expired is not sent again; its page is opened instead.
    let next =
        if parts.method == Method::GET && !page::is_partial(&parts.headers) { wanted } else { "/console" };
    let encoded: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    let target = if next == "/console" {
        "/console/login".to_owned()
    } else {
        format!("/console/login?next={encoded}")
    };
    page::go_to(&parts.headers, &target)
}

impl Visit {
    /// The rows that a page shows.
    pub(super) fn limits(&self) -> &ConsoleLimits {
        &self.state.console
    }

    /// The path that was asked for.
    pub(super) fn path(&self) -> &str {
        &self.request.subject
    }

    pub(super) fn app(&self) -> &App {
        &self.state.app
    }

    /// A call in the chosen workspace: the API's permission checks, without its metering.
    pub(super) fn call(&self, operation: &'static Operation) -> Result<Call> {
        self.app().enter_console(operation, self.caller.clone(), None, self.request.clone())
    }

    /// A call that is metered as over the API. The caller commits or refunds it.
    pub(super) async fn metered(&self, operation: &'static Operation) -> Result<Arc<Call>> {
        let admission = self.app().admit(operation, self.caller.clone(), None).await?;
        let entrance = admission.entrance?;
        Ok(Arc::new(self.app().charge(&entrance, self.request.clone(), None).await?))
    }

    /// Who changes something that belongs to no call.
    pub(super) fn author(&self) -> Author {
        Author::caller(&self.caller, &self.request)
    }

    /// Whether the person's role and plan allow an operation.
    pub(super) fn may(&self, operation: &'static Operation) -> bool {
        self.call(operation).is_ok()
    }

    /// Whether the person operates this server.
    pub(super) fn is_operator(&self) -> bool {
        matches!(self.caller.actor, operations::Actor::Person { is_admin: true, .. })
    }

    /// Responds with "not found" to people who do not operate this server.
    pub(super) fn require_operator(&self) -> Result<()> {
        if self.is_operator() { Ok(()) } else { Err(Error::not_found("Not found")) }
    }

    /// The time zone of the workspace.
    pub(super) async fn zone(&self) -> Result<Zone> {
        let call = self.call(&operations::workspaces::GET)?;
        let workspace = operations::workspaces::get(self.app(), &call).await?;
        Ok(Zone::new(&workspace.timezone, self.app().now()))
    }

    /// Who is logged in.
    pub(super) async fn me(&self) -> Result<model::accounts::Me> {
        accounts::me(self.app(), &self.caller).await
    }

    /// Responds with a page, or with an error.
    pub(super) async fn answer(&self, work: impl Future<Output = Result<Response>>) -> Response {
        match work.await {
            Ok(response) => response,
            Err(refused) => page::failure(&self.headers, &refused),
        }
    }

    /// Shows the page of a refused form again, with the error's status. A script gets a part of a page with 200, or it
    /// would not show it.
    pub(super) async fn again(
        &self,
        refused: &Error,
        work: impl Future<Output = Result<Response>>,
    ) -> Response {
        let mut response = self.answer(work).await;
        if !page::is_partial(&self.headers) && response.status().is_success() {
            *response.status_mut() = error::status(refused.kind());
        }
        response
    }

    /// Runs a form's action, and redirects to a page that reports its result.
    pub(super) async fn act(
        &self,
        back: &str,
        work: impl Future<Output = Result<(String, String)>>,
    ) -> Response {
        self.leave(back, work.await.map(Outcome::from))
    }

    /// Redirects to a page that reports what came of an action.
    pub(super) fn leave(&self, back: &str, outcome: Result<Outcome>) -> Response {
        match outcome {
            Ok(Outcome { target, said, undo }) => {
                let response = page::go_to(&self.headers, &target);
                flash::set_undoable(response, flash::Kind::Done, &said, undo.as_ref())
            }
            Err(refused) if page::is_partial(&self.headers) => page::failure(&self.headers, &refused),
            Err(refused) => {
                let said = page::explain(&refused);
                flash::set(page::go_to(&self.headers, back), flash::Kind::Failed, &said)
            }
        }
    }

    /// Reports what came of an action on conversations: on the open page, or after a redirect.
    pub(super) fn conclude(&self, back: &str, outcome: Result<Outcome>) -> Response {
        match outcome {
            Ok(Outcome { said, undo, .. }) if page::is_partial(&self.headers) => {
                let mut trigger = json!({ "mail-news": {} });
                if !said.is_empty() {
                    trigger["toast"] = json!({ "kind": "done", "text": said, "undo": undo });
                }
                page::with_header(page::nothing(), "hx-trigger", &page::ascii_json(&trigger))
            }
            outcome => self.leave(back, outcome),
        }
    }
}
