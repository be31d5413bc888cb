//! Reviews of outgoing emails over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::reviews::{Approval, Refusal, Review, ReviewPage, ReviewQuery};
use operations::{App, Call, Result, reviews};

use super::paths::{InWorkspace, ReviewPath};
use crate::{
    Endpoint,
    input::{Json, OptionalJson, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Reviews";
    let all = "/api/v1/workspaces/{workspaceId}/reviews";
    let one = "/api/v1/workspaces/{workspaceId}/reviews/{reviewId}";
    let approve_path = "/api/v1/workspaces/{workspaceId}/reviews/{reviewId}/approve";
    let reject_path = "/api/v1/workspaces/{workspaceId}/reviews/{reviewId}/reject";
    let withdraw_path = "/api/v1/workspaces/{workspaceId}/reviews/{reviewId}/withdraw";
    vec![
        Endpoint::new(tag, Method::GET, all, &reviews::LIST, list),
        Endpoint::new(tag, Method::GET, one, &reviews::GET, get),
        Endpoint::new(tag, Method::POST, approve_path, &reviews::APPROVE, approve),
        Endpoint::new(tag, Method::POST, reject_path, &reviews::REJECT, reject),
        Endpoint::new(tag, Method::POST, withdraw_path, &reviews::WITHDRAW, withdraw),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (_, Query(query)): (Path<InWorkspace>, Query<ReviewQuery>),
) -> Result<ReviewPage> {
    reviews::list(&app, &call, query).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<ReviewPath>) -> Result<Review> {
    reviews::get(&app, &call, path.review).await
}

async fn approve(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(approval)): (Path<ReviewPath>, Json<Approval>),
) -> Result<Review> {
    reviews::approve(&app, &call, path.review, approval).await
}

async fn reject(
    app: App,
    call: Arc<Call>,
    (Path(path), OptionalJson(refusal)): (Path<ReviewPath>, OptionalJson<Refusal>),
) -> Result<Review> {
    reviews::reject(&app, &call, path.review, refusal).await
}

async fn withdraw(
    app: App,
    call: Arc<Call>,
    (Path(path), OptionalJson(refusal)): (Path<ReviewPath>, OptionalJson<Refusal>),
) -> Result<Review> {
    reviews::withdraw(&app, &call, path.review, refusal).await
}
