//! Webhooks: which events go where, and the log of their deliveries.

pub mod outbox;
mod signature;
pub(crate) mod target;

use model::{
    DeliveryId, EventId, Limit, MailboxId, WebhookId, WorkspaceId,
    audit::{AuditChange, changes, created, deleted},
    events::EventType,
    webhooks::{
        Delivery, DeliveryPage, DeliveryQuery, DeliveryStatus, NewWebhook, WEBHOOKS_PER_WORKSPACE, Webhook,
        WebhookChange, WebhookStatus, WebhookWithSecret,
    },
};
use serde::{Deserialize, Serialize};
use store::{
    Tx, events,
    webhooks::{self, DeliveryRecord, WebhookRecord},
    workspaces,
};

use crate::{
    account::members::{require_creator, take_over},
    core::{
        app::App,
        call::Call,
        caller::Caller,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists the webhooks.
pub const LIST: Operation =
    Operation::read("listWebhooks", "Lists the webhooks of a workspace.").visible().admin();
/// Makes a webhook.
pub const CREATE: Operation = Operation::write(
    "createWebhook",
    "Creates a webhook. Its secret is shown only in this response. At most 20 per workspace.",
)
.visible()
.admin()
.created()
.errors(&[ErrorKind::QuotaExceeded]);
/// Reads a webhook.
pub const GET: Operation = Operation::read("getWebhook", "Returns a webhook.")
    .visible()
    .admin()
    .errors(&[ErrorKind::NotFound])
    .tagged();
/// Changes a webhook.
pub const UPDATE: Operation = Operation::write(
    "updateWebhook",
    "Changes, pauses or resumes a webhook. Events that occur while it is paused are not delivered later.",
)
.visible()
.admin()
.errors(&[ErrorKind::NotFound]);
/// Deletes a webhook.
pub const DELETE: Operation = Operation::write("deleteWebhook", "Deletes a webhook and its log.")
    .visible()
    .admin()
    .empty()
    .errors(&[ErrorKind::NotFound]);
/// Gives a webhook a new secret.
pub const ROTATE: Operation = Operation::write(
    "rotateWebhookSecret",
    "Gives a webhook a new secret. For 24 hours deliveries are signed with the old one too.",
)
.visible()
.admin()
.errors(&[ErrorKind::NotFound]);
/// Sends a test event.
pub const TEST: Operation = Operation::write(
    "testWebhook",
    "Sends an event of the type webhook.test to a webhook; the delivery log shows the result.",
)
.visible()
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::WebhookPaused]);
/// Lists deliveries.
pub const DELIVERIES: Operation = Operation::read(
    "listWebhookDeliveries",
    "Lists the deliveries of a webhook in the last 7 days with every attempt, newest first.",
)
.visible()
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Sends a delivery again.
pub const RETRY: Operation =
    Operation::write("retryWebhookDelivery", "Sends a delivery again now, with the same id.")
        .visible()
        .admin()
        .errors(&[ErrorKind::NotFound, ErrorKind::WebhookPaused]);

pub(crate) const OPERATIONS: &[&Operation] =
    &[&LIST, &CREATE, &GET, &UPDATE, &DELETE, &ROTATE, &TEST, &DELIVERIES, &RETRY];

/// The purposes that secrets and test events are sealed for.
const SECRET: &str = "webhook secret";
const TEST_EVENT: &str = "webhook test";
/// What the audit log shows of a webhook.
const AUDIT_FIELDS: &[&str] = &["url", "event_types", "mailbox_ids", "status"];
/// The type of a test event.
const TEST_TYPE: &str = "webhook.test";
/// How long the previous secret stays valid after a rotation.
const OLD_SECRET_SECONDS: i64 = 24 * 3600;

/// Lists the webhooks.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<Webhook>> {
    let found = app.read(call, async |tx| Ok(webhooks::list(tx).await?)).await?;
    Ok(found.into_iter().filter(|record| is_visible(&call.caller, record)).map(show).collect())
}

