//! Recent sends, for rate limits, and the recipients of automatic replies.

use model::{MailboxId, Timestamp};

use crate::{
    Tx, counters,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// A sent message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRecord {
    /// Its id.
    pub id: String,
    /// The mailbox it was sent from.
    pub mailbox_id: MailboxId,
    /// When.
    pub at: Timestamp,
    /// Recipients outside the workspace.
    pub recipients: i64,
}

columns!(SendRecord { id, mailbox_id, at, recipients });

/// Records a sent message.
pub async fn insert(tx: &mut Tx, sent: &SendRecord) -> Result<()> {
    Insert::into("send_use").record(sent).pipeline(tx).await
}

/// The messages that the workspace sent after a time, oldest first.
pub async fn list_after(tx: &mut Tx, after: Timestamp) -> Result<Vec<SendRecord>> {
    tx.all(
        &format!(
            "SELECT {} FROM send_use WHERE workspace_id = $1 AND at > $2 ORDER BY at, id",
            SendRecord::COLUMNS
        ),
        &[after.into()],
    )
    .await
}

/// How many messages all mailboxes of the workspace sent in a month.
pub async fn count_month(tx: &mut Tx, month: &str) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT CAST(coalesce((SELECT sum(value) FROM mailbox_counter WHERE workspace_id = $1 AND name = $2), 0)
               + coalesce((SELECT sum(amount) FROM counter_addition WHERE workspace_id = $1 AND name = $2), 0) AS BIGINT)",
            &[counters::sent_in(month).as_str().into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Records an automatic reply, unless one was sent after the given time. True when recorded.
pub async fn record_auto_reply(
    tx: &mut Tx,
    mailbox: &MailboxId,
    sender: &[u8],
    now: Timestamp,
    not_after: Timestamp,
) -> Result<bool> {
    let noted = tx
        .run(
            "INSERT INTO auto_reply (workspace_id, mailbox_id, sender, at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, mailbox_id, sender) DO UPDATE SET at = excluded.at WHERE auto_reply.at <= $5",
            &[mailbox.into(), sender.into(), now.into(), not_after.into()],
        )
        .await?;
    Ok(noted == 1)
}
