//! What was sent lately, for limits that count, and who got an automatic answer.

use model::{MailboxId, Timestamp};

use crate::{
    Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// One mail that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendUse {
    /// Its id.
    pub id: String,
    /// The mailbox it left from.
    pub mailbox_id: MailboxId,
    /// When.
    pub at: Timestamp,
    /// Recipients outside the workspace.
    pub recipients: i64,
}

columns!(SendUse { id, mailbox_id, at, recipients });

/// Notes a mail.
pub async fn insert(tx: &mut Tx, sent: &SendUse) -> Result<()> {
    Insert::into("send_use").record(sent).run(tx).await?;
    Ok(())
}

/// The mails of the workspace after a time, oldest first.
pub async fn list_after(tx: &mut Tx, after: Timestamp) -> Result<Vec<SendUse>> {
    tx.all(
        &format!(
            "SELECT {} FROM send_use WHERE workspace_id = $1 AND at > $2 ORDER BY at, id",
            SendUse::COLUMNS
        ),
        &[after.into()],
    )
    .await
}

/// Mails that all mailboxes of the workspace sent in a month.
pub async fn count_month(tx: &mut Tx, month: &str) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT CAST(coalesce(sum(value), 0) AS BIGINT) FROM mailbox_counter WHERE workspace_id = $1 AND name = $2",
            &[format!("sent.{month}").as_str().into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Notes that somebody gets an automatic answer now, unless one went there after the given time. True when noted.
pub async fn note_auto_reply(
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
