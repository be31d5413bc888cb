//! The emails of a thread, and the newest matching email of each thread.

use std::fmt::Write as _;

use model::{EmailId, MailboxId, ThreadId, Timestamp};

use super::{
    list::{EmailFilter, of_newer},
    record::{COLUMNS, EmailRecord},
};
use crate::{
    FromRow, Param, Row, Select, Tx,
    error::Result,
    mailboxes::{MailboxFigure, MailboxKey, MailboxName, select_figure},
    threads,
};

/// The time after which emails are held, where all are to be shown.
fn until(held_after: Option<Timestamp>) -> Timestamp {
    held_after.unwrap_or(Timestamp::from_micros(i64::MAX))
}

/// Selects the emails of the thread of an email, oldest first, after the given position.
pub fn select_context<'a>(
    mailbox: MailboxKey<'a>,
    email: &'a EmailId,
    after: Option<&'a (Timestamp, EmailId)>,
    held_after: Option<Timestamp>,
    most: i64,
) -> Select<'a, EmailRecord> {
    let id = mailbox.id();
    let mut params: Vec<Param<'a>> =
        vec![mailbox.param(), email.into(), until(held_after).into(), most.into()];
    let mut sql = format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {id}
         AND email.thread_id = {} AND (email.held_until IS NULL OR email.held_until <= $4)",
        thread_of(id)
    );
    if let Some((date, id)) = after {
        params.extend([Param::from(*date), id.into()]);
        sql.push_str(" AND (email.date, email.id) > ($6, $7)");
    }
    sql.push_str(" ORDER BY email.date, email.id LIMIT $5");
    Select::new(sql, params)
}

/// Selects the mailbox with the number of emails in the thread of an email that are not held.
pub fn select_context_total<'a>(
    named: &'a MailboxName,
    email: &'a EmailId,
    held_after: Option<Timestamp>,
) -> Select<'a, MailboxFigure> {
    select_figure(named, |params| {
        params.extend([Param::from(email), until(held_after).into()]);
        let figure = format!(
            "SELECT count(*) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = mailbox.id
             AND email.thread_id = {} AND (email.held_until IS NULL OR email.held_until <= $4)",
            thread_of("mailbox.id")
        );
        ("1".to_owned(), figure)
    })
}

/// The thread of the email `$3`, as an expression.
fn thread_of(mailbox: &str) -> String {
    format!(
        "(SELECT known.thread_id FROM email AS known WHERE known.workspace_id = $1 AND known.mailbox_id = {mailbox}
          AND known.id = $3)"
    )
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
    let mut params = thread_params(mailbox.into(), thread, held_after, most);
    let before_position = before.as_ref().map(|(date, id)| {
        params.extend([Param::from(*date), id.into()]);
        "($6, $7)"
    });
    let mut emails: Vec<EmailRecord> = tx.all(&thread_end("$2", before_position), &params).await?;
    emails.reverse();
    Ok(emails)
}

/// Selects the newest emails of a thread before one of its emails, newest first.
pub fn select_thread_end<'a>(
    mailbox: MailboxKey<'a>,
    thread: &'a ThreadId,
    before: Option<&'a EmailId>,
    held_after: Option<Timestamp>,
    most: i64,
) -> Select<'a, EmailRecord> {
    let mut params = thread_params(mailbox, thread, held_after, most);
    let position = before.map(|email| {
        params.push(email.into());
        format!(
            "(SELECT known.date, known.id FROM email AS known WHERE known.workspace_id = $1
              AND known.mailbox_id = {} AND known.id = $6 AND known.thread_id = $3)",
            mailbox.id()
        )
    });
    Select::new(thread_end(mailbox.id(), position.as_deref()), params)
}

fn thread_params<'a>(
    mailbox: MailboxKey<'a>,
    thread: &'a ThreadId,
    held_after: Option<Timestamp>,
    most: i64,
) -> Vec<Param<'a>> {
    vec![mailbox.param(), thread.into(), until(held_after).into(), most.into()]
}

fn thread_end(mailbox: &str, before: Option<&str>) -> String {
    let before = before.map(|position| format!("AND (email.date, email.id) < {position}"));
    format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {mailbox}
         AND email.thread_id = $3 {} AND (email.held_until IS NULL OR email.held_until <= $4)
         ORDER BY email.date DESC, email.id DESC LIMIT $5",
        before.unwrap_or_default()
    )
}