/// Makes a webhook. It gets events from now on.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewWebhook) -> Result<WebhookWithSecret> {
    let url = target::clean_url(&input.url, app.settings().webhooks_allow_private)?;
    let (secret, sealed) = new_secret(app, &call.workspace).await?;
    let mut record = WebhookRecord {
        id: app.new_id(),
        workspace_id: call.workspace.clone(),
        url,
        event_types: each_once(input.event_types),
        mailbox_ids: None,
        status: input.status,
        secret: sealed,
        old_secret: None,
        old_secret_until: None,
        sequence: 0,
        failures: 0,
        created_by: call.creator(),
        created_at: call.now,
        updated_at: call.now,
    };
    let (wanted, caller) = (input.mailbox_ids, call.caller.clone());
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        require_creator(tx, record.created_by.as_ref()).await?;
        let limit = Limit::of(WEBHOOKS_PER_WORKSPACE);
        if !limit.has_room(u64::try_from(webhooks::count(tx).await?).unwrap_or_default()) {
            return Err(Error::quota("webhooks", limit));
        }
        record.mailbox_ids = chosen_mailboxes(tx, &caller, wanted).await?;
        record.sequence = events::last_sequence(tx).await?;
        webhooks::insert(tx, &record).await?;
        let webhook = show(record);
        tx.audit().about("webhook", &webhook.id).changed(created(&webhook, AUDIT_FIELDS));
        Ok(WebhookWithSecret { webhook, secret })
    })
    .await
}

/// Reads a webhook.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, id: WebhookId) -> Result<Webhook> {
    let caller = call.caller.clone();
    app.read(call, async move |tx| Ok(show(find(tx, &caller, &id).await?))).await
}

/// Changes a webhook.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, id: WebhookId, change: WebhookChange) -> Result<Webhook> {
    let allow_private = app.settings().webhooks_allow_private;
    let url = change.url.map(|url| target::clean_url(&url, allow_private)).transpose()?;
    let (now, caller, creator) = (call.now, call.caller.clone(), call.creator());
    app.write(call, async move |tx| {
        if change.status == Some(WebhookStatus::Active) {
            workspaces::lock(tx).await?;
        }
        let mut record = find_for_change(tx, &caller, &id).await?;
        let before = show(record.clone());
        if let Some(url) = url {
            record.url = url;
            record.failures = 0;
            webhooks::clear_backoff(tx, &id).await?;
        }
        record.event_types = change.event_types.map_or(record.event_types, each_once);
        if let Some(wanted) = change.mailbox_ids {
            record.mailbox_ids = chosen_mailboxes(tx, &caller, wanted).await?;
        }
        let status = change.status.unwrap_or(record.status);
        if record.status == WebhookStatus::Paused && status == WebhookStatus::Active {
            record.sequence = events::last_sequence(tx).await?;
            record.created_by = take_over(tx, record.created_by, creator).await?;
            webhooks::clear_backoff(tx, &id).await?;
        }
        record.status = status;
        record.updated_at = now;
        webhooks::update(tx, &record).await?;
        let after = show(record);
        tx.audit().about("webhook", &id).changed(changes(&before, &after, AUDIT_FIELDS));
        Ok(after)
    })
    .await
}

/// Deletes a webhook.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, id: WebhookId) -> Result<()> {
    let caller = call.caller.clone();
    app.write(call, async move |tx| {
        let record = find_for_change(tx, &caller, &id).await?;
        tx.audit().about("webhook", &id).changed(deleted(&show(record), AUDIT_FIELDS));
        if webhooks::delete(tx, &id).await? { Ok(()) } else { Err(missing()) }
    })
    .await
}

/// Gives a webhook a new secret.
#[crate::boxed]
pub async fn rotate_secret(app: &App, call: &Call, id: WebhookId) -> Result<WebhookWithSecret> {
    let (secret, sealed) = new_secret(app, &call.workspace).await?;
    let (now, caller) = (call.now, call.caller.clone());
    app.write(call, async move |tx| {
        let mut record = find_for_change(tx, &caller, &id).await?;
        record.old_secret = Some(std::mem::replace(&mut record.secret, sealed));
        record.old_secret_until = Some(now.plus_seconds(OLD_SECRET_SECONDS));
        record.updated_at = now;
        webhooks::update(tx, &record).await?;
        tx.audit().about("webhook", &id).changed(vec![AuditChange::hidden("secret")]);
        Ok(WebhookWithSecret { webhook: show(record), secret })
    })
    .await
}

