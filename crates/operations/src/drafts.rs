//! Drafts: emails that are still being written.

mod ready;
mod regenerate;

use mail::address::Mailbox;
use model::{
    EmailId, ThreadId, Timestamp,
    drafts::{Draft, DraftListQuery, DraftPage, DraftState, NewDraft, SavedDraft},
    emails::{BodyFormat, SortColumn, SortDirection},
    sending::SentMail,
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    drafts::{self, DraftRecord},
    emails::{self, EmailFilter, EmailRecord, Place, Sort},
    vault::DataKey,
};

use crate::{
    App, Call, Error, ErrorKind, Operation, Result, cursor,
    emails::present,
    mailboxes,
    sending::{self, Letter, Origin, answered_id, files, people, sender, subject, submit::line},
};

pub(crate) use self::ready::{Ready, Written};
pub use self::regenerate::regenerate;

/// Lists drafts.
pub const LIST: Operation = Operation::read("listDrafts", "Lists the drafts of a mailbox, newest first.")
    .errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Saves a draft.
pub const SAVE: Operation =
    Operation::write("saveDraft", "Saves a draft, or replaces the one that `draft_id` names.")
        .created()
        .errors(SAVING_ERRORS);
/// Reads a draft.
pub const GET: Operation = Operation::read("getDraft", "Reads a draft with its body and files.")
    .errors(&[ErrorKind::NotFound])
    .tagged();
/// Deletes a draft.
pub const DELETE: Operation = Operation::write("deleteDraft", "Deletes a draft for good.")
    .empty()
    .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);
/// Sends a draft.
pub const SEND: Operation =
    Operation::send("sendDraft", "Sends a draft as it stands.").errors(sending::ERRORS);

/// Writes a draft anew.
pub const REGENERATE: Operation = Operation::ai_light(
    "regenerateDraft",
    "Has the language model write a draft anew, and leaves the draft as it is.",
)
.errors(&[ErrorKind::NotFound, ErrorKind::AiUnavailable]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &SAVE, &GET, &DELETE, &SEND, &REGENERATE];

/// What saving can be refused for.
pub(crate) const SAVING_ERRORS: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::ContentWithheld,
    ErrorKind::QuotaExceeded,
    ErrorKind::DraftLocked,
    ErrorKind::AttachmentTooLarge,
    ErrorKind::AttachmentsTooLarge,
    ErrorKind::TooManyAttachments,
    ErrorKind::MessageTooLarge,
];

/// The purpose that what was written is sealed for.
const SOURCE: &str = "draft";

/// What its writer put into a draft.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) to: Vec<Mailbox>,
    pub(crate) cc: Vec<Mailbox>,
    pub(crate) bcc: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) format: BodyFormat,
    pub(crate) in_reply_to: Option<String>,
    pub(crate) references: Vec<String>,
}

impl Source {
    /// Whether it passes a message on: it belongs to one that it does not answer.
    fn passes_on(&self) -> bool {
        self.in_reply_to.is_none() && !self.references.is_empty()
    }

    /// Joins a thread of the mailbox.
    async fn join(&mut self, app: &App, origin: &Origin, thread: ThreadId) -> Result<ThreadId> {
        let (in_reply_to, references) = (self.in_reply_to.take(), std::mem::take(&mut self.references));
        let mut letter = Letter { in_reply_to, references, ..Letter::default() };
        join_thread(app, origin, &mut letter, thread.clone()).await?;
        (self.in_reply_to, self.references) = (letter.in_reply_to, letter.references);
        Ok(thread)
    }

    fn seal(&self, key: &DataKey) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(key.seal(SOURCE, &plain).map_err(store::Error::from)?)
    }

    pub(crate) fn open(key: &DataKey, sealed: &[u8]) -> Result<Self> {
        let plain = key.open(SOURCE, sealed).map_err(store::Error::from)?;
        serde_json::from_slice(&plain).map_err(Error::internal)
    }
}

/// A draft as it was read: it may only be replaced or sent while it is still that one.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) record: DraftRecord,
    pub(crate) source: Source,
    pub(crate) thread: ThreadId,
    pub(crate) starred: bool,
}

