//! Scheduled sends: drafts that are sent at a given time, each exactly once.
//!
//! The operations are here, sending what is due is in [`worker`].

pub mod worker;

use model::{
    EmailId, MailboxId, Scope, Timestamp,
    drafts::{
        DraftListQuery, DraftState, NewScheduledSend, SavedDraft, ScheduleChange, ScheduledSend,
        ScheduledSendPage,
    },
    emails::BodyFormat,
    folders::SystemFolder,
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    drafts::{self as stored, DraftRecord},
    emails::{self, EmailRecord},
};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Detail, Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
    outbox::{
        drafts::{self, DraftInput, LoadedDraft, PreparedDraft, Source},
        sending::{
            Origin, OutgoingMessage, answered_id, check_request, people, routing::check_routes, subject,
        },
    },
};

/// Lists scheduled sends.
pub const LIST: Operation =
    Operation::read("listScheduledSends", "Lists the scheduled sends of a mailbox, soonest first.")
        .errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Schedules a message.
pub const CREATE: Operation =
    Operation::send("scheduleSend", "Schedules an email or a draft to be sent within the next year.")
        .created()
        .errors(&[
            ErrorKind::NotFound,
            ErrorKind::ContentWithheld,
            ErrorKind::QuotaExceeded,
            ErrorKind::DraftLocked,
            ErrorKind::AttachmentTooLarge,
            ErrorKind::AttachmentsTooLarge,
            ErrorKind::TooManyAttachments,
            ErrorKind::MessageTooLarge,
            ErrorKind::OutboundNotConfigured,
            ErrorKind::EmailSendRecipientLimitExceeded,
        ]);
/// Reads a scheduled send.
pub const GET: Operation =
    Operation::read("getScheduledSend", "Returns a scheduled send, also after it was sent.")
        .errors(&[ErrorKind::NotFound])
        .tagged();
/// Moves a scheduled send to another time.
pub const UPDATE: Operation = Operation::write("rescheduleSend", "Reschedules a scheduled send.")
    .any_scope(&[Scope::Draft, Scope::Send])
    .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);
/// Cancels a scheduled send.
pub const CANCEL: Operation =
    Operation::write("cancelScheduledSend", "Cancels a scheduled send, which becomes a draft again.")
        .any_scope(&[Scope::Draft, Scope::Send])
        .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &GET, &UPDATE, &CANCEL];

/// How far ahead a message can be scheduled.
const MAX_AHEAD_SECONDS: i64 = 366 * 86_400;

/// Schedules a message.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: NewScheduledSend) -> Result<ScheduledSend> {
    create_forward(app, call, mailbox, input, None).await
}

/// Schedules a message that forwards an email, in the thread of that email.
#[crate::boxed]
pub async fn create_forward(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: NewScheduledSend,
    forwards: Option<EmailId>,
) -> Result<ScheduledSend> {
    let untimely = time_fault(input.scheduled_send_at, call.now);
    let origin = Origin::of_call(app, call, mailbox).await?;
    let replaced = drafts::load_unlocked(app, &origin, input.draft_id.as_ref(), call.now).await?;
    let at = input.scheduled_send_at;
    let request = Some(call.caller.request(call.reserved_credits(), call.now));
    let written = DraftInput { forwards, request, ..draft_input(input, replaced)? };
    let source = &written.source;
    let outgoing = OutgoingMessage {
        to: source.to.clone(),
        cc: source.cc.clone(),
        bcc: source.bcc.clone(),
        text: Some(source.body.clone()).filter(|body| !body.is_empty()),
        ..OutgoingMessage::default()
    };
    let lacks = [("to", outgoing.to.is_empty()), ("body", outgoing.text.is_none())].into_iter();
    let lacks = lacks.filter(|(_, lacks)| *lacks).map(|(field, _)| Detail::new(field, "is required"));
    Error::refuse(untimely.into_iter().chain(lacks).collect())?;
    check_request(app, origin.plan, outgoing.recipient_count())?;
    check_routes(app, &origin, &outgoing).await?;
    let prepared_draft = PreparedDraft::prepare(app, origin, written, call.now).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        let email = prepared_draft.store(tx, &app_).await?;
        tx.audit().about("scheduled_send", &email.id);
        Ok(scheduled_send(email.id, DraftState::Scheduled, email.subject, email.to_line, at, None))
    })
    .await
}

/// What is wrong with the time of a schedule.
fn time_fault(at: Timestamp, now: Timestamp) -> Option<Detail> {
    let message = if at <= now {
        "must be in the future"
    } else if at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        "must lie at most a year ahead"
    } else {
        return None;
    };
    Some(Detail::new("scheduled_send_at", message))
}

