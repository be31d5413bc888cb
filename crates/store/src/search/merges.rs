//! Keeping SQLite's search index in few parts.
//!
//! FTS5 writes a part for every flush and merges eight of a size into one as it writes. Between these merges a search
//! opens up to seven parts of each size. What is left is merged in small steps while nothing else is written.

use crate::{SystemTx, error::Result};

/// Pages that a step may write. It holds up other writes for a few milliseconds.
const STEP_PAGES: i64 = 64;
/// A merge that found nothing to do counts as one change.
const NOTHING_MERGED: i64 = 1;

/// Merges a few pages of parts, and returns whether there may be more to merge. PostgreSQL has no such parts.
pub async fn merge_some(tx: &mut SystemTx) -> Result<bool> {
    if tx.is_postgres() {
        return Ok(false);
    }
    let before = changes(tx).await?;
    tx.run("INSERT INTO email_text (email_text, rank) VALUES ('merge', $1)", &[STEP_PAGES.into()]).await?;
    Ok(changes(tx).await? - before > NOTHING_MERGED)
}

/// The rows changed by this connection so far.
async fn changes(tx: &mut SystemTx) -> Result<i64> {
    let counted: Option<(i64,)> = tx.one("SELECT total_changes()", &[]).await?;
    Ok(counted.map_or(0, |(changes,)| changes))
}
