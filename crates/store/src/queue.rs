//! The delivery queue across workspaces, as its workers use it: due records, claims, attempts.

use std::collections::HashSet;

use model::{
    Timestamp, WorkspaceId,
    sending::{FailureClass, RecipientState},
};

use crate::{
    FromRow, Param, Row, SystemTx, Topic, Tx,
    error::Result,
    outbound::DeliveryRecord,
    sql::{Columns, columns, row},
    turns::Queue,
};

/// A recipient that a worker has claimed.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its message.
    pub outbound: String,
    /// Its position among the recipients of the message.
    pub position: i64,
    /// The address.
    pub recipient: String,
    /// The domain that limits and back-off apply to; empty for a mailbox of this server.
    pub destination: String,
    /// Earlier attempts.
    pub attempts: i64,
}

columns!(ClaimedDelivery { workspace = workspace_id, outbound = outbound_id, position, recipient, destination, attempts });

/// A destination with queued messages.
#[derive(Clone, Debug)]
pub struct DestinationHead {
    /// Its name.
    pub destination: String,
    /// When its first record is due: a pending one, or one whose node may be lost.
    pub due_at: Timestamp,
    /// When the first record is due of those that are not due yet.
    pub next_due_at: Option<Timestamp>,
    /// The workspace of all its records, if they are of one.
    pub only_workspace: Option<WorkspaceId>,
    /// Until when it is not tried, after it could not be reached.
    pub backoff_until: Option<Timestamp>,
}

/// A part of what the queue contains.
#[derive(Clone, Debug)]
pub struct QueueHeads {
    /// Some destinations, by name.
    pub destinations: Vec<DestinationHead>,
    /// Whether senders are to be notified of failures.
    pub has_reports: bool,
}

struct HeadRow {
    has_reports: bool,
    head: Option<DestinationHead>,
}

impl FromRow for HeadRow {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (has_reports, name): (i64, Option<String>) = (row.next()?, row.next()?);
        let (due_at, next_due_at): (Option<Timestamp>, Option<Timestamp>) = (row.next()?, row.next()?);
        let (first, last): (Option<WorkspaceId>, Option<WorkspaceId>) = (row.next()?, row.next()?);
        let backoff_until = row.next()?;
        let head = name.zip(due_at).map(|(destination, due_at)| DestinationHead {
            destination,
            due_at,
            next_due_at,
            only_workspace: first.filter(|first| last.as_ref() == Some(first)),
            backoff_until,
        });
        Ok(Self { has_reports: has_reports == 1, head })
    }
}

/// The destinations in the queue by name, after a name or from the first on, and whether there are reports to write. A
/// few index lookups per destination, however many messages are queued there, and all in one statement.
pub async fn heads(tx: &mut SystemTx, after: Option<&str>, now: Timestamp, most: i64) -> Result<QueueHeads> {
    let (after, comparison) = after.map_or(("", ">="), |after| (after, ">"));
    let sql = format!(
        "WITH RECURSIVE names (name) AS (
           SELECT (SELECT destination FROM delivery WHERE state = 'queued' AND destination {comparison} $1
             ORDER BY destination LIMIT 1)
           UNION ALL SELECT (SELECT destination FROM delivery WHERE state = 'queued' AND destination > names.name
             ORDER BY destination LIMIT 1) FROM names WHERE names.name IS NOT NULL)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM outbound WHERE report = 'due') THEN CAST(1 AS BIGINT) ELSE 0 END,
           names.name, (SELECT coalesce(claimed_until, next_attempt_at) FROM delivery
             WHERE state = 'queued' AND destination = names.name ORDER BY coalesce(claimed_until, next_attempt_at) LIMIT 1),
           (SELECT coalesce(claimed_until, next_attempt_at) FROM delivery
             WHERE state = 'queued' AND destination = names.name AND coalesce(claimed_until, next_attempt_at) > $3
             ORDER BY coalesce(claimed_until, next_attempt_at) LIMIT 1),
           (SELECT workspace_id FROM delivery WHERE state = 'queued' AND destination = names.name
             ORDER BY workspace_id LIMIT 1),
           (SELECT workspace_id FROM delivery WHERE state = 'queued' AND destination = names.name
             ORDER BY workspace_id DESC LIMIT 1),
           destination.resting_until
         FROM names LEFT JOIN destination ON destination.name = names.name LIMIT $2"
    );
    let found: Vec<HeadRow> = tx.all(&sql, &[after.into(), most.into(), now.into()]).await?;
    let has_reports = found.first().is_some_and(|row| row.has_reports);
    Ok(QueueHeads { destinations: found.into_iter().filter_map(|row| row.head).collect(), has_reports })
}

/// The next workspaces, after the given one, with due records of a destination.
pub async fn due_workspaces(
    tx: &mut SystemTx,
    destination: &str,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let queue = Queue {
        table: "delivery",
        condition: "state = 'queued' AND destination = $4",
        due: "coalesce(claimed_until, next_attempt_at)",
    };
    queue.due_workspaces(tx, now, after, most, &[destination.into()]).await
}

