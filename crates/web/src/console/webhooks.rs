//! Webhooks: their endpoints and event types, and a log of every delivery.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    Timestamp,
    events::EventType,
    webhooks::{Delivery, DeliveryQuery, DeliveryStatus, NewWebhook, Webhook, WebhookChange, WebhookStatus},
};
use operations::{Result, webhooks};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    links::encoded,
    members::Makers,
    page::{self, html},
    shell::Shell,
    text::counted,
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/webhooks";
const LABELS: Labels = &[("url", "url", "URL"), ("event_types", "type", "Events")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/console/webhooks/new", get(new_page))
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
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/webhook_new.html")]
struct NewPage {
    shell: Shell,
    types: Vec<&'static str>,
    form: FormState,
}

fn event_types() -> Vec<&'static str> {
    EventType::ALL.iter().map(|kind| kind.as_str()).collect()
}

async fn show(visit: &Visit, secret: String) -> Result<Response> {
    let shell = visit.shell("Webhooks", "webhooks").await?;
    let all = webhooks::list(visit.app(), &visit.call(&webhooks::LIST)?).await?;
    let makers = Makers::load(visit).await?;
    let rows = all.into_iter().map(|one| row(&shell.zone, &makers, one)).collect();
    let (types, may_create) = (event_types(), visit.may(&webhooks::CREATE));
    html(&WebhooksPage { shell, rows, types, secret, may_create, form: FormState::default() })
}

async fn show_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&webhooks::CREATE)?;
    html(&NewPage { shell: visit.shell("New webhook", "webhooks").await?, types: event_types(), form })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, String::new())).await
}

async fn new_page(visit: Visit) -> Response {
    visit.answer(show_form(&visit, FormState::default())).await
}

async fn create(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let request: NewWebhook =
            input(&json!({ "url": fields.get("url").trim(), "event_types": fields.all("type") }))?;
        webhooks::create(visit.app(), &visit.call(&webhooks::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => visit.answer(show(&visit, created.secret)).await,
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_form(&visit, form)).await
        }
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
    /// What happens next.
    next: String,
    next_at: Option<When>,
    attempts: Vec<AttemptRow>,
}

/// What happens next with a delivery; empty once it was delivered.
fn next_step(one: &Delivery, active: bool, now: Timestamp) -> String {
    match (one.status, one.next_attempt_at) {
        (DeliveryStatus::Delivered, _) => String::new(),
        (DeliveryStatus::Failed, _) => "No more retries".to_owned(),
        (DeliveryStatus::Pending, _) if !active => "Sent when you resume the webhook".to_owned(),
        (DeliveryStatus::Pending, Some(at)) if at > now && !one.attempts.is_empty() => {
            format!("Next retry in {}", span((at.as_micros() - now.as_micros()) / 1_000_000))
        }
        (DeliveryStatus::Pending, _) if one.attempts.is_empty() => "Sending".to_owned(),
        (DeliveryStatus::Pending, _) => "Retrying now".to_owned(),
    }
}

/// A time span for people, from seconds to hours.
fn span(seconds: i64) -> String {
    match seconds.max(1) {
        seconds @ ..90 => counted(seconds, "second"),
        seconds @ ..5400 => counted((seconds + 30) / 60, "minute"),
        seconds => counted((seconds + 1800) / 3600, "hour"),
    }
}

fn delivery(zone: &Zone, one: Delivery, active: bool, now: Timestamp) -> DeliveryRow {
    let next = next_step(&one, active, now);
    let next_at = one.next_attempt_at.filter(|at| active && *at > now && !one.attempts.is_empty());
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
        next,
        next_at: next_at.map(|at| zone.when(at)),
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
    let (active, now) = (hook.status == WebhookStatus::Active, app.now());
    let deliveries = page.deliveries.into_iter().map(|one| delivery(&shell.zone, one, active, now)).collect();
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
            let said = if fields.get("status") == "paused" { "Webhook paused." } else { "Webhook resumed." };
            Ok((back.clone(), said.to_owned()))
        })
        .await
}

async fn rotate(visit: Visit, Path(hook): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Rotate the signing secret?",
        text: "Deliveries are signed with a new secret. The old one works for another day.",
        button: "Rotate secret",
        cancel: &page_url(&hook),
        typed: "",
    };
    confirmed(&visit, request, &question, async |_| {
        let created = async {
            let call = visit.call(&webhooks::ROTATE)?;
            webhooks::rotate_secret(visit.app(), &call, hook.clone().into()).await
        };
        match created.await {
            Ok(created) => visit.answer(show_one(&visit, &hook, &Fields::default(), created.secret)).await,
            Err(refused) => page::failure(&visit.headers, &refused),
        }
    })
    .await
}

async fn test(visit: Visit, Path(hook): Path<String>) -> Response {
    let back = page_url(&hook);
    visit
        .act(&back, async {
            webhooks::test(visit.app(), &visit.call(&webhooks::TEST)?, hook.into()).await?;
            Ok((back.clone(), "Test event sent.".to_owned()))
        })
        .await
}

async fn delete(visit: Visit, Path(hook): Path<String>, request: Request) -> Response {
    let back = page_url(&hook);
    let question = Question {
        title: "Delete this webhook?",
        text: "Events are no longer sent to it, and its delivery log is deleted.",
        button: "Delete webhook",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            webhooks::delete(visit.app(), &visit.call(&webhooks::DELETE)?, hook.clone().into()).await?;
            Ok((HERE.to_owned(), "Webhook deleted.".to_owned()))
        })
    })
    .await
}

async fn retry(visit: Visit, Path((hook, delivery)): Path<(String, String)>) -> Response {
    let back = page_url(&hook);
    visit
        .act(&back, async {
            let call = visit.call(&webhooks::RETRY)?;
            webhooks::retry(visit.app(), &call, hook.into(), delivery.into()).await?;
            Ok((back.clone(), "Sending the event again.".to_owned()))
        })
        .await
}

#[cfg(test)]
mod tests {
    use model::webhooks::DeliveryAttempt;

    use super::*;

    #[test]
    fn the_log_says_what_happens_next() {
        let now: Timestamp = "2026-07-14T09:00:00Z".parse().unwrap();
        let attempt = DeliveryAttempt {
            at: now,
            response_status: Some(500),
            response_excerpt: None,
            error: None,
            duration_ms: 1,
        };
        let tell = |status, seconds: i64, attempts: usize, active| {
            let one = Delivery {
                id: "whd_1".into(),
                webhook_id: "wh_1".into(),
                event_id: "evt_1".into(),
                event_type: "message.received".to_owned(),
                status,
                attempts: vec![attempt.clone(); attempts],
                next_attempt_at: (status == DeliveryStatus::Pending).then(|| now.plus_seconds(seconds)),
                created_at: now,
                updated_at: now,
            };
            next_step(&one, active, now)
        };
        assert_eq!(tell(DeliveryStatus::Delivered, 0, 1, true), "");
        assert_eq!(tell(DeliveryStatus::Failed, 0, 9, true), "No more retries");
        assert_eq!(tell(DeliveryStatus::Pending, 0, 0, true), "Sending");
        assert_eq!(tell(DeliveryStatus::Pending, -60, 1, true), "Retrying now");
        assert_eq!(tell(DeliveryStatus::Pending, 600, 1, false), "Sent when you resume the webhook");
        for (seconds, text) in
            [(1, "1 second"), (30, "30 seconds"), (120, "2 minutes"), (3600, "60 minutes"), (7200, "2 hours")]
        {
            assert_eq!(tell(DeliveryStatus::Pending, seconds, 1, true), format!("Next retry in {text}"));
        }
    }
}
