//! Decisions about messages in review. Each takes effect once: the first one wins, and it is one transaction with what
//! follows from it.

use mail::address::Mailbox;
use model::{
    CreditClass, EmailId, MailboxId, ReviewId,
    audit::{AuditChange, AuditDetails, changes},
    drafts::DraftState,
    events::EventType,
    folders::SystemFolder,
    reviews::{Approval, Refusal, Review, ReviewEdits, ReviewState},
    sending::SentMail,
};
use serde_json::json;
use store::{
    SystemTx, Tx,
    drafts::{self as stored_drafts, DraftRecord},
    emails,
    mailboxes::{self as stored_mailboxes, MailboxName},
    metering,
    reviews::{self, ReviewRecord},
    send_policies,
    vault::DataKey,
};

use super::{CallView, find, missing, notices, show};
use crate::{
    core::{
        app::App,
        call::Call,
        caller::Actor,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
    },
    outbox::{
        drafts::loaded::{LoadedDraft, Source},
        sending::{
            Origin, OutgoingMessage, body, require_complete, subject,
            submit::{ApprovalState, Asked, Submission, SubmitOutcome},
        },
    },
};

/// What the audit log calls a review.
const AUDIT_KIND: &str = "review";

/// A review with the message that it is about.
pub(crate) struct LoadedReview {
    pub(crate) record: ReviewRecord,
    pub(crate) origin: Origin,
    pub(crate) draft: LoadedDraft,
    pub(crate) outgoing: OutgoingMessage,
}

/// Reads a pending review with its message.
pub(crate) async fn load(app: &App, call: &Call, id: &ReviewId) -> Result<LoadedReview> {
    let (view, wanted) = (CallView::of(call), id.clone());
    let key = app.data_key(&call.workspace).await?;
    let (record, found, draft) = app
        .read(call, async move |tx| {
            let review = find(tx, &view, &wanted).await?;
            require_pending(&review)?;
            let named = MailboxName::Id(review.mailbox_id.clone());
            let found = stored_mailboxes::find_with_storage(tx, &named).await?.ok_or_else(missing)?;
            let draft = stored_drafts::find(tx, &review.mailbox_id, &review.email_id).await?;
            let email = emails::find(tx, &review.mailbox_id, &review.email_id).await?;
            let draft = draft.zip(email).ok_or_else(missing)?;
            Ok((review, found, draft))
        })
        .await?;
    let (draft, email) = draft;
    let source = Source::open(&key, &draft.source)?;
    let draft = LoadedDraft { record: draft, source, thread: email.thread_id, starred: email.starred };
    let origin = Origin {
        workspace: call.workspace.clone(),
        plan: call.plan,
        mailbox: found.mailbox,
        stored_bytes: Some(found.stored_bytes),
        has_policies: true,
    };
    let outgoing = draft.outgoing_message(app, &origin, true).await?;
    Ok(LoadedReview { record, origin, draft, outgoing })
}

fn require_pending(review: &ReviewRecord) -> Result<()> {
    if review.state == ReviewState::Pending { Ok(()) } else { Err(decided(review.state)) }
}

fn decided(state: ReviewState) -> Error {
    let fix = format!("The review is {state}. GET it to see who decided, and when.");
    Error::new(ErrorKind::ReviewDecided).with_fix(fix)
}

/// Refuses who asked for a message to be sent, and what they made or what made them.
async fn require_other_person(app: &App, call: &Call, review: &ReviewRecord) -> Result<()> {
    let requester = &review.requested_by;
    let refused = || Err(Error::new(ErrorKind::DecisionForbidden));
    match &call.caller.actor {
        Actor::Person { session, .. } => {
            let is_own = review.request.session.as_ref() == Some(session);
            if is_own && app.settings().send_policy.second_person {
                let fix =
                    "Messages from your own session need another person. Ask an admin of the workspace.";
                return Err(Error::new(ErrorKind::DecisionForbidden).with_fix(fix));
            }
            Ok(())
        }
        Actor::Key(id) if id.as_str() == requester => refused(),
        Actor::Key(id) => {
            let id = id.clone();
            let creator =
                app.read(call, async move |tx| Ok(store::api_keys::creator(tx, &id).await?)).await?;
            if creator.is_some_and(|account| account.as_str() == requester) { refused() } else { Ok(()) }
        }
        Actor::Chat(chat) if chat == requester => refused(),
        Actor::Chat(_) => Ok(()),
        Actor::Wallet(_) => refused(),
    }
}

