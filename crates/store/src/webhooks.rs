//! Webhooks, their deliveries, and the workers' claims.
//!
//! An event writes nothing per webhook: each webhook has its own position in the event log, and a worker creates
//! deliveries for the events after it. A worker claims a whole webhook for a while, so that a slow endpoint delays
//! only itself.

use model::{
    AccountId, DeliveryId, EventId, MailboxId, Timestamp, WebhookId, WorkspaceId,
    events::EventType,
    webhooks::{DeliveryAttempt, DeliveryStatus, WebhookStatus},
};

use crate::{
    Param, SystemTx, Topic, Tx,
    error::Result,
    sql::{Columns, Insert, columns, long_list_params, long_list_placeholders, update_row},
    turns,
};

/// A webhook as it is stored.
#[derive(Clone)]
pub struct WebhookRecord {
    /// Its id.
    pub id: WebhookId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Where events are posted to.
    pub url: String,
    /// The event types it subscribes to.
    pub event_types: Vec<EventType>,
    /// Only events of these mailboxes.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Whether it is active.
    pub status: WebhookStatus,
    /// Its secret, sealed.
    pub secret: Vec<u8>,
    /// The previous secret, sealed.
    pub old_secret: Option<Vec<u8>>,
    /// Until when that one is valid.
    pub old_secret_until: Option<Timestamp>,
    /// The last event that deliveries were created for.
    pub sequence: i64,
    /// Failed rounds in a row.
    pub failures: i64,
    /// The account that created it or took it over; `None` when it belongs to the workspace.
    pub created_by: Option<AccountId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

columns!(WebhookRecord {
    id, workspace_id, url, event_types as json, mailbox_ids as optional_json, status, secret, old_secret,
    old_secret_until, sequence, failures, created_by, created_at, updated_at,
});

const COLUMNS: &str = WebhookRecord::COLUMNS;

/// The webhooks of the workspace, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<WebhookRecord>> {
    tx.all(&format!("SELECT {COLUMNS} FROM webhook WHERE workspace_id = $1 ORDER BY id"), &[]).await
}

/// Finds a webhook.
pub async fn find(tx: &mut Tx, id: &WebhookId) -> Result<Option<WebhookRecord>> {
    tx.one(&format!("SELECT {COLUMNS} FROM webhook WHERE workspace_id = $1 AND id = $2"), &[id.into()]).await
}

/// The same, with the row locked until the transaction ends.
pub async fn find_for_change(tx: &mut Tx, id: &WebhookId) -> Result<Option<WebhookRecord>> {
    let lock = tx.for_update();
    tx.one(&format!("SELECT {COLUMNS} FROM webhook WHERE workspace_id = $1 AND id = $2{lock}"), &[id.into()])
        .await
}

