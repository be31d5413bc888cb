//! A message that does not leave yet: it waits for a person's decision, or for the end of quiet hours. Until then it is kept
//! as a draft, so that it leaves as any other message.

use std::fmt::Write as _;

use model::{
    ReviewId, Timestamp,
    drafts::DraftState,
    events::EventType,
    folders::SystemFolder,
    reviews::{ReviewFinding, ReviewState, SendRequest},
    send_policies::PolicyFinding,
    sending::{SendStatus, SentMail},
};
use sha2::{Digest, Sha256};
use store::{
    Tx, contents,
    drafts::{self as stored_drafts, DraftRecord},
    emails::{self, EmailRecord},
    events, folders,
    reviews::{self, ReviewRecord},
};

use super::{
    copies::{SenderCopy, line, sender_copy},
    outgoing_message::OutgoingMessage,
};
use crate::{
    core::{app::App, error::Result, events::NewEvent},
    inbox::inbound::Delivery,
    outbox::{
        drafts::loaded::{LoadedDraft, Source},
        reviews::notices,
    },
};

/// What an agent is told whose message is in review.
const IN_REVIEW: &str = "A person decides about this message. Do not send it again.";
/// What it is told when the message leaves later.
const SCHEDULED: &str = "It leaves by itself when the quiet hours end. Do not send it again.";

/// What a message waits for.
pub(super) enum WaitingFor {
    /// A person's decision, for these reasons, with what was found in the contents, and at most for so many seconds.
    Review(Vec<PolicyFinding>, Vec<ReviewFinding>, i64),
    /// A time; with the review in which it was approved.
    Time(Timestamp, Option<ReviewId>),
}

/// Names a message as it is: what is sent and to whom.
pub(crate) fn digest(content_id: &str, outgoing: &OutgoingMessage) -> String {
    let mut hash = Sha256::new();
    for part in [content_id, &line(&outgoing.bcc)] {
        hash.update(part.as_bytes());
        // Neither part contains a NUL.
        hash.update([0]);
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Stores a message until what it waits for has come. Its mailbox is locked, and the draft that it was is deleted.
#[expect(clippy::too_many_lines, reason = "one after the other, and nearly all of it names fields")]
pub(super) async fn store(
    tx: &mut Tx,
    app: &App,
    copy: &SenderCopy<'_>,
    (draft, request): (Option<&LoadedDraft>, &SendRequest),
    waiting: WaitingFor,
) -> Result<SentMail> {
    let record = draft.map(|loaded| &loaded.record);
    let (state, folder, at, review) = match &waiting {
        WaitingFor::Review(..) => {
            folders::ensure_review(tx, &copy.origin.mailbox.id).await?;
            let at = record.and_then(|record| record.scheduled_at);
            (DraftState::InReview, SystemFolder::Review, at, Some(app.new_id()))
        }
        WaitingFor::Time(at, review) => {
            (DraftState::Scheduled, SystemFolder::Scheduled, Some(*at), review.clone())
        }
    };
    let email = insert_email(tx, app, copy, folder).await?;
    let source = Source::of_message(copy.outgoing, draft.map(|loaded| &loaded.source));
    let stored = DraftRecord {
        email_id: copy.id.clone(),
        state,
        version: record.map_or(1, |record| record.version + 1),
        source: source.seal(&copy.content.key)?,
        message_id: copy.outgoing.message_id.clone(),
        scheduled_at: at,
        claimed_until: None,
        last_error: None,
        created_at: record.map_or(copy.now, |record| record.created_at),
        updated_at: copy.now,
        review_id: review.clone(),
        request: Some(request.clone()),
    };
    stored_drafts::insert(tx, &copy.origin.mailbox.id, &stored).await?;
    let sent = SentMail {
        id: copy.id.clone(),
        status: SendStatus::Scheduled,
        thread_id: email.thread_id.clone(),
        message_id: stored.message_id.clone(),
        review_id: None,
        scheduled_send_at: at,
        suppressed: Vec::new(),
        fix: Some(SCHEDULED.to_owned()),
    };
    let (WaitingFor::Review(reasons, findings, hold_seconds), Some(id)) = (waiting, review) else {
        stored_drafts::wake(tx);
        return Ok(sent);
    };
    let review = ReviewRecord {
        id,
        mailbox_id: copy.origin.mailbox.id.clone(),
        email_id: copy.id.clone(),
        state: ReviewState::Pending,
        reasons,
        findings,
        requested_by: request.by.clone(),
        request: request.clone(),
        digest: digest(&copy.content.record.id, copy.outgoing),
        scheduled_at: at,
        expires_at: copy.now.plus_seconds(hold_seconds),
        decided_by: None,
        decided_at: None,
        reason: None,
        created_at: copy.now,
    };
    reviews::insert(tx, &review).await?;
    let event = NewEvent {
        kind: EventType::ReviewRequested,
        mailbox: Some(review.mailbox_id.clone()),
        data: notices::event_data(&review, &email),
    };
    event.append(tx, app, &copy.content.key, copy.now).await?;
    notices::mail_watchers(tx, app, &copy.content.key, &copy.origin.mailbox, (&review, &email)).await?;
    Ok(SentMail {
        status: SendStatus::InReview,
        review_id: Some(review.id),
        fix: Some(IN_REVIEW.to_owned()),
        ..sent
    })
}

async fn insert_email(
    tx: &mut Tx,
    app: &App,
    copy: &SenderCopy<'_>,
    folder: SystemFolder,
) -> Result<EmailRecord> {
    copy.content.require_new(app)?;
    contents::insert(tx, &copy.content.record, copy.now).await?;
    let own = Delivery::own(app, copy.prepared, copy.now);
    let arrival = events::last_sequence(tx).await?;
    let mut email = sender_copy(&own, copy.origin, copy.outgoing, copy.id, copy.content, arrival);
    email.record.folder_id = folder.into();
    emails::insert(tx, &copy.origin.mailbox.id, &mut email).await?;
    Ok(email.record)
}
