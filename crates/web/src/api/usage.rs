//! Usage over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::usage::{CreditUsage, EmailUsage, HistoryQuery, UsageHistory};
use operations::{App, Call, Result, usage};

use super::paths::InWorkspace;
use crate::{
    Endpoint,
    input::{Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Usage";
    vec![
        Endpoint::new(
            tag,
            Method::GET,
            "/api/v1/workspaces/{workspaceId}/usage/credits",
            &usage::CREDITS,
            credits,
        ),
        Endpoint::new(tag, Method::GET, "/api/v1/workspaces/{workspaceId}/usage/email", &usage::EMAIL, email),
        Endpoint::new(
            tag,
            Method::GET,
            "/api/v1/workspaces/{workspaceId}/usage/history",
            &usage::HISTORY,
            history,
        ),
    ]
}

async fn credits(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<CreditUsage> {
    usage::credits(&app, &call).await
}

async fn email(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<EmailUsage> {
    usage::email(&app, &call).await
}

async fn history(
    app: App,
    call: Arc<Call>,
    (_, Query(query)): (Path<InWorkspace>, Query<HistoryQuery>),
) -> Result<UsageHistory> {
    usage::history(&app, &call, query).await
}