/// How many webhooks the workspace has.
pub async fn count(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT count(*) FROM webhook WHERE workspace_id = $1", &[]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a webhook, and wakes the workers after the commit.
pub async fn insert(tx: &mut Tx, webhook: &WebhookRecord) -> Result<()> {
    Insert::into("webhook")
        .record(webhook)
        .column("claimed_until", 0_i64)
        .column("rests_until", 0_i64)
        .run(tx)
        .await?;
    tx.wake(Topic::Webhook, None);
    Ok(())
}

/// Stores the changeable fields of a webhook.
pub async fn update(tx: &mut Tx, webhook: &WebhookRecord) -> Result<()> {
    update_row(tx, "webhook", &[("id", (&webhook.id).into())], webhook).await?;
    Ok(())
}

/// Pauses the active webhooks that an account created.
pub async fn pause_made_by(tx: &mut Tx, account: &AccountId, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE webhook SET status = 'paused', updated_at = $3
         WHERE workspace_id = $1 AND created_by = $2 AND status = 'active'",
        &[account.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a webhook and its log. False when there is none.
pub async fn delete(tx: &mut Tx, id: &WebhookId) -> Result<bool> {
    let gone = tx.run("DELETE FROM webhook WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(gone == 1)
}

/// A delivery of an event to a webhook, as it is stored.
#[derive(Clone, Debug)]
pub struct DeliveryRecord {
    /// Its id.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event.
    pub event_id: EventId,
    /// The event's type.
    pub event_type: String,
    /// The event's sequence number; `None` for a test.
    pub sequence: Option<i64>,
    /// The event of a test, sealed.
    pub event: Option<Vec<u8>>,
    /// Its status.
    pub status: DeliveryStatus,
    /// The outcome of each attempt.
    pub attempts: Vec<DeliveryAttempt>,
    /// Attempts since it was last requested.
    pub tries: i64,
    /// When it was last requested.
    pub begun_at: Timestamp,
    /// When it is tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last tried or requested.
    pub updated_at: Timestamp,
}

columns!(DeliveryRecord {
    id, webhook_id, event_id, event_type, sequence, event, status, attempts as json, tries, begun_at,
    next_attempt_at, created_at, updated_at,
});

const DELIVERY_COLUMNS: &str = DeliveryRecord::COLUMNS;

/// Deliveries of a webhook, newest first, of one status or all, before the given one; of tests and the events of all
/// mailboxes, or of some.
pub async fn list_deliveries(
    tx: &mut Tx,
    webhook: &WebhookId,
    status: Option<DeliveryStatus>,
    before: Option<&DeliveryId>,
    most: i64,
    mailboxes: Option<&[MailboxId]>,
) -> Result<Vec<DeliveryRecord>> {
    let (mut params, nothing) =
        (vec![webhook.into(), status.into(), before.into(), most.into()], MailboxId::from(""));
    let condition = of_mailboxes(&mut params, mailboxes, &nothing);
    tx.all(
        &format!(
            "SELECT {DELIVERY_COLUMNS} FROM webhook_delivery WHERE workspace_id = $1 AND webhook_id = $2
             AND (CAST($3 AS TEXT) IS NULL OR status = $3) AND (CAST($4 AS TEXT) IS NULL OR id < $4){condition}
             ORDER BY id DESC LIMIT $5"
        ),
        &params,
    )
    .await
}

/// Finds a delivery of a test, or of an event of all mailboxes or some.
pub async fn find_delivery(
    tx: &mut Tx,
    webhook: &WebhookId,
    id: &DeliveryId,
    mailboxes: Option<&[MailboxId]>,
) -> Result<Option<DeliveryRecord>> {
    let (mut params, nothing) = (vec![webhook.into(), id.into()], MailboxId::from(""));
    let condition = of_mailboxes(&mut params, mailboxes, &nothing);
    tx.one(
        &format!(
            "SELECT {DELIVERY_COLUMNS} FROM webhook_delivery
             WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3{condition}"
        ),
        &params,
    )
    .await
}

/// The condition that a delivery is one of a test or of an event of these mailboxes: a webhook may have got others before.
fn of_mailboxes<'a>(
    params: &mut Vec<Param<'a>>,
    mailboxes: Option<&'a [MailboxId]>,
    nothing: &'a MailboxId,
) -> String {
    let Some(ids) = mailboxes else { return String::new() };
    let list = long_list_placeholders(params.len() + 2, ids.len());
    params.extend(long_list_params(ids, nothing));
    format!(
        " AND (sequence IS NULL OR EXISTS (SELECT 1 FROM event WHERE event.workspace_id = $1
          AND event.sequence = webhook_delivery.sequence AND event.mailbox_id IN ({list})))"
    )
}

/// Adds a delivery.
pub async fn insert_delivery(tx: &mut Tx, delivery: &DeliveryRecord) -> Result<()> {
    Insert::into("webhook_delivery").record(delivery).run(tx).await?;
    Ok(())
}

/// Stores the outcome of a delivery.
pub async fn update_delivery(tx: &mut Tx, delivery: &DeliveryRecord) -> Result<()> {
    // Not the whole row: PostgreSQL would write the event's text again with every attempt.
    tx.run(
        "UPDATE webhook_delivery SET status = $4, attempts = $5, tries = $6, begun_at = $7, next_attempt_at = $8,
         updated_at = $9 WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3",
        &[
            (&delivery.webhook_id).into(),
            (&delivery.id).into(),
            delivery.status.into(),
            Param::Json(&delivery.attempts),
            delivery.tries.into(),
            delivery.begun_at.into(),
            delivery.next_attempt_at.into(),
            delivery.updated_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Makes a webhook due, unless it is due sooner, and wakes the workers after the commit.
pub async fn make_due(tx: &mut Tx, id: &WebhookId, at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE webhook SET due_at = $3 WHERE workspace_id = $1 AND id = $2 AND (due_at IS NULL OR due_at > $3)",
        &[id.into(), at.into()],
    )
    .await?;
    tx.wake(Topic::Webhook, None);
    Ok(())
}

/// Until when a failing webhook is left alone; a time in the past if it is not.
pub async fn backoff_until(tx: &mut Tx, id: &WebhookId) -> Result<Timestamp> {
    let found: Option<(Timestamp,)> =
        tx.one("SELECT rests_until FROM webhook WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(found.map_or(Timestamp::from_micros(0), |(until,)| until))
}

/// Workspaces with events after the position of an active webhook.
pub async fn lagging_workspaces(tx: &mut SystemTx, most: i64) -> Result<Vec<WorkspaceId>> {
    let found: Vec<(WorkspaceId,)> = tx
        .all(
            "SELECT DISTINCT w.workspace_id FROM webhook w JOIN event_counter c ON c.workspace_id = w.workspace_id
             WHERE w.status = 'active' AND w.sequence < c.last LIMIT $1",
            &[most.into()],
        )
        .await?;
    Ok(found.into_iter().map(|(workspace,)| workspace).collect())
}

/// Active webhooks of the workspace with events after their position.
pub async fn lagging(tx: &mut Tx) -> Result<Vec<WebhookId>> {
    let found: Vec<(WebhookId,)> = tx
        .all(
            "SELECT w.id FROM webhook w JOIN event_counter c ON c.workspace_id = $1
             WHERE w.workspace_id = $1 AND w.status = 'active' AND w.sequence < c.last ORDER BY w.id",
            &[],
        )
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// Moves a webhook's position in the event log.
pub async fn set_sequence(tx: &mut Tx, id: &WebhookId, sequence: i64) -> Result<()> {
    tx.run(
        "UPDATE webhook SET sequence = $3 WHERE workspace_id = $1 AND id = $2",
        &[id.into(), sequence.into()],
    )
    .await?;
    Ok(())
}

/// The next workspaces, after the given one, with an unclaimed webhook that has deliveries due.
pub async fn due_workspaces(
    tx: &mut SystemTx,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let waiting = "SELECT workspace_id FROM webhook
        WHERE due_at <= $1 AND claimed_until <= $1 AND rests_until <= $1 AND status = 'active' AND workspace_id > $2
        ORDER BY workspace_id LIMIT 1";
    turns::next_workspaces(tx, waiting, now, after, most).await
}

/// Due webhooks of a workspace, the most overdue first.
pub async fn due(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    now: Timestamp,
    most: usize,
) -> Result<Vec<WebhookId>> {
    let found: Vec<(WebhookId,)> = tx
        .all(
            "SELECT id FROM webhook WHERE workspace_id = $1
             AND due_at <= $2 AND claimed_until <= $2 AND rests_until <= $2 AND status = 'active'
             ORDER BY due_at, id LIMIT $3",
            &[workspace.into(), now.into(), i64::try_from(most).unwrap_or(i64::MAX).into()],
        )
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// Claims a webhook for one worker. False when another was faster.
pub async fn claim(tx: &mut Tx, id: &WebhookId, now: Timestamp, until: Timestamp) -> Result<bool> {
    let taken = tx
        .run(
            "UPDATE webhook SET claimed_until = $4 WHERE workspace_id = $1 AND id = $2
             AND due_at <= $3 AND claimed_until <= $3 AND rests_until <= $3 AND status = 'active'",
            &[id.into(), now.into(), until.into()],
        )
        .await?;
    Ok(taken == 1)
}

/// Deliveries of a webhook that are due, the most overdue first.
pub async fn due_deliveries(
    tx: &mut Tx,
    webhook: &WebhookId,
    now: Timestamp,
    most: i64,
) -> Result<Vec<DeliveryRecord>> {
    tx.all(
        &format!(
            "SELECT {DELIVERY_COLUMNS} FROM webhook_delivery
             WHERE workspace_id = $1 AND webhook_id = $2 AND next_attempt_at <= $3 ORDER BY next_attempt_at, id LIMIT $4"
        ),
        &[webhook.into(), now.into(), most.into()],
    )
    .await
}

/// Releases a webhook, due again when its next delivery is, and not before the given time.
///
/// The webhook must be locked with [`find_for_change`]: a delivery added meanwhile would be missed.
pub async fn reschedule(tx: &mut Tx, id: &WebhookId, failures: i64, rests_until: Timestamp) -> Result<()> {
    let next: Option<(Option<Timestamp>,)> = tx
        .one(
            "SELECT min(next_attempt_at) FROM webhook_delivery
             WHERE workspace_id = $1 AND webhook_id = $2 AND next_attempt_at IS NOT NULL",
            &[id.into()],
        )
        .await?;
    let due_at = next.and_then(|(next,)| next);
    tx.run(
        "UPDATE webhook SET due_at = $3, failures = $4, rests_until = $5, claimed_until = 0
         WHERE workspace_id = $1 AND id = $2",
        &[id.into(), due_at.into(), failures.into(), rests_until.into()],
    )
    .await?;
    Ok(())
}

/// Releases a webhook that was claimed until a time, unless it was claimed again since.
pub async fn release(tx: &mut Tx, id: &WebhookId, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE webhook SET claimed_until = 0 WHERE workspace_id = $1 AND id = $2 AND claimed_until = $3",
        &[id.into(), until.into()],
    )
    .await?;
    tx.wake(Topic::Webhook, None);
    Ok(())
}

/// Ends the back-off of a webhook, since a user wants to test it.
pub async fn clear_backoff(tx: &mut Tx, id: &WebhookId) -> Result<()> {
    tx.run("UPDATE webhook SET rests_until = 0 WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(())
}

/// Releases the claims of workers that ended, for a store with a single process.
pub async fn release_all(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE webhook SET claimed_until = 0 WHERE claimed_until > 0", &[]).await?;
    Ok(())
}
