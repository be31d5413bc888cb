//! The endpoints of the keyless interface: most are those of the API under other paths.

use std::sync::Arc;

use axum::http::Method;
use model::{
    mailboxes::{ListedMailbox, Mailbox},
    payments::{Handshake, NewWalletMailbox},
};
use operations::{
    Actor, App, Call, Operation, Result, attachments, drafts, email_context, emails, folders, labels,
    mailboxes, payments, search, sending, threads,
};

use crate::{Endpoint, api, input::Json};

/// The path prefix of the keyless interface.
const BASE: &str = "/api/agent/v1";
const TAG: &str = "Mailboxes";

/// The operations shared with the API, and their paths here.
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