/// How a decision names who made it.
fn decider(call: &Call) -> String {
    match &call.caller.actor {
        Actor::Chat(chat) => format!("telegram:{}", call.caller.name.as_deref().unwrap_or(chat)),
        actor => actor.id().to_owned(),
    }
}

/// Lets a message leave, as it is or with edits.
#[crate::boxed]
pub async fn approve(app: &App, call: &Call, id: ReviewId, approval: Approval) -> Result<Review> {
    let LoadedReview { record, origin, draft, mut outgoing } = load(app, call, &id).await?;
    require_other_person(app, call, &record).await?;
    if record.digest != approval.digest {
        return Err(changed(&record));
    }
    let mut edited = Vec::new();
    if let Some(edits) = approval.edits {
        edited = edit(&mut outgoing, edits)?;
    }
    require_complete(&outgoing)?;
    let undo = app.settings().send_policy.undo_seconds;
    let asked = Asked {
        request: record.request.clone(),
        approval: ApprovalState::Approved(id, (undo > 0).then(|| call.now.plus_seconds(undo))),
    };
    let submission = Submission::prepare(app, origin, outgoing, (Some(draft), true), asked, call.now).await?;
    let digest = if edited.is_empty() { record.digest.clone() } else { submission.digest().to_owned() };
    let approved = ReviewRecord {
        state: ReviewState::Approved,
        digest,
        decided_by: Some(decider(call)),
        decided_at: Some(call.now),
        ..record.clone()
    };
    let mut recorded = changes(&state(&record), &state(&approved), &["state", "digest"]);
    recorded.extend(edited.into_iter().map(AuditChange::hidden));
    let mut details = AuditDetails::default();
    details.about(AUDIT_KIND, &record.id).in_mailbox(&record.mailbox_id).changed(recorded);
    let (app_, log, key) = (app.clone(), submission.log.clone(), app.data_key(&call.workspace).await?);
    let workspace = call.workspace.clone();
    let review = app
        .write_across(call, details, async move |tx| {
            let sent = leave(tx, &app_, &submission).await;
            let tx = tx.enter(&workspace);
            let present = reviews::find_for_change(tx, &approved.id).await?.ok_or_else(missing)?;
            require_pending(&present)?;
            if present.digest != record.digest {
                return Err(changed(&present));
            }
            let approved = ReviewRecord { scheduled_at: sent?.scheduled_send_at, ..approved };
            store_decision(tx, &app_, &key, &approved, EventType::ReviewApproved).await?;
            Ok(show(&workspace, approved))
        })
        .await?;
    log.write();
    Ok(review)
}

/// Sends the message; something that defers it refuses the approval.
async fn leave(tx: &mut SystemTx, app: &App, submission: &Submission) -> Result<SentMail> {
    match submission.commit(tx, app).await? {
        SubmitOutcome::Submitted(sent) => Ok(sent),
        SubmitOutcome::NotBefore(earliest, why) => Err(why.error(app.now(), earliest)),
    }
}

fn changed(review: &ReviewRecord) -> Error {
    let fix = format!("Look at the message again: its digest is {} now.", review.digest);
    Error::new(ErrorKind::ReviewChanged).with_fix(fix)
}

/// What the audit log shows of a review.
fn state(review: &ReviewRecord) -> serde_json::Value {
    json!({ "state": review.state, "digest": review.digest, "reason": review.reason })
}

/// Applies edits, and returns the fields that they change.
fn edit(outgoing: &mut OutgoingMessage, edits: ReviewEdits) -> Result<Vec<&'static str>> {
    let mut edited = Vec::new();
    if let Some(text) = edits.subject.filter(|text| *text != outgoing.subject) {
        outgoing.subject = subject(&text)?;
        edited.push("subject");
    }
    let bodies = (body(edits.text), body(edits.html));
    if bodies != (None, None) && bodies != (outgoing.text.clone(), outgoing.html.clone()) {
        edited.extend(bodies.0.is_some().then_some("text"));
        edited.extend(bodies.1.is_some().then_some("html"));
        (outgoing.text, outgoing.html) = bodies;
        outgoing.unsigned = None;
    }
    Ok(edited)
}

