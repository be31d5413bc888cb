//! Webhooks over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::webhooks::{
    Delivery, DeliveryPage, DeliveryQuery, NewWebhook, Webhook, WebhookChange, WebhookWithSecret,
};
use operations::{App, Call, Result, webhooks};

use super::paths::{DeliveryPath, InWorkspace, WebhookPath};
use crate::{
    Endpoint,
    input::{Json, Path, Query},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Webhooks";
    let all = "/api/v1/workspaces/{workspaceId}/webhooks";
    let one = "/api/v1/workspaces/{workspaceId}/webhooks/{webhookId}";
    let secret = "/api/v1/workspaces/{workspaceId}/webhooks/{webhookId}/rotate-secret";
    let trial = "/api/v1/workspaces/{workspaceId}/webhooks/{webhookId}/test";
    let log = "/api/v1/workspaces/{workspaceId}/webhooks/{webhookId}/deliveries";
    let again = "/api/v1/workspaces/{workspaceId}/webhooks/{webhookId}/deliveries/{deliveryId}/retry";
    vec![
        Endpoint::new(tag, Method::GET, all, &webhooks::LIST, list),
        Endpoint::new(tag, Method::POST, all, &webhooks::CREATE, create),
        Endpoint::new(tag, Method::GET, one, &webhooks::GET, get),
        Endpoint::new(tag, Method::PATCH, one, &webhooks::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &webhooks::DELETE, delete),
        Endpoint::new(tag, Method::POST, secret, &webhooks::ROTATE, rotate_secret),
        Endpoint::new(tag, Method::POST, trial, &webhooks::TEST, test),
        Endpoint::new(tag, Method::GET, log, &webhooks::DELIVERIES, deliveries),
        Endpoint::new(tag, Method::POST, again, &webhooks::RETRY, retry),
    ]
}

async fn list(app: App, call: Arc<Call>, _: Path<InWorkspace>) -> Result<Vec<Webhook>> {
    webhooks::list(&app, &call).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (_, Json(input)): (Path<InWorkspace>, Json<NewWebhook>),
) -> Result<WebhookWithSecret> {
    webhooks::create(&app, &call, input).await
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<WebhookPath>) -> Result<Webhook> {
    webhooks::get(&app, &call, path.webhook).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<WebhookPath>, Json<WebhookChange>),
) -> Result<Webhook> {
    webhooks::update(&app, &call, path.webhook, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<WebhookPath>) -> Result<()> {
    webhooks::delete(&app, &call, path.webhook).await
}

async fn rotate_secret(
    app: App,
    call: Arc<Call>,
    Path(path): Path<WebhookPath>,
) -> Result<WebhookWithSecret> {
    webhooks::rotate_secret(&app, &call, path.webhook).await
}

async fn test(app: App, call: Arc<Call>, Path(path): Path<WebhookPath>) -> Result<Delivery> {
    webhooks::test(&app, &call, path.webhook).await
}

async fn deliveries(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<WebhookPath>, Query<DeliveryQuery>),
) -> Result<DeliveryPage> {
    webhooks::deliveries(&app, &call, path.webhook, query).await
}

async fn retry(app: App, call: Arc<Call>, Path(path): Path<DeliveryPath>) -> Result<Delivery> {
    webhooks::retry(&app, &call, path.webhook, path.delivery).await
}
