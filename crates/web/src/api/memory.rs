//! Memory over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::memory::{MemoryCredentials, MemoryVerified, Recall, Recalled, Remember, Remembered};
use operations::{App, Call, Result, memory};

use super::paths::MemoryPath;
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Memory";
    let one = "/api/v1/rag/memories/{blobId}";
    let trial = "/api/v1/rag/credentials/verify";
    vec![
        Endpoint::new(tag, Method::POST, "/api/v1/rag/remember", &memory::REMEMBER, remember),
        Endpoint::new(tag, Method::DELETE, one, &memory::FORGET, forget),
        Endpoint::new(tag, Method::POST, "/api/v1/rag/recall", &memory::RECALL, recall),
        Endpoint::new(tag, Method::GET, "/api/v1/rag/credentials", &memory::CREDENTIALS, credentials),
        Endpoint::new(tag, Method::POST, trial, &memory::VERIFY, verify),
    ]
}

async fn remember(app: App, call: Arc<Call>, Json(input): Json<Remember>) -> Result<Remembered> {
    memory::remember(&app, &call, input).await
}

async fn forget(app: App, call: Arc<Call>, Path(path): Path<MemoryPath>) -> Result<()> {
    memory::forget(&app, &call, path.blob).await
}

async fn recall(app: App, call: Arc<Call>, Json(input): Json<Recall>) -> Result<Recalled> {
    memory::recall(&app, &call, input).await
}

async fn credentials(app: App, call: Arc<Call>, (): ()) -> Result<MemoryCredentials> {
    memory::credentials(&app, &call).await
}

async fn verify(app: App, call: Arc<Call>, (): ()) -> Result<MemoryVerified> {
    memory::verify(&app, &call).await
}