/// Claims due records of a workspace, the most overdue first, for a node and until a time.
pub async fn claim(
    tx: &mut SystemTx,
    node: &str,
    (now, until): (Timestamp, Timestamp),
    (destination, workspace): (&str, &WorkspaceId),
    most: usize,
) -> Result<Vec<ClaimedDelivery>> {
    let sql = format!(
        "WITH chosen AS (SELECT outbound_id, position FROM delivery WHERE workspace_id = $1
           AND state = 'queued' AND destination = $2 AND coalesce(claimed_until, next_attempt_at) <= $3
           ORDER BY coalesce(claimed_until, next_attempt_at) LIMIT $6{})
         UPDATE delivery SET claimed_by = $4, claimed_until = $5
         WHERE workspace_id = $1 AND (outbound_id, position) IN (SELECT outbound_id, position FROM chosen)
         RETURNING {}",
        tx.skip_locked(),
        ClaimedDelivery::COLUMNS
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values = [workspace.into(), destination.into(), now.into(), node.into(), until.into(), most.into()];
    tx.all(&sql, &values).await
}

/// Releases a record that a node has claimed, to be retried at a time.
pub async fn release(tx: &mut Tx, claimed: &ClaimedDelivery, node: &str, at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE delivery SET claimed_by = NULL, claimed_until = NULL, next_attempt_at = $5
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND claimed_by = $4 AND state = 'queued'",
        &[(&claimed.outbound).into(), claimed.position.into(), node.into(), at.into()],
    )
    .await?;
    tx.wake(Topic::Queue, None);
    Ok(())
}

/// Extends the claims of a node, except those whose outcome is being recorded at this moment.
pub async fn renew(tx: &mut SystemTx, node: &str, until: Timestamp) -> Result<()> {
    let sql = format!(
        "WITH chosen AS (SELECT workspace_id, outbound_id, position FROM delivery
           WHERE claimed_by = $1 AND state = 'queued'{})
         UPDATE delivery SET claimed_until = $2 WHERE (workspace_id, outbound_id, position) IN
           (SELECT workspace_id, outbound_id, position FROM chosen)",
        tx.skip_locked()
    );
    tx.run(&sql, &[node.into(), until.into()]).await?;
    Ok(())
}

/// The claims of a node.
pub async fn claimed_by(tx: &mut SystemTx, node: &str) -> Result<Vec<ClaimedDelivery>> {
    tx.all(
        &format!(
            "SELECT {} FROM delivery
         WHERE claimed_by = $1 AND state = 'queued'",
            ClaimedDelivery::COLUMNS
        ),
        &[node.into()],
    )
    .await
}

/// The destinations that a node has claimed records of at this moment.
pub async fn claimed_destinations(tx: &mut SystemTx, now: Timestamp) -> Result<HashSet<String>> {
    // With DISTINCT, SQLite would go through the destinations instead of the claims.
    let sql = "SELECT destination FROM delivery
         WHERE claimed_by > '' AND state = 'queued' AND claimed_until > $1";
    let found: Vec<(String,)> = tx.all(sql, &[now.into()]).await?;
    Ok(found.into_iter().map(|(name,)| name).collect())
}

/// Releases the claims of all other nodes, for a store with a single node.
pub async fn release_all_but(tx: &mut SystemTx, node: &str) -> Result<()> {
    tx.run(
        "UPDATE delivery SET claimed_by = NULL, claimed_until = NULL
         WHERE state = 'queued' AND claimed_by IS NOT NULL AND claimed_by <> $1",
        &[node.into()],
    )
    .await?;
    Ok(())
}

/// The outcome of one attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The recipient's new state.
    pub state: RecipientState,
    /// The reply of the remote server.
    pub reply: String,
    /// When it is retried, if it stays in the queue.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it failed, or is late.
    pub class: Option<FailureClass>,
    /// Whether it was left out because the address is suppressed.
    pub suppressed: bool,
}

impl Attempt {
    /// The record of the recipient after the attempt.
    pub fn apply(&self, record: &mut DeliveryRecord, now: Timestamp) {
        record.state = self.state;
        record.reply = Some(self.reply.clone());
        record.class = self.class;
        record.suppressed = self.suppressed;
        record.next_attempt_at = self.next_attempt_at;
        record.last_attempt_at = Some(now);
        record.finished_at = (self.state != RecipientState::Queued).then_some(now);
        record.attempts += 1;
    }
}