/// Refuses a message. One that was approved and has not left yet can be refused too.
#[crate::boxed]
pub async fn reject(app: &App, call: &Call, id: ReviewId, refusal: Refusal) -> Result<Review> {
    let (view, wanted) = (CallView::of(call), id.clone());
    let review = app.read(call, async move |tx| find(tx, &view, &wanted).await).await?;
    require_other_person(app, call, &review).await?;
    end(app, call, review, ReviewState::Rejected, refusal.reason).await
}

/// Withdraws an own message.
#[crate::boxed]
pub async fn withdraw(app: &App, call: &Call, id: ReviewId, refusal: Refusal) -> Result<Review> {
    let (view, wanted) = (CallView::of(call), id.clone());
    let review = app.read(call, async move |tx| find(tx, &view, &wanted).await).await?;
    if review.requested_by != call.caller.actor.id() {
        let fix = "Only the requester withdraws a message. Reject it instead.";
        return Err(Error::new(ErrorKind::DecisionForbidden).with_fix(fix));
    }
    end(app, call, review, ReviewState::Withdrawn, refusal.reason).await
}

/// Ends a review without sending the message.
async fn end(
    app: &App,
    call: &Call,
    found: ReviewRecord,
    ended: ReviewState,
    reason: Option<String>,
) -> Result<Review> {
    let (app_, key) = (app.clone(), app.data_key(&call.workspace).await?);
    let (workspace, decider, now) = (call.workspace.clone(), decider(call), call.now);
    app.write(call, async move |tx| {
        let before = lock(tx, &found).await?;
        let review = ReviewRecord {
            state: ended,
            decided_by: Some(decider),
            decided_at: Some(now),
            reason,
            ..before.clone()
        };
        tx.audit().about(AUDIT_KIND, &review.id).in_mailbox(&review.mailbox_id).changed(changes(
            &state(&before),
            &state(&review),
            &["state", "reason"],
        ));
        end_unsent(tx, &app_, &key, &review).await?;
        Ok(show(&workspace, review))
    })
    .await
}

/// Locks a review whose message has not left, and its mailbox before it.
pub(super) async fn lock(tx: &mut Tx, found: &ReviewRecord) -> Result<ReviewRecord> {
    stored_mailboxes::lock_present(tx, &found.mailbox_id).await?;
    let review = reviews::find_for_change(tx, &found.id).await?.ok_or_else(missing)?;
    if review.state == ReviewState::Approved {
        let draft = stored_drafts::find_for_change(tx, &review.mailbox_id, &review.email_id).await?;
        let is_waiting =
            |draft: &DraftRecord| draft.state.waits() && draft.review_id.as_ref() == Some(&review.id);
        return if draft.as_ref().is_some_and(is_waiting) { Ok(review) } else { Err(decided(review.state)) };
    }
    require_pending(&review)?;
    Ok(review)
}

/// Ends a locked review without sending its message: it becomes a draft again, counts towards no cap, and is refunded.
pub(super) async fn end_unsent(tx: &mut Tx, app: &App, key: &DataKey, review: &ReviewRecord) -> Result<()> {
    return_to_drafts(tx, key, (&review.mailbox_id, &review.email_id)).await?;
    send_policies::discount(tx, review.email_id.as_str()).await?;
    let request = &review.request;
    metering::refund(tx, CreditClass::EmailSend, request.credits, request.charged_at).await?;
    let event = match review.state {
        ReviewState::Expired => EventType::ReviewExpired,
        ReviewState::Withdrawn => EventType::ReviewWithdrawn,
        _ => EventType::ReviewRejected,
    };
    store_decision(tx, app, key, review, event).await
}

