//! Mails on their way out: one row for the mail, one record in the queue for each recipient.

use model::{
    EmailId, MailboxId, Timestamp,
    outbound::{OutboundKind, ReportState},
    sending::{RecipientLine, RecipientState},
};

use crate::{
    Topic, Tx, contents,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// A mail on its way out, as it is stored.
#[derive(Clone, Debug)]
pub struct OutboundRecord {
    /// Its id in the queue.
    pub id: String,
    /// The mailbox it leaves from; nothing for mail of the service itself.
    pub mailbox_id: Option<MailboxId>,
    /// Its email; nothing for automatic mail, and once the email is deleted.
    pub email_id: Option<EmailId>,
    /// What it is.
    pub kind: OutboundKind,
    /// Its content.
    pub content_id: String,
    /// Header lines that stand before the message on its way.
    pub prefix: String,
    /// The envelope's sender; nothing for a null sender.
    pub sender: Option<String>,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// When it came into the queue.
    pub created_at: Timestamp,
    /// Until when it is tried.
    pub expires_at: Timestamp,
    /// Whether its sender has to be told that it failed.
    pub report: ReportState,
}

columns!(OutboundRecord {
    id,
    mailbox_id,
    email_id,
    kind,
    content_id,
    prefix,
    sender,
    message_id,
    created_at,
    expires_at,
    report,
});

pub(crate) const COLUMNS: &str = OutboundRecord::COLUMNS;

/// What became of a mail for one recipient, as it is stored.
#[derive(Clone, Debug)]
pub struct DeliveryRecord {
    /// Its place among the recipients.
    pub position: i64,
    /// The address.
    pub recipient: String,
    /// The line that names it.
    pub line: RecipientLine,
    /// The domain, as far as bounds and back-off go; empty for a mailbox of this server.
    pub destination: String,
    /// What became of it.
    pub state: RecipientState,
    /// How often it was tried.
    pub attempts: i64,
    /// When it will be tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was tried last.
    pub last_attempt_at: Option<Timestamp>,
    /// When its state became final.
    pub finished_at: Option<Timestamp>,
    /// What the other server said last.
    pub reply: Option<String>,
}

columns!(DeliveryRecord {
    position,
    recipient,
    line,
    destination,
    state,
    attempts,
    next_attempt_at,
    last_attempt_at,
    finished_at,
    reply,
});

/// Adds a mail, whose content must be there, with its recipients. Workers are woken if one of them has to wait.
pub async fn insert(tx: &mut Tx, mail: &OutboundRecord, recipients: &[DeliveryRecord]) -> Result<()> {
    Insert::into("outbound").record(mail).run(tx).await?;
    for recipient in recipients {
        insert_recipient(tx, &mail.id, recipient).await?;
    }
    let waits = recipients.iter().any(|recipient| recipient.state == RecipientState::Queued);
    if waits || mail.report == ReportState::Due {
        tx.wake(Topic::Queue, None).await?;
    }
    Ok(())
}

async fn insert_recipient(tx: &mut Tx, mail: &str, recipient: &DeliveryRecord) -> Result<()> {
    Insert::into("delivery").column("outbound_id", mail).record(recipient).run(tx).await?;
    Ok(())
}

/// Finds a mail in the queue by its id.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<OutboundRecord>> {
    tx.one(&format!("SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND id = $2"), &[id.into()]).await
}

/// The same, held until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &str) -> Result<Option<OutboundRecord>> {
    let lock = tx.for_update();
    tx.one(&format!("SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND id = $2{lock}"), &[id.into()])
        .await
}

/// Finds the way out of an email.
pub async fn find_of_email(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
) -> Result<Option<OutboundRecord>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3"
        ),
        &[mailbox.into(), email.into()],
    )
    .await
}

/// Finds the mail of a mailbox that a report is about.
pub async fn find_by_message_id(
    tx: &mut Tx,
    mailbox: &MailboxId,
    message_id: &str,
) -> Result<Option<OutboundRecord>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND message_id = $3
             AND kind = 'mail' LIMIT 1"
        ),
        &[mailbox.into(), message_id.into()],
    )
    .await
}

/// The recipients of a mail.
pub async fn recipients(tx: &mut Tx, id: &str) -> Result<Vec<DeliveryRecord>> {
    tx.all(
        &format!(
            "SELECT {} FROM delivery WHERE workspace_id = $1 AND outbound_id = $2 ORDER BY position",
            DeliveryRecord::COLUMNS
        ),
        &[id.into()],
    )
    .await
}

/// Sets what a report says about a recipient.
pub async fn set_state(
    tx: &mut Tx,
    id: &str,
    position: i64,
    state: RecipientState,
    reply: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE delivery SET state = $4, reply = coalesce($5, reply), finished_at = $6, next_attempt_at = NULL
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3",
        &[id.into(), position.into(), state.into(), reply.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Sets whether the sender of a mail has to be told that it failed.
pub async fn set_report(tx: &mut Tx, id: &str, report: ReportState) -> Result<()> {
    tx.run(
        "UPDATE outbound SET report = $3 WHERE workspace_id = $1 AND id = $2",
        &[id.into(), report.into()],
    )
    .await?;
    Ok(())
}

/// Removes a mail from the queue, and its content if nothing else consists of it.
pub async fn delete(tx: &mut Tx, mail: &OutboundRecord) -> Result<()> {
    tx.run("DELETE FROM outbound WHERE workspace_id = $1 AND id = $2", &[(&mail.id).into()]).await?;
    contents::release(tx, std::slice::from_ref(&mail.content_id)).await
}

/// Forgets the way out of an email that is deleted. One that still waits for a recipient goes on without it.
pub(crate) async fn forget(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId) -> Result<()> {
    tx.run(
        "DELETE FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3 AND report <> 'due'
         AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.workspace_id = $1
           AND delivery.outbound_id = outbound.id AND delivery.state = 'queued')",
        &[mailbox.into(), email.into()],
    )
    .await?;
    tx.run(
        "UPDATE outbound SET email_id = NULL WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3",
        &[mailbox.into(), email.into()],
    )
    .await?;
    Ok(())
}
