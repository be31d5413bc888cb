//! Scheduled sends: drafts that leave by themselves when their time has come, each exactly once.
//!
//! Whoever sends one takes it on first, for a short time and under a number that rises: a node that was believed lost
//! and comes back finds that its number is no longer the draft's, and its transaction does nothing.

use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    drafts::{
        DraftListQuery, DraftState, NewScheduledSend, SavedDraft, ScheduleChange, ScheduledSend,
        ScheduledSendPage,
    },
    emails::BodyFormat,
    events::EventType,
    folders::SystemFolder,
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    drafts::{self as stored, DraftRecord, Due},
    emails::{self, EmailRecord},
    mailboxes::{self as stored_mailboxes, MailboxName},
    workspaces,
};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Detail, Error, ErrorKind, Result},
        events::NewEvent,
        operation::Operation,
        supervisor::{ClaimGuard, isolate},
        turns::Turns,
    },
    mailbox::mailboxes,
    outbox::{
        drafts::{self, LoadedDraft, Ready, Source, Written},
        sending::{
            KEPT_BACK, Origin, OutgoingMessage, answered_id, check_request, people, require_complete,
            subject,
            submit::{Submission, SubmitOutcome, check_ways},
        },
    },
};

/// Lists scheduled sends.
pub const LIST: Operation =
    Operation::read("listScheduledSends", "Lists the scheduled sends of a mailbox, soonest first.")
        .errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Schedules a mail.
pub const CREATE: Operation =
    Operation::send("scheduleSend", "Schedules a mail, or a draft, to leave at a time within a year.")
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
    Operation::read("getScheduledSend", "Reads a scheduled send, also once it has left.")
        .errors(&[ErrorKind::NotFound])
        .tagged();
/// Moves a scheduled send to another time.
pub const UPDATE: Operation = Operation::write("rescheduleSend", "Moves a scheduled send to another time.")
    .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);
/// Cancels a scheduled send.
pub const CANCEL: Operation =
    Operation::write("cancelScheduledSend", "Cancels a scheduled send, which becomes a draft again.")
        .errors(&[ErrorKind::NotFound, ErrorKind::DraftLocked]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &GET, &UPDATE, &CANCEL];

/// How far ahead a mail can be scheduled.
const FARTHEST_SECONDS: i64 = 366 * 86_400;
/// How long whoever sends one is believed to be alive.
const LEASE_SECONDS: i64 = 15;
/// Scheduled sends that are taken on together.
const MAX_CONCURRENT: usize = 16;

/// Schedules a mail.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: NewScheduledSend) -> Result<ScheduledSend> {
    create_passing_on(app, call, mailbox, input, None).await
}

/// Schedules a mail that passes an email on, in the thread of that email.
#[crate::boxed]
pub async fn create_passing_on(
    app: &App,
    call: &Call,
    mailbox: &str,
    input: NewScheduledSend,
    passes_on: Option<EmailId>,
) -> Result<ScheduledSend> {
    let untimely = time_fault(input.scheduled_send_at, call.now);
    let origin = Origin::of_call(app, call, mailbox).await?;
    let replaced = drafts::hold(app, &origin, input.draft_id.as_ref(), call.now).await?;
    let at = input.scheduled_send_at;
    let written = Written { passes_on, ..written(input, replaced)? };
    let source = &written.source;
    let letter = OutgoingMessage {
        to: source.to.clone(),
        cc: source.cc.clone(),
        bcc: source.bcc.clone(),
        text: Some(source.body.clone()).filter(|body| !body.is_empty()),
        ..OutgoingMessage::default()
    };
    let lacks = [("to", letter.to.is_empty()), ("body", letter.text.is_none())].into_iter();
    let lacks = lacks.filter(|(_, lacks)| *lacks).map(|(field, _)| Detail::new(field, "is required"));
    Error::refuse(untimely.into_iter().chain(lacks).collect())?;
    check_request(app, origin.plan, letter.recipient_count())?;
    check_ways(app, &origin, &letter).await?;
    let ready = Ready::prepare(app, origin, written, call.now).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        let mail = ready.store(tx, &app_).await?;
        Ok(shown(mail.id, DraftState::Scheduled, mail.subject, mail.to_line, at, None))
    })
    .await
}