/// Turns a message that does not leave back into a draft, as its author wrote it.
async fn return_to_drafts(
    tx: &mut Tx,
    key: &DataKey,
    (mailbox, email): (&MailboxId, &EmailId),
) -> Result<()> {
    let Some(record) = stored_drafts::find_for_change(tx, mailbox, email).await? else { return Ok(()) };
    let source = Source::open(key, &record.source)?.into_draft().seal(key)?;
    stored_drafts::set_source(tx, mailbox, email, &source).await?;
    let draft = DraftRecord {
        state: DraftState::Draft,
        scheduled_at: None,
        last_error: None,
        review_id: None,
        request: None,
        ..record
    };
    if !stored_drafts::change(tx, mailbox, &draft).await? {
        return Err(Error::new(ErrorKind::DraftLocked));
    }
    if let Some(brief) = emails::find_brief(tx, mailbox, email).await? {
        emails::move_to(tx, mailbox, &[brief], &SystemFolder::Drafts.into()).await?;
    }
    Ok(())
}

/// Stores a decision with its event. Links to it do nothing any more.
async fn store_decision(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    review: &ReviewRecord,
    kind: EventType,
) -> Result<()> {
    reviews::update(tx, review).await?;
    reviews::delete_links(tx, &review.id).await?;
    let Some(email) = emails::find(tx, &review.mailbox_id, &review.email_id).await? else { return Ok(()) };
    let data = notices::event_data(review, &email);
    let event = NewEvent { kind, mailbox: Some(review.mailbox_id.clone()), data };
    event.append(tx, app, key, review.decided_at.unwrap_or(review.created_at)).await
}

/// Takes back an approval of a message that has not left yet, which is in review again.
#[crate::boxed]
pub async fn take_back(app: &App, call: &Call, id: ReviewId) -> Result<Review> {
    let (view, workspace) = (CallView::of(call), call.workspace.clone());
    app.write(call, async move |tx| {
        let found = find(tx, &view, &id).await?;
        let before = lock(tx, &found).await?;
        if before.state != ReviewState::Approved {
            return Ok(show(&workspace, before));
        }
        let (mailbox, email) = (&before.mailbox_id, &before.email_id);
        let draft = stored_drafts::find_for_change(tx, mailbox, email).await?.ok_or_else(missing)?;
        let waiting = DraftRecord { state: DraftState::InReview, scheduled_at: None, ..draft };
        if !stored_drafts::change(tx, mailbox, &waiting).await? {
            return Err(Error::new(ErrorKind::DraftLocked));
        }
        if let Some(brief) = emails::find_brief(tx, mailbox, email).await? {
            store::folders::ensure_review(tx, mailbox).await?;
            emails::move_to(tx, mailbox, &[brief], &SystemFolder::Review.into()).await?;
        }
        let review = ReviewRecord {
            state: ReviewState::Pending,
            decided_by: None,
            decided_at: None,
            scheduled_at: None,
            ..before.clone()
        };
        reviews::update(tx, &review).await?;
        let recorded = changes(&state(&before), &state(&review), &["state"]);
        tx.audit().about(AUDIT_KIND, &review.id).in_mailbox(&review.mailbox_id).changed(recorded);
        Ok(show(&workspace, review))
    })
    .await
}

/// A message in review as people look at it before they decide.
pub struct ReviewMessage {
    /// The review.
    pub review: Review,
    /// What was written, before the signature of the mailbox.
    pub text: Option<String>,
    /// Its HTML, if it has any.
    pub html: Option<String>,
    /// Its subject.
    pub subject: String,
    /// The lines of its recipients: To, Cc, Bcc.
    pub recipients: Vec<(&'static str, String)>,
    /// The subject and text of the draft that it was, if they differ.
    pub drafted: Option<(String, String)>,
    /// Why each recipient or the whole is in review, as stored.
    pub findings: Vec<model::send_policies::PolicyFinding>,
}

/// Reads a pending message with its review.
#[crate::boxed]
pub async fn message(app: &App, call: &Call, id: ReviewId) -> Result<ReviewMessage> {
    let LoadedReview { record, draft, outgoing, .. } = load(app, call, &id).await?;
    let line = |people: &[Mailbox]| people.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let lines = [("To", line(&outgoing.to)), ("Cc", line(&outgoing.cc)), ("Bcc", line(&outgoing.bcc))];
    Ok(ReviewMessage {
        findings: record.reasons.clone(),
        review: show(&call.workspace, record),
        text: outgoing.text,
        html: outgoing.html,
        subject: outgoing.subject,
        recipients: lines.into_iter().filter(|(_, line)| !line.is_empty()).collect(),
        drafted: draft.source.drafted.map(|drafted| (drafted.subject, drafted.body)),
    })
}
