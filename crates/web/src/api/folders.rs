//! Folders over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::folders::{Folder, FolderName};
use operations::{App, Call, Result, folders};

use super::paths::{FolderPath, InMailbox};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Folders";
    let (all, one) =
        ("/api/v1/mailboxes/{mailboxId}/folders", "/api/v1/mailboxes/{mailboxId}/folders/{folderId}");
    vec![
        Endpoint::new(tag, Method::GET, all, &folders::LIST, list),
        Endpoint::new(tag, Method::POST, all, &folders::CREATE, create),
        Endpoint::new(tag, Method::PUT, one, &folders::RENAME, rename),
        Endpoint::new(tag, Method::DELETE, one, &folders::DELETE, delete),
    ]
}

async fn list(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<Vec<Folder>> {
    folders::list(&app, &call, &path.mailbox).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<FolderName>),
) -> Result<Folder> {
    folders::create(&app, &call, &path.mailbox, input).await
}

async fn rename(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<FolderPath>, Json<FolderName>),
) -> Result<Folder> {
    folders::rename(&app, &call, &path.mailbox, path.folder, input).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<FolderPath>) -> Result<()> {
    folders::delete(&app, &call, &path.mailbox, path.folder).await
}
