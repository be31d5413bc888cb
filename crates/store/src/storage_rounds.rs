//! Rounds over all workspaces that the nodes share, for the check of what is stored. Each node claims a range of
//! workspaces after the other; a range whose node is gone is continued by another one where that was.
//!
//! All times are those of the store's clock, where it has one.

use model::{Timestamp, WorkspaceId};

use crate::{SystemTx, error::Result};

/// Workspaces of a range.
const RANGE_LENGTH: i64 = 100;
/// A range that is not renewed for this long may be claimed by another node.
const RANGE_LEASE_SECONDS: i64 = 60;
/// A round begins this long after the one before it began, or when that ends.
const ROUND_INTERVAL_SECONDS: i64 = 24 * 3600;

/// What there is to do for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextRange {
    /// It claimed workspaces, those after the first id up to the last.
    Claimed(WorkspaceRange),
    /// All ranges of this round are claimed by other nodes, or were checked.
    Shared,
    /// The next round begins in so many microseconds.
    RoundEnded(i64),
}

/// A range of workspaces that a node has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRange {
    /// Those up to this id are checked.
    pub checked_up_to: String,
    /// The last one, the key of the range.
    pub last: WorkspaceId,
}

/// Claims the next range for a node: one that was left, or the next of the round.
pub async fn claim_next(tx: &mut SystemTx, node: &str, now: Timestamp) -> Result<NextRange> {
    let clock = clock(tx, now);
    tx.run(
        "INSERT INTO storage_round (id, started_at, claimed_up_to, ended_at) VALUES (1, 0, '', 0)
         ON CONFLICT (id) DO NOTHING",
        &[],
    )
    .await?;
    let sql = format!(
        "SELECT claimed_up_to, started_at + $1 - {clock}, ended_at IS NOT NULL FROM storage_round WHERE id = 1{}",
        tx.for_update()
    );
    let found: Option<(String, i64, bool)> =
        tx.one(&sql, &[(ROUND_INTERVAL_SECONDS * 1_000_000).into()]).await?;
    let Some((mut claimed_up_to, next_round, has_ended)) = found else { return Ok(NextRange::Shared) };
    if has_ended {
        if next_round > 0 {
            return Ok(NextRange::RoundEnded(next_round));
        }
        let begin = format!(
            "UPDATE storage_round SET started_at = {clock}, claimed_up_to = '', ended_at = NULL WHERE id = 1"
        );
        tx.run(&begin, &[]).await?;
        claimed_up_to = String::new();
    }
    if let Some(left) = claim_left(tx, node, &clock).await? {
        return Ok(NextRange::Claimed(left));
    }
    let next = crate::system::workspaces_after(tx, &claimed_up_to, RANGE_LENGTH).await?;
    if let Some(last) = next.last() {
        let sql = format!(
            "INSERT INTO storage_range (last_workspace, checked_up_to, node_id, expires_at)
             VALUES ($1, $2, $3, {clock} + $4)"
        );
        tx.run(&sql, &[last.into(), (&claimed_up_to).into(), node.into(), lease().into()]).await?;
        tx.run("UPDATE storage_round SET claimed_up_to = $1 WHERE id = 1", &[last.into()]).await?;
        return Ok(NextRange::Claimed(WorkspaceRange { checked_up_to: claimed_up_to, last: last.clone() }));
    }
    let in_progress: Option<(i64,)> = tx.one("SELECT count(*) FROM storage_range", &[]).await?;
    if in_progress.is_some_and(|(ranges,)| ranges > 0) {
        return Ok(NextRange::Shared);
    }
    tx.run(&format!("UPDATE storage_round SET ended_at = {clock} WHERE id = 1"), &[]).await?;
    Ok(NextRange::RoundEnded(if has_ended { ROUND_INTERVAL_SECONDS * 1_000_000 } else { next_round.max(0) }))
}

/// A range that a node left, or the asking one itself before it started over.
async fn claim_left(tx: &mut SystemTx, node: &str, clock: &str) -> Result<Option<WorkspaceRange>> {
    let sql = format!(
        "SELECT checked_up_to, last_workspace FROM storage_range WHERE expires_at <= {clock} OR node_id = $1
         ORDER BY last_workspace LIMIT 1"
    );
    let found: Option<(String, WorkspaceId)> = tx.one(&sql, &[node.into()]).await?;
    let Some((checked_up_to, last)) = found else { return Ok(None) };
    let sql =
        format!("UPDATE storage_range SET node_id = $2, expires_at = {clock} + $3 WHERE last_workspace = $1");
    tx.run(&sql, &[(&last).into(), node.into(), lease().into()]).await?;
    Ok(Some(WorkspaceRange { checked_up_to, last }))
}

/// Records how far a node is, and that it is alive. `false` if the range is another node's by now.
pub async fn renew(tx: &mut SystemTx, range: &WorkspaceRange, node: &str, now: Timestamp) -> Result<bool> {
    let sql = format!(
        "UPDATE storage_range SET checked_up_to = $3, expires_at = {} + $4 WHERE last_workspace = $1 AND node_id = $2",
        clock(tx, now)
    );
    let values = [(&range.last).into(), node.into(), (&range.checked_up_to).into(), lease().into()];
    Ok(tx.run(&sql, &values).await? == 1)
}

/// Records that all workspaces of a range are checked.
pub async fn finish(tx: &mut SystemTx, range: &WorkspaceRange, node: &str) -> Result<()> {
    tx.run(
        "DELETE FROM storage_range WHERE last_workspace = $1 AND node_id = $2",
        &[(&range.last).into(), node.into()],
    )
    .await?;
    Ok(())
}

const fn lease() -> i64 {
    RANGE_LEASE_SECONDS * 1_000_000
}

/// The store's clock, or the process's own one where no other process has another.
fn clock(tx: &SystemTx, now: Timestamp) -> String {
    tx.own_clock().map_or_else(|| now.as_micros().to_string(), str::to_owned)
}
