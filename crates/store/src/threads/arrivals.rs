//! Counting arriving emails in their threads: several with one statement for each table.

use std::collections::BTreeMap;

use model::{EmailId, FolderId, MailboxId, ThreadId, Timestamp};

use super::hints::ThreadHints;
use crate::{Param, Tx, error::Result, mailboxes};

/// The pseudo-folder for everything but Trash and Spam.
pub const LISTED: &str = "";

/// What the name of the counter of a folder's threads begins with.
pub(super) const COUNTER_PREFIX: &str = "threads.";

/// The name of the counter of a folder's threads. Counting the rows would take longer the more there are.
pub fn counter(folder: &str) -> String {
    format!("{COUNTER_PREFIX}{folder}")
}

/// The fields of an arriving email that threads need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedEmail<'a> {
    pub(crate) mailbox: &'a MailboxId,
    pub(crate) email: &'a EmailId,
    pub(crate) thread: &'a ThreadId,
    pub(crate) hints: &'a ThreadHints,
    /// Whether the thread is new.
    pub(crate) begins_thread: bool,
    pub(crate) folder: &'a FolderId,
    /// Whether lists without a folder show it.
    pub(crate) listed: bool,
    pub(crate) date: Timestamp,
    pub(crate) read: bool,
}

impl<'a> CountedEmail<'a> {
    /// The rows of the Message-IDs that lead to its thread.
    fn references(&self) -> impl Iterator<Item = Vec<Param<'a>>> + use<'a> {
        let (mailbox, thread) = (Param::from(self.mailbox), Param::from(self.thread));
        self.hints.references.iter().map(move |reference| vec![mailbox, reference.as_slice().into(), thread])
    }
}

/// What emails add to a thread.
struct ThreadChange<'a> {
    subject_key: Option<&'a [u8]>,
    newest_at: Timestamp,
    emails: i64,
}

impl<'a> ThreadChange<'a> {
    fn params(&self, mailbox: &'a MailboxId, thread: &'a ThreadId) -> Vec<Param<'a>> {
        let (key, newest, count) = (self.subject_key, self.newest_at, self.emails);
        vec![mailbox.into(), thread.into(), key.into(), newest.into(), count.into()]
    }
}

/// Adds emails to threads, which are created if necessary, and stores the Message-IDs that lead to them.
pub(crate) async fn join(tx: &mut Tx, emails: &[CountedEmail<'_>]) -> Result<()> {
    let mut changes: BTreeMap<(&MailboxId, &ThreadId), ThreadChange<'_>> = BTreeMap::new();
    for mail in emails {
        let change = changes.entry((mail.mailbox, mail.thread)).or_insert_with(|| ThreadChange {
            subject_key: mail.hints.subject_key.as_ref().map(|key| &key[..]),
            newest_at: mail.date,
            emails: 0,
        });
        change.newest_at = change.newest_at.max(mail.date);
        change.emails += 1;
    }
    tx.pipeline_rows(
        "INSERT INTO thread (workspace_id, mailbox_id, id, subject_key, newest_at, mail_count)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (workspace_id, mailbox_id, id) DO UPDATE SET
         newest_at = CASE WHEN thread.newest_at > excluded.newest_at THEN thread.newest_at ELSE excluded.newest_at END,
         mail_count = thread.mail_count + excluded.mail_count",
        changes.into_iter().map(|((mailbox, thread), change)| change.params(mailbox, thread)).collect(),
    )
    .await?;
    tx.pipeline_rows(
        "INSERT INTO thread_reference (workspace_id, mailbox_id, message_id, thread_id) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, mailbox_id, message_id) DO NOTHING",
        emails.iter().flat_map(CountedEmail::references).collect(),
    )
    .await
}

/// What emails add to the summary of a thread in a folder.
struct FolderChange<'a> {
    newest: (Timestamp, &'a EmailId),
    emails: i64,
    unread: i64,
    begins_thread: bool,
}

/// A thread in a folder.
type ThreadInFolder<'a> = (&'a MailboxId, &'a str, &'a ThreadId);