/// Records attempts, each of another record, with their times. Returns for each whether it was recorded, which it is not when another node
/// has claimed the record since.
pub async fn record_attempts(
    tx: &mut Tx,
    node: &str,
    attempts: &[(&ClaimedDelivery, &Attempt, Timestamp)],
) -> Result<Vec<bool>> {
    const RECORD: &str = "UPDATE delivery SET state = $5, reply = $6, next_attempt_at = $7, last_attempt_at = $8,
           finished_at = $9, attempts = attempts + 1, claimed_by = NULL, claimed_until = NULL, class = $11, suppressed = $12
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND state = 'queued' AND claimed_by = $4
         AND attempts = $10";
    let rows = attempts.iter().map(|attempt| attempt_params(node, *attempt));
    let mut recorded = Vec::with_capacity(attempts.len());
    if tx.is_postgres() {
        let sql = format!("{RECORD} RETURNING outbound_id, position");
        let changed: Vec<(String, i64)> = tx.all_of_rows(&sql, rows.collect()).await?;
        let changed: HashSet<(&str, i64)> = changed.iter().map(|(id, position)| (&**id, *position)).collect();
        recorded.extend(attempts.iter().map(|(one, ..)| changed.contains(&(&*one.outbound, one.position))));
    } else {
        for row in rows {
            recorded.push(tx.run(RECORD, &row).await? == 1);
        }
    }
    let mut with_outcome = attempts.iter().zip(&recorded);
    if with_outcome.any(|((_, attempt, _), recorded)| *recorded && attempt.next_attempt_at.is_some()) {
        // The worker has to know when it is due next.
        tx.wake(Topic::Queue, None);
    }
    Ok(recorded)
}

fn attempt_params<'a>(
    node: &'a str,
    (claimed, attempt, now): (&'a ClaimedDelivery, &'a Attempt, Timestamp),
) -> Vec<Param<'a>> {
    let finished = (attempt.state != RecipientState::Queued).then_some(now);
    vec![
        (&claimed.outbound).into(),
        claimed.position.into(),
        node.into(),
        attempt.state.into(),
        (&attempt.reply).into(),
        attempt.next_attempt_at.into(),
        now.into(),
        finished.into(),
        claimed.attempts.into(),
        attempt.class.map(FailureClass::as_str).into(),
        attempt.suppressed.into(),
    ]
}

/// Moves a claimed record to another destination and releases it.
pub async fn redirect(tx: &mut Tx, claimed: &ClaimedDelivery, node: &str, destination: &str) -> Result<()> {
    tx.run(
        "UPDATE delivery SET destination = $5, claimed_by = NULL, claimed_until = NULL
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND claimed_by = $4",
        &[(&claimed.outbound).into(), claimed.position.into(), node.into(), destination.into()],
    )
    .await?;
    tx.wake(Topic::Queue, None);
    Ok(())
}

/// Records that a destination could not be reached. Messages that fail together count once.
pub async fn back_off(tx: &mut SystemTx, destination: &str, now: Timestamp, until: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO destination (name, failures, resting_until) VALUES ($1, 1, $3) ON CONFLICT (name)
         DO UPDATE SET failures = destination.failures + 1, resting_until = excluded.resting_until
         WHERE destination.resting_until <= $2",
        &[destination.into(), now.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// How often in a row a destination could not be reached.
pub async fn failures(tx: &mut SystemTx, destination: &str) -> Result<i64> {
    let found: Option<(i64,)> =
        tx.one("SELECT failures FROM destination WHERE name = $1", &[destination.into()]).await?;
    Ok(found.map_or(0, |(failures,)| failures))
}

/// Records that a destination was reached.
pub async fn mark_reachable(tx: &mut SystemTx, destination: &str) -> Result<()> {
    tx.run("DELETE FROM destination WHERE name = $1", &[destination.into()]).await?;
    Ok(())
}

/// Messages whose senders are to be notified of a failure.
pub async fn due_reports(tx: &mut SystemTx, most: i64) -> Result<Vec<(WorkspaceId, String)>> {
    tx.all("SELECT workspace_id, id FROM outbound WHERE report = 'due' LIMIT $1", &[most.into()]).await
}

/// The queued recipients of one destination.
#[derive(Clone, Debug)]
pub struct QueueSummary {
    /// The domain; empty for mailboxes of this server.
    pub destination: String,
    /// Queued recipients.
    pub count: i64,
    /// The most attempts that one of them had.
    pub attempts: i64,
    /// When the next of them is due.
    pub next_attempt_at: Option<Timestamp>,
    /// Until when the destination is backed off.
    pub backoff_until: Option<Timestamp>,
}

row!(QueueSummary { destination, count, attempts, next_attempt_at, backoff_until });

/// The queue of all workspaces by destination, the longest first.
pub async fn summary(tx: &mut SystemTx, most: i64) -> Result<Vec<QueueSummary>> {
    tx.all(
        "SELECT delivery.destination, count(*), max(delivery.attempts), min(delivery.next_attempt_at),
           max(destination.resting_until)
         FROM delivery LEFT JOIN destination ON destination.name = delivery.destination
         WHERE delivery.state = 'queued' GROUP BY delivery.destination ORDER BY count(*) DESC, delivery.destination
         LIMIT $1",
        &[most.into()],
    )
    .await
}
