//! Pages of threads: their summaries with their newest emails.

use model::{EmailId, FolderId, ThreadId, Timestamp};

use super::arrivals::{COUNTER_PREFIX, LISTED};
use crate::{
    AnySelect, FromRow, Param, Row, Select, Tx,
    emails::{COLUMNS, EmailRecord},
    error::Result,
    mailboxes::{self, MailboxFigure, MailboxKey, MailboxName},
};

/// A thread in a folder.
#[derive(Clone, Debug)]
pub struct ListedThread {
    /// The thread.
    pub thread_id: ThreadId,
    /// Its position in the list, after which the next page starts.
    pub position: (Timestamp, EmailId),
    /// Its emails there; 0 when all of them are held.
    pub mail_count: i64,
    /// Unread ones among them.
    pub unread_count: i64,
    /// Its newest email there.
    pub newest: EmailRecord,
}

impl FromRow for ListedThread {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            thread_id: row.next()?,
            position: (row.next()?, row.next()?),
            mail_count: row.next()?,
            unread_count: row.next()?,
            newest: EmailRecord::from_row(row)?,
        })
    }
}

/// Which threads are listed.
#[derive(Clone, Debug)]
pub struct ThreadFilter {
    /// Those with emails in this folder; without it, with emails anywhere but in Trash and Spam.
    pub folder: Option<FolderId>,
    /// Leave out emails that are held at this time.
    pub held_after: Option<Timestamp>,
}

impl ThreadFilter {
    fn folder(&self) -> &str {
        self.folder.as_ref().map_or(LISTED, FolderId::as_str)
    }

    /// The condition on emails that belongs to the folder, which is the parameter with this number.
    fn condition(&self, number: usize) -> String {
        match self.folder {
            Some(_) => format!("email.folder_id = ${number}"),
            None => format!("email.listed = 1 AND ${number} = ''"),
        }
    }
}

/// Where a page starts.
#[derive(Clone, Debug)]
pub struct ThreadPageStart {
    /// After this position.
    pub after: Option<(Timestamp, EmailId)>,
    /// After so many threads.
    pub skip: i64,
}

/// The threads of a folder, newest first, and the mailbox with the number of them all and whether it has the folder;
/// `None` if there is no such mailbox. The statements share a round trip; threads with held emails cost another one.
pub async fn page(
    tx: &mut Tx,
    named: &MailboxName,
    filter: &ThreadFilter,
    start: &ThreadPageStart,
    most: i64,
) -> Result<Option<(Vec<ListedThread>, MailboxFigure)>> {
    let mailbox = MailboxKey::Name(named);
    let (mut threads, mut total) = (select_page(mailbox, filter, start, most), select_total(named, filter));
    let mut held = filter.held_after.map(|now| select_held(mailbox, now));
    let mut selects: Vec<&mut dyn AnySelect<'_>> = vec![&mut threads, &mut total];
    selects.extend(held.as_mut().map(|held| held as &mut dyn AnySelect<'_>));
    tx.select(&mut selects).await?;
    let Some(total) = total.row() else { return Ok(None) };
    let mut threads = threads.rows();
    if let (Some(now), Some(held)) = (filter.held_after, held) {
        let held: Vec<ThreadId> = held.rows().into_iter().map(|(id,)| id).collect();
        let mut changed: Vec<&mut ListedThread> =
            threads.iter_mut().filter(|thread| held.contains(&thread.thread_id)).collect();
        exclude_held(tx, mailbox, filter, now, &mut changed).await?;
    }
    Ok(Some((threads, total)))
}

/// CROSS JOIN, so that SQLite starts with the summaries, in their order.
fn select_page<'a>(
    mailbox: MailboxKey<'a>,
    filter: &'a ThreadFilter,
    start: &'a ThreadPageStart,
    most: i64,
) -> Select<'a, ListedThread> {
    let id = mailbox.id();
    let mut params: Vec<Param<'a>> =
        vec![mailbox.param(), filter.folder().into(), most.into(), start.skip.into()];
    let after = start.after.as_ref().map_or("", |(at, email)| {
        params.extend([Param::from(*at), email.into()]);
        "AND (thread_folder.newest_at, thread_folder.newest_email) < ($6, $7)"
    });
    let sql = format!(
        "SELECT thread_folder.thread_id, thread_folder.newest_at, thread_folder.newest_email,
           thread_folder.mail_count, thread_folder.unread_count, {COLUMNS} FROM thread_folder CROSS JOIN email
         WHERE thread_folder.workspace_id = $1 AND thread_folder.mailbox_id = {id} AND thread_folder.folder_id = $3 {after}
           AND email.workspace_id = $1 AND email.mailbox_id = thread_folder.mailbox_id
           AND email.id = thread_folder.newest_email
         ORDER BY thread_folder.newest_at DESC, thread_folder.newest_email DESC LIMIT $4 OFFSET $5"
    );
    Select::new(sql, params)
}

