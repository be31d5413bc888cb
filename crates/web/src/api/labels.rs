//! Custom labels over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::labels::{Label, LabelChange, LabelOrder, NewLabel};
use operations::{App, Call, Result, labels};

use super::paths::{InMailbox, LabelPath};
use crate::{
    Endpoint,
    input::{Json, Path},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Custom labels";
    let all = "/api/v1/mailboxes/{mailboxId}/custom-labels";
    let one = "/api/v1/mailboxes/{mailboxId}/custom-labels/{labelId}";
    let order = "/api/v1/mailboxes/{mailboxId}/custom-labels/reorder";
    vec![
        Endpoint::new(tag, Method::GET, all, &labels::LIST, list),
        Endpoint::new(tag, Method::POST, all, &labels::CREATE, create),
        Endpoint::new(tag, Method::POST, order, &labels::REORDER, reorder),
        Endpoint::new(tag, Method::PUT, one, &labels::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &labels::DELETE, delete),
    ]
}

async fn list(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<Vec<Label>> {
    labels::list(&app, &call, &path.mailbox).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewLabel>),
) -> Result<Label> {
    labels::create(&app, &call, &path.mailbox, input).await
}

async fn reorder(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(order)): (Path<InMailbox>, Json<LabelOrder>),
) -> Result<Vec<Label>> {
    labels::reorder(&app, &call, &path.mailbox, order).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<LabelPath>, Json<LabelChange>),
) -> Result<Label> {
    labels::update(&app, &call, &path.mailbox, path.label, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<LabelPath>) -> Result<()> {
    labels::delete(&app, &call, &path.mailbox, path.label).await
}
