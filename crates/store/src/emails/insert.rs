//! Adding emails to mailboxes, with everything that is counted: several with one statement for each table.

use model::{EmailId, LabelId, MailboxId, ThreadId};

use super::{
    change::{self, EmailLabel},
    list::sort_form,
    record::{EmailRecord, NewAttachment, is_listed},
};
use crate::{
    Tx, attachments,
    error::Result,
    search::index::{self, IndexedText},
    sql::Insert,
    threads::{self, CountedEmail, ThreadCandidates, ThreadHints},
};

/// An email to be added to a mailbox.
#[derive(Clone, Debug)]
pub struct NewEmail {
    /// The email. Its thread is found by the hints; `thread_id` is used when none matches.
    pub record: EmailRecord,
    /// Its attachments.
    pub attachments: Vec<NewAttachment>,
    /// Its labels.
    pub labels: Vec<LabelId>,
    /// The thread it belongs to, regardless of the hints.
    pub thread: Option<ThreadId>,
    /// What determines its thread.
    pub hints: ThreadHints,
    /// Its text for the search index.
    pub text: IndexedText,
}

/// Adds an email to its mailbox and sets its thread. The content must exist and the mailbox be locked.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, mail: &mut NewEmail) -> Result<()> {
    let found = match &mail.thread {
        Some(thread) => Some(thread.clone()),
        // The Message-ID of a message that is written here is new.
        None if mail.record.outgoing => {
            threads::find(tx, mailbox, &mail.hints.without_own(), mail.record.date).await?
        }
        None => threads::find(tx, mailbox, &mail.hints, mail.record.date).await?,
    };
    let begins_thread = found.is_none();
    if let Some(thread) = found {
        mail.record.thread_id = thread;
    }
    write(tx, &[InsertedEmail { mailbox, mail, begins_thread }]).await
}

/// The same for several emails that arrive or are sent together. Their candidates were looked up in this transaction, in
/// the same order.
pub async fn insert_all(
    tx: &mut Tx,
    new_emails: &mut [(MailboxId, NewEmail)],
    candidates: &mut ThreadCandidates,
) -> Result<()> {
    // A statement costs no round trip on SQLite, so there is nothing to save.
    if !tx.is_postgres() {
        for (mailbox, mail) in new_emails {
            insert(tx, mailbox, mail).await?;
        }
        return Ok(());
    }
    let mut begin_threads = Vec::with_capacity(new_emails.len());
    for (number, (mailbox, mail)) in new_emails.iter_mut().enumerate() {
        let found = match &mail.thread {
            Some(thread) => Some(thread.clone()),
            None => candidates.find(tx, number, mailbox, &mail.hints, mail.record.date).await?,
        };
        begin_threads.push(found.is_none());
        if let Some(thread) = found {
            mail.record.thread_id = thread;
        }
        candidates.join(mailbox, &mail.record.thread_id, &mail.hints, mail.record.date);
    }
    let with_threads = new_emails.iter().zip(begin_threads);
    let inserted: Vec<InsertedEmail<'_>> = with_threads
        .map(|((mailbox, mail), begins_thread)| InsertedEmail { mailbox, mail, begins_thread })
        .collect();
    write(tx, &inserted).await
}

/// An email whose thread is known.
struct InsertedEmail<'a> {
    mailbox: &'a MailboxId,
    mail: &'a NewEmail,
    begins_thread: bool,
}

impl<'a> InsertedEmail<'a> {
    fn counted(&self) -> CountedEmail<'a> {
        let record = &self.mail.record;
        CountedEmail {
            mailbox: self.mailbox,
            email: &record.id,
            thread: &record.thread_id,
            hints: &self.mail.hints,
            begins_thread: self.begins_thread,
            folder: &record.folder_id,
            listed: is_listed(&record.folder_id),
            date: record.date,
            read: record.read,
        }
    }

    fn attachments(&self) -> impl Iterator<Item = (&'a MailboxId, &'a EmailId, &'a NewAttachment)> + use<'a> {
        let (mailbox, mail) = (self.mailbox, self.mail);
        mail.attachments.iter().map(move |attachment| (mailbox, &mail.record.id, attachment))
    }

    fn labels(&self) -> impl Iterator<Item = EmailLabel<'a>> + use<'a> {
        let (mailbox, record) = (self.mailbox, &self.mail.record);
        let (email, date) = (&record.id, record.date);
        self.mail.labels.iter().map(move |label| EmailLabel { mailbox, email, label, date })
    }

    /// Its row, with what was computed from its fields.
    fn row(&self, text_row: Option<i64>, [subject, sender, recipient]: &'a [String; 3]) -> Insert<'a> {
        let (mail, record) = (self.mail, &self.mail.record);
        let count = |items: usize| i64::try_from(items).unwrap_or(i64::MAX);
        Insert::into("email")
            .column("mailbox_id", self.mailbox)
            .record(record)
            .column("listed", is_listed(&record.folder_id))
            .column("subject_order", subject)
            .column("sender_order", sender)
            .column("recipient_order", recipient)
            .column("attachment_count", count(record.attachments.len()))
            .column("label_count", count(mail.labels.len()))
            .column("text_row", text_row)
    }
}

/// Writes emails with everything that is counted.
async fn write(tx: &mut Tx, emails: &[InsertedEmail<'_>]) -> Result<()> {
    let counted: Vec<CountedEmail<'_>> = emails.iter().map(InsertedEmail::counted).collect();
    threads::join(tx, &counted).await?;
    insert_rows(tx, emails).await?;
    let texts: Vec<_> = emails.iter().map(|one| (one.mailbox, &one.mail.record.id, &one.mail.text)).collect();
    index::insert_after(tx, &texts).await?;
    attachments::insert_all(tx, emails.iter().flat_map(InsertedEmail::attachments).collect()).await?;
    change::insert_labels(tx, emails.iter().flat_map(InsertedEmail::labels)).await?;
    threads::count_in(tx, &counted).await?;
    for one in emails {
        change::count_arrival(tx, one.mailbox, &one.mail.record).await?;
    }
    Ok(())
}

/// Adds the rows of the emails themselves.
async fn insert_rows(tx: &mut Tx, emails: &[InsertedEmail<'_>]) -> Result<()> {
    let mut text_rows = Vec::with_capacity(emails.len());
    for one in emails {
        let (id, text) = (&one.mail.record.id, &one.mail.text);
        text_rows.push(index::insert_before(tx, one.mailbox, id, text).await?);
    }
    let sort_forms = |one: &InsertedEmail<'_>| {
        let record = &one.mail.record;
        [&record.subject, &record.sender, &record.recipient].map(|text| sort_form(text))
    };
    let sort_forms: Vec<[String; 3]> = emails.iter().map(sort_forms).collect();
    let with_computed = emails.iter().zip(text_rows).zip(&sort_forms);
    let rows = with_computed.map(|((one, text_row), sort_forms)| one.row(text_row, sort_forms)).collect();
    Insert::pipeline_all(tx, rows).await
}
