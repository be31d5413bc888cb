//! Threads and search over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::{
    emails::{Email, EmailPage, Move, ThreadQuery},
    search::SearchQuery,
    threads::{ThreadListQuery, ThreadPage, ThreadUpdate},
};
use operations::{App, Call, Result, search, threads};

use super::paths::{InMailbox, ThreadPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Threads and search";
    let one = "/api/v1/mailboxes/{mailboxId}/threads/{threadId}";
    vec![
        Endpoint::new(tag, Method::GET, "/api/v1/mailboxes/{mailboxId}/threads", &threads::LIST, list),
        Endpoint::new(tag, Method::GET, one, &threads::GET, get),
        Endpoint::new(
            tag,
            Method::POST,
            "/api/v1/mailboxes/{mailboxId}/threads/{threadId}/read",
            &threads::READ,
            read,
        ),
        Endpoint::new(
            tag,
            Method::POST,
            "/api/v1/mailboxes/{mailboxId}/threads/{threadId}/move",
            &threads::MOVE,
            move_all,
        ),
        Endpoint::new(tag, Method::GET, "/api/v1/mailboxes/{mailboxId}/search", &search::SEARCH, find),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<ThreadListQuery>),
) -> Result<ThreadPage> {
    threads::list(&app, &call, &path.mailbox, query).await
}

async fn get(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<ThreadPath>, Query<ThreadQuery>),
) -> Result<Vec<Email>> {
    threads::get(&app, &call, &path.mailbox, path.thread, query).await
}

async fn read(app: App, call: Arc<Call>, Path(path): Path<ThreadPath>) -> Result<ThreadUpdate> {
    threads::read(&app, &call, &path.mailbox, path.thread).await
}

async fn move_all(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(target)): (Path<ThreadPath>, Json<Move>),
) -> Result<ThreadUpdate> {
    threads::move_all(&app, &call, &path.mailbox, path.thread, target).await
}

async fn find(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<SearchQuery>),
) -> Result<EmailPage> {
    search::search(&app, &call, &path.mailbox, query).await
}
