//! Threads: which emails belong together, and the summary of a thread in each folder.

use std::collections::BTreeMap;

use model::{EmailId, FolderId, MailboxId, ThreadId, Timestamp};

use crate::{FromRow, Param, Row, Tx, error::Result, mailboxes};

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
    let folder = mail.folder.as_str();
    if mail.begins_thread {
        begin_thread(tx, mailbox, mail).await?;
    }
    for folder in [Some(folder), mail.listed.then_some(LISTED)].into_iter().flatten() {
        let params = [
            mailbox.into(),
            folder.into(),
            mail.thread.into(),
            mail.date.into(),
            mail.email.into(),
            (!mail.read).into(),
        ];
        if mail.begins_thread || add_to_thread(tx, &params).await? == 1 {
            mailboxes::add_to_counter(tx, mailbox, &counter(folder), 1).await?;
        }
    }
    Ok(())
}

/// Adds the summaries of a new thread, whose results are not needed.
async fn begin_thread(tx: &mut Tx, mailbox: &MailboxId, mail: &CountedEmail<'_>) -> Result<()> {
    const COLUMNS: &str =
        "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at,
           newest_email, mail_count, unread_count) VALUES ($1, $2, $3, $4, $5, $6, 1, $7)";
    let params = [
        mailbox.into(),
        mail.folder.as_str().into(),
        mail.thread.into(),
        mail.date.into(),
        mail.email.into(),
        (!mail.read).into(),
        LISTED.into(),
    ];
    if mail.listed {
        tx.pipeline(&format!("{COLUMNS}, ($1, $2, $8, $4, $5, $6, 1, $7)"), &params).await
    } else {
        tx.pipeline(COLUMNS, &params[..6]).await
    }
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

/// The name of the counter of a folder's threads. Counting the rows would take longer the more there are.
pub fn counter(folder: &str) -> String {
    format!("threads.{folder}")
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

/// The summary of a thread in a folder.
#[derive(Clone, Debug)]
pub struct ThreadFolder {
    /// The thread.
    pub thread_id: ThreadId,
    /// The time of its newest email there.
    pub newest_at: Timestamp,
    /// Its newest email there.
    pub newest_email: EmailId,
    /// Its emails there; 0 when all of them are held.
    pub mail_count: i64,
    /// Unread ones among them.
    pub unread_count: i64,
    /// Its position in the list, after which the next page starts.
    pub position: (Timestamp, EmailId),
}

impl FromRow for ThreadFolder {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (thread_id, newest_at, newest_email): (_, Timestamp, EmailId) =
            (row.next()?, row.next()?, row.next()?);
        Ok(Self {
            thread_id,
            newest_at,
            mail_count: row.next()?,
            unread_count: row.next()?,
            position: (newest_at, newest_email.clone()),
            newest_email,
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

    /// The condition on emails that belongs to the folder, which is `$3`.
    fn condition(&self) -> &'static str {
        if self.folder.is_some() { "email.folder_id = $3" } else { "email.listed = 1 AND $3 = ''" }
    }
}

/// The threads of a folder, newest first, after the given position or the first `skip`.
pub async fn list(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &ThreadFilter,
    after: Option<(Timestamp, EmailId)>,
    skip: i64,
    most: i64,
) -> Result<Vec<ThreadFolder>> {
    let (at, email) = after.unwrap_or_else(|| (Timestamp::from_micros(i64::MAX), EmailId::from("~")));
    let mut found: Vec<ThreadFolder> = tx
        .all(
            "SELECT thread_id, newest_at, newest_email, mail_count, unread_count FROM thread_folder
             WHERE workspace_id = $1 AND mailbox_id = $2 AND folder_id = $3 AND (newest_at, newest_email) < ($4, $5)
             ORDER BY newest_at DESC, newest_email DESC LIMIT $6 OFFSET $7",
            &[mailbox.into(), filter.folder().into(), at.into(), (&email).into(), most.into(), skip.into()],
        )
        .await?;
    if let Some(now) = filter.held_after {
        let held = held_threads(tx, mailbox, now).await?;
        for thread in found.iter_mut().filter(|thread| held.contains(&thread.thread_id)) {
            exclude_held(tx, mailbox, filter, now, thread).await?;
        }
    }
    Ok(found)
}

/// How many emails of a thread are in a folder.
pub async fn count_emails(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &ThreadFilter,
    thread: &ThreadId,
) -> Result<i64> {
    let found: Option<(i64,)> =
        tx.one(MAIL_COUNT, &[mailbox.into(), filter.folder().into(), thread.into()]).await?;
    let all = found.map_or(0, |(count,)| count);
    let Some(now) = filter.held_after else { return Ok(all) };
    let sql = format!(
        "SELECT count(*) FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND {} AND thread_id = $4
         AND held_until > $5",
        filter.condition()
    );
    let params = [mailbox.into(), filter.folder().into(), thread.into(), now.into()];
    let held: Option<(i64,)> = tx.one(&sql, &params).await?;
    Ok(all - held.map_or(0, |(count,)| count))
}

/// The threads with an email that is held at the given time. Holds are short, so these are few.
async fn held_threads(tx: &mut Tx, mailbox: &MailboxId, now: Timestamp) -> Result<Vec<ThreadId>> {
    let found: Vec<(ThreadId,)> = tx
        .all(
            "SELECT DISTINCT thread_id FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND held_until > $3",
            &[mailbox.into(), now.into()],
        )
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The summary of a thread in a folder without its held emails.
async fn exclude_held(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &ThreadFilter,
    now: Timestamp,
    thread: &mut ThreadFolder,
) -> Result<()> {
    let sql = format!(
        "SELECT date, id, count(*) OVER (), CAST(sum(1 - read) OVER () AS BIGINT) FROM email
         WHERE workspace_id = $1 AND mailbox_id = $2 AND {} AND thread_id = $4
         AND (held_until IS NULL OR held_until <= $5) ORDER BY date DESC, id DESC LIMIT 1",
        filter.condition()
    );
    let params = [mailbox.into(), filter.folder().into(), (&thread.thread_id).into(), now.into()];
    let found: Option<(Timestamp, EmailId, i64, i64)> = tx.one(&sql, &params).await?;
    if let Some((at, email, emails, unread)) = found {
        (thread.newest_at, thread.newest_email) = (at, email);
        (thread.mail_count, thread.unread_count) = (emails, unread);
    } else {
        (thread.mail_count, thread.unread_count) = (0, 0);
    }
    Ok(())
}

/// How many threads a folder has.
pub async fn count(tx: &mut Tx, mailbox: &MailboxId, filter: &ThreadFilter) -> Result<i64> {
    let all = mailboxes::counter(tx, mailbox, &counter(filter.folder())).await?;
    let Some(now) = filter.held_after else { return Ok(all) };
    Ok(all - count_hidden(tx, mailbox, filter, now).await?)
}

/// How many threads of a folder consist of held emails only.
async fn count_hidden(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &ThreadFilter,
    now: Timestamp,
) -> Result<i64> {
    let condition = filter.condition();
    let sql = format!(
        "SELECT count(DISTINCT email.thread_id) FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2
         AND {condition} AND email.held_until > $4 AND NOT EXISTS (SELECT 1 FROM email AS other
           WHERE other.workspace_id = $1 AND other.mailbox_id = $2 AND other.thread_id = email.thread_id
           AND {} AND (other.held_until IS NULL OR other.held_until <= $4))",
        condition.replace("email.", "other.")
    );
    let found: Option<(i64,)> = tx.one(&sql, &[mailbox.into(), filter.folder().into(), now.into()]).await?;
    Ok(found.map_or(0, |(count,)| count))
}