/// Counts arriving emails in their threads' summaries for their folders, and for all folders when lists show them.
pub(crate) async fn count_in(tx: &mut Tx, emails: &[CountedEmail<'_>]) -> Result<()> {
    let mut changes: BTreeMap<ThreadInFolder<'_>, FolderChange<'_>> = BTreeMap::new();
    for mail in emails {
        let folders = [Some(mail.folder.as_str()), mail.listed.then_some(LISTED)];
        for folder in folders.into_iter().flatten() {
            let newest = (mail.date, mail.email);
            let change = changes.entry((mail.mailbox, folder, mail.thread)).or_insert(FolderChange {
                newest,
                emails: 0,
                unread: 0,
                begins_thread: false,
            });
            change.newest = change.newest.max(newest);
            change.emails += 1;
            change.unread += i64::from(!mail.read);
            change.begins_thread |= mail.begins_thread;
        }
    }
    let (new, known): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, change)| change.begins_thread);
    // The result is not needed.
    tx.pipeline_rows(
        "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email,
           mail_count, unread_count) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        new.iter().map(folder_params).collect(),
    )
    .await?;
    let mut began: Vec<ThreadInFolder<'_>> = new.iter().map(|(place, _)| *place).collect();
    began.extend(add_to_known(tx, &known).await?);
    let mut threads: BTreeMap<(&MailboxId, &str), i64> = BTreeMap::new();
    for (mailbox, folder, _) in began {
        *threads.entry((mailbox, folder)).or_default() += 1;
    }
    for ((mailbox, folder), count) in threads {
        mailboxes::add_to_counter(tx, mailbox, &counter(folder), count).await?;
    }
    Ok(())
}

fn folder_params<'a>(
    ((mailbox, folder, thread), change): &'a (ThreadInFolder<'a>, FolderChange<'a>),
) -> Vec<Param<'a>> {
    vec![
        Param::from(*mailbox),
        Param::from(*folder),
        Param::from(*thread),
        change.newest.0.into(),
        change.newest.1.into(),
        change.emails.into(),
        change.unread.into(),
    ]
}

/// How many emails a thread has in a folder.
pub(super) const MAIL_COUNT: &str = "SELECT mail_count FROM thread_folder
    WHERE workspace_id = $1 AND mailbox_id = $2 AND folder_id = $3 AND thread_id = $4";

/// Counts emails in the summaries of threads that may have emails in the folder, and returns where they are the first.
async fn add_to_known<'a>(
    tx: &mut Tx,
    known: &'a [(ThreadInFolder<'a>, FolderChange<'a>)],
) -> Result<Vec<ThreadInFolder<'a>>> {
    let add =
        "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email,
           mail_count, unread_count)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (workspace_id, mailbox_id, folder_id, thread_id)
         DO UPDATE SET
         newest_email = CASE WHEN (thread_folder.newest_at, thread_folder.newest_email) >
           (excluded.newest_at, excluded.newest_email) THEN thread_folder.newest_email
           ELSE excluded.newest_email END,
         newest_at = CASE WHEN thread_folder.newest_at > excluded.newest_at THEN thread_folder.newest_at
           ELSE excluded.newest_at END,
         mail_count = thread_folder.mail_count + excluded.mail_count,
         unread_count = thread_folder.unread_count + excluded.unread_count";
    let mut first = Vec::new();
    if known.is_empty() {
        return Ok(first);
    }
    if !tx.is_postgres() {
        for one in known {
            let count: Option<(i64,)> =
                tx.change(add, &folder_params(one), ("mail_count", MAIL_COUNT, 3)).await?;
            first.extend(count.filter(|(count,)| *count == one.1.emails).map(|_| one.0));
        }
        return Ok(first);
    }
    let sql = format!("{add} RETURNING mailbox_id, folder_id, thread_id, mail_count");
    let counts: Vec<(MailboxId, String, ThreadId, i64)> =
        tx.all_of_rows(&sql, known.iter().map(folder_params).collect()).await?;
    for (mailbox, folder, thread, count) in counts {
        let is_first = |(place, change): &&(ThreadInFolder<'_>, FolderChange<'_>)| {
            *place == (&mailbox, folder.as_str(), &thread) && change.emails == count
        };
        first.extend(known.iter().find(is_first).map(|(place, _)| *place));
    }
    Ok(first)
}
