//! The audit log over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::audit::{AuditPage, AuditQuery};
use operations::{App, Call, Result, audit};

use super::paths::InWorkspace;
use crate::{
    Endpoint,
    input::{Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let all = "/api/v1/workspaces/{workspaceId}/audit";
    vec![Endpoint::new("Workspaces", Method::GET, all, &audit::LIST, list)]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (_, Query(query)): (Path<InWorkspace>, Query<AuditQuery>),
) -> Result<AuditPage> {
    operations::require_audited(query.operation.as_deref())?;
    audit::list(&app, &call, query).await
}
