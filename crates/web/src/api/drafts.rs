//! Drafts over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::{
    drafts::{Draft, DraftListQuery, DraftPage, DraftPrompt, NewDraft, RegeneratedDraft, SavedDraft},
    sending::SentMail,
};
use operations::{App, Call, Result, drafts};

use super::paths::{DraftPath, InMailbox};
use crate::{
    Endpoint,
    input::{Json, Path, Query, RespondAsync},
};

const TAG: &str = "Drafts";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let all = "/api/v1/mailboxes/{mailboxId}/drafts";
    let one = "/api/v1/mailboxes/{mailboxId}/drafts/{draftId}";
    let anew = "/api/v1/mailboxes/{mailboxId}/drafts/regenerate";
    let send_path = "/api/v1/mailboxes/{mailboxId}/drafts/{draftId}/send";
    vec![
        Endpoint::new(TAG, Method::GET, all, &drafts::LIST, list),
        Endpoint::new(TAG, Method::POST, all, &drafts::SAVE, save),
        Endpoint::new(TAG, Method::GET, one, &drafts::GET, get),
        Endpoint::new(TAG, Method::DELETE, one, &drafts::DELETE, delete),
        Endpoint::new(TAG, Method::POST, send_path, &drafts::SEND, send),
        Endpoint::new(TAG, Method::POST, anew, &drafts::REGENERATE, regenerate),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<DraftListQuery>),
) -> Result<DraftPage> {
    drafts::list(&app, &call, &path.mailbox, query).await
}

async fn save(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewDraft>),
) -> Result<SavedDraft> {
    drafts::save(&app, &call, &path.mailbox, input).await
}

async fn regenerate(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<DraftPrompt>),
) -> Result<RegeneratedDraft> {
    drafts::regenerate(&app, &call, &path.mailbox, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<DraftPath>) -> Result<Draft> {
    drafts::get(&app, &call, &path.mailbox, path.draft).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<DraftPath>) -> Result<()> {
    drafts::delete(&app, &call, &path.mailbox, path.draft).await
}

async fn send(
    app: App,
    call: Arc<Call>,
    (Path(path), RespondAsync(at_once)): (Path<DraftPath>, RespondAsync),
) -> Result<SentMail> {
    drafts::send(&app, &call, &path.mailbox, path.draft, !at_once).await
}
