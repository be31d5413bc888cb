//! Threads: which emails belong together, and the summary of a thread in each folder.

mod page;

use std::collections::BTreeMap;

use model::{EmailId, FolderId, MailboxId, ThreadId, Timestamp};

use crate::{Param, Tx, error::Result, mailboxes};

pub(crate) use self::page::count_of_thread;
pub use self::page::{ListedThread, ThreadFilter, ThreadPageStart, page};

/// The pseudo-folder for everything but Trash and Spam.
pub const LISTED: &str = "";

/// How many days a thread accepts emails that only share its subject.
const SUBJECT_DAYS: i64 = 30;

/// What determines the thread of an email.
#[derive(Clone, Debug, Default)]
pub struct ThreadHints {
    /// Hashes of the Message-IDs that the message refers to, the nearest first, its own last.
    pub references: Vec<[u8; 16]>,
    /// The hash of its base subject and participants.
    pub subject_key: Option<[u8; 16]>,
}

/// Finds the thread of a message: by its references, then by its subject.
pub async fn find(
    tx: &mut Tx,
    mailbox: &MailboxId,
    hints: &ThreadHints,
    date: Timestamp,
) -> Result<Option<ThreadId>> {
    for reference in &hints.references {
        let found = tx
            .one(
                "SELECT thread_id FROM thread_reference WHERE workspace_id = $1 AND mailbox_id = $2 AND message_id = $3",
                &[mailbox.into(), reference.as_slice().into()],
            )
            .await?;
        if let Some((thread,)) = found {
            return Ok(Some(thread));
        }
    }
    let Some(key) = &hints.subject_key else { return Ok(None) };
    let found = tx
        .one(
            "SELECT id FROM thread WHERE workspace_id = $1 AND mailbox_id = $2 AND subject_key = $3
             AND newest_at >= $4 AND newest_at <= $5 ORDER BY newest_at DESC LIMIT 1",
            &[
                mailbox.into(),
                key.as_slice().into(),
                date.plus_seconds(-SUBJECT_DAYS * 86_400).into(),
                date.plus_seconds(SUBJECT_DAYS * 86_400).into(),
            ],
        )
        .await?;
    Ok(found.map(|(id,)| id))
}

/// Adds an email to a thread, which is created if necessary, and stores the Message-IDs that lead to it.
pub async fn join(
    tx: &mut Tx,
    mailbox: &MailboxId,
    thread: &ThreadId,
    hints: &ThreadHints,
    date: Timestamp,
) -> Result<()> {
    tx.pipeline(
        "INSERT INTO thread (workspace_id, mailbox_id, id, subject_key, newest_at, mail_count)
         VALUES ($1, $2, $3, $4, $5, 1) ON CONFLICT (workspace_id, mailbox_id, id) DO UPDATE SET
         newest_at = CASE WHEN thread.newest_at > excluded.newest_at THEN thread.newest_at ELSE excluded.newest_at END,
         mail_count = thread.mail_count + 1",
        &[mailbox.into(), thread.into(), hints.subject_key.as_ref().map(|key| &key[..]).into(), date.into()],
    )
    .await?;
    for reference in &hints.references {
        tx.pipeline(
            "INSERT INTO thread_reference (workspace_id, mailbox_id, message_id, thread_id) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, mailbox_id, message_id) DO NOTHING",
            &[mailbox.into(), reference.as_slice().into(), thread.into()],
        )
        .await?;
    }
    Ok(())
}

/// Removes emails from a thread. An empty thread is deleted with its Message-IDs.
pub async fn remove_emails(tx: &mut Tx, mailbox: &MailboxId, thread: &ThreadId, emails: i64) -> Result<()> {
    tx.run(
        "UPDATE thread SET mail_count = mail_count - $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), thread.into(), emails.into()],
    )
    .await?;
    tx.run(
        "DELETE FROM thread WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND mail_count <= 0",
        &[mailbox.into(), thread.into()],
    )
    .await?;
    Ok(())
}

/// Counts an arriving email in its thread's summary for its folder, and for all folders when lists show it.
pub async fn count_in(tx: &mut Tx, mailbox: &MailboxId, mail: &CountedEmail<'_>) -> Result<()> {
    let folders = [Some(mail.folder.as_str()), mail.listed.then_some(LISTED)];
    for folder in folders.into_iter().flatten() {
        let params = [
            mailbox.into(),
            folder.into(),
            mail.thread.into(),
            mail.date.into(),
            mail.email.into(),
            (!mail.read).into(),
        ];
        let is_first = if mail.begins_thread {
            // The result is not needed.
            tx.pipeline(
                "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email,
                   mail_count, unread_count) VALUES ($1, $2, $3, $4, $5, $6, 1, $7)",
                &params,
            )
            .await?;
            true
        } else {
            add_to_thread(tx, &params).await? == 1
        };
        if is_first {
            mailboxes::add_to_counter(tx, mailbox, &counter(folder), 1).await?;
        }
    }
    Ok(())
}

