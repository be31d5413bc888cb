//! Emails in mailboxes: insert, find, list.
//!
//! Counters that lists need (folder counts, unread emails by category, stored bytes, thread summaries per folder) are
//! updated with every change and never computed on read; [`change`] updates them.

mod change;
mod insert;
pub(crate) mod list;
pub(crate) mod record;

use model::{EmailId, MailboxId, ThreadId, Timestamp};

pub(crate) use self::record::COLUMNS;
pub use self::{
    change::{
        Brief, SentEmail, add_labels, any_batch, delete, find_brief, find_thread_briefs, folder_batch,
        move_to, release_hold, set_delivery_status, set_flags, set_labels, set_read, set_scan,
    },
    insert::{NewEmail, insert, insert_all},
    list::{EmailFilter, ListPosition, Sort, count, count_threaded, list, list_threaded, select},
    record::{EmailRecord, NewAttachment, is_listed},
};
use crate::{FromRow, Row, Tx, contents::ContentView, error::Result, mailboxes::MailboxName};

/// Finds an email of a mailbox.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<Option<EmailRecord>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// An email with its mailbox and its content, found by a name of its mailbox: in one statement, since each may be a
/// network round trip. `None` if any of the three is missing.
pub async fn find_with_content<T: ContentView>(
    tx: &mut Tx,
    mailbox: &MailboxName,
    id: &EmailId,
) -> Result<Option<EmailWithContent<T>>> {
    let (name, content) = (mailbox.column(), T::COLUMNS);
    let sql = format!(
        "SELECT mailbox.id, {COLUMNS}, {content} FROM mailbox
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
    /// The email.
    pub email: EmailRecord,
    /// Its content.
    pub content: T,
}

impl<T: ContentView> FromRow for EmailWithContent<T> {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { mailbox: row.next()?, email: EmailRecord::from_row(row)?, content: T::from_row(row)? })
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

/// The emails of a thread, oldest first, after the given position.
pub async fn list_thread(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    after: Option<(Timestamp, EmailId)>,
    held_after: Option<Timestamp>,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    let (date, id) = after.unwrap_or_else(|| (Timestamp::from_micros(i64::MIN), EmailId::from("")));
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
             AND email.thread_id = $3 AND (email.date, email.id) > ($4, $5)
             AND (email.held_until IS NULL OR email.held_until <= $6)
             ORDER BY email.date, email.id LIMIT $7"
        ),
        &[
            mailbox.into(),
            thread.into(),
            date.into(),
            (&id).into(),
            held_after.unwrap_or(Timestamp::from_micros(i64::MAX)).into(),
            most.into(),
        ],
    )
    .await
}

/// The newest emails of a thread before the given position, oldest first.
pub async fn list_thread_end(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    before: Option<(Timestamp, EmailId)>,
    held_after: Option<Timestamp>,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    let (date, id) = before.unwrap_or_else(|| (Timestamp::from_micros(i64::MAX), EmailId::from("")));
    let mut emails: Vec<EmailRecord> = tx
        .all(
            &format!(
                "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
                 AND email.thread_id = $3 AND (email.date, email.id) < ($4, $5)
                 AND (email.held_until IS NULL OR email.held_until <= $6)
                 ORDER BY email.date DESC, email.id DESC LIMIT $7"
            ),
            &[
                mailbox.into(),
                thread.into(),
                date.into(),
                (&id).into(),
                held_after.unwrap_or(Timestamp::from_micros(i64::MAX)).into(),
                most.into(),
            ],
        )
        .await?;
    emails.reverse();
    Ok(emails)
}

/// The distinct senders of the messages that a thread had received by a time; at most two.
pub async fn thread_senders(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    until: Timestamp,
) -> Result<Vec<String>> {
    let found: Vec<(String,)> = tx
        .all(
            "SELECT DISTINCT lower(sender_address) FROM email WHERE workspace_id = $1 AND mailbox_id = $2
             AND thread_id = $3 AND outgoing = 0 AND arrived_at <= $4 LIMIT 2",
            &[mailbox.into(), thread.into(), until.into()],
        )
        .await?;
    Ok(found.into_iter().map(|(sender,)| sender).collect())
}

/// How many emails of a thread are not held at the given time.
pub async fn count_thread(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    held_after: Option<Timestamp>,
) -> Result<i64> {
    let found = tx
        .one(
            "SELECT count(*) FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3
             AND (held_until IS NULL OR held_until <= $4)",
            &[mailbox.into(), thread.into(), held_after.unwrap_or(Timestamp::from_micros(i64::MAX)).into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}
