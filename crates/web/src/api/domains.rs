//! Custom email domains over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::domains::{DomainDeleted, EmailDomain, NewEmailDomain};
use operations::{App, Call, Result, domains};

use super::paths::{DomainPath, InWorkspace};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Custom domains";
    let all = "/api/v1/workspaces/{workspaceId}/email-domains";
    let one = "/api/v1/workspaces/{workspaceId}/email-domains/{domainId}";
    let verification = "/api/v1/workspaces/{workspaceId}/email-domains/{domainId}/verify";
    vec![
        Endpoint::new(tag, Method::GET, all, &domains::LIST, list),
        Endpoint::new(tag, Method::POST, all, &domains::CREATE, create),
        Endpoint::new(tag, Method::POST, verification, &domains::VERIFY, verify),
        Endpoint::new(tag, Method::DELETE, one, &domains::DELETE, delete),
    ]
}

async fn list(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<EmailDomain>> {
    domains::list(&app, &call).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (_, Json(input)): (Path<InWorkspace>, Json<NewEmailDomain>),
) -> Result<EmailDomain> {
    domains::create(&app, &call, input).await
}

async fn verify(app: App, call: Arc<Call>, Path(path): Path<DomainPath>) -> Result<EmailDomain> {
    domains::verify(&app, &call, path.domain).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<DomainPath>) -> Result<DomainDeleted> {
    domains::delete(&app, &call, path.domain).await
}
