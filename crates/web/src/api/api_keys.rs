//! API keys over HTTP, for console sessions.

use std::sync::Arc;

use axum::http::Method;
use model::api_keys::{ApiKey, ApiKeyChange, ApiKeyWithSecret, NewApiKey};
use operations::{App, Call, Result, api_keys};

use super::paths::{ApiKeyPath, InWorkspace};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "API keys";
    let all = "/api/v1/workspaces/{workspaceId}/api-keys";
    let one = "/api/v1/workspaces/{workspaceId}/api-keys/{keyId}";
    vec![
        Endpoint::new(tag, Method::GET, all, &api_keys::LIST, list),
        Endpoint::new(tag, Method::POST, all, &api_keys::CREATE, create),
        Endpoint::new(tag, Method::PATCH, one, &api_keys::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &api_keys::REVOKE, revoke),
    ]
}

async fn list(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<ApiKey>> {
    api_keys::list(&app, &call).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (_, Json(input)): (Path<InWorkspace>, Json<NewApiKey>),
) -> Result<ApiKeyWithSecret> {
    api_keys::create(&app, &call, input).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<ApiKeyPath>, Json<ApiKeyChange>),
) -> Result<ApiKey> {
    api_keys::update(&app, &call, path.key, change).await
}

async fn revoke(app: App, call: Arc<Call>, Path(path): Path<ApiKeyPath>) -> Result<()> {
    api_keys::revoke(&app, &call, path.key).await
}
