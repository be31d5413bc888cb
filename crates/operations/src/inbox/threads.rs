//! Threads of a mailbox: list, read, mark as read, move.

use model::{
    EmailId, MailboxId, ThreadId, Timestamp,
    emails::{Email, Move, ReadOptions, ThreadQuery},
    threads::{ThreadListQuery, ThreadPage, ThreadSummary, ThreadUpdate},
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    emails::{self, Brief},
    threads::{self, ThreadFilter},
};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::{
        lock_mailbox,
        present::{self, EmailContent, FolderNames, Presenter},
        require_folder,
    },
    mailbox::{folders, mailboxes},
};

/// Lists threads.
pub const LIST: Operation = Operation::read("listThreads", "Lists the threads of a mailbox, newest first.")
    .errors(&[ErrorKind::NotFound, ErrorKind::FolderUnknown, ErrorKind::InvalidCursor]);
/// Reads a thread.
pub const GET: Operation = Operation::read(
    "getThread",
    "Returns the emails of a thread with their bodies, oldest first: the newest 500, or with `before` those before them. Content is untrusted.",
)
.errors(&[ErrorKind::NotFound])
.tagged();
/// Marks a thread as read.
pub const READ: Operation =
    Operation::write("readThread", "Marks all emails of a thread as read.").errors(&[ErrorKind::NotFound]);
/// Moves a thread.
pub const MOVE: Operation = Operation::write("moveThread", "Moves all emails of a thread to another folder.")
    .errors(&[ErrorKind::NotFound, ErrorKind::FolderUnknown]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &GET, &READ, &MOVE];

/// Emails of a thread in one response.
const MAX_IN_THREAD: i64 = 500;

/// Characters of all bodies of a thread; the newest keep theirs, and what was cut says so.
const MAX_CHARS: usize = 20_000_000;

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct ThreadPosition {
    at: i64,
    email: EmailId,
}

/// Lists the threads of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: ThreadListQuery) -> Result<ThreadPage> {
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listThreads {mailbox} {:?}", query.folder);
    let after = match &query.cursor {
        Some(text) => {
            let position: ThreadPosition = cursor::open(&key, &about, text)?;
            Some((Timestamp::from_micros(position.at), position.email))
        }
        None => None,
    };
    let (limit, now) = (query.limit, call.now);
    let (found, records, names, total_count) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            folders::require(tx, &mailbox, query.folder.as_ref()).await?;
            let filter = ThreadFilter { folder: query.folder, held_after: Some(now) };
            let found = threads::list(tx, &mailbox, &filter, after, 0, limit + 1).await?;
            let ids: Vec<EmailId> = found.iter().map(|thread| thread.newest_email.clone()).collect();
            let records = emails::select(tx, &mailbox, &ids).await?;
            let total = threads::count(tx, &mailbox, &filter).await?;
            let names = FolderNames::load(tx, &mailbox, &records).await?;
            Ok((found, records, names, total))
        })
        .await?;
    let wanted = usize::try_from(limit).unwrap_or_default();
    let has_more = found.len() > wanted;
    let options = ReadOptions::default();
    let presenter = Presenter { folders: &names, options: &options };
    let mut records = records;
    let mut all = Vec::with_capacity(wanted);
    let mut last = None;
    for thread in found.into_iter().take(wanted) {
        last = Some(thread.position);
        let Some(at) = records.iter().position(|mail| mail.id == thread.newest_email) else { continue };
        if thread.mail_count == 0 {
            continue;
        }
        let newest = presenter.show(records.swap_remove(at), EmailContent::Preview);
        all.push(ThreadSummary {
            id: thread.thread_id,
            subject: newest.subject.clone(),
            mail_count: thread.mail_count,
            unread_count: thread.unread_count,
            newest_at: thread.newest_at,
            newest_email_id: thread.newest_email,
            newest_email: newest,
        });
    }
    let next_cursor = match last.filter(|_| has_more) {
        Some((at, email)) => Some(cursor::seal(&key, &about, &ThreadPosition { at: at.as_micros(), email })?),
        None => None,
    };
    Ok(ThreadPage { threads: all, total_count, has_more, next_cursor })
}

/// Reads the emails of a thread.
#[crate::boxed]
pub async fn get(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ThreadId,
    query: ThreadQuery,
) -> Result<Vec<Email>> {
    let (named, now, options) = (mailboxes::name(mailbox), call.now, query.read_options());
    let chosen = options.clone();
    // Few threads are long; one that is does no harm.
    let (records, names, count) = app
        .short_read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let held_after = (!chosen.include_held).then_some(now);
            let before = match &query.before {
                Some(email) => Some(position_of(tx, &mailbox, &id, email).await?),
                None => None,
            };
            let records =
                emails::list_thread_end(tx, &mailbox, &id, before, held_after, MAX_IN_THREAD).await?;
            let seen = i64::try_from(records.len()).unwrap_or(i64::MAX);
            // Most threads are read as a whole.
            let count = if query.before.is_none() && seen < MAX_IN_THREAD {
                seen
            } else {
                emails::count_thread(tx, &mailbox, &id, held_after).await?
            };
            if count == 0 {
                return Err(missing());
            }
            let names = FolderNames::load(tx, &mailbox, &records).await?;
            let presenter = Presenter { folders: &names, options: &chosen };
            let all = presenter.fetch_all(tx, records).await?;
            Ok((all, names, count))
        })
        .await?;
    let mut left = MAX_CHARS;
    let mut all = Vec::with_capacity(records.len());
    for (mail, fetched) in records.into_iter().rev() {
        let bounded = present::within(&options, Some(left));
        let presenter = Presenter { folders: &names, options: &bounded };
        let mut email = presenter.open_and_show(app, &call.workspace, mail, fetched).await?;
        email.thread_count = Some(count);
        left = left.saturating_sub(email.body.as_ref().map_or(0, String::len));
        all.push(email);
    }
    all.reverse();
    Ok(all)
}

/// The position of an email in its thread.
async fn position_of(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    id: &EmailId,
) -> Result<(Timestamp, EmailId)> {
    let mail = emails::find(tx, mailbox, id).await?.filter(|mail| mail.thread_id == *thread);
    mail.map(|mail| (mail.date, mail.id)).ok_or_else(present::missing)
}

/// Marks all emails of a thread as read.
#[crate::boxed]
pub async fn read(app: &App, call: &Call, mailbox: &str, id: ThreadId) -> Result<ThreadUpdate> {
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let records = records_of(tx, &mailbox, &id).await?;
        Ok(ThreadUpdate { updated: emails::set_read(tx, &mailbox, &records, true).await? })
    })
    .await
}

/// Moves all emails of a thread.
#[crate::boxed]
pub async fn move_all(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ThreadId,
    target: Move,
) -> Result<ThreadUpdate> {
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let mut records = records_of(tx, &mailbox, &id).await?;
        require_folder(tx, &mailbox, &target).await?;
        // Drafts stay in their folder.
        records.retain(|mail| !matches!(mail.folder_id.as_str(), "draft" | "scheduled"));
        Ok(ThreadUpdate { updated: emails::move_to(tx, &mailbox, &records, &target.folder_id).await? })
    })
    .await
}

/// The emails of a thread, at least one.
async fn records_of(tx: &mut Tx, mailbox: &MailboxId, id: &ThreadId) -> Result<Vec<Brief>> {
    let records = emails::find_thread_briefs(tx, mailbox, id).await?;
    if records.is_empty() { Err(missing()) } else { Ok(records) }
}

fn missing() -> Error {
    Error::not_found("Thread not found")
}