/// What is wrong with the time of a schedule.
fn time_fault(at: Timestamp, now: Timestamp) -> Option<Detail> {
    let message = if at <= now {
        "must lie in the future"
    } else if at > now.plus_seconds(FARTHEST_SECONDS) {
        "must lie at most a year ahead"
    } else {
        return None;
    };
    Some(Detail::new("scheduled_send_at", message))
}

/// What is to be sent: what the request says, and where it says nothing, what the draft says.
fn written(input: NewScheduledSend, replaced: Option<LoadedDraft>) -> Result<Written> {
    let draft = replaced.as_ref().map(|held| held.source.clone());
    let mut source = draft.unwrap_or_else(|| Source {
        to: Vec::new(),
        cc: Vec::new(),
        bcc: Vec::new(),
        subject: String::new(),
        body: String::new(),
        format: BodyFormat::Text,
        in_reply_to: None,
        references: Vec::new(),
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
    Ok(Written {
        source,
        thread: input.thread_id,
        passes_on: None,
        attachments: input.attachments,
        replaced,
        state: DraftState::Scheduled,
        scheduled_at: Some(input.scheduled_send_at),
    })
}

fn shown(
    id: EmailId,
    status: DraftState,
    subject: String,
    recipient: String,
    at: Timestamp,
    last_error: Option<String>,
) -> ScheduledSend {
    ScheduledSend { draft_id: id.clone(), id, status, subject, recipient, scheduled_send_at: at, last_error }
}

fn show(record: DraftRecord, mail: EmailRecord) -> Result<ScheduledSend> {
    let at = record.scheduled_at.ok_or_else(missing)?;
    Ok(shown(mail.id, record.state, mail.subject, mail.to_line, at, record.last_error))
}

fn missing() -> Error {
    Error::not_found("Scheduled send not found")
}

/// A scheduled send, also one that has left.
async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<DraftRecord> {
    let found = stored::find(tx, mailbox, id).await?;
    found.filter(|record| record.scheduled_at.is_some()).ok_or_else(missing)
}

/// Reads a scheduled send.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<ScheduledSend> {
    let named = mailboxes::name(mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
        let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        show(record, mail)
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
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listScheduledSends {mailbox}");
    let after = match &query.cursor {
        Some(text) => {
            let mark: SchedulePosition = cursor::open(&key, &about, text)?;
            Some((Timestamp::from_micros(mark.at), mark.id))
        }
        None => None,
    };
    let limit = query.limit;
    let (records, mails, total_count) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let records = stored::list_scheduled(tx, &mailbox, after, limit + 1).await?;
            let ids: Vec<EmailId> = records.iter().map(|record| record.email_id.clone()).collect();
            let mails = emails::select(tx, &mailbox, &ids).await?;
            let folder = store::folders::find(tx, &mailbox, &SystemFolder::Scheduled.into()).await?;
            Ok((records, mails, folder.map_or(0, |folder| folder.total_count)))
        })
        .await?;
    let wanted = usize::try_from(limit).unwrap_or_default();
    let has_more = records.len() > wanted;
    let (mut all, mut last) = (Vec::new(), None);
    for record in records.into_iter().take(wanted) {
        let Some(mail) = mails.iter().find(|mail| mail.id == record.email_id) else { continue };
        last = record
            .scheduled_at
            .map(|at| SchedulePosition { at: at.as_micros(), id: record.email_id.clone() });
        all.push(show(record, mail.clone())?);
    }
    let next_cursor = match last.filter(|_| has_more) {
        Some(mark) => Some(cursor::seal(&key, &about, &mark)?),
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
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let record = find(tx, &mailbox, &id).await?;
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
        stored::wake(tx).await?;
        let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        show(changed, mail)
    })
    .await
}