const MAIL_COUNT: &str = "SELECT mail_count FROM thread_folder
    WHERE workspace_id = $1 AND mailbox_id = $2 AND folder_id = $3 AND thread_id = $4";

/// Counts an email in the summary of a thread that may have emails in the folder, and returns its new count there.
async fn add_to_thread(tx: &mut Tx, params: &[Param<'_>]) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .change(
            "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email,
               mail_count, unread_count)
             VALUES ($1, $2, $3, $4, $5, $6, 1, $7) ON CONFLICT (workspace_id, mailbox_id, folder_id, thread_id)
             DO UPDATE SET
             newest_email = CASE WHEN (thread_folder.newest_at, thread_folder.newest_email) >
               (excluded.newest_at, excluded.newest_email) THEN thread_folder.newest_email
               ELSE excluded.newest_email END,
             newest_at = CASE WHEN thread_folder.newest_at > excluded.newest_at THEN thread_folder.newest_at
               ELSE excluded.newest_at END,
             mail_count = thread_folder.mail_count + 1,
             unread_count = thread_folder.unread_count + excluded.unread_count",
            params,
            ("mail_count", MAIL_COUNT, 3),
        )
        .await?;
    Ok(found.map_or(0, |(emails,)| emails))
}

/// What the name of the counter of a folder's threads begins with.
const COUNTER_PREFIX: &str = "threads.";

/// The name of the counter of a folder's threads. Counting the rows would take longer the more there are.
pub fn counter(folder: &str) -> String {
    format!("{COUNTER_PREFIX}{folder}")
}

/// The fields of an email that thread summaries need.
#[derive(Clone, Copy, Debug)]
pub struct CountedEmail<'a> {
    /// The email.
    pub email: &'a EmailId,
    /// Its thread.
    pub thread: &'a ThreadId,
    /// Whether the thread is new.
    pub begins_thread: bool,
    /// Its folder.
    pub folder: &'a FolderId,
    /// Whether lists without a folder show it.
    pub listed: bool,
    /// Its date.
    pub date: Timestamp,
    /// Whether it was read.
    pub read: bool,
}

/// Rebuilds a thread's summaries from its emails, after some of them changed.
pub async fn recount(tx: &mut Tx, mailbox: &MailboxId, thread: &ThreadId) -> Result<()> {
    let params = [mailbox.into(), thread.into()];
    let before: Vec<(String,)> = tx
        .all(
            "DELETE FROM thread_folder WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3
             RETURNING folder_id",
            &params,
        )
        .await?;
    let mut folders: BTreeMap<String, i64> = before.into_iter().map(|(folder,)| (folder, -1)).collect();
    for statement in RECOUNT {
        let after: Vec<(String,)> = tx.all(statement, &params).await?;
        for (folder,) in after {
            *folders.entry(folder).or_default() += 1;
        }
    }
    for (folder, by) in folders.into_iter().filter(|(_, by)| *by != 0) {
        mailboxes::add_to_counter(tx, mailbox, &counter(&folder), by).await?;
    }
    Ok(())
}

/// The summaries of a thread for each of its folders, and for the listed ones. The folder and the flag are
/// expressions, so that SQLite uses the index by thread instead of scanning the mailbox by folder or date.
const RECOUNT: [&str; 2] = [
    "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email, mail_count,
       unread_count)
     SELECT workspace_id, mailbox_id, folder, thread_id, date, id, mails, unread FROM (
       SELECT workspace_id, mailbox_id, folder_id || '' AS folder, thread_id, date, id,
         count(*) OVER (PARTITION BY folder_id || '') AS mails,
         sum(1 - read) OVER (PARTITION BY folder_id || '') AS unread,
         row_number() OVER (PARTITION BY folder_id || '' ORDER BY date DESC, id DESC) AS place
       FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3
     ) AS counted WHERE place = 1 RETURNING folder_id",
    "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email, mail_count,
       unread_count)
     SELECT workspace_id, mailbox_id, '', thread_id, date, id, mails, unread FROM (
       SELECT workspace_id, mailbox_id, thread_id, date, id, count(*) OVER () AS mails,
         sum(1 - read) OVER () AS unread, row_number() OVER (ORDER BY date DESC, id DESC) AS place
       FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3 AND listed + 0 = 1
     ) AS counted WHERE place = 1 RETURNING folder_id",
];
