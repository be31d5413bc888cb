//! Webhooks: their endpoints and event types, and a log of every delivery.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    events::EventType,
    webhooks::{Delivery, DeliveryQuery, DeliveryStatus, NewWebhook, Webhook, WebhookChange, WebhookStatus},
};
use operations::{Result, webhooks};
use serde_json::json;

use super::{
    fields::{Fields, input},
    links::encoded,
    members::Makers,
    page::{self, html},
    shell::Shell,
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/webhooks";

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/console/webhooks/{hook}", get(one))
        .route("/console/webhooks/{hook}/status", post(set_status))
        .route("/console/webhooks/{hook}/rotate", post(rotate))
        .route("/console/webhooks/{hook}/test", post(test))
        .route("/console/webhooks/{hook}/delete", post(delete))
        .route("/console/webhooks/{hook}/deliveries/{delivery}/retry", post(retry))
}

struct Row {
    id: String,
    url: String,
    events: String,
    active: bool,
    created: When,
    maker: String,
}

fn row(zone: &Zone, makers: &Makers, hook: Webhook) -> Row {
    let events: Vec<&str> = hook.event_types.iter().map(|kind| kind.as_str()).collect();
    Row {
        id: hook.id.as_str().to_owned(),
        url: hook.url,
        events: events.join(", "),
        active: hook.status == WebhookStatus::Active,
        created: zone.when(hook.created_at),
        maker: makers.name(hook.created_by.as_ref()),
    }
}

#[derive(Template)]
#[template(path = "console/webhooks.html")]
struct WebhooksPage {
    shell: Shell,
    rows: Vec<Row>,
    types: Vec<&'static str>,
    /// The secret of the webhook that was just created.
    secret: String,
    may_create: bool,
    said: String,
}

async fn show(visit: &Visit, secret: String, said: String) -> Result<Response> {
    let shell = visit.shell("Webhooks", "webhooks").await?;
    let all = webhooks::list(visit.app(), &visit.call(&webhooks::LIST)?).await?;
    let makers = Makers::load(visit).await?;
    let rows = all.into_iter().map(|one| row(&shell.zone, &makers, one)).collect();
    let types = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    html(&WebhooksPage { shell, rows, types, secret, may_create: visit.may(&webhooks::CREATE), said })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, String::new(), String::new())).await
}

async fn create(visit: Visit, request: Request) -> Response {
    let created = async {
        let fields = Fields::read(request).await?;
        let request: NewWebhook =
            input(&json!({ "url": fields.get("url").trim(), "event_types": fields.all("type") }))?;
        webhooks::create(visit.app(), &visit.call(&webhooks::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => visit.answer(show(&visit, created.secret, String::new())).await,
        Err(refused) => visit.answer(show(&visit, String::new(), page::explain(&refused))).await,
    }
}

struct AttemptRow {
    at: When,
    status: String,
    took: u64,
    said: String,
}

struct DeliveryRow {
    id: String,
    kind: String,
    state: &'static str,
    mark: &'static str,
    at: When,
    next: Option<When>,
    attempts: Vec<AttemptRow>,
}

fn delivery(zone: &Zone, one: Delivery) -> DeliveryRow {
    let attempts = one.attempts.into_iter().rev().map(|attempt| AttemptRow {
        at: zone.when(attempt.at),
        status: attempt.response_status.map_or_else(|| "–".to_owned(), |status| status.to_string()),
        took: attempt.duration_ms,
        said: attempt.error.or(attempt.response_excerpt).unwrap_or_default(),
    });
    DeliveryRow {
        attempts: attempts.collect(),
        id: one.id.as_str().to_owned(),
        kind: one.event_type,
        state: one.status.as_str(),
        mark: match one.status {
            DeliveryStatus::Delivered => "ok",
            DeliveryStatus::Pending => "info",
            DeliveryStatus::Failed => "bad",
        },
        at: zone.when(one.created_at),
        next: one.next_attempt_at.map(|at| zone.when(at)),
    }
}

#[derive(Template)]
#[template(path = "console/webhook.html")]
struct WebhookPage {
    shell: Shell,
    hook: Row,
    deliveries: Vec<DeliveryRow>,
    next: Option<String>,
    filter: String,
    secret: String,
    may_change: bool,
}

async fn show_one(visit: &Visit, id: &str, query: &Fields, secret: String) -> Result<Response> {
    let shell = visit.shell("Webhook", "webhooks").await?;
    let app = visit.app();
    let hook = webhooks::get(app, &visit.call(&webhooks::GET)?, id.into()).await?;
    let request: DeliveryQuery = input(
        &json!({ "status": query.given("status"), "limit": visit.limits().rows_per_page, "cursor": query.given("cursor") }),
    )?;
    let call = visit.call(&webhooks::DELIVERIES)?;
    let page = webhooks::deliveries(app, &call, id.into(), request).await?;
    let filter = query.get("status").to_owned();
    let next = page.next_cursor.map(|cursor| {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        if !filter.is_empty() {
            pairs.append_pair("status", &filter);
        }
        pairs.append_pair("cursor", &cursor);
        format!("{HERE}/{}?{}", encoded(id), pairs.finish())
    });
    let deliveries = page.deliveries.into_iter().map(|one| delivery(&shell.zone, one)).collect();
    let hook = row(&shell.zone, &Makers::load(visit).await?, hook);
    html(&WebhookPage {
        shell,
        hook,
        deliveries,
        next,
        filter,
        secret,
        may_change: visit.may(&webhooks::UPDATE),
    })
}

async fn one(visit: Visit, Path(hook): Path<String>, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(show_one(&visit, &hook, &fields, String::new())).await
}

fn page_url(hook: &str) -> String {
    format!("{HERE}/{}", encoded(hook))
}

async fn set_status(visit: Visit, Path(hook): Path<String>, request: Request) -> Response {
    let back = page_url(&hook);
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let change: WebhookChange = input(&json!({ "status": fields.get("status") }))?;
            webhooks::update(visit.app(), &visit.call(&webhooks::UPDATE)?, hook.into(), change).await?;
            Ok((back.clone(), "Saved.".to_owned()))
        })
        .await
}

async fn rotate(visit: Visit, Path(hook): Path<String>) -> Response {
    let created = async {
        let call = visit.call(&webhooks::ROTATE)?;
        webhooks::rotate_secret(visit.app(), &call, hook.clone().into()).await
    };
    match created.await {
        Ok(created) => visit.answer(show_one(&visit, &hook, &Fields::default(), created.secret)).await,
        Err(refused) => page::failure(&visit.headers, &refused),
    }
}

async fn test(visit: Visit, Path(hook): Path<String>) -> Response {
    let back = page_url(&hook);
    visit
        .act(&back, async {
            webhooks::test(visit.app(), &visit.call(&webhooks::TEST)?, hook.into()).await?;
            Ok((back.clone(), "A test is on its way.".to_owned()))
        })
        .await
}

async fn delete(visit: Visit, Path(hook): Path<String>) -> Response {
    visit
        .act(&page_url(&hook), async {
            webhooks::delete(visit.app(), &visit.call(&webhooks::DELETE)?, hook.clone().into()).await?;
            Ok((HERE.to_owned(), "The webhook is deleted.".to_owned()))
        })
        .await
}

async fn retry(visit: Visit, Path((hook, delivery)): Path<(String, String)>) -> Response {
    let back = page_url(&hook);
    visit
        .act(&back, async {
            let call = visit.call(&webhooks::RETRY)?;
            webhooks::retry(visit.app(), &call, hook.into(), delivery.into()).await?;
            Ok((back.clone(), "It is sent again.".to_owned()))
        })
        .await
}
