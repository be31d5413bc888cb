//! Finding a message across workspaces, for the operator: by its Message-ID, by the id of one of its emails, or by its id
//! in the queue.
//!
//! No index starts with these ids: one for a rarely used command would cost a write per message. So each mailbox (or
//! workspace) is looked up once in an index that starts with it: the cost is that of the number of mailboxes, however
//! many messages they hold. The lookups are scalar subqueries, since both engines evaluate those in this order; joins
//! may become a scan of all emails.

use model::{EmailId, MailboxId, ThreadId, WorkspaceId};

use crate::{
    Param, SystemTx, Tx,
    emails::{COLUMNS, EmailRecord},
    error::Result,
    outbound::{self, OutboundRecord},
    sql::row,
};

/// A mailbox with a matching message.
#[derive(Clone, Debug)]
pub struct MailboxMatch {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The mailbox.
    pub mailbox: MailboxId,
    /// Its address.
    pub address: String,
    /// What matched there: a thread, or the email.
    pub found: String,
}

row!(MailboxMatch { workspace, mailbox, address, found });

/// Runs the `wanted` lookup for every mailbox, and returns those that match.
async fn mailboxes_with(
    tx: &mut SystemTx,
    found: &str,
    wanted: Param<'_>,
    most: i64,
) -> Result<Vec<MailboxMatch>> {
    let sql = format!(
        "SELECT * FROM (SELECT workspace_id, id, email, ({found}) AS found FROM mailbox) AS known
         WHERE found IS NOT NULL LIMIT $2"
    );
    tx.all(&sql, &[wanted, most.into()]).await
}

/// The mailboxes that know a Message-ID, by its hash, each with its thread.
pub async fn find_by_message_id(
    tx: &mut SystemTx,
    message_id: &[u8],
    most: i64,
) -> Result<Vec<MailboxMatch>> {
    let thread = "SELECT thread_id FROM thread_reference
         WHERE thread_reference.workspace_id = mailbox.workspace_id AND thread_reference.mailbox_id = mailbox.id
           AND thread_reference.message_id = $1";
    mailboxes_with(tx, thread, message_id.into(), most).await
}

/// The mailboxes that have an email.
pub async fn find_by_email(tx: &mut SystemTx, email: &EmailId, most: i64) -> Result<Vec<MailboxMatch>> {
    let same = "SELECT email.id FROM email
         WHERE email.workspace_id = mailbox.workspace_id AND email.mailbox_id = mailbox.id AND email.id = $1";
    mailboxes_with(tx, same, email.into(), most).await
}

/// The mailboxes that have sent, or are sending, a message with a Message-ID.
pub async fn find_sending(tx: &mut SystemTx, message_id: &str, most: i64) -> Result<Vec<MailboxMatch>> {
    let sent = "SELECT outbound.id FROM outbound
         WHERE outbound.workspace_id = mailbox.workspace_id AND outbound.mailbox_id = mailbox.id
           AND outbound.message_id = $1 LIMIT 1";
    mailboxes_with(tx, sent, message_id.into(), most).await
}

/// The queued message with this id, and messages of the service itself with this Message-ID, each with its workspace.
pub async fn find_queued(tx: &mut SystemTx, named: &str, most: i64) -> Result<Vec<(WorkspaceId, String)>> {
    tx.all(
        "SELECT * FROM (SELECT id, (SELECT coalesce(
             (SELECT outbound.id FROM outbound WHERE outbound.workspace_id = workspace.id AND outbound.id = $1),
             (SELECT outbound.id FROM outbound WHERE outbound.workspace_id = workspace.id
               AND outbound.mailbox_id IS NULL AND outbound.message_id = $1 LIMIT 1))) AS found
           FROM workspace) AS known
         WHERE found IS NOT NULL LIMIT $2",
        &[named.into(), most.into()],
    )
    .await
}

/// The emails of a thread with a Message-ID.
pub async fn list_in_thread(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    message_id: &str,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
             AND email.thread_id = $3 AND email.message_id = $4 ORDER BY email.date, email.id LIMIT $5"
        ),
        &[mailbox.into(), thread.into(), message_id.into(), most.into()],
    )
    .await
}

/// The emails of a mailbox with a Message-ID, in any thread. Scans the whole mailbox: a Message-ID only leads to
/// another thread than its email's own when a reply came before the message it replies to, which is rare.
pub async fn list_in_mailbox(
    tx: &mut Tx,
    mailbox: &MailboxId,
    message_id: &str,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
             AND email.message_id = $3 LIMIT $4"
        ),
        &[mailbox.into(), message_id.into(), most.into()],
    )
    .await
}

/// The messages that a mailbox has sent with a Message-ID.
pub async fn list_sent(
    tx: &mut Tx,
    mailbox: &MailboxId,
    message_id: &str,
    most: i64,
) -> Result<Vec<OutboundRecord>> {
    let columns = outbound::COLUMNS;
    tx.all(
        &format!(
            "SELECT {columns} FROM outbound WHERE workspace_id = $1 AND mailbox_id = $2 AND message_id = $3 LIMIT $4"
        ),
        &[mailbox.into(), message_id.into(), most.into()],
    )
    .await
}