/// The draft to send: the request's fields, and the stored draft's where the request has none.
fn draft_input(input: NewScheduledSend, replaced: Option<LoadedDraft>) -> Result<DraftInput> {
    let draft = replaced.as_ref().map(|loaded| loaded.source.clone());
    let mut source = draft.unwrap_or_else(|| Source {
        to: Vec::new(),
        cc: Vec::new(),
        bcc: Vec::new(),
        subject: String::new(),
        body: String::new(),
        format: BodyFormat::Text,
        in_reply_to: None,
        references: Vec::new(),
        accepted: None,
        drafted: None,
    });
    for (name, line, given) in [
        ("to", &mut source.to, &input.to),
        ("cc", &mut source.cc, &input.cc),
        ("bcc", &mut source.bcc, &input.bcc),
    ] {
        if given.is_some() {
            *line = people(name, given.as_ref())?;
        }
    }
    if let Some(text) = &input.subject {
        source.subject = subject(text)?;
    }
    if let Some(body) = input.body {
        source.body = body;
        source.format = input.body_format.unwrap_or(BodyFormat::Text);
    } else if let Some(format) = input.body_format {
        source.format = format;
    }
    if let Some(text) = &input.in_reply_to {
        let id = answered_id(text)?;
        (source.in_reply_to, source.references) = (Some(id.clone()), vec![id]);
    }
    Ok(DraftInput {
        source,
        thread: input.thread_id,
        forwards: None,
        attachments: input.attachments,
        replaced,
        state: DraftState::Scheduled,
        scheduled_at: Some(input.scheduled_send_at),
        request: None,
    })
}

fn scheduled_send(
    id: EmailId,
    status: DraftState,
    subject: String,
    recipient: String,
    at: Timestamp,
    last_error: Option<String>,
) -> ScheduledSend {
    ScheduledSend { draft_id: id.clone(), id, status, subject, recipient, scheduled_send_at: at, last_error }
}

fn show(record: DraftRecord, email: EmailRecord) -> Result<ScheduledSend> {
    let at = record.scheduled_at.ok_or_else(missing)?;
    Ok(scheduled_send(email.id, record.state, email.subject, email.to_line, at, record.last_error))
}

fn missing() -> Error {
    Error::not_found("Scheduled send not found")
}

/// A scheduled send, also one that was sent.
async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<DraftRecord> {
    let found = stored::find(tx, mailbox, id).await?;
    found.filter(|record| record.scheduled_at.is_some()).ok_or_else(missing)
}

/// Reads a scheduled send.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<ScheduledSend> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
        let email = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        show(record, email)
    })
    .await
}

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct SchedulePosition {
    at: i64,
    id: EmailId,
}

/// Lists the scheduled sends of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: DraftListQuery) -> Result<ScheduledSendPage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listScheduledSends {mailbox}");
    let after = match &query.cursor {
        Some(text) => {
            let position: SchedulePosition = cursor::open(&key, &about, text)?;
            Some((Timestamp::from_micros(position.at), position.id))
        }
        None => None,
    };
    let limit = query.limit;
    let (mut records, emails, total_count) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let records = stored::list_scheduled(tx, &mailbox, after, limit + 1).await?;
            let ids: Vec<EmailId> = records.iter().map(|record| record.email_id.clone()).collect();
            let emails = emails::select(tx, &mailbox, &ids).await?;
            let folder = store::folders::find(tx, &mailbox, &SystemFolder::Scheduled.into()).await?;
            Ok((records, emails, folder.map_or(0, |folder| folder.total_count)))
        })
        .await?;
    let has_more = cursor::truncate(&mut records, limit);
    let (mut all, mut last) = (Vec::new(), None);
    for record in records {
        let Some(email) = emails.iter().find(|email| email.id == record.email_id) else { continue };
        last = record
            .scheduled_at
            .map(|at| SchedulePosition { at: at.as_micros(), id: record.email_id.clone() });
        all.push(show(record, email.clone())?);
    }
    let next_cursor = match last.filter(|_| has_more) {
        Some(position) => Some(cursor::seal(&key, &about, &position)?),
        None => None,
    };
    Ok(ScheduledSendPage { scheduled_sends: all, total_count, has_more, next_cursor })
}

/// Moves a scheduled send to another time.
#[crate::boxed]
pub async fn update(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    change: ScheduleChange,
) -> Result<ScheduledSend> {
    let (at, now) = (change.scheduled_send_at, call.now);
    Error::refuse(time_fault(at, now).into_iter().collect())?;
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
        tx.audit().about("scheduled_send", &id);
        if !record.state.waits() {
            return Err(Error::draft_locked(record.state));
        }
        let changed = DraftRecord {
            state: DraftState::Scheduled,
            scheduled_at: Some(at),
            claimed_until: None,
            last_error: None,
            ..record
        };
        change_to(tx, &mailbox, &changed).await?;
        stored::wake(tx);
        let email = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        show(changed, email)
    })
    .await
}

/// Stores the change; fails when the draft is being sent, was sent or has failed.
async fn change_to(tx: &mut Tx, mailbox: &MailboxId, record: &DraftRecord) -> Result<()> {
    if stored::change(tx, mailbox, record).await? {
        Ok(())
    } else {
        Err(Error::draft_locked(DraftState::Sending))
    }
}

/// Cancels a scheduled send.
#[crate::boxed]
pub async fn cancel(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<SavedDraft> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        tx.audit().about("scheduled_send", &id);
        crate::inbox::emails::cancellation_result(stored::cancel_schedule(tx, &mailbox, &id, now).await?)?;
        let email = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        Ok(drafts::saved(email))
    })
    .await
}
