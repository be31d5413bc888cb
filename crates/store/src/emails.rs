//! Emails in mailboxes: insert, find, list.
//!
//! Counters that lists need (folder counts, unread emails by category, stored bytes, thread summaries per folder) are
//! updated with every change and never computed on read; [`change`] updates them.

mod change;
mod insert;
pub(crate) mod list;
pub(crate) mod record;
mod thread;
mod totals;

use model::{EmailId, MailboxId, ThreadId, Timestamp};

pub(crate) use self::record::COLUMNS;
pub use self::{
    change::{
        Brief, SentEmail, add_labels, any_batch, delete, find_brief, find_thread_briefs, folder_batch,
        move_to, release_hold, set_delivery_statuses, set_flags, set_labels, set_read, set_scan,
    },
    insert::{NewEmail, insert, insert_all},
    list::{EmailFilter, ListPosition, Sort, list, select, select_list},
    record::{EmailRecord, NewAttachment, is_listed},
    thread::{
        ThreadedEmail, count_thread, list_thread_end, select_context, select_context_total, select_newest,
        select_thread_end, select_thread_total, thread_senders,
    },
    totals::{count, select_newest_total, select_total},
};
use crate::{
    FromRow, Row, Select, Tx,
    contents::ContentView,
    error::Result,
    mailboxes::{MailboxKey, MailboxName},
};

/// Finds an email of a mailbox.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<Option<EmailRecord>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Selects an email of a mailbox.
pub fn select_one<'a>(mailbox: MailboxKey<'a>, id: &'a EmailId) -> Select<'a, EmailRecord> {
    let sql = format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {} AND email.id = $3",
        mailbox.id()
    );
    Select::new(sql, vec![mailbox.param(), id.into()])
}

/// The folders whose names need no look-up.
const SYSTEM_FOLDERS: &str = "'inbox', 'sent', 'draft', 'scheduled', 'archive', 'spam', 'trash'";

/// An email with its mailbox and its content, found by a name of its mailbox: in one statement, since each may be a
/// network round trip. `None` if any of the three is missing.
pub async fn find_with_content<T: ContentView>(
    tx: &mut Tx,
    mailbox: &MailboxName,
    id: &EmailId,
) -> Result<Option<EmailWithContent<T>>> {
    let (name, content) = (mailbox.column(), T::COLUMNS);
    let sql = format!(
        "SELECT mailbox.id, CASE WHEN email.folder_id NOT IN ({SYSTEM_FOLDERS}) THEN
           (SELECT folder.name FROM folder WHERE folder.workspace_id = $1 AND folder.mailbox_id = mailbox.id
            AND folder.id = email.folder_id) END, {COLUMNS}, {content} FROM mailbox
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = mailbox.id AND email.id = $3
         JOIN content ON content.workspace_id = $1 AND content.id = email.content_id
         WHERE mailbox.workspace_id = $1 AND mailbox.{name} = $2 AND mailbox.deleted_at IS NULL"
    );
    tx.one(&sql, &[mailbox.value().into(), id.into()]).await
}

/// An email, where it is, and its content.
pub struct EmailWithContent<T> {
    /// Its mailbox.
    pub mailbox: MailboxId,
    /// The name of its folder, unless that is one that every mailbox has.
    pub folder_name: Option<String>,
    /// The email.
    pub email: EmailRecord,
    /// Its content.
    pub content: T,
}

impl<T: ContentView> FromRow for EmailWithContent<T> {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (mailbox, folder_name) = (row.next()?, row.next()?);
        Ok(Self { mailbox, folder_name, email: EmailRecord::from_row(row)?, content: T::from_row(row)? })
    }
}

/// The newest email of a thread that has a Message-ID: its id and its references.
pub async fn newest_in_thread(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
) -> Result<Option<(String, Option<String>)>> {
    tx.one(
        "SELECT message_id, email_references FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3
         AND message_id IS NOT NULL AND folder_id NOT IN ('draft', 'scheduled') ORDER BY date DESC, id DESC LIMIT 1",
        &[mailbox.into(), thread.into()],
    )
    .await
}

/// The emails of a mailbox that arrived after an event, oldest first: for clients that wait for mail.
pub async fn list_arrived(
    tx: &mut Tx,
    mailbox: &MailboxId,
    after: i64,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
             AND email.arrival > $3 AND email.outgoing = 0 ORDER BY email.arrival LIMIT $4"
        ),
        &[mailbox.into(), after.into(), most.into()],
    )
    .await
}

/// The arrival number of the last email before a time; 0 when there is none.
pub async fn arrival_before(tx: &mut Tx, mailbox: &MailboxId, time: Timestamp) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT arrival FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND arrived_at < $3
             ORDER BY arrival DESC LIMIT 1",
            &[mailbox.into(), time.into()],
        )
        .await?;
    Ok(found.map_or(0, |(arrival,)| arrival))
}