/// An event for one webhook alone, which is in no log.
#[derive(Serialize)]
struct TestEvent<'a> {
    id: &'a EventId,
    #[serde(rename = "type")]
    kind: &'static str,
    occurred_at: model::Timestamp,
    sequence: Option<i64>,
    workspace_id: &'a WorkspaceId,
    mailbox_id: Option<MailboxId>,
    data: serde_json::Value,
}

/// Sends a test event.
#[crate::boxed]
pub async fn test(app: &App, call: &Call, id: WebhookId) -> Result<Delivery> {
    let event_id: EventId = app.new_id();
    let event = TestEvent {
        id: &event_id,
        kind: TEST_TYPE,
        occurred_at: call.now,
        sequence: None,
        workspace_id: &call.workspace,
        mailbox_id: None,
        data: serde_json::json!({ "webhook_id": id, "message": "This is a test." }),
    };
    let plain = serde_json::to_vec(&event).map_err(Error::internal)?;
    let key = app.data_key(&call.workspace).await?;
    let record = DeliveryRecord {
        event: Some(key.seal(TEST_EVENT, &plain).map_err(store::Error::from)?),
        ..new_delivery(app.new_id(), id, event_id, TEST_TYPE.to_owned(), None, call.now)
    };
    let caller = call.caller.clone();
    app.write(call, async move |tx| {
        require_active(tx, &caller, &record.webhook_id).await?;
        tx.audit().about("webhook", &record.webhook_id);
        webhooks::insert_delivery(tx, &record).await?;
        webhooks::make_due(tx, &record.webhook_id, record.created_at).await?;
        Ok(show_delivery(record))
    })
    .await
}

/// Where a page of deliveries ended.
#[derive(Serialize, Deserialize)]
struct DeliveryPosition {
    before: DeliveryId,
}

/// Lists the deliveries of a webhook.
#[crate::boxed]
pub async fn deliveries(app: &App, call: &Call, id: WebhookId, query: DeliveryQuery) -> Result<DeliveryPage> {
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listWebhookDeliveries {id} {:?}", query.status);
    let before = match &query.cursor {
        Some(text) => Some(cursor::open::<DeliveryPosition>(&key, &about, text)?.before),
        None => None,
    };
    let (limit, status, caller) = (query.limit, query.status, call.caller.clone());
    let (mut found, paused_until) = app
        .read(call, async move |tx| {
            find(tx, &caller, &id).await?;
            let paused_until = webhooks::backoff_until(tx, &id).await?;
            let visible = caller.narrowing.mailbox_ids().map(AsRef::as_ref);
            let found =
                webhooks::list_deliveries(tx, &id, status, before.as_ref(), limit + 1, visible).await?;
            Ok((found, paused_until))
        })
        .await?;
    for record in &mut found {
        // A webhook that fails again and again is left alone for a while, whatever is due.
        record.next_attempt_at = record.next_attempt_at.map(|at| at.max(paused_until));
    }
    let has_more = cursor::truncate(&mut found, limit);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => Some(cursor::seal(&key, &about, &DeliveryPosition { before: last.id.clone() })?),
        None => None,
    };
    Ok(DeliveryPage { deliveries: found.into_iter().map(show_delivery).collect(), has_more, next_cursor })
}

/// Sends a delivery again.
#[crate::boxed]
pub async fn retry(app: &App, call: &Call, id: WebhookId, delivery: DeliveryId) -> Result<Delivery> {
    let (now, caller) = (call.now, call.caller.clone());
    app.write(call, async move |tx| {
        require_active(tx, &caller, &id).await?;
        tx.audit().about("webhook_delivery", &delivery);
        let visible = caller.narrowing.mailbox_ids().map(AsRef::as_ref);
        let found = webhooks::find_delivery(tx, &id, &delivery, visible).await?;
        let mut record = found.ok_or_else(|| Error::not_found("Delivery not found"))?;
        record.status = DeliveryStatus::Pending;
        record.tries = 0;
        record.begun_at = now;
        record.next_attempt_at = Some(now);
        record.updated_at = now;
        webhooks::update_delivery(tx, &record).await?;
        webhooks::make_due(tx, &id, now).await?;
        Ok(show_delivery(record))
    })
    .await
}