/// The refusal to change what is leaving, has left or cannot leave.
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
    let (named, now) = (mailboxes::name(mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        crate::inbox::emails::cancellation_result(stored::cancel_schedule(tx, &mailbox, &id, now).await?)?;
        let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
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

/// Sends what is due, and tells when to look again. Every node may call it at any time.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<Option<Timestamp>> {
    let mut turns = Turns::default();
    loop {
        let due;
        (turns, due) = claim(app, turns).await?;
        if due.is_empty() {
            break;
        }
        let mut running = JoinSet::new();
        for one in due {
            let app = app.clone();
            // Whatever is logged on the way stands under the draft's id.
            let span = tracing::error_span!("schedule", email = %one.email, workspace = %one.workspace);
            let work = async move {
                let abandoned = (app.clone(), one.clone());
                let claim = ClaimGuard::new(move || async move { release(&abandoned.0, abandoned.1).await });
                let outcome = isolate("schedules", fire(&app, one)).await;
                claim.done();
                if let Err(error) = outcome {
                    tracing::warn!(%error, "a scheduled mail will be tried again");
                }
            };
            running.spawn(work.instrument(span));
        }
        while let Some(done) = running.join_next().await {
            if let Err(error) = done {
                tracing::error!(%error, "sending a scheduled mail broke off; it will be tried again");
            }
        }
    }
    Ok(app.db().system_read(async |tx| stored::next_due(tx).await).await?)
}

/// Takes on sends of the workspaces whose turn it is.
async fn claim(app: &App, mut turns: Turns) -> Result<(Turns, Vec<Due>)> {
    let now = app.now();
    let until = now.plus_seconds(LEASE_SECONDS);
    let claimed = app.db().system_write(async move |tx| {
        let waiting = stored::due_workspaces(tx, now, turns.after(), MAX_CONCURRENT).await?;
        let mut due = Vec::new();
        for (workspace, share) in turns.share(waiting, MAX_CONCURRENT, MAX_CONCURRENT) {
            due.extend(stored::claim_due(tx, &workspace, (now, until), share).await?);
        }
        Ok::<_, store::Error>((turns, due))
    });
    Ok(claimed.await?)
}

/// Lets go of what a process of the past was sending. Only for a store that this process has alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| stored::release_all(tx).await).await?)
}

/// Lets go of one whose worker was lost, so that the next one sends it at once.
async fn release(app: &App, due: Due) {
    let (workspace, now) = (due.workspace.clone(), app.now());
    let released: Result<(), store::Error> =
        app.db().write(&workspace, async move |tx| stored::release(tx, &due, now).await).await;
    if let Err(error) = released {
        tracing::warn!(%error, "claim on a scheduled send not released; it expires by itself");
    }
}

/// Sends one that this node has taken on.
async fn fire(app: &App, due: Due) -> Result<()> {
    let outcome = send_one(app, &due).await;
    match outcome {
        Err(error) if is_final(error.kind()) => fail(app, due, &error).await,
        // Somebody else has it, or had it.
        Err(error) if error.kind() == ErrorKind::DraftLocked => Ok(()),
        other => other,
    }
}

/// Whether trying again cannot help.
fn is_final(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::Internal
            | ErrorKind::StorageUnavailable
            | ErrorKind::Overloaded
            | ErrorKind::DraftLocked
            | ErrorKind::AlreadyAnswered
    )
}

