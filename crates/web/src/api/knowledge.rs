//! Documents over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::knowledge::{Document, DocumentCheck, DocumentPage, DocumentQuery, NewDocument};
use operations::{App, Call, Result, attachments::Download, knowledge};

use super::paths::DocumentPath;
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Knowledge";
    let all = "/api/v1/rag/documents";
    let one = "/api/v1/rag/documents/{documentId}";
    let bytes = "/api/v1/rag/documents/{documentId}/download";
    let check = "/api/v1/rag/documents/{documentId}/verify";
    vec![
        Endpoint::new(tag, Method::GET, all, &knowledge::LIST, list),
        Endpoint::new(tag, Method::POST, all, &knowledge::ADD, add),
        Endpoint::new(tag, Method::GET, one, &knowledge::GET, get),
        Endpoint::new(tag, Method::DELETE, one, &knowledge::DELETE, delete),
        Endpoint::download(tag, bytes, &knowledge::DOWNLOAD, download),
        Endpoint::new(tag, Method::POST, check, &knowledge::VERIFY, verify),
    ]
}

async fn list(app: App, call: Arc<Call>, Query(query): Query<DocumentQuery>) -> Result<DocumentPage> {
    knowledge::list(&app, &call, query).await
}

async fn add(app: App, call: Arc<Call>, Json(input): Json<NewDocument>) -> Result<Document> {
    knowledge::add(&app, &call, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<DocumentPath>) -> Result<Document> {
    knowledge::get(&app, &call, path.document).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<DocumentPath>) -> Result<()> {
    knowledge::delete(&app, &call, path.document).await
}

async fn download(app: App, call: Arc<Call>, Path(path): Path<DocumentPath>) -> Result<Download> {
    knowledge::download(&app, &call, path.document).await
}

async fn verify(app: App, call: Arc<Call>, Path(path): Path<DocumentPath>) -> Result<DocumentCheck> {
    knowledge::verify(&app, &call, path.document).await
}