impl Held {
    /// The mail that the draft says, with its files if they are wanted.
    pub(crate) async fn letter(&self, app: &App, origin: &Origin, with_files: bool) -> Result<Letter> {
        let source = &self.source;
        let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let is_html = source.format == BodyFormat::Html;
        let files = if with_files { self.files(app, origin).await? } else { Vec::new() };
        Ok(Letter {
            from: sender(origin, None)?,
            to: source.to.clone(),
            cc: source.cc.clone(),
            bcc: source.bcc.clone(),
            subject: source.subject.clone(),
            text: if is_html { None } else { filled(&source.body) },
            html: if is_html { filled(&source.body) } else { None },
            in_reply_to: source.in_reply_to.clone(),
            references: source.references.clone(),
            thread: Some(self.thread.clone()),
            files,
            headers: Vec::new(),
            message_id: self.record.message_id.clone(),
            auto_submitted: None,
        })
    }

    /// Its files, which keep their ids.
    async fn files(&self, app: &App, origin: &Origin) -> Result<Vec<files::SourceFile>> {
        let mut all = files::of_email(app, origin, &self.record.email_id, files::Shown::AsTheyAre).await?;
        for source in &mut all {
            source.keeps_id = true;
        }
        Ok(all)
    }
}

/// Reads the draft that a request names, if it names one. One that is scheduled or leaving right now is locked.
pub(crate) async fn hold(
    app: &App,
    origin: &Origin,
    id: Option<&EmailId>,
    now: Timestamp,
) -> Result<Option<Held>> {
    let Some(id) = id.cloned() else { return Ok(None) };
    let key = app.data_key(&origin.workspace).await?;
    let mailbox = origin.mailbox.id.clone();
    let (record, mail) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let record = find(tx, &mailbox, &id).await?;
            let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            Ok::<_, Error>((record, mail))
        })
        .await?;
    if record.is_leaving(now) {
        return Err(Error::new(ErrorKind::DraftLocked));
    }
    if record.state != DraftState::Draft {
        return Err(Error::new(ErrorKind::DraftLocked).with_fix("Cancel its schedule first."));
    }
    let source = Source::open(&key, &record.source)?;
    Ok(Some(Held { record, source, thread: mail.thread_id, starred: mail.starred }))
}

/// A draft or scheduled send that has not left.
pub(crate) async fn find(tx: &mut Tx, mailbox: &model::MailboxId, id: &EmailId) -> Result<DraftRecord> {
    let found = drafts::find(tx, mailbox, id).await?;
    found.filter(|draft| draft.state != DraftState::Sent).ok_or_else(missing)
}

fn missing() -> Error {
    Error::not_found("Draft not found")
}

/// Puts a mail into a thread of the mailbox; it answers the newest mail there unless it says otherwise.
pub(crate) async fn join_thread(
    app: &App,
    origin: &Origin,
    letter: &mut Letter,
    thread: ThreadId,
) -> Result<()> {
    let (mailbox, wanted) = (origin.mailbox.id.clone(), thread.clone());
    let newest = app
        .db()
        .read(&origin.workspace, async move |tx| {
            if emails::count_thread(tx, &mailbox, &wanted, None).await? == 0 {
                return Err(Error::not_found("Thread not found"));
            }
            Ok(emails::newest_in_thread(tx, &mailbox, &wanted).await?)
        })
        .await?;
    if let Some((id, earlier)) = newest.filter(|_| letter.in_reply_to.is_none()) {
        let earlier: Vec<String> =
            earlier.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect();
        let threading = mail::compose::quote::threading(Some(&id), None, &earlier);
        letter.in_reply_to = threading.in_reply_to;
        if letter.references.is_empty() {
            letter.references = threading.references;
        }
    }
    letter.thread = Some(thread);
    Ok(())
}

/// Saves a draft.
#[crate::boxed]
pub async fn save(app: &App, call: &Call, mailbox: &str, input: NewDraft) -> Result<SavedDraft> {
    save_passing_on(app, call, mailbox, input, None).await
}

