//! Counters of mailboxes: what is stored, unread, sent and received.

use model::{MailboxId, mailboxes::UnreadByCategory};

use crate::{Tx, error::Result};

const ADD_TO_COUNTER: &str = "INSERT INTO mailbox_counter (workspace_id, mailbox_id, name, value)
     VALUES ($1, $2, $3, $4)
     ON CONFLICT (workspace_id, mailbox_id, name) DO UPDATE SET value = mailbox_counter.value + excluded.value";

/// Adds to a counter of a mailbox that the caller has locked.
pub async fn add_to_counter(tx: &mut Tx, id: &MailboxId, name: &str, by: i64) -> Result<()> {
    tx.add_at_commit(ADD_TO_COUNTER, &[id.into(), name.into()], &[by]).await
}

/// The same, visible to the next statement.
pub(crate) async fn add_now(tx: &mut Tx, id: &MailboxId, name: &str, by: i64) -> Result<()> {
    tx.pipeline(ADD_TO_COUNTER, &[id.into(), name.into(), by.into()]).await
}

/// A counter of a mailbox; 0 when it does not exist.
pub async fn counter(tx: &mut Tx, id: &MailboxId, name: &str) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT value FROM mailbox_counter WHERE workspace_id = $1 AND mailbox_id = $2 AND name = $3",
            &[id.into(), name.into()],
        )
        .await?;
    Ok(found.map_or(0, |(value,)| value))
}

/// The storage of a mailbox: bytes and blobs.
pub async fn storage(tx: &mut Tx, id: &MailboxId) -> Result<(i64, i64)> {
    let counters: Vec<(String, i64)> = tx
        .all(
            "SELECT name, value FROM mailbox_counter WHERE workspace_id = $1 AND mailbox_id = $2
             AND name IN ('storage_bytes', 'blob_count')",
            &[id.into()],
        )
        .await?;
    let of = |wanted: &str| counters.iter().find(|(name, _)| name == wanted).map_or(0, |(_, value)| *value);
    Ok((of("storage_bytes"), of("blob_count")))
}

/// Bytes that the workspace stores: its mailboxes, memories and documents.
pub async fn stored_bytes(tx: &mut Tx) -> Result<i64> {
    let found = tx
        .one(
            "SELECT CAST(coalesce(sum(value), 0) AS BIGINT) FROM mailbox_counter
             WHERE workspace_id = $1 AND name = 'storage_bytes'",
            &[],
        )
        .await?;
    Ok(found.map_or(0, |(bytes,)| bytes) + crate::memory::stored_bytes(tx).await?)
}

/// Unread emails in the inbox by category, for all mailboxes of the workspace.
pub async fn unread_by_category(tx: &mut Tx) -> Result<Vec<(MailboxId, UnreadByCategory)>> {
    let counters: Vec<(MailboxId, String, i64)> = tx
        .all(
            "SELECT mailbox_id, name, value FROM mailbox_counter
             WHERE workspace_id = $1 AND name LIKE 'inbox_unread.%' ORDER BY mailbox_id",
            &[],
        )
        .await?;
    let mut all: Vec<(MailboxId, UnreadByCategory)> = Vec::new();
    for (mailbox, name, value) in counters {
        if all.last().is_none_or(|(id, _)| *id != mailbox) {
            all.push((mailbox, UnreadByCategory::default()));
        }
        if let Some((_, unread)) = all.last_mut() {
            match name.as_str() {
                "inbox_unread.customer_support" => unread.customer_support = value,
                "inbox_unread.technical" => unread.technical = value,
                "inbox_unread.partnership" => unread.partnership = value,
                _ => unread.other = value,
            }
        }
    }
    Ok(all)
}

/// A counter of every mailbox of the workspace that has it.
pub async fn counters(tx: &mut Tx, name: &str) -> Result<Vec<(MailboxId, i64)>> {
    tx.all(
        "SELECT mailbox_id, CAST(sum(value) AS BIGINT) FROM (
           SELECT mailbox_id, value FROM mailbox_counter WHERE workspace_id = $1 AND name = $2
           UNION ALL SELECT mailbox_id, amount FROM counter_addition WHERE workspace_id = $1 AND name = $2
         ) AS counted GROUP BY mailbox_id",
        &[name.into()],
    )
    .await
}
