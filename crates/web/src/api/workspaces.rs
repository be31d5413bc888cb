//! Workspaces over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::workspaces::{Storage, Workspace, WorkspaceChange, WorkspaceList};
use operations::{App, Call, Result, workspaces};

use super::paths::InWorkspace;
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Workspaces";
    vec![
        Endpoint::new(tag, Method::GET, "/api/v1/workspaces", &workspaces::LIST, list),
        Endpoint::new(tag, Method::GET, "/api/v1/workspaces/{workspaceId}", &workspaces::GET, get),
        Endpoint::new(tag, Method::PUT, "/api/v1/workspaces/{workspaceId}", &workspaces::UPDATE, update),
        Endpoint::new(
            tag,
            Method::GET,
            "/api/v1/workspaces/{workspaceId}/storage",
            &workspaces::STORAGE,
            storage,
        ),
    ]
}

async fn list(app: App, call: Arc<Call>, (): ()) -> Result<WorkspaceList> {
    workspaces::list(&app, &call).await
}

async fn get(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Workspace> {
    workspaces::get(&app, &call).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (_, Json(change)): (Path<InWorkspace>, Json<WorkspaceChange>),
) -> Result<Workspace> {
    workspaces::update(&app, &call, change).await
}

async fn storage(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Storage> {
    workspaces::storage(&app, &call).await
}
