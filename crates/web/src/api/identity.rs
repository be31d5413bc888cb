//! The caller itself over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::identity::Identity;
use operations::{App, Call, Result, identity};

use crate::Endpoint;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new("Workspaces", Method::GET, "/api/v1/me", &identity::GET, get)]
}

async fn get(app: App, call: Arc<Call>, (): ()) -> Result<Identity> {
    identity::get(&app, &call).await
}
