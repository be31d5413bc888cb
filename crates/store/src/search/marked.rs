//! Entering texts into PostgreSQL's search index, many at once.
//!
//! GIN finds the page of every word of a text: a thousand texts that share words cost a tenth of what they cost one by
//! one. So a message is stored with its words and marked as not indexed; the index has only those without the mark. A
//! search reads the marked texts of its mailbox too, so nothing is missing from its answer meanwhile.

use model::WorkspaceId;

use crate::{SystemTx, error::Result, system};

/// Texts of one transaction: enough to share words, and few enough that it ends within a second or two.
const BATCH: i64 = 1000;
/// One node at a time, so that batches are large. The lock is the transaction's: a node that ends gives it up.
const LOCK: i64 = 0x7465_7874;

/// How many texts are marked, counted up to a limit. On SQLite, whose index has marks of its own, none.
pub async fn count_marked(tx: &mut SystemTx, most: i64) -> Result<i64> {
    if !tx.is_postgres() {
        return Ok(0);
    }
    let sql = "SELECT count(*) FROM (SELECT 1 FROM email_text WHERE NOT indexed LIMIT $1) AS marked";
    let found: Option<(i64,)> = tx.one(sql, &[most.into()]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Indexes some of the marked texts, and returns whether there may be more. None while another node does.
pub async fn index_marked(tx: &mut SystemTx) -> Result<bool> {
    if !tx.is_postgres() || !system::lock_for_transaction(tx, LOCK).await? {
        return Ok(false);
    }
    let marked: Vec<(WorkspaceId, i64)> = tx
        .all(
            "SELECT workspace_id, count(*) FROM (SELECT workspace_id FROM email_text WHERE NOT indexed
               ORDER BY workspace_id LIMIT $1) AS marked GROUP BY workspace_id",
            &[BATCH.into()],
        )
        .await?;
    let total: i64 = marked.iter().map(|(_, count)| count).sum();
    for (workspace, count) in &marked {
        // Without those whose email is just being deleted.
        tx.enter(workspace)
            .run(
                "UPDATE email_text SET indexed = true FROM (SELECT mailbox_id, email_id FROM email_text
                   WHERE workspace_id = $1 AND NOT indexed ORDER BY mailbox_id, email_id LIMIT $2
                   FOR UPDATE SKIP LOCKED) AS marked
                 WHERE email_text.workspace_id = $1 AND email_text.mailbox_id = marked.mailbox_id
                   AND email_text.email_id = marked.email_id",
                &[(*count).into()],
            )
            .await?;
    }
    if total > 0 {
        // The words are in the index's list of new entries now, and every search reads that.
        tx.one::<(i64,)>("SELECT gin_clean_pending_list('email_text_words')", &[]).await?;
    }
    Ok(total == BATCH)
}
