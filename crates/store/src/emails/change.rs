//! Changes of emails, with all their counters.
//!
//! The caller has locked the mailbox (`mailboxes::lock`), so transactions change the counters of a mailbox one after
//! the other.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    EmailId, FolderId, LabelId, MailboxId, ThreadId, Timestamp,
    emails::{Category, ScanStatus, ScanThreat},
    folders::SystemFolder,
    sending::DeliveryStatus,
};

use super::record::{EmailRecord, is_listed};
use crate::{
    Param, Tx, contents,
    error::Result,
    mailboxes, outbound,
    sql::{Columns, columns},
    threads,
};

/// The fields of an email that counters depend on.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The email.
    pub id: EmailId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its folder.
    pub folder_id: FolderId,
    /// Whether it was read.
    pub read: bool,
    /// Its category.
    pub category: Category,
    /// Bytes that it stores.
    pub size: i64,
    /// Objects that it stores.
    pub stored_objects: i64,
    /// Its content.
    pub content_id: String,
    /// Its row in the search index.
    pub text_row: Option<i64>,
    /// Its date.
    pub date: Timestamp,
    /// Whether it was sent from here.
    pub outgoing: bool,
}

columns!(Brief {
    id,
    thread_id,
    folder_id,
    read,
    category,
    size,
    stored_objects,
    content_id,
    text_row,
    date,
    outgoing,
});

const BRIEF: &str = Brief::COLUMNS;