/// Selects the mailbox with the number of emails of a thread that are not held, and whether one is among its emails.
pub fn select_thread_total<'a>(
    named: &'a MailboxName,
    thread: &'a ThreadId,
    email: &'a EmailId,
    held_after: Option<Timestamp>,
) -> Select<'a, MailboxFigure> {
    select_figure(named, |params| {
        params.extend([Param::from(thread), email.into(), until(held_after).into()]);
        let of_thread = "FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = mailbox.id AND email.thread_id = $3";
        let has_email = format!("SELECT count(*) {of_thread} AND email.id = $4");
        let held = "email.held_until IS NULL OR email.held_until <= $5";
        (has_email, format!("SELECT count(*) {of_thread} AND ({held})"))
    })
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
            &[mailbox.into(), thread.into(), until(held_after).into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
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

/// An email that stands for its thread.
#[derive(Clone, Debug)]
pub struct ThreadedEmail {
    /// How many emails of the thread are in the folder and not held.
    pub count: i64,
    /// The newest of them that matches.
    pub email: EmailRecord,
}

impl FromRow for ThreadedEmail {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { count: row.next()?, email: EmailRecord::from_row(row)? })
    }
}

/// Selects a page of the newest matching email of each thread that has one, newest first.
///
/// Emails come in the order of an index, and for each one a lookup by thread tells whether a newer one matches.
/// OFFSET 0 keeps PostgreSQL from joining the whole mailbox with itself.
pub fn select_newest<'a>(
    mailbox: MailboxKey<'a>,
    filter: &'a EmailFilter,
    after: Option<&'a (Timestamp, EmailId)>,
    skip: i64,
    most: i64,
) -> Select<'a, ThreadedEmail> {
    let (sql, params) = newest_statement(mailbox, filter, after, skip, most);
    Select::new(sql, params)
}

fn newest_statement<'a>(
    mailbox: MailboxKey<'a>,
    filter: &'a EmailFilter,
    after: Option<&'a (Timestamp, EmailId)>,
    skip: i64,
    most: i64,
) -> (String, Vec<Param<'a>>) {
    let (id, mut params) = (mailbox.id(), vec![mailbox.param()]);
    let mut conditions = String::new();
    filter.conditions(id, &mut conditions, &mut params);
    let newer = of_newer(&conditions);
    let count = threads::count_of_thread(filter.folder.as_ref(), filter.held_after, &mut params);
    let mut sql = format!(
        "SELECT {count}, {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = {id}{conditions}
         AND NOT EXISTS (SELECT 1 FROM email AS newer WHERE newer.workspace_id = $1 AND newer.mailbox_id = {id}
           AND newer.thread_id = email.thread_id AND (newer.date, newer.id) > (email.date, email.id){newer}
           LIMIT 1 OFFSET 0)"
    );
    if let Some((at, id)) = after {
        params.extend([Param::from(*at), Param::from(id)]);
        let _ = write!(sql, " AND (email.date, email.id) < (${}, ${})", params.len(), params.len() + 1);
    }
    params.extend([Param::from(most), Param::from(skip)]);
    let (limit, offset) = (params.len(), params.len() + 1);
    let _ = write!(sql, " ORDER BY email.date DESC, email.id DESC LIMIT ${limit} OFFSET ${offset}");
    (sql, params)
}

#[cfg(test)]
mod tests {
    use model::emails::Category;

    use super::*;
    use crate::{DatabaseLocation, Db};

    /// A threaded list with other filters scans an index in the order of the result, and looks up newer emails by
    /// thread.
    // rules: READ-5, READ-6
    #[tokio::test(flavor = "multi_thread")]
    async fn threaded_lists_look_up_newer_emails_by_thread() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&DatabaseLocation::Sqlite(folder.path().join("plans"))).await.unwrap();
        db.migrate(Timestamp::from_micros(0)).await.unwrap();
        for filter in [
            EmailFilter { is_read: Some(false), ..EmailFilter::default() },
            EmailFilter { is_starred: Some(true), folder: Some("inbox".into()), ..EmailFilter::default() },
            EmailFilter {
                category: Some(Category::Technical),
                labels: vec!["l".into()],
                ..EmailFilter::default()
            },
            EmailFilter {
                has_attachment: Some(true),
                held_after: Some(Timestamp::from_micros(1)),
                ..EmailFilter::default()
            },
        ] {
            let shown = format!("{filter:?}");
            let steps: Result<Vec<(i64, i64, i64, String)>> = db
                .read(&"ws_1".into(), async move |tx| {
                    let mailbox = MailboxId::from("mbx_1");
                    let after = (Timestamp::from_micros(1), EmailId::from("eml_1"));
                    let (sql, params) = newest_statement((&mailbox).into(), &filter, Some(&after), 0, 26);
                    tx.all(&format!("EXPLAIN QUERY PLAN {sql}"), &params).await
                })
                .await;
            let steps: Vec<String> = steps.unwrap().into_iter().map(|(_, _, _, step)| step).collect();
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{shown}: {steps:#?}");
            let newer = steps.iter().find(|step| step.contains("SEARCH newer")).unwrap();
            assert!(
                newer.contains("email_thread (workspace_id=? AND mailbox_id=? AND thread_id=?"),
                "{newer}"
            );
        }
    }
}