/// Locks a webhook that must be active.
async fn require_active(tx: &mut Tx, caller: &Caller, id: &WebhookId) -> Result<()> {
    let record = find_for_change(tx, caller, id).await?;
    if record.status == WebhookStatus::Paused {
        return Err(Error::new(ErrorKind::WebhookPaused).with_fix("Set its status to active first."));
    }
    Ok(webhooks::clear_backoff(tx, id).await?)
}

async fn find(tx: &mut Tx, caller: &Caller, id: &WebhookId) -> Result<WebhookRecord> {
    let found = webhooks::find(tx, id).await?;
    found.filter(|record| is_visible(caller, record)).ok_or_else(missing)
}

async fn find_for_change(tx: &mut Tx, caller: &Caller, id: &WebhookId) -> Result<WebhookRecord> {
    let found = webhooks::find_for_change(tx, id).await?;
    found.filter(|record| is_visible(caller, record)).ok_or_else(missing)
}

/// Whether a webhook gets events of no mailboxes but those that the caller sees.
fn is_visible(caller: &Caller, record: &WebhookRecord) -> bool {
    caller.narrowing.covers(record.mailbox_ids.as_deref())
}

/// A delivery that is due at once.
fn new_delivery(
    id: DeliveryId,
    webhook_id: WebhookId,
    event_id: EventId,
    event_type: String,
    sequence: Option<i64>,
    now: model::Timestamp,
) -> DeliveryRecord {
    DeliveryRecord {
        id,
        webhook_id,
        event_id,
        event_type,
        sequence,
        event: None,
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        tries: 0,
        begun_at: now,
        next_attempt_at: Some(now),
        created_at: now,
        updated_at: now,
    }
}

async fn new_secret(app: &App, workspace: &WorkspaceId) -> Result<(String, Vec<u8>)> {
    let secret = signature::new_secret(app);
    let sealed =
        app.data_key(workspace).await?.seal(SECRET, secret.as_bytes()).map_err(store::Error::from)?;
    Ok((secret, sealed))
}

fn each_once(types: Vec<EventType>) -> Vec<EventType> {
    let mut once = Vec::with_capacity(types.len());
    for kind in types {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    once
}

/// The mailboxes whose events a webhook gets: those that were named, or all that the caller sees. So what a narrowed key
/// makes stays narrowed, whatever becomes of the key.
async fn chosen_mailboxes(
    tx: &mut Tx,
    caller: &Caller,
    named: Option<Vec<MailboxId>>,
) -> Result<Option<Vec<MailboxId>>> {
    match named {
        Some(named) => {
            let name = |text: &str| caller.narrowing.resolve(mailboxes::parse_name(text));
            Ok(Some(mailboxes::known(tx, "mailbox_ids", &named, name).await?))
        }
        None => Ok(caller.narrowing.mailbox_ids().map(|ids| ids.to_vec())),
    }
}

fn missing() -> Error {
    Error::not_found("Webhook not found")
}

fn show(record: WebhookRecord) -> Webhook {
    Webhook {
        id: record.id,
        workspace_id: record.workspace_id,
        url: record.url,
        event_types: record.event_types,
        mailbox_ids: record.mailbox_ids,
        status: record.status,
        old_secret_until: record.old_secret_until,
        created_by: record.created_by,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}

fn show_delivery(record: DeliveryRecord) -> Delivery {
    Delivery {
        id: record.id,
        webhook_id: record.webhook_id,
        event_id: record.event_id,
        event_type: record.event_type,
        status: record.status,
        attempts: record.attempts,
        next_attempt_at: record.next_attempt_at,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}