/// Finds these fields of an email.
pub async fn find_brief(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<Option<Brief>> {
    tx.one(
        &format!("SELECT {BRIEF} FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// The same for all emails of a thread.
pub async fn find_thread_briefs(tx: &mut Tx, mailbox: &MailboxId, thread: &ThreadId) -> Result<Vec<Brief>> {
    tx.all(&format!("SELECT {BRIEF} FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id = $3 ORDER BY date, id"), &[mailbox.into(), thread.into()]).await
}

/// Some of the emails of a folder.
pub async fn folder_batch(
    tx: &mut Tx,
    mailbox: &MailboxId,
    folder: &FolderId,
    most: i64,
) -> Result<Vec<Brief>> {
    let sql = format!(
        "SELECT {BRIEF} FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND folder_id = $3 ORDER BY date, id LIMIT $4"
    );
    tx.all(&sql, &[mailbox.into(), folder.into(), most.into()]).await
}

/// Some of the emails of a mailbox, in any folder.
pub async fn any_batch(tx: &mut Tx, mailbox: &MailboxId, most: i64) -> Result<Vec<Brief>> {
    tx.all(
        &format!(
            "SELECT {BRIEF} FROM email WHERE workspace_id = $1 AND mailbox_id = $2 ORDER BY id LIMIT $3"
        ),
        &[mailbox.into(), most.into()],
    )
    .await
}

/// Marks emails as read or unread, and returns how many changed.
pub async fn set_read(tx: &mut Tx, mailbox: &MailboxId, emails: &[Brief], read: bool) -> Result<i64> {
    let mut figures = CounterChanges::default();
    let changed: Vec<&Brief> = emails.iter().filter(|mail| mail.read != read).collect();
    for mail in &changed {
        tx.run(
            "UPDATE email SET read = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[mailbox.into(), (&mail.id).into(), read.into()],
        )
        .await?;
        figures.unread(&mail.folder_id, mail.category, if read { -1 } else { 1 });
        figures.threads.insert(mail.thread_id.clone());
    }
    figures.store(tx, mailbox).await?;
    Ok(i64::try_from(changed.len()).unwrap_or(i64::MAX))
}

/// Moves emails to a folder, and returns how many changed.
pub async fn move_to(tx: &mut Tx, mailbox: &MailboxId, emails: &[Brief], folder: &FolderId) -> Result<i64> {
    let mut figures = CounterChanges::default();
    let changed: Vec<&Brief> = emails.iter().filter(|mail| mail.folder_id != *folder).collect();
    for mail in &changed {
        tx.run(
            "UPDATE email SET folder_id = $4, listed = $5 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[mailbox.into(), (&mail.id).into(), folder.into(), is_listed(folder).into()],
        )
        .await?;
        figures.add(mail, &mail.folder_id, -1);
        figures.add(mail, folder, 1);
    }
    figures.store(tx, mailbox).await?;
    Ok(i64::try_from(changed.len()).unwrap_or(i64::MAX))
}

/// Deletes emails for good, with contents that nothing else uses.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, emails: &[Brief]) -> Result<()> {
    let mut figures = CounterChanges::default();
    let mut contents = BTreeSet::new();
    let mut in_threads: BTreeMap<&ThreadId, i64> = BTreeMap::new();
    for mail in emails {
        crate::search::index::delete(tx, &mail.id, mail.text_row).await?;
        if mail.outgoing {
            outbound::detach_email(tx, mailbox, &mail.id).await?;
        }
        tx.run(
            "DELETE FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[mailbox.into(), (&mail.id).into()],
        )
        .await?;
        figures.add(mail, &mail.folder_id, -1);
        figures.stored(-mail.size, -mail.stored_objects);
        contents.insert(mail.content_id.clone());
        *in_threads.entry(&mail.thread_id).or_default() += 1;
    }
    figures.store(tx, mailbox).await?;
    for (thread, count) in in_threads {
        threads::remove_emails(tx, mailbox, thread, count).await?;
    }
    let contents: Vec<String> = contents.into_iter().collect();
    contents::release(tx, &contents).await
}

/// Sets the flags, which are not counted, and the category, which is.
pub async fn set_flags(
    tx: &mut Tx,
    mailbox: &MailboxId,
    mail: &Brief,
    starred: Option<bool>,
    urgent: Option<bool>,
    category: Option<Category>,
) -> Result<()> {
    tx.run(
        "UPDATE email SET starred = coalesce($4, starred), is_urgent = coalesce($5, is_urgent),
         category = coalesce($6, category) WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[
            mailbox.into(),
            (&mail.id).into(),
            starred.into(),
            urgent.into(),
            category.map(Category::as_str).into(),
        ],
    )
    .await?;
    if let Some(category) = category.filter(|category| !mail.read && *category != mail.category) {
        let mut figures = CounterChanges::default();
        figures.by_category(&mail.folder_id, mail.category, -1);
        figures.by_category(&mail.folder_id, category, 1);
        figures.store(tx, mailbox).await?;
    }
    Ok(())
}

/// Replaces the labels of an email.
pub async fn set_labels(tx: &mut Tx, mailbox: &MailboxId, mail: &Brief, labels: &[LabelId]) -> Result<()> {
    tx.run(
        "DELETE FROM email_label WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3",
        &[mailbox.into(), (&mail.id).into()],
    )
    .await?;
    insert_labels_of(tx, mailbox, mail, labels).await?;
    tx.run(
        "UPDATE email SET label_count = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), (&mail.id).into(), i64::try_from(labels.len()).unwrap_or(i64::MAX).into()],
    )
    .await?;
    Ok(())
}

/// Releases an email from hold.
pub async fn release_hold(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<()> {
    tx.run(
        "UPDATE email SET held_until = NULL
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND held_until IS NOT NULL",
        &[mailbox.into(), id.into()],
    )
    .await?;
    Ok(())
}

/// Adds labels to an email.
pub async fn add_labels(tx: &mut Tx, mailbox: &MailboxId, mail: &Brief, labels: &[LabelId]) -> Result<()> {
    insert_labels_of(tx, mailbox, mail, labels).await?;
    tx.run(
        "UPDATE email SET label_count = (SELECT count(*) FROM email_label WHERE workspace_id = $1 AND mailbox_id = $2
         AND email_id = $3) WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), (&mail.id).into()],
    )
    .await?;
    Ok(())
}

/// A label of an email.
pub(super) struct EmailLabel<'a> {
    pub(super) mailbox: &'a MailboxId,
    pub(super) email: &'a EmailId,
    pub(super) label: &'a LabelId,
    pub(super) date: Timestamp,
}

/// Adds labels to emails.
pub(super) async fn insert_labels(tx: &mut Tx, labels: impl Iterator<Item = EmailLabel<'_>>) -> Result<()> {
    let rows = labels
        .map(|one| vec![one.mailbox.into(), one.email.into(), one.label.into(), one.date.into()])
        .collect();
    tx.pipeline_rows(
        "INSERT INTO email_label (workspace_id, mailbox_id, email_id, label_id, date) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (workspace_id, mailbox_id, email_id, label_id) DO NOTHING",
        rows,
    )
    .await
}

/// Adds labels to one email.
async fn insert_labels_of(tx: &mut Tx, mailbox: &MailboxId, mail: &Brief, labels: &[LabelId]) -> Result<()> {
    let (email, date) = (&mail.id, mail.date);
    insert_labels(tx, labels.iter().map(|label| EmailLabel { mailbox, email, label, date })).await
}