async fn send_one(app: &App, due: &Due) -> Result<()> {
    let (origin, held) = load(app, due).await?;
    let mut letter = held.letter(app, &origin, true).await?;
    require_complete(&letter)?;
    letter.sign(&origin.mailbox.settings);
    let now = app.now();
    let submission = Submission::prepare(app, origin, letter, Some(held), true, now).await?;
    let key = app.data_key(&due.workspace).await?;
    let (app_, due, departure) = (app.clone(), due.clone(), submission.departure.clone());
    app.db()
        .system_write(async move |tx| {
            let SubmitOutcome::NotBefore(earliest) = submission.commit(tx, &app_).await? else {
                return Ok(());
            };
            let tx = tx.enter(&due.workspace);
            let Some(mail) = defer(tx, &due, earliest).await? else { return Ok(()) };
            let data = serde_json::json!({
                "email_id": mail.id,
                "thread_id": mail.thread_id,
                "subject": mail.subject,
                "recipient": mail.to_line,
                "scheduled_send_at": earliest,
                "reason": ErrorKind::EmailSendRateLimitExceeded.code(),
            });
            let event =
                NewEvent { kind: EventType::MessageDeferred, mailbox: Some(due.mailbox.clone()), data };
            event.append(tx, &app_, &key, now).await
        })
        .await?;
    departure.tell();
    Ok(())
}

async fn load(app: &App, due: &Due) -> Result<(Origin, LoadedDraft)> {
    let key = app.data_key(&due.workspace).await?;
    let wanted = due.clone();
    let (workspace, mailbox, record, mail) = app
        .db()
        .read(&due.workspace, async move |tx| {
            let workspace = workspaces::find(tx).await?.ok_or_else(missing)?;
            let named = MailboxName::Id(wanted.mailbox.clone());
            let mailbox = stored_mailboxes::find(tx, &named).await?;
            let mailbox = mailbox.ok_or_else(|| Error::not_found("Mailbox not found"))?;
            let record = stored::find(tx, &wanted.mailbox, &wanted.email).await?;
            let is_ours = |record: &DraftRecord| {
                record.version == wanted.version && record.state == DraftState::Sending
            };
            let record = record.filter(is_ours);
            let record = record.ok_or_else(|| Error::new(ErrorKind::DraftLocked))?;
            let mail = emails::find(tx, &wanted.mailbox, &wanted.email).await?.ok_or_else(missing)?;
            Ok::<_, Error>((workspace, mailbox, record, mail))
        })
        .await?;
    let source = Source::open(&key, &record.source)?;
    let held = LoadedDraft { record, source, thread: mail.thread_id, starred: mail.starred };
    Ok((Origin { workspace: due.workspace.clone(), plan: workspace.plan, mailbox }, held))
}

/// Keeps one back until a limit of the plan allows it.
async fn defer(tx: &mut Tx, due: &Due, earliest: Timestamp) -> Result<Option<EmailRecord>> {
    stored_mailboxes::lock(tx, &due.mailbox).await?;
    let Some(record) = stored::find(tx, &due.mailbox, &due.email).await? else { return Ok(None) };
    let changed = DraftRecord {
        state: DraftState::Deferred,
        version: due.version,
        scheduled_at: Some(earliest),
        claimed_until: None,
        last_error: Some(KEPT_BACK.to_owned()),
        ..record
    };
    if !stored::change(tx, &due.mailbox, &changed).await? {
        return Ok(None);
    }
    Ok(emails::find(tx, &due.mailbox, &due.email).await?)
}

/// Gives one up that can never leave as it is.
async fn fail(app: &App, due: Due, error: &Error) -> Result<()> {
    let details: Vec<String> =
        error.details().iter().map(|detail| format!("{}: {}", detail.path, detail.message)).collect();
    let reason = if details.is_empty() {
        error.message().to_owned()
    } else {
        format!("{} ({})", error.message(), details.join("; "))
    };
    let workspace: WorkspaceId = due.workspace.clone();
    app.db()
        .write(&workspace, async move |tx| {
            let Some(record) = stored::find(tx, &due.mailbox, &due.email).await? else { return Ok(()) };
            let changed = DraftRecord {
                state: DraftState::Failed,
                version: due.version,
                claimed_until: None,
                last_error: Some(reason),
                ..record
            };
            stored::change(tx, &due.mailbox, &changed).await?;
            Ok::<_, Error>(())
        })
        .await
}
