//! Mailboxes over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::{
    mailboxes::{ListedMailbox, Mailbox, MailboxChange, MailboxQuery, NewMailbox},
    usage::MailboxStorage,
};
use operations::{App, Call, Result, mailboxes};

use super::paths::{InMailbox, InWorkspace};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Mailboxes";
    let (all, one) = ("/api/v1/mailboxes", "/api/v1/mailboxes/{mailboxId}");
    let in_workspace = "/api/v1/workspaces/{workspaceId}/mailboxes";
    vec![
        Endpoint::new(tag, Method::GET, in_workspace, &mailboxes::LIST_IN_WORKSPACE, list_in_workspace),
        Endpoint::new(tag, Method::GET, all, &mailboxes::LIST, list),
        Endpoint::new(tag, Method::POST, all, &mailboxes::CREATE, create),
        Endpoint::new(tag, Method::GET, one, &mailboxes::GET, get),
        Endpoint::new(tag, Method::PUT, one, &mailboxes::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &mailboxes::DELETE, delete),
        Endpoint::new(
            tag,
            Method::GET,
            "/api/v1/mailboxes/{mailboxId}/storage",
            &mailboxes::STORAGE,
            storage,
        ),
    ]
}

async fn list_in_workspace(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<ListedMailbox>> {
    mailboxes::list(&app, &call).await
}

async fn list(app: App, call: Arc<Call>, Query(query): Query<MailboxQuery>) -> Result<Vec<ListedMailbox>> {
    call.require_workspace(query.workspace_id.as_ref())?;
    mailboxes::list(&app, &call).await
}

async fn create(app: App, call: Arc<Call>, Json(input): Json<NewMailbox>) -> Result<Mailbox> {
    mailboxes::create(&app, &call, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<Mailbox> {
    mailboxes::get(&app, &call, &path.mailbox).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<InMailbox>, Json<MailboxChange>),
) -> Result<Mailbox> {
    mailboxes::update(&app, &call, &path.mailbox, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<()> {
    mailboxes::delete(&app, &call, &path.mailbox).await
}

async fn storage(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<MailboxStorage> {
    mailboxes::storage(&app, &call, &path.mailbox).await
}
