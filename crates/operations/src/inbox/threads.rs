//! Threads of a mailbox: list, read, mark as read, move.

use model::{
    EmailId, MailboxId, Scope, ThreadId, Timestamp,
    emails::{Email, Move, ReadOptions, ThreadQuery},
    folders::is_unsent,
    threads::{ThreadListQuery, ThreadPage, ThreadSummary, ThreadUpdate},
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    emails::{self, Brief, EmailRecord},
    mailboxes::{self as stored_mailboxes, MailboxName},
    threads::{self, ThreadFilter, ThreadPageStart},
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
        present::{self, EmailContent, FetchedContent, FolderNames, Presenter},
        require_folder,
        surroundings::{Surroundings, WantedContents},
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
pub const READ: Operation = Operation::write("readThread", "Marks all emails of a thread as read.")
    .scope(Scope::Organize)
    .errors(&[ErrorKind::NotFound]);
/// Moves a thread.
pub const MOVE: Operation = Operation::write("moveThread", "Moves all emails of a thread to another folder.")
    .scope(Scope::Organize)
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
    let named = mailboxes::name(call, mailbox);
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
    let start = ThreadPageStart { after, skip: 0 };
    let (found, names, total_count) = app
        .read(call, async move |tx| {
            let filter = ThreadFilter { folder: query.folder, held_after: Some(now) };
            let (found, total) = threads::page(tx, &named, &filter, &start, limit + 1)
                .await?
                .ok_or_else(mailboxes::missing)?;
            let total = folders::require(Some(total))?;
            let names = FolderNames::load(tx, &total.id, found.iter().map(|thread| &thread.newest)).await?;
            Ok((found, names, total.figure))
        })
        .await?;
    let wanted = usize::try_from(limit).unwrap_or_default();
    let has_more = found.len() > wanted;
    let options = ReadOptions::default();
    let presenter = Presenter { folders: &names, options: &options };
    let mut all = Vec::with_capacity(wanted);
    let mut last = None;
    for thread in found.into_iter().take(wanted) {
        last = Some(thread.position);
        if thread.mail_count == 0 {
            continue;
        }
        let newest = presenter.show(thread.newest, EmailContent::Preview);
        all.push(ThreadSummary {
            id: thread.thread_id,
            subject: newest.subject.clone(),
            mail_count: thread.mail_count,
            unread_count: thread.unread_count,
            newest_at: newest.date,
            newest_email_id: newest.id.clone(),
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
    let (named, now, options) = (mailboxes::name(call, mailbox), call.now, query.read_options());
    let chosen = options.clone();
    // Few threads are long; one that is does no harm.
    let (records, names, count) =
        app.short_read(call, async move |tx| load(tx, &named, &id, &query, &chosen, now).await).await?;
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

/// The emails of a thread, oldest first, with what is needed to show them, and the number of them all.
async fn load(
    tx: &mut Tx,
    named: &MailboxName,
    id: &ThreadId,
    query: &ThreadQuery,
    options: &ReadOptions,
    now: Timestamp,
) -> Result<(Vec<(EmailRecord, Option<FetchedContent>)>, FolderNames, i64)> {
    let held_after = (!options.include_held).then_some(now);
    let before = query.before.as_ref();
    let mut records = emails::select_thread_end(named.into(), id, before, held_after, MAX_IN_THREAD);
    // Most threads are read as a whole, and need not be counted.
    let mut about = match before {
        Some(email) => emails::select_thread_total(named, id, email, held_after),
        None => stored_mailboxes::select_with_folder(named, None),
    };
    tx.select(&mut [&mut about, &mut records]).await?;
    let about = about.row().ok_or_else(mailboxes::missing)?;
    if !about.has_requested {
        return Err(present::missing());
    }
    let mut records = records.rows();
    records.reverse();
    let seen = i64::try_from(records.len()).unwrap_or(i64::MAX);
    let count = match before {
        Some(_) => about.figure,
        None if seen < MAX_IN_THREAD => seen,
        None => emails::count_thread(tx, &about.id, id, held_after).await?,
    };
    if count == 0 {
        return Err(missing());
    }
    let wanted = WantedContents::bodies(options, true);
    let surroundings = Surroundings::load(tx, &about.id, &records, options, wanted).await?;
    let records = records.into_iter().map(|mail| {
        let fetched = surroundings.body(&mail, options);
        (mail, fetched)
    });
    Ok((records.collect(), surroundings.names, count))
}

/// Marks all emails of a thread as read.
#[crate::boxed]
pub async fn read(app: &App, call: &Call, mailbox: &str, id: ThreadId) -> Result<ThreadUpdate> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let records = records_of(tx, &mailbox, &id).await?;
        tx.audit().about("thread", &id);
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
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let mut records = records_of(tx, &mailbox, &id).await?;
        tx.audit().about("thread", &id);
        require_folder(tx, &mailbox, &target).await?;
        // Drafts, and what is scheduled or in review, stay in their folder.
        records.retain(|mail| !is_unsent(&mail.folder_id));
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
