//! Sending mail over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::sending::{Delivery, NewForward, NewMail, NewReply, SentMail};
use operations::{App, Call, Result, sending};

use super::paths::{EmailPath, InMailbox};
use crate::{
    Endpoint,
    input::{Json, Path, RespondAsync},
};

const TAG: &str = "Sending";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let all = "/api/v1/mailboxes/{mailboxId}/emails";
    let reply_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/reply";
    let forward_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/forward";
    let delivery_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/delivery";
    vec![
        Endpoint::new(TAG, Method::POST, all, &sending::SEND, send),
        Endpoint::new(TAG, Method::POST, reply_path, &sending::REPLY, reply),
        Endpoint::new(TAG, Method::POST, forward_path, &sending::FORWARD, forward),
        Endpoint::new(TAG, Method::GET, delivery_path, &sending::DELIVERY, delivery),
    ]
}

async fn send(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input), RespondAsync(at_once)): (Path<InMailbox>, Json<NewMail>, RespondAsync),
) -> Result<SentMail> {
    sending::send(&app, &call, &path.mailbox, input, !at_once).await
}

async fn reply(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input), RespondAsync(at_once)): (Path<EmailPath>, Json<NewReply>, RespondAsync),
) -> Result<SentMail> {
    sending::reply(&app, &call, &path.mailbox, path.email, input, !at_once).await
}

async fn forward(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input), RespondAsync(at_once)): (Path<EmailPath>, Json<NewForward>, RespondAsync),
) -> Result<SentMail> {
    sending::forward(&app, &call, &path.mailbox, path.email, input, !at_once).await
}

async fn delivery(app: App, call: Arc<Call>, Path(path): Path<EmailPath>) -> Result<Delivery> {
    sending::delivery(&app, &call, &path.mailbox, path.email).await
}
