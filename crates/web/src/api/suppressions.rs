//! Suppressions over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::suppressions::{
    NewSuppression, Suppression, SuppressionPage, SuppressionQuery, SuppressionRemoval,
};
use operations::{App, Call, Result, suppressions};

use super::paths::{InWorkspace, SuppressionPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Suppressions";
    let all = "/api/v1/workspaces/{workspaceId}/suppressions";
    let one = "/api/v1/workspaces/{workspaceId}/suppressions/{suppressionId}";
    vec![
        Endpoint::new(tag, Method::GET, all, &suppressions::LIST, list),
        Endpoint::new(tag, Method::POST, all, &suppressions::CREATE, create),
        Endpoint::new(tag, Method::DELETE, one, &suppressions::DELETE, delete),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (_, Query(query)): (Path<InWorkspace>, Query<SuppressionQuery>),
) -> Result<SuppressionPage> {
    suppressions::list(&app, &call, query).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (_, Json(input)): (Path<InWorkspace>, Json<NewSuppression>),
) -> Result<Suppression> {
    suppressions::create(&app, &call, input).await
}

async fn delete(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(removal)): (Path<SuppressionPath>, Query<SuppressionRemoval>),
) -> Result<()> {
    suppressions::delete(&app, &call, path.suppression, removal).await
}
