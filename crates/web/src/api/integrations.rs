//! Connections to outside tool servers over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::integrations::{Connection, ConnectionChange, NewConnection};
use operations::{App, Call, Result, integrations};

use super::paths::ConnectionPath;
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Integrations";
    let all = "/api/v1/integrations/connections";
    let one = "/api/v1/integrations/connections/{connectionId}";
    let sync_path = "/api/v1/integrations/connections/{connectionId}/sync";
    vec![
        Endpoint::new(tag, Method::GET, all, &integrations::LIST, list),
        Endpoint::new(tag, Method::POST, all, &integrations::CREATE, create),
        Endpoint::new(tag, Method::PATCH, one, &integrations::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &integrations::DELETE, delete),
        Endpoint::new(tag, Method::POST, sync_path, &integrations::SYNC, sync),
    ]
}

async fn list(app: App, call: Arc<Call>, (): ()) -> Result<Vec<Connection>> {
    integrations::list(&app, &call).await
}

async fn create(app: App, call: Arc<Call>, Json(input): Json<NewConnection>) -> Result<Connection> {
    integrations::create(&app, &call, input).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<ConnectionPath>, Json<ConnectionChange>),
) -> Result<Connection> {
    integrations::update(&app, &call, path.connection, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<ConnectionPath>) -> Result<()> {
    integrations::delete(&app, &call, path.connection).await
}

async fn sync(app: App, call: Arc<Call>, Path(path): Path<ConnectionPath>) -> Result<Connection> {
    integrations::sync(&app, &call, path.connection).await
}
