//! The keyless door: a wallet is the account. The same operations as the API's, behind a gate that wants a payment or a
//! proof of the wallet instead of a key.
//!
//! `gate.rs` is the order of stages; `proof.rs` reads what clients show, `challenge.rs` writes what they are asked for.

mod challenge;
mod discovery;
mod gate;
mod openapi;
mod proof;

use std::sync::Arc;

use axum::{http::Method, routing::MethodRouter};
use model::{
    mailboxes::{ListedMailbox, Mailbox},
    payments::{Handshake, NewWalletMailbox},
};
use operations::{
    Actor, App, Call, Operation, Result, attachments, drafts, email_context, emails, folders, labels,
    mailboxes, payments, search, sending, threads,
};

pub use self::openapi::document as agent_document;
use crate::{Endpoint, State, add_route, api, input::Json};

/// Where the keyless interface begins.
const BASE: &str = "/api/agent/v1";
const TAG: &str = "Mailboxes";

/// The operations that are the API's very own, and where they are here.
const SHARED: &[(&Operation, &str)] = &[
    (&mailboxes::GET, "/api/agent/v1/mailboxes/{mailboxId}"),
    (&emails::LIST, "/api/agent/v1/mailboxes/{mailboxId}/emails"),
    (&sending::SEND, "/api/agent/v1/mailboxes/{mailboxId}/emails"),
    (&emails::WAIT, "/api/agent/v1/mailboxes/{mailboxId}/emails/wait"),
    (&emails::GET, "/api/agent/v1/mailboxes/{mailboxId}/emails/{emailId}"),
    (&email_context::GET, "/api/agent/v1/mailboxes/{mailboxId}/emails/{emailId}/context"),
    (&sending::REPLY, "/api/agent/v1/mailboxes/{mailboxId}/emails/{emailId}/reply"),
    (&sending::FORWARD, "/api/agent/v1/mailboxes/{mailboxId}/emails/{emailId}/forward"),
    (&drafts::SAVE, "/api/agent/v1/mailboxes/{mailboxId}/drafts"),
    (&search::SEARCH, "/api/agent/v1/mailboxes/{mailboxId}/search"),
    (&threads::GET, "/api/agent/v1/mailboxes/{mailboxId}/threads/{threadId}"),
    (&attachments::GET, "/api/agent/v1/mailboxes/{mailboxId}/attachments/{attachmentId}"),
    (&folders::LIST, "/api/agent/v1/mailboxes/{mailboxId}/folders"),
    (&labels::LIST, "/api/agent/v1/mailboxes/{mailboxId}/custom-labels"),
];

/// All endpoints of the keyless interface, in the order of its documentation.
pub fn agent_endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::new("Discovery", Method::GET, "/api", &payments::HANDSHAKE, handshake),
        Endpoint::new(TAG, Method::GET, "/api/agent/v1/mailboxes", &mailboxes::LIST, list),
        Endpoint::new(TAG, Method::POST, "/api/agent/v1/mailboxes", &mailboxes::CREATE, create),
    ];
    let mut known = api::endpoints();
    for (operation, path) in SHARED {
        if let Some(index) = known.iter().position(|endpoint| endpoint.operation.id == operation.id) {
            let mut endpoint = known.swap_remove(index);
            endpoint.path = path;
            all.push(endpoint);
        }
    }
    all
}

/// The routes of the keyless interface.
pub(crate) fn routes(state: &State) -> Vec<(&'static str, MethodRouter<State>)> {
    let mut routes = Vec::new();
    for endpoint in agent_endpoints() {
        let (path, filter) = (endpoint.path, endpoint.filter());
        let (gated, state) = (Arc::new(gate::Gated::new(state, endpoint)), state.clone());
        let serve = move |request: axum::extract::Request| gate::serve(state, gated, request);
        add_route(&mut routes, path, |methods| methods.on(filter, serve));
    }
    let document = axum::routing::get(openapi::serve)
        .layer(axum::middleware::from_fn_with_state(state.clone(), crate::public::limit));
    routes.push(("/api/agent/v1/openapi.json", document));
    routes
}

async fn handshake(app: App, call: Arc<Call>, (): ()) -> Result<Handshake> {
    let wallet = match &call.caller.actor {
        Actor::Wallet(address) => pay::Address::parse(address).map(pay::Address::to_checksum),
        _ => None,
    };
    Ok(Handshake {
        agent_api_base_url: format!("{}{BASE}", app.settings().public_url),
        wallet: wallet.unwrap_or_default(),
    })
}

async fn list(app: App, call: Arc<Call>, (): ()) -> Result<Vec<ListedMailbox>> {
    mailboxes::list(&app, &call).await
}

async fn create(app: App, call: Arc<Call>, Json(input): Json<NewWalletMailbox>) -> Result<Mailbox> {
    payments::create_mailbox(&app, &call, input).await
}
