//! Lengths of the queues that all workspaces share, and since when their work is due, for the metrics and operators.

use model::Timestamp;

use crate::{SystemTx, drafts, error::Result, triage_jobs};

/// Counting stops here: it runs every few seconds, however long the queues are.
pub const MAX_COUNTED: i64 = 10_000;

/// The queues by name, each with the number of entries that are due now.
pub async fn count(tx: &mut SystemTx, now: Timestamp) -> Result<Vec<(&'static str, i64)>> {
    let mut counts = Vec::new();
    for (queue, sql) in [
        (
            "outbound",
            "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE state = 'queued' LIMIT $1) AS counted",
        ),
        (
            "webhooks",
            "SELECT count(*) FROM (SELECT 1 FROM webhook_delivery WHERE next_attempt_at IS NOT NULL LIMIT $1) AS counted",
        ),
        ("triage", "SELECT count(*) FROM (SELECT 1 FROM triage_job LIMIT $1) AS counted"),
        (
            "documents",
            "SELECT count(*) FROM (SELECT 1 FROM document WHERE status = 'indexing' LIMIT $1) AS counted",
        ),
        (
            "scans",
            "SELECT count(*) FROM (SELECT 1 FROM email WHERE scan_status IS NULL AND outgoing = 0 LIMIT $1) AS counted",
        ),
    ] {
        let found: Option<(i64,)> = tx.one(sql, &[MAX_COUNTED.into()]).await?;
        counts.push((queue, found.map_or(0, |(count,)| count)));
    }
    let due: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM (SELECT 1 FROM draft WHERE state IN ('scheduled', 'deferred', 'sending')
             AND coalesce(claimed_until, scheduled_at) <= $2 LIMIT $1) AS counted",
            &[MAX_COUNTED.into(), now.into()],
        )
        .await?;
    counts.push(("schedules", due.map_or(0, |(count,)| count)));
    Ok(counts)
}

/// The oldest work of a queue that is due and not claimed.
#[derive(Clone, Copy, Debug)]
pub struct OldestWork {
    /// The queue.
    pub queue: &'static str,
    /// Since when it has been due; `None` when nothing is.
    pub due_since: Option<Timestamp>,
    /// The same where no node works on the queue at this moment: one that is busy there will come to it.
    pub unattended_since: Option<Timestamp>,
}

impl OldestWork {
    fn new(queue: &'static str, due_since: Option<Timestamp>, has_claims: bool) -> Self {
        Self { queue, due_since, unattended_since: due_since.filter(|_| !has_claims) }
    }
}

/// The oldest due work of each queue but the outbound one, which is several: one for each destination.
pub async fn oldest(tx: &mut SystemTx, now: Timestamp) -> Result<Vec<OldestWork>> {
    let is_due = |at: &Timestamp| *at <= now;
    let schedule = drafts::next_due(tx).await?.filter(is_due);
    let claimed = "SELECT CAST(1 AS BIGINT) FROM draft WHERE state IN ('scheduled', 'deferred', 'sending')
        AND coalesce(claimed_until, scheduled_at) > $1 AND claimed_until IS NOT NULL LIMIT 1";
    let has_schedule = exists(tx, claimed, now).await?;
    let webhook = [oldest_webhook(tx, now).await?, oldest_event(tx).await?].into_iter().flatten().min();
    let claimed = "SELECT CAST(1 AS BIGINT) FROM webhook WHERE claimed_until > $1 LIMIT 1";
    let has_webhook = exists(tx, claimed, now).await?;
    let job = triage_jobs::next_due(tx).await?.filter(is_due);
    let claimed = "SELECT CAST(1 AS BIGINT) FROM triage_job WHERE claimed_until > $1 LIMIT 1";
    let has_job = exists(tx, claimed, now).await?;
    Ok(vec![
        OldestWork::new("schedules", schedule, has_schedule),
        OldestWork::new("webhooks", webhook, has_webhook),
        OldestWork::new("triage", job, has_job),
        OldestWork::new("search", oldest_unindexed(tx).await?, false),
    ])
}

async fn exists(tx: &mut SystemTx, sql: &str, now: Timestamp) -> Result<bool> {
    Ok(tx.one::<(i64,)>(sql, &[now.into()]).await?.is_some())
}

/// Since when a webhook could have been called: it was due, not claimed, and no longer backing off.
async fn oldest_webhook(tx: &mut SystemTx, now: Timestamp) -> Result<Option<Timestamp>> {
    let found: Option<(Option<Timestamp>,)> = tx
        .one(
            "SELECT min(CASE WHEN due_at >= claimed_until AND due_at >= rests_until THEN due_at
               WHEN claimed_until >= rests_until THEN claimed_until ELSE rests_until END)
             FROM webhook WHERE due_at <= $1 AND claimed_until <= $1 AND rests_until <= $1 AND status = 'active'",
            &[now.into()],
        )
        .await?;
    Ok(found.and_then(|(at,)| at))
}

/// When the first event happened of which a webhook has no delivery yet; of a bounded number of webhooks.
async fn oldest_event(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let found: Option<(Option<Timestamp>,)> = tx
        .one(
            "SELECT min(firsts.occurred_at) FROM (SELECT (SELECT e.occurred_at FROM event e
                 WHERE e.workspace_id = w.workspace_id AND e.sequence > w.sequence ORDER BY e.sequence LIMIT 1)
                 AS occurred_at
               FROM webhook w JOIN event_counter c ON c.workspace_id = w.workspace_id
               WHERE w.status = 'active' AND w.sequence < c.last LIMIT $1) AS firsts",
            &[MAX_COUNTED.into()],
        )
        .await?;
    Ok(found.and_then(|(at,)| at))
}

/// When the oldest received message arrived whose text is not in the search index yet, of a bounded number. Texts of
/// drafts are left out: they are entered again with every change.
async fn oldest_unindexed(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let sql = if tx.is_postgres() {
        "SELECT min(email.arrived_at) FROM (SELECT workspace_id, mailbox_id, email_id FROM email_text
           WHERE NOT indexed LIMIT $1) AS unindexed
         JOIN email ON email.workspace_id = unindexed.workspace_id AND email.mailbox_id = unindexed.mailbox_id
           AND email.id = unindexed.email_id WHERE email.outgoing = 0"
    } else {
        "SELECT min(email.arrived_at) FROM (SELECT workspace_id, mailbox_id, email_id FROM email_text_pending
           ORDER BY id LIMIT $1) AS unindexed
         CROSS JOIN email ON email.workspace_id = unindexed.workspace_id AND email.mailbox_id = unindexed.mailbox_id
           AND email.id = unindexed.email_id WHERE email.outgoing = 0"
    };
    let found: Option<(Option<Timestamp>,)> = tx.one(sql, &[MAX_COUNTED.into()]).await?;
    Ok(found.and_then(|(at,)| at))
}
