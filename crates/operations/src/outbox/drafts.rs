//! Drafts: emails that are still being written. Operations only; storing one is in `prepared`, reading one in
//! `loaded`.

pub(crate) mod loaded;
mod prepared;
mod regenerate;

use mail::address::Mailbox;
use model::{
    EmailId, Scope,
    drafts::{Draft, DraftListQuery, DraftPage, DraftState, NewDraft, SavedDraft},
    emails::{BodyFormat, SortColumn, SortDirection},
    folders::SystemFolder,
    sending::SentMail,
};
use store::{
    drafts::{self, DraftRecord},
    emails::{self, EmailFilter, EmailRecord, ListPosition, Sort},
    vault::DataKey,
};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::present,
    mailbox::mailboxes,
    outbox::sending::{self, Origin, SubmitOptions, answered_id, copies::line, people, subject},
};

use self::loaded::missing;
pub use self::regenerate::regenerate;
pub(crate) use self::{
    loaded::{LoadedDraft, Source, find, load_unlocked},
    prepared::{DraftInput, PreparedDraft},
};

/// Lists drafts.
pub const LIST: Operation = Operation::read("listDrafts", "Lists the drafts of a mailbox, newest first.")
    .errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Saves a draft.
pub const SAVE: Operation =
    Operation::write("saveDraft", "Saves a draft, or replaces the one that `draft_id` names.")
        .scope(Scope::Draft)
        .created()
        .errors(SAVING_ERRORS);
/// Reads a draft.
pub const GET: Operation = Operation::read("getDraft", "Returns a draft with its body and attachments.")
    .errors(&[ErrorKind::NotFound])
    .tagged();
/// Deletes a draft.
pub const DELETE: Operation = Operation::write("deleteDraft", "Deletes a draft permanently.")
    .scope(Scope::Draft)
    .empty()
    .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);
/// Sends a draft.
pub const SEND: Operation = Operation::send("sendDraft", "Sends a draft as it is.").errors(sending::ERRORS);

/// Rewrites a draft with the language model.
pub const REGENERATE: Operation = Operation::ai_light(
    "regenerateDraft",
    "Rewrites a draft with the language model, keeps quoted text, and returns the new text; the draft itself is not changed.",
).scope(Scope::Draft)
.errors(&[ErrorKind::NotFound, ErrorKind::AiUnavailable]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &SAVE, &GET, &DELETE, &SEND, &REGENERATE];

/// The errors that saving can fail with.
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

/// Saves a draft.
#[crate::boxed]
pub async fn save(app: &App, call: &Call, mailbox: &str, input: NewDraft) -> Result<SavedDraft> {
    save_forward(app, call, mailbox, input, None).await
}

/// Saves a draft that forwards an email, in the thread of that email.
#[crate::boxed]
pub async fn save_forward(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: NewDraft,
    forwards: Option<EmailId>,
) -> Result<SavedDraft> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let replaced = load_unlocked(app, &origin, input.draft_id.as_ref(), call.now).await?;
    let in_reply_to = match &input.in_reply_to {
        Some(text) => Some(answered_id(text)?),
        None => None,
    };
    let written = DraftInput {
        source: Source {
            to: people("to", input.to.as_ref())?,
            cc: people("cc", input.cc.as_ref())?,
            bcc: people("bcc", input.bcc.as_ref())?,
            subject: subject(input.subject.as_deref().unwrap_or_default())?,
            body: input.body,
            format: input.body_format.unwrap_or(BodyFormat::Text),
            references: in_reply_to.clone().into_iter().collect(),
            in_reply_to,
            accepted: None,
            drafted: None,
        },
        thread: input.thread_id,
        forwards,
        attachments: input.attachments,
        replaced,
        state: DraftState::Draft,
        scheduled_at: None,
        request: None,
    };
    let prepared_draft = PreparedDraft::prepare(app, origin, written, call.now).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        let email = prepared_draft.store(tx, &app_).await?;
        tx.audit().about("draft", &email.id);
        Ok(saved(email))
    })
    .await
}

/// The answer for a draft that was just stored.
pub(crate) fn saved(email: EmailRecord) -> SavedDraft {
    SavedDraft {
        draft_id: email.id.clone(),
        id: email.id,
        status: DraftState::Draft,
        subject: email.subject,
        recipient: email.to_line,
        date: email.date,
    }
}

/// Reads a draft.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<Draft> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let (record, email) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let record = find(tx, &mailbox, &id).await?;
            let email = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            Ok((record, email))
        })
        .await?;
    show(&key, record, email)
}

fn show(key: &DataKey, record: DraftRecord, email: EmailRecord) -> Result<Draft> {
    let source = Source::open(key, &record.source)?;
    let texts = |people: &[Mailbox]| people.iter().map(ToString::to_string).collect();
    Ok(Draft {
        draft_id: email.id.clone(),
        id: email.id,
        status: record.state,
        subject: source.subject,
        recipient: line(&source.to),
        to: texts(&source.to),
        cc: texts(&source.cc),
        bcc: texts(&source.bcc),
        body: source.body,
        body_format: source.format,
        in_reply_to: source.in_reply_to,
        thread_id: email.thread_id,
        attachments: email.attachments,
        date: record.updated_at,
        scheduled_send_at: record.scheduled_at,
        last_error: record.last_error,
    })
}

/// Lists the drafts of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: DraftListQuery) -> Result<DraftPage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listDrafts {mailbox}");
    let after: Option<ListPosition> = match &query.cursor {
        Some(text) => Some(cursor::open(&key, &about, text)?),
        None => None,
    };
    let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
    let limit = query.limit;
    let (mut found, total_count) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let filter = EmailFilter { folder: Some(SystemFolder::Drafts.into()), ..EmailFilter::default() };
            let emails = emails::list(tx, &mailbox, &filter, sort, after.as_ref(), 0, limit + 1).await?;
            let mut found = Vec::with_capacity(emails.len());
            for email in emails {
                if let Some(record) = drafts::find(tx, &mailbox, &email.id).await? {
                    found.push((record, email));
                }
            }
            Ok((found, emails::count(tx, &mailbox, &filter).await?))
        })
        .await?;
    let has_more = cursor::truncate(&mut found, limit);
    let (mut all, mut last) = (Vec::new(), None);
    for (record, email) in found {
        last = Some(sort.position(&email));
        all.push(show(&key, record, email)?);
    }
    let next_cursor = match last.filter(|_| has_more) {
        Some(position) => Some(cursor::seal(&key, &about, &position)?),
        None => None,
    };
    Ok(DraftPage { drafts: all, total_count, has_more, next_cursor })
}

/// Deletes a draft for good.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<()> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
        tx.audit().about("draft", &id);
        if record.is_sending(now) || record.state == DraftState::InReview {
            return Err(Error::draft_locked(record.state));
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
    let loaded = load_unlocked(app, &origin, Some(&id), call.now).await?.ok_or_else(missing)?;
    let outgoing = loaded.outgoing_message(app, &origin, true).await?;
    let options = SubmitOptions { draft: Some(loaded), keeps_id: true, wait };
    sending::finish(app, call, origin, outgoing, options).await
}
