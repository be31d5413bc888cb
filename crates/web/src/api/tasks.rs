//! Tasks over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::tasks::{Task, TaskChange, TaskPage, TaskQuery};
use operations::{App, Call, Result, tasks};

use super::paths::{InMailbox, TaskPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Triage";
    let all = "/api/v1/mailboxes/{mailboxId}/tasks";
    let one = "/api/v1/mailboxes/{mailboxId}/tasks/{taskId}";
    vec![
        Endpoint::new(tag, Method::GET, all, &tasks::LIST, list),
        Endpoint::new(tag, Method::PUT, one, &tasks::UPDATE, update),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<TaskQuery>),
) -> Result<TaskPage> {
    tasks::list(&app, &call, &path.mailbox, query).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<TaskPath>, Json<TaskChange>),
) -> Result<Task> {
    tasks::update(&app, &call, &path.mailbox, path.task, change).await
}
