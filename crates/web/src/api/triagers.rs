//! Triagers over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::triagers::{
    NewTriager, NewTriagerRun, RecentRuns, RecentRunsQuery, Triager, TriagerChange, TriagerConversation,
    TriagerRun,
};
use operations::{App, Call, Result, triagers};

use super::paths::{InMailbox, TriagerPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Triage";
    let all = "/api/v1/mailboxes/{mailboxId}/task-triagers";
    let one = "/api/v1/mailboxes/{mailboxId}/task-triagers/{triagerId}";
    let default = "/api/v1/mailboxes/{mailboxId}/task-triagers/{triagerId}/default";
    let now = "/api/v1/mailboxes/{mailboxId}/task-triagers/{triagerId}/run";
    let talk = "/api/v1/mailboxes/{mailboxId}/task-triagers/{triagerId}/agent-conversation";
    let runs = "/api/v1/mailboxes/{mailboxId}/task-triager-runs/recent";
    vec![
        Endpoint::new(tag, Method::GET, all, &triagers::LIST, list),
        Endpoint::new(tag, Method::POST, all, &triagers::CREATE, create),
        Endpoint::new(tag, Method::GET, one, &triagers::GET, get),
        Endpoint::new(tag, Method::PUT, one, &triagers::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &triagers::DELETE, delete),
        Endpoint::new(tag, Method::POST, default, &triagers::MAKE_DEFAULT, make_default),
        Endpoint::new(tag, Method::POST, now, &triagers::RUN, run),
        Endpoint::new(tag, Method::POST, talk, &triagers::CONVERSATION, conversation),
        Endpoint::new(tag, Method::GET, runs, &triagers::RECENT, recent),
    ]
}

async fn list(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<Vec<Triager>> {
    triagers::list(&app, &call, &path.mailbox).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewTriager>),
) -> Result<Triager> {
    triagers::create(&app, &call, &path.mailbox, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<TriagerPath>) -> Result<Triager> {
    triagers::get(&app, &call, &path.mailbox, path.triager).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<TriagerPath>, Json<TriagerChange>),
) -> Result<Triager> {
    triagers::update(&app, &call, &path.mailbox, path.triager, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<TriagerPath>) -> Result<()> {
    triagers::delete(&app, &call, &path.mailbox, path.triager).await
}

async fn make_default(app: App, call: Arc<Call>, Path(path): Path<TriagerPath>) -> Result<Triager> {
    triagers::make_default(&app, &call, &path.mailbox, path.triager).await
}

async fn run(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<TriagerPath>, Json<NewTriagerRun>),
) -> Result<TriagerRun> {
    triagers::run(&app, &call, &path.mailbox, path.triager, input).await
}

async fn conversation(
    app: App,
    call: Arc<Call>,
    Path(path): Path<TriagerPath>,
) -> Result<TriagerConversation> {
    triagers::conversation(&app, &call, &path.mailbox, path.triager).await
}

async fn recent(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<RecentRunsQuery>),
) -> Result<RecentRuns> {
    triagers::recent(&app, &call, &path.mailbox, query).await
}