/// Selects the threads with an email that is held at the given time. Holds are short, so these are few.
fn select_held(mailbox: MailboxKey<'_>, now: Timestamp) -> Select<'_, (ThreadId,)> {
    let sql = format!(
        "SELECT DISTINCT thread_id FROM email WHERE workspace_id = $1 AND mailbox_id = {} AND held_until > $3",
        mailbox.id()
    );
    Select::new(sql, vec![mailbox.param(), now.into()])
}

/// The newest email of a thread in a folder that is not held, with the number of them and of unread ones.
struct VisiblePart {
    mail_count: i64,
    unread_count: i64,
    newest: EmailRecord,
}

impl FromRow for VisiblePart {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (mail_count, unread_count) = (row.next()?, row.next()?);
        Ok(Self { mail_count, unread_count, newest: EmailRecord::from_row(row)? })
    }
}

/// Changes threads to what they are in a folder without their held emails.
async fn exclude_held(
    tx: &mut Tx,
    mailbox: MailboxKey<'_>,
    filter: &ThreadFilter,
    now: Timestamp,
    threads: &mut [&mut ListedThread],
) -> Result<()> {
    if threads.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT count(*) OVER (), CAST(sum(1 - email.read) OVER () AS BIGINT), {COLUMNS} FROM email
         WHERE email.workspace_id = $1 AND email.mailbox_id = {} AND {} AND email.thread_id = $4
         AND (email.held_until IS NULL OR email.held_until <= $5) ORDER BY email.date DESC, email.id DESC LIMIT 1",
        mailbox.id(),
        filter.condition(3)
    );
    let ids: Vec<ThreadId> = threads.iter().map(|thread| thread.thread_id.clone()).collect();
    let params = |id| vec![mailbox.param(), filter.folder().into(), Param::from(id), now.into()];
    let mut selects: Vec<Select<'_, VisiblePart>> =
        ids.iter().map(|id| Select::new(sql.clone(), params(id))).collect();
    tx.select(&mut selects.iter_mut().map(|select| select as &mut dyn AnySelect<'_>).collect::<Vec<_>>())
        .await?;
    for (thread, select) in threads.iter_mut().zip(selects) {
        if let Some(visible) = select.row() {
            (thread.mail_count, thread.unread_count) = (visible.mail_count, visible.unread_count);
            thread.newest = visible.newest;
        } else {
            (thread.mail_count, thread.unread_count) = (0, 0);
        }
    }
    Ok(())
}

/// How many emails of the thread of `email` are in a folder, or listed, and not held, as an expression.
pub(crate) fn count_of_thread<'a>(
    folder: Option<&'a FolderId>,
    held_after: Option<Timestamp>,
    params: &mut Vec<Param<'a>>,
) -> String {
    params.push(folder.map_or(LISTED, FolderId::as_str).into());
    let number = params.len() + 1;
    let all = format!(
        "coalesce((SELECT summary.mail_count FROM thread_folder AS summary WHERE summary.workspace_id = $1
           AND summary.mailbox_id = email.mailbox_id AND summary.folder_id = ${number}
           AND summary.thread_id = email.thread_id), 0)"
    );
    let Some(now) = held_after else { return all };
    params.push(now.into());
    let in_folder =
        if folder.is_some() { format!("held.folder_id = ${number}") } else { "held.listed = 1".to_owned() };
    format!(
        "{all} - (SELECT count(*) FROM email AS held WHERE held.workspace_id = $1
           AND held.mailbox_id = email.mailbox_id AND held.thread_id = email.thread_id AND {in_folder}
           AND held.held_until > ${})",
        params.len() + 1
    )
}

/// Selects the mailbox with the number of threads of a folder, and whether it has the folder.
fn select_total<'a>(named: &'a MailboxName, filter: &'a ThreadFilter) -> Select<'a, MailboxFigure> {
    mailboxes::select_figure(named, |params| {
        let has_folder = mailboxes::has_folder(filter.folder.as_ref(), params);
        params.push(filter.folder().into());
        let folder = params.len() + 1;
        let all = format!(
            "coalesce((SELECT mailbox_counter.value FROM mailbox_counter WHERE mailbox_counter.workspace_id = $1
               AND mailbox_counter.mailbox_id = mailbox.id
               AND mailbox_counter.name = '{COUNTER_PREFIX}' || CAST(${folder} AS TEXT)), 0)"
        );
        let Some(now) = filter.held_after else { return (has_folder, format!("SELECT {all}")) };
        params.push(now.into());
        let hidden = total_hidden(&filter.condition(folder), params.len() + 1);
        (has_folder, format!("SELECT {all} - ({hidden})"))
    })
}

/// How many threads of a folder consist of held emails only; the time is the parameter with this number.
fn total_hidden(in_folder: &str, now: usize) -> String {
    format!(
        "SELECT count(DISTINCT email.thread_id) FROM email WHERE email.workspace_id = $1
         AND email.mailbox_id = mailbox.id AND {in_folder} AND email.held_until > ${now}
         AND NOT EXISTS (SELECT 1 FROM email AS other WHERE other.workspace_id = $1
           AND other.mailbox_id = mailbox.id AND other.thread_id = email.thread_id
           AND {} AND (other.held_until IS NULL OR other.held_until <= ${now}))",
        in_folder.replace("email.", "other.")
    )
}