/// Sets the scan result, unless there is one already. True when it was set.
pub async fn set_scan(
    tx: &mut Tx,
    mailbox: &MailboxId,
    id: &EmailId,
    status: ScanStatus,
    threats: &[ScanThreat],
) -> Result<bool> {
    let changed = tx
        .run(
            "UPDATE email SET scan_status = $4, scan_threats = $5
             WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND scan_status IS NULL",
            &[mailbox.into(), id.into(), status.into(), Param::Json(&threats)],
        )
        .await?;
    Ok(changed == 1)
}

/// The fields of a sent email that its events show.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is the field of the email with this name")]
pub struct SentEmail {
    pub id: EmailId,
    pub thread_id: ThreadId,
    pub message_id: Option<String>,
    pub subject: String,
    pub delivery_status: Option<DeliveryStatus>,
}

columns!(SentEmail { id, thread_id, message_id, subject, delivery_status });

impl From<&EmailRecord> for SentEmail {
    fn from(record: &EmailRecord) -> Self {
        Self {
            id: record.id.clone(),
            thread_id: record.thread_id.clone(),
            message_id: record.message_id.clone(),
            subject: record.subject.clone(),
            delivery_status: record.delivery_status,
        }
    }
}

/// Sets the status of sent emails, each once, and returns what events say about those that were not deleted. Who sets
/// several has locked them.
pub async fn set_delivery_statuses(
    tx: &mut Tx,
    statuses: &[(&MailboxId, &EmailId, DeliveryStatus)],
) -> Result<Vec<SentEmail>> {
    const SET: &str =
        "UPDATE email SET delivery_status = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3";
    let columns = SentEmail::COLUMNS;
    let rows = statuses.iter();
    let rows =
        rows.map(|(mailbox, id, status)| vec![Param::from(*mailbox), Param::from(*id), Param::from(*status)]);
    if tx.is_postgres() {
        return tx.all_of_rows(&format!("{SET} RETURNING {columns}"), rows.collect()).await;
    }
    let find = format!("SELECT {columns} FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3");
    let mut updated = Vec::with_capacity(statuses.len());
    for params in rows {
        tx.run(SET, &params).await?;
        updated.extend(tx.one(&find, &params[..2]).await?);
    }
    Ok(updated)
}

/// Counts an email that was added.
pub(super) async fn count_arrival(tx: &mut Tx, mailbox: &MailboxId, mail: &EmailRecord) -> Result<()> {
    let mut figures = CounterChanges::default();
    figures.folder(&mail.folder_id, 1, i64::from(!mail.read));
    if !mail.read {
        figures.by_category(&mail.folder_id, mail.category, 1);
    }
    figures.stored(mail.size, mail.stored_objects);
    figures.store(tx, mailbox).await
}

/// Changes of counters, collected so that each counter is written once.
#[derive(Default)]
struct CounterChanges {
    folders: BTreeMap<FolderId, (i64, i64)>,
    counters: BTreeMap<String, i64>,
    threads: BTreeSet<ThreadId>,
}

impl CounterChanges {
    /// Adds an email to a folder's counters, or subtracts it.
    fn add(&mut self, mail: &Brief, folder: &FolderId, by: i64) {
        self.folder(folder, by, if mail.read { 0 } else { by });
        if !mail.read {
            self.by_category(folder, mail.category, by);
        }
        self.threads.insert(mail.thread_id.clone());
    }

    fn folder(&mut self, folder: &FolderId, total: i64, unread: i64) {
        let figures = self.folders.entry(folder.clone()).or_default();
        figures.0 += total;
        figures.1 += unread;
    }

    /// Adds an unread email, or subtracts it.
    fn unread(&mut self, folder: &FolderId, category: Category, by: i64) {
        self.folder(folder, 0, by);
        self.by_category(folder, category, by);
    }

    fn by_category(&mut self, folder: &FolderId, category: Category, by: i64) {
        if *folder == SystemFolder::Inbox {
            *self.counters.entry(format!("inbox_unread.{category}")).or_default() += by;
        }
    }

    fn stored(&mut self, bytes: i64, objects: i64) {
        *self.counters.entry("storage_bytes".to_owned()).or_default() += bytes;
        *self.counters.entry("blob_count".to_owned()).or_default() += objects;
    }

    async fn store(self, tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
        for (folder, (total, unread)) in &self.folders {
            tx.add_at_commit(
                "UPDATE folder SET total_count = total_count + $4, unread_count = unread_count + $5
                 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
                &[mailbox.into(), folder.into()],
                &[*total, *unread],
            )
            .await?;
        }
        for (name, by) in self.counters.iter().filter(|(_, by)| **by != 0) {
            mailboxes::add_to_counter(tx, mailbox, name, *by).await?;
        }
        for thread in &self.threads {
            threads::recount(tx, mailbox, thread).await?;
        }
        Ok(())
    }
}
