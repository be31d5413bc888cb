//! The worker of scheduled sends.
//!
//! A node claims one first, for a short time and under an increasing version: a node that was believed dead and
//! comes back finds another version, and its transaction does nothing.

use model::{CreditClass, Timestamp, WorkspaceId, drafts::DraftState, events::EventType};
use store::{
    Tx,
    drafts::{self as stored, DraftRecord, DueSend},
    emails::{self, EmailRecord},
    mailboxes::{self as stored_mailboxes, MailboxName},
    metering, workspaces,
};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
        supervisor::{ClaimGuard, isolate},
        turns::Turns,
    },
    outbox::{
        drafts::{LoadedDraft, Source},
        sending::{
            Origin, require_complete,
            submit::{ApprovalState, Asked, Submission, SubmitOutcome},
        },
    },
};

/// The lease of a worker that sends one.
const LEASE_SECONDS: i64 = 15;
/// Scheduled sends that are claimed together.
const MAX_CONCURRENT: usize = 16;

/// Sends what is due, and returns when the next one is. Every node may call it at any time.
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
            // Everything logged here carries the draft's id.
            let span = tracing::error_span!("schedule", email = %one.email, workspace = %one.workspace);
            let work = async move {
                let abandoned = (app.clone(), one.clone());
                let claim = ClaimGuard::new(move || async move { release(&abandoned.0, abandoned.1).await });
                let outcome = isolate("schedules", send_claimed(&app, one)).await;
                claim.done();
                if let Err(error) = outcome {
                    tracing::warn!(%error, "scheduled send failed; retrying");
                }
            };
            running.spawn(work.instrument(span));
        }
        while let Some(done) = running.join_next().await {
            if let Err(error) = done {
                tracing::error!(%error, "scheduled send aborted; retrying");
            }
        }
    }
    Ok(app.db().system_read(async |tx| stored::next_due(tx).await).await?)
}

/// Claims sends of the workspaces whose turn it is.
async fn claim(app: &App, mut turns: Turns) -> Result<(Turns, Vec<DueSend>)> {
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

/// Releases what a former process was sending. Only for a store that this process has alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| stored::release_all(tx).await).await?)
}

/// Releases a send whose worker was lost, so that the next worker sends it at once.
async fn release(app: &App, due: DueSend) {
    let (workspace, now) = (due.workspace.clone(), app.now());
    let released: Result<(), store::Error> =
        app.db().write(&workspace, async move |tx| stored::release(tx, &due, now).await).await;
    if let Err(error) = released {
        tracing::warn!(%error, "scheduled send claim not released; it will expire");
    }
}

/// Sends one that this node has claimed.
async fn send_claimed(app: &App, due: DueSend) -> Result<()> {
    let outcome = send_one(app, &due).await;
    match outcome {
        Err(error) if is_final(error.kind()) => fail(app, due, &error).await,
        // Another worker has it, or had it.
        Err(error) if error.kind() == ErrorKind::DraftLocked => Ok(()),
        other => other,
    }
}

/// Whether a retry cannot help.
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

async fn send_one(app: &App, due: &DueSend) -> Result<()> {
    let (origin, loaded) = load(app, due).await?;
    let mut outgoing = loaded.outgoing_message(app, &origin, true).await?;
    require_complete(&outgoing)?;
    if !loaded.is_accepted() {
        outgoing.sign(&origin.mailbox.settings);
    }
    let now = app.now();
    let request = loaded.record.request.clone().unwrap_or_default();
    let asked = Asked { request, approval: ApprovalState::Possible };
    let submission = Submission::prepare(app, origin, outgoing, (Some(loaded), true), asked, now).await?;
    let key = app.data_key(&due.workspace).await?;
    let (app_, due, submission_log) = (app.clone(), due.clone(), submission.log.clone());
    app.db()
        .system_write(async move |tx| {
            let SubmitOutcome::NotBefore(earliest, why) = submission.commit(tx, &app_).await? else {
                return Ok(());
            };
            let tx = tx.enter(&due.workspace);
            let (text, code) = why.reason();
            let Some(email) = defer(tx, &due, earliest, text).await? else { return Ok(()) };
            let data = serde_json::json!({
                "email_id": email.id,
                "thread_id": email.thread_id,
                "subject": email.subject,
                "recipient": email.to_line,
                "scheduled_send_at": earliest,
                "reason": code,
            });
            let event =
                NewEvent { kind: EventType::MessageDeferred, mailbox: Some(due.mailbox.clone()), data };
            event.append(tx, &app_, &key, now).await
        })
        .await?;
    submission_log.write();
    Ok(())
}