/// Saves a draft that passes an email on, in the thread of that email.
#[crate::boxed]
pub async fn save_passing_on(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: NewDraft,
    passes_on: Option<EmailId>,
) -> Result<SavedDraft> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let replaced = hold(app, &origin, input.draft_id.as_ref(), call.now).await?;
    let in_reply_to = match &input.in_reply_to {
        Some(text) => Some(answered_id(text)?),
        None => None,
    };
    let written = Written {
        source: Source {
            to: people("to", input.to.as_ref())?,
            cc: people("cc", input.cc.as_ref())?,
            bcc: people("bcc", input.bcc.as_ref())?,
            subject: subject(input.subject.as_deref().unwrap_or_default())?,
            body: input.body,
            format: input.body_format.unwrap_or(BodyFormat::Text),
            references: in_reply_to.clone().into_iter().collect(),
            in_reply_to,
        },
        thread: input.thread_id,
        passes_on,
        attachments: input.attachments,
        replaced,
        state: DraftState::Draft,
        scheduled_at: None,
    };
    let ready = Ready::prepare(app, origin, written, call.now).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        let mail = ready.store(tx, &app_).await?;
        Ok(SavedDraft {
            draft_id: mail.id.clone(),
            id: mail.id,
            status: DraftState::Draft,
            subject: mail.subject,
            recipient: mail.to_line,
            date: mail.date,
        })
    })
    .await
}

/// Reads a draft.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<Draft> {
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let (record, mail) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let record = find(tx, &mailbox, &id).await?;
            let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            Ok((record, mail))
        })
        .await?;
    show(&key, record, mail)
}

fn show(key: &DataKey, record: DraftRecord, mail: EmailRecord) -> Result<Draft> {
    let source = Source::open(key, &record.source)?;
    let texts = |people: &[Mailbox]| people.iter().map(ToString::to_string).collect();
    Ok(Draft {
        draft_id: mail.id.clone(),
        id: mail.id,
        status: record.state,
        subject: source.subject,
        recipient: line(&source.to),
        to: texts(&source.to),
        cc: texts(&source.cc),
        bcc: texts(&source.bcc),
        body: source.body,
        body_format: source.format,
        in_reply_to: source.in_reply_to,
        thread_id: mail.thread_id,
        attachments: mail.attachments,
        date: record.updated_at,
        scheduled_send_at: record.scheduled_at,
        last_error: record.last_error,
    })
}

/// Lists the drafts of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: DraftListQuery) -> Result<DraftPage> {
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listDrafts {mailbox}");
    let after: Option<Place> = match &query.cursor {
        Some(text) => Some(cursor::open(&key, &about, text)?),
        None => None,
    };
    let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
    let limit = query.limit;
    let (found, total_count) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let filter = EmailFilter { folder: Some("draft".into()), ..EmailFilter::default() };
            let mails = emails::list(tx, &mailbox, &filter, sort, after.as_ref(), 0, limit + 1).await?;
            let mut found = Vec::with_capacity(mails.len());
            for mail in mails {
                if let Some(record) = drafts::find(tx, &mailbox, &mail.id).await? {
                    found.push((record, mail));
                }
            }
            Ok((found, emails::count(tx, &mailbox, &filter).await?))
        })
        .await?;
    let wanted = usize::try_from(limit).unwrap_or_default();
    let has_more = found.len() > wanted;
    let (mut all, mut last) = (Vec::new(), None);
    for (record, mail) in found.into_iter().take(wanted) {
        last = Some(sort.place(&mail));
        all.push(show(&key, record, mail)?);
    }
    let next_cursor = match last.filter(|_| has_more) {
        Some(place) => Some(cursor::seal(&key, &about, &place)?),
        None => None,
    };
    Ok(DraftPage { drafts: all, total_count, has_more, next_cursor })
}

/// Deletes a draft for good.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<()> {
    let (named, now) = (mailboxes::name(mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::emails::hold(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
        if record.is_leaving(now) {
            return Err(Error::new(ErrorKind::DraftLocked));
        }
        let brief = emails::find_brief(tx, &mailbox, &id).await?.ok_or_else(present::missing)?;
        Ok(emails::delete(tx, &mailbox, &[brief]).await?)
    })
    .await
}

/// Sends a draft as it stands.
#[crate::boxed]
pub async fn send(app: &App, call: &Call, mailbox: &str, id: EmailId, wait: bool) -> Result<SentMail> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let held = hold(app, &origin, Some(&id), call.now).await?.ok_or_else(missing)?;
    let letter = held.letter(app, &origin, true).await?;
    sending::finish(app, call, origin, letter, Some(held), true, wait).await
}
