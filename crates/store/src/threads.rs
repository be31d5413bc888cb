//! Threads: which emails belong together, and the summary of a thread in each folder.

mod arrivals;
mod candidates;
mod hints;
mod page;

use std::collections::BTreeMap;

use model::{MailboxId, ThreadId, Timestamp};

use self::hints::subject_range;
pub(crate) use self::{
    arrivals::{CountedEmail, count_in, join},
    candidates::{AskedColumns, BY_REFERENCE, BY_SUBJECT},
    page::count_of_thread,
};
pub use self::{
    arrivals::{LISTED, counter},
    candidates::{ThreadCandidates, ThreadQuery},
    hints::ThreadHints,
    page::{ListedThread, ThreadFilter, ThreadPageStart, page},
};
use crate::{Tx, error::Result, mailboxes};

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
    let range = subject_range(date);
    let found = tx
        .one(
            "SELECT id FROM thread WHERE workspace_id = $1 AND mailbox_id = $2 AND subject_key = $3
             AND newest_at >= $4 AND newest_at <= $5 ORDER BY newest_at DESC LIMIT 1",
            &[mailbox.into(), key.as_slice().into(), (*range.start()).into(), (*range.end()).into()],
        )
        .await?;
    Ok(found.map(|(id,)| id))
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