async fn load(app: &App, due: &DueSend) -> Result<(Origin, LoadedDraft)> {
    let key = app.data_key(&due.workspace).await?;
    let wanted = due.clone();
    let (workspace, mailbox, record, email) = app
        .db()
        .read(&due.workspace, async move |tx| {
            let workspace = workspaces::find(tx).await?.ok_or_else(gone)?;
            let named = MailboxName::Id(wanted.mailbox.clone());
            let mailbox = stored_mailboxes::find(tx, &named).await?;
            let mailbox = mailbox.ok_or_else(|| Error::not_found("Mailbox not found"))?;
            let record = stored::find(tx, &wanted.mailbox, &wanted.email).await?;
            let is_ours = |record: &DraftRecord| {
                record.version == wanted.version && record.state == DraftState::Sending
            };
            let record = record.filter(is_ours);
            let record = record.ok_or_else(|| Error::new(ErrorKind::DraftLocked))?;
            let email = emails::find(tx, &wanted.mailbox, &wanted.email).await?.ok_or_else(gone)?;
            Ok::<_, Error>((workspace, mailbox, record, email))
        })
        .await?;
    let source = Source::open(&key, &record.source)?;
    let loaded = LoadedDraft { record, source, thread: email.thread_id, starred: email.starred };
    let (workspace, plan) = (due.workspace.clone(), workspace.plan);
    // A message that waited for its time is submitted alone, so that the gate looks for policies in any case.
    Ok((Origin { workspace, plan, mailbox, stored_bytes: None, has_policies: true }, loaded))
}

/// Defers one until a limit, a cap or the quiet hours allow it.
async fn defer(tx: &mut Tx, due: &DueSend, earliest: Timestamp, reason: &str) -> Result<Option<EmailRecord>> {
    stored_mailboxes::lock(tx, &due.mailbox).await?;
    let Some(record) = stored::find(tx, &due.mailbox, &due.email).await? else { return Ok(None) };
    let changed = DraftRecord {
        state: DraftState::Deferred,
        version: due.version,
        scheduled_at: Some(earliest),
        claimed_until: None,
        last_error: Some(reason.to_owned()),
        ..record
    };
    if !stored::change(tx, &due.mailbox, &changed).await? {
        return Ok(None);
    }
    Ok(emails::find(tx, &due.mailbox, &due.email).await?)
}

/// Gives up on one that can never be sent as it is.
async fn fail(app: &App, due: DueSend, error: &Error) -> Result<()> {
    let details: Vec<String> =
        error.details().iter().map(|detail| format!("{}: {}", detail.path, detail.message)).collect();
    let reason = if details.is_empty() {
        error.message().to_owned()
    } else {
        format!("{} ({})", error.message(), details.join("; "))
    };
    let code = error.kind().code();
    let (workspace, now): (WorkspaceId, Timestamp) = (due.workspace.clone(), app.now());
    let (key, app_) = (app.data_key(&workspace).await?, app.clone());
    app.db()
        .write(&workspace, async move |tx| {
            let Some(record) = stored::find(tx, &due.mailbox, &due.email).await? else { return Ok(()) };
            let request = record.request.clone();
            let changed = DraftRecord {
                state: DraftState::Failed,
                version: due.version,
                claimed_until: None,
                last_error: Some(reason.clone()),
                request: None,
                ..record
            };
            if !stored::change(tx, &due.mailbox, &changed).await? {
                return Ok(());
            }
            if let Some(request) = request {
                metering::refund(tx, CreditClass::EmailSend, request.credits, request.charged_at).await?;
            }
            let Some(email) = emails::find(tx, &due.mailbox, &due.email).await? else { return Ok(()) };
            let data = serde_json::json!({
                "email_id": email.id,
                "thread_id": email.thread_id,
                "subject": email.subject,
                "recipient": email.to_line,
                "code": code,
                "reason": reason,
            });
            let event = NewEvent { kind: EventType::ScheduleFailed, mailbox: Some(due.mailbox), data };
            event.append(tx, &app_, &key, now).await
        })
        .await
}

/// It was deleted after it was claimed.
fn gone() -> Error {
    Error::not_found("Scheduled send not found")
}
