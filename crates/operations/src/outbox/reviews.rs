//! Reviews: what a send policy holds back until a person has decided. Reading is here, deciding in [`decide`].

pub mod decide;
pub mod expiry;
pub mod links;
pub(crate) mod notices;
pub(crate) mod summary;
pub mod watching;

use model::{
    MailboxId, ReviewId, Role, Scope, WorkspaceId,
    reviews::{Review, ReviewPage, ReviewQuery, ReviewState},
    send_policies::PolicyReason,
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    reviews::{self, ReviewFilter, ReviewRecord},
};

pub use self::decide::{approve, reject, withdraw};
use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists reviews.
pub const LIST: Operation = Operation::read(
    "listReviews",
    "Lists the reviews of outgoing emails, newest first. Admins see all, others those of their own emails.",
)
.visible()
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Reads a review.
pub const GET: Operation = Operation::read("getReview", "Returns a review of an outgoing email.")
    .visible()
    .errors(&[ErrorKind::NotFound])
    .tagged();
/// Lets a message leave.
pub const APPROVE: Operation = Operation::write(
    "approveReview",
    "Lets an email in review leave, as it is or with edits. The requester, and a key that it made, cannot do this.",
)
.visible()
.admin()
.errors(DECISION_ERRORS);
/// Refuses a message.
pub const REJECT: Operation = Operation::write(
    "rejectReview",
    "Refuses an email in review, which becomes a draft again. The requester, and a key that it made, cannot do this.",
)
.visible()
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::DecisionForbidden, ErrorKind::ReviewDecided]);
/// Withdraws a message.
pub const WITHDRAW: Operation =
    Operation::write("withdrawReview", "Withdraws an own email from review, which becomes a draft again.")
        .visible()
        .scope(Scope::Send)
        .errors(&[ErrorKind::NotFound, ErrorKind::DecisionForbidden, ErrorKind::ReviewDecided]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &GET, &APPROVE, &REJECT, &WITHDRAW];

const DECISION_ERRORS: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::DecisionForbidden,
    ErrorKind::ReviewDecided,
    ErrorKind::ReviewChanged,
    ErrorKind::ReviewBlocked,
    ErrorKind::RecipientSuppressed,
    ErrorKind::SenderNotAllowed,
    ErrorKind::ContentWithheld,
    ErrorKind::QuotaExceeded,
    ErrorKind::AttachmentTooLarge,
    ErrorKind::AttachmentsTooLarge,
    ErrorKind::TooManyAttachments,
    ErrorKind::MessageTooLarge,
    ErrorKind::OutboundNotConfigured,
    ErrorKind::EmailSendRecipientLimitExceeded,
    ErrorKind::EmailSendRateLimitExceeded,
    ErrorKind::SendCapExceeded,
];

/// The codes of the reasons of a review, each once.
pub(crate) fn reason_codes(review: &ReviewRecord) -> Vec<PolicyReason> {
    let mut codes: Vec<PolicyReason> = review.reasons.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

pub(crate) fn show(workspace: &WorkspaceId, review: ReviewRecord) -> Review {
    Review {
        reasons: reason_codes(&review),
        id: review.id,
        workspace_id: workspace.clone(),
        mailbox_id: review.mailbox_id,
        email_id: review.email_id,
        state: review.state,
        findings: review.findings,
        requested_by: review.requested_by,
        requested_by_name: review.request.name,
        digest: review.digest,
        scheduled_send_at: review.scheduled_at,
        expires_at: review.expires_at,
        decided_by: review.decided_by,
        decided_at: review.decided_at,
        reason: review.reason,
        created_at: review.created_at,
    }
}

pub(crate) fn missing() -> Error {
    Error::not_found("Review not found")
}

/// The reviews that a caller sees.
fn visible(call: &Call, state: Option<ReviewState>, mailbox: Option<MailboxId>) -> ReviewFilter {
    let own = call.mailbox_ids().map(|ids| ids.to_vec());
    let mailboxes = match (mailbox, own) {
        (Some(one), Some(own)) => Some(own.into_iter().filter(|id| *id == one).collect()),
        (Some(one), None) => Some(vec![one]),
        (None, own) => own,
    };
    let requested_by = (call.role < Role::Admin).then(|| call.caller.actor.id().to_owned());
    ReviewFilter { state, mailboxes, requested_by }
}

/// Finds a review that the caller sees.
pub(crate) async fn find(tx: &mut Tx, call: &CallView, id: &ReviewId) -> Result<ReviewRecord> {
    let found = reviews::find(tx, id).await?.filter(|review| call.sees(review));
    found.ok_or_else(missing)
}

/// Which reviews a caller sees, for a transaction.
pub(crate) struct CallView(ReviewFilter);

impl CallView {
    pub(crate) fn of(call: &Call) -> Self {
        Self(visible(call, None, None))
    }

    fn sees(&self, review: &ReviewRecord) -> bool {
        let in_mailboxes = self.0.mailboxes.as_ref().is_none_or(|ids| ids.contains(&review.mailbox_id));
        let is_own = self.0.requested_by.as_ref().is_none_or(|id| *id == review.requested_by);
        in_mailboxes && is_own
    }
}

/// Reads a review.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, id: ReviewId) -> Result<Review> {
    let view = CallView::of(call);
    let review = app.read(call, async move |tx| find(tx, &view, &id).await).await?;
    Ok(show(&call.workspace, review))
}

/// How many reviews nobody has decided about, among those that the caller sees.
#[crate::boxed]
pub async fn count_pending(app: &App, call: &Call) -> Result<i64> {
    let filter = visible(call, Some(ReviewState::Pending), None);
    app.read(call, async move |tx| Ok(reviews::count(tx, &filter).await?)).await
}

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct ReviewPosition(ReviewId);

/// Lists reviews.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: ReviewQuery) -> Result<ReviewPage> {
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listReviews {:?} {:?}", query.state, query.mailbox_id);
    let before = match &query.cursor {
        Some(text) => Some(cursor::open::<ReviewPosition>(&key, &about, text)?.0),
        None => None,
    };
    let named = query.mailbox_id.as_deref().map(|mailbox| mailboxes::name(call, mailbox));
    let (state, limit) = (query.state, query.limit);
    let view = visible(call, state, None);
    let mut found = app
        .read(call, async move |tx| {
            let mut filter = view;
            if let Some(named) = named {
                filter.mailboxes = Some(vec![mailboxes::find_id(tx, &named).await?]);
            }
            Ok(reviews::list(tx, &filter, before.as_ref(), limit + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut found, limit);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => Some(cursor::seal(&key, &about, &ReviewPosition(last.id.clone()))?),
        None => None,
    };
    Ok(ReviewPage {
        reviews: found.into_iter().map(|one| show(&call.workspace, one)).collect(),
        has_more,
        next_cursor,
    })
}
