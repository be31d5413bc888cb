//! The memory store over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::usage::MemoryCredentials;
use operations::{App, Call, Result, memory};

use crate::Endpoint;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new("Memory", Method::GET, "/api/v1/rag/credentials", &memory::CREDENTIALS, credentials)]
}

async fn credentials(app: App, call: Arc<Call>, (): ()) -> Result<MemoryCredentials> {
    memory::credentials(&app, &call).await
}
