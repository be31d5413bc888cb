//! Decisions about messages in review by the buttons of their notices.
//!
//! A button names the notice and the beginning of the digest of the message that the notice showed, so that nobody approves
//! what they have not seen.

use model::{
    AccountId, Role,
    reviews::{Approval, Refusal, Review, ReviewState},
};
use store::{
    Tx, members,
    reviews::{self as stored, ReviewRecord},
    telegram::{self, LinkRecord, NoticeRecord},
};

use super::{
    chat_call::{call, once},
    notice_text::minute,
};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
    },
    outbox::reviews,
};

/// What the buttons say first.
pub(super) const APPROVE: &str = "y";
pub(super) const REJECT: &str = "n";
/// Hexadecimal digits of the digest in a button, which has room for 64 bytes.
const DIGEST_CHARS: usize = 16;
/// Reviews of one message among which the one of a notice is looked for.
const MAX_REVIEWS: i64 = 20;
/// Characters of the answer to a button that the bot API shows.
const MAX_ANSWER_CHARS: usize = 190;

/// What a button of a notice says when it is pressed.
pub(super) fn button(what: &str, notice: &str, review: &ReviewRecord) -> String {
    let digest = review.digest.get(..DIGEST_CHARS).unwrap_or(&review.digest);
    format!("{what}:{notice}:{digest}")
}

/// Whether the chat of a link may decide about a message: for the person who linked it, as long as that is an admin. A chat
/// that was linked by a key, or before it was recorded who did, may not.
pub(super) async fn may_decide(
    tx: &mut Tx,
    app: &App,
    link: &LinkRecord,
    review: &ReviewRecord,
) -> Result<bool> {
    let Some(creator) = &link.created_by else { return Ok(false) };
    let is_own = app.settings().send_policy.second_person && *creator == review.requested_by;
    let member = members::find(tx, &AccountId::from(creator.as_str())).await?;
    Ok(!is_own && member.is_some_and(|member| member.role == Role::Admin))
}

/// Decides about the message of a notice, and says what came of it; `None` if the notice is about no such message.
pub(super) async fn press(
    app: &App,
    number: i64,
    (what, digest): (&str, &str),
    notice: &NoticeRecord,
) -> Result<Option<String>> {
    let Some((review, may_decide)) = find(app, notice, digest).await? else { return Ok(None) };
    if review.state != ReviewState::Pending {
        return Ok(Some(decided(review.state)));
    }
    if digest.len() != DIGEST_CHARS || !review.digest.starts_with(digest) {
        return Ok(Some(CHANGED.to_owned()));
    }
    if !may_decide {
        return Ok(Some("This chat cannot decide. Decide in the console.".to_owned()));
    }
    let operation = if what == APPROVE { &reviews::APPROVE } else { &reviews::REJECT };
    let call = call(app, operation, (number, Role::Admin), notice).await?;
    let id = review.id.clone();
    let outcome = if what == APPROVE {
        reviews::approve(app, &call, id, Approval { digest: review.digest, edits: None }).await
    } else {
        reviews::reject(app, &call, id, Refusal::default()).await
    };
    let said = match once(outcome) {
        Ok(Some(review)) => done(&review, call.now),
        // The update came twice, or another decision was faster.
        Ok(None) => after(app, notice, digest).await?,
        Err(error) if error.kind() == ErrorKind::ReviewDecided => after(app, notice, digest).await?,
        Err(error) => refused(error)?,
    };
    Ok(Some(said.chars().take(MAX_ANSWER_CHARS).collect()))
}

/// The review that a notice was about, as far as it can be told, and whether the chat may decide about it.
async fn find(app: &App, notice: &NoticeRecord, digest: &str) -> Result<Option<(ReviewRecord, bool)>> {
    let (app_, notice, digest) = (app.clone(), notice.clone(), digest.to_owned());
    let workspace = notice.workspace_id.clone();
    app.db()
        .read(&workspace, async move |tx| {
            let (mailbox, email) = (&notice.mailbox_id, &notice.email_id);
            let mut found = stored::list_of_email(tx, mailbox, email, MAX_REVIEWS).await?;
            // A message that was changed when it was approved has another digest: the latest review tells more then.
            let position = found.iter().position(|review| review.digest.starts_with(&digest)).unwrap_or(0);
            if found.is_empty() {
                return Ok(None);
            }
            let review = found.swap_remove(position);
            let link = telegram::find(tx, mailbox).await?.filter(|link| link.chat_id == notice.chat_id);
            let may_decide = match link {
                Some(link) => may_decide(tx, &app_, &link, &review).await?,
                None => false,
            };
            Ok(Some((review, may_decide)))
        })
        .await
}

/// What became of a review that was decided meanwhile.
async fn after(app: &App, notice: &NoticeRecord, digest: &str) -> Result<String> {
    let found = find(app, notice, digest).await?;
    Ok(found.map_or_else(|| CHANGED.to_owned(), |(review, _)| decided(review.state)))
}

const CHANGED: &str = "The message changed since this notice. Look at it in the console.";

fn decided(state: ReviewState) -> String {
    match state {
        ReviewState::Pending => "Nobody has decided yet.",
        ReviewState::Approved => "Decided already: it was approved.",
        ReviewState::Rejected => "Decided already: it was rejected.",
        ReviewState::Expired => "Too late: nobody decided in time, so it was rejected.",
        ReviewState::Withdrawn => "It was withdrawn. Nothing is sent.",
    }
    .to_owned()
}

fn done(review: &Review, now: model::Timestamp) -> String {
    match (review.state, review.scheduled_send_at) {
        (ReviewState::Approved, Some(at)) if at > now => format!("Approved. It leaves at {}.", minute(at)),
        (ReviewState::Approved, _) => "Approved. It is on its way.".to_owned(),
        _ => "Rejected. It is a draft again, and not sent.".to_owned(),
    }
}

/// Why a decision has no effect now; an error that says nothing about the message is passed on.
fn refused(error: Error) -> Result<String> {
    Ok(match error.kind() {
        ErrorKind::Internal | ErrorKind::StorageUnavailable | ErrorKind::Overloaded | ErrorKind::NotFound => {
            return Err(error);
        }
        ErrorKind::ReviewChanged => CHANGED.to_owned(),
        ErrorKind::ReviewBlocked => "The send policy forbids it by now. It is still in review.".to_owned(),
        ErrorKind::SendCapExceeded => {
            "A cap of the send policy has no room for it yet. It is still in review: try again later."
                .to_owned()
        }
        ErrorKind::EmailSendRateLimitExceeded | ErrorKind::QuotaExceeded => {
            "A limit of the plan is reached. It is still in review: try again later.".to_owned()
        }
        ErrorKind::DecisionForbidden => "This chat cannot decide about this message.".to_owned(),
        _ => format!("It is still in review, since it cannot be sent: {}", error.message()),
    })
}
