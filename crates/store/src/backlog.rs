//! Lengths of the queues that all workspaces share, for the metrics.

use model::Timestamp;

use crate::{SystemTx, error::Result};

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
