//! Send policies over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::{
    send_policies::{NewSendPolicy, PolicyCheck, SendPolicy},
    sending::NewMail,
};
use operations::{App, Call, Result, send_policies};

use super::paths::{InMailbox, InWorkspace};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Send policies";
    let of_workspace = "/api/v1/workspaces/{workspaceId}/send-policy";
    let of_mailbox = "/api/v1/mailboxes/{mailboxId}/send-policy";
    let check_path = "/api/v1/mailboxes/{mailboxId}/send-policy/check";
    vec![
        Endpoint::new(tag, Method::GET, of_workspace, &send_policies::GET, get),
        Endpoint::new(tag, Method::PUT, of_workspace, &send_policies::SET, set),
        Endpoint::new(tag, Method::GET, of_mailbox, &send_policies::GET_OF_MAILBOX, get_of_mailbox),
        Endpoint::new(tag, Method::PUT, of_mailbox, &send_policies::SET_OF_MAILBOX, set_of_mailbox),
        Endpoint::new(tag, Method::DELETE, of_mailbox, &send_policies::DELETE_OF_MAILBOX, delete_of_mailbox),
        Endpoint::new(tag, Method::POST, check_path, &send_policies::CHECK, check),
    ]
}

async fn get(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<SendPolicy> {
    send_policies::get(&app, &call).await
}

async fn set(
    app: App,
    call: Arc<Call>,
    (_, Json(policy)): (Path<InWorkspace>, Json<NewSendPolicy>),
) -> Result<SendPolicy> {
    send_policies::set(&app, &call, policy).await
}

async fn get_of_mailbox(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<SendPolicy> {
    send_policies::get_of_mailbox(&app, &call, &path.mailbox).await
}

async fn set_of_mailbox(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(policy)): (Path<InMailbox>, Json<NewSendPolicy>),
) -> Result<SendPolicy> {
    send_policies::set_of_mailbox(&app, &call, &path.mailbox, policy).await
}

async fn delete_of_mailbox(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<()> {
    send_policies::delete_of_mailbox(&app, &call, &path.mailbox).await
}

async fn check(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewMail>),
) -> Result<PolicyCheck> {
    send_policies::check(&app, &call, &path.mailbox, input).await
}
