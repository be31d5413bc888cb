//! Scheduled sends over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::drafts::{
    DraftListQuery, NewScheduledSend, SavedDraft, ScheduleChange, ScheduledSend, ScheduledSendPage,
};
use operations::{App, Call, Result, scheduled_sends};

use super::paths::{InMailbox, ScheduledSendPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

const TAG: &str = "Scheduled sends";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let all = "/api/v1/mailboxes/{mailboxId}/scheduled-sends";
    let one = "/api/v1/mailboxes/{mailboxId}/scheduled-sends/{scheduledSendId}";
    vec![
        Endpoint::new(TAG, Method::GET, all, &scheduled_sends::LIST, list),
        Endpoint::new(TAG, Method::POST, all, &scheduled_sends::CREATE, create),
        Endpoint::new(TAG, Method::GET, one, &scheduled_sends::GET, get),
        Endpoint::new(TAG, Method::PATCH, one, &scheduled_sends::UPDATE, update),
        Endpoint::new(TAG, Method::DELETE, one, &scheduled_sends::CANCEL, cancel),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<DraftListQuery>),
) -> Result<ScheduledSendPage> {
    scheduled_sends::list(&app, &call, &path.mailbox, query).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewScheduledSend>),
) -> Result<ScheduledSend> {
    scheduled_sends::create(&app, &call, &path.mailbox, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<ScheduledSendPath>) -> Result<ScheduledSend> {
    scheduled_sends::get(&app, &call, &path.mailbox, path.scheduled).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<ScheduledSendPath>, Json<ScheduleChange>),
) -> Result<ScheduledSend> {
    scheduled_sends::update(&app, &call, &path.mailbox, path.scheduled, change).await
}

async fn cancel(app: App, call: Arc<Call>, Path(path): Path<ScheduledSendPath>) -> Result<SavedDraft> {
    scheduled_sends::cancel(&app, &call, &path.mailbox, path.scheduled).await
}
