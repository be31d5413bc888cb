//! Reviews: outgoing messages that a person decides about before they leave.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::findings::{FindingKind, ReviewFinding};
use crate::{
    EmailId, MailboxId, ReviewId, SessionId, Timestamp, WorkspaceId,
    emails::{named, twenty_five},
    object::optional_object,
    send_policies::PolicyReason,
    sending::valid_subject,
};

named! {
    /// The state of a review.
    ReviewState {
        /// Nobody has decided yet.
        Pending "pending",
        /// A person let the message leave.
        Approved "approved",
        /// A person refused it.
        Rejected "rejected",
        /// Nobody decided in time, so it was rejected.
        Expired "expired",
        /// It was withdrawn before anybody decided.
        Withdrawn "withdrawn",
    }
}

/// Who asked for a message to be sent, and what was charged for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    /// The id of the key, account, wallet or chat; empty if it was not recorded.
    pub by: String,
    /// Its name at that time.
    pub name: Option<String>,
    /// The console session, if it was one.
    pub session: Option<SessionId>,
    /// Credits; 0 if it was not metered.
    pub credits: i64,
    /// When they were charged.
    pub charged_at: Option<Timestamp>,
}

/// An outgoing message that a person decides about, or has decided about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Review {
    /// Its id.
    pub id: ReviewId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The mailbox that the message is sent from.
    pub mailbox_id: MailboxId,
    /// The message. While the review is pending it is in the folder `review`; once approved, in `sent`; otherwise in `draft`.
    pub email_id: EmailId,
    /// Its state.
    pub state: ReviewState,
    /// Why a person is asked.
    pub reasons: Vec<PolicyReason>,
    /// What was found in its contents.
    pub findings: Vec<ReviewFinding>,
    /// Whose message it is: the id of a key, an account, a wallet or a chat.
    pub requested_by: String,
    /// The name that it had then: of the key, or the address of the account.
    pub requested_by_name: Option<String>,
    /// Names the message as it is now. An approval must state it.
    pub digest: String,
    /// When the message was to be sent if it was scheduled, or when it will be after an approval.
    pub scheduled_send_at: Option<Timestamp>,
    /// When it is rejected if nobody decides.
    pub expires_at: Timestamp,
    /// Who decided: the id of a key or an account, or `telegram:` and the title of the chat.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: Option<Timestamp>,
    /// Why, in their words.
    pub reason: Option<String>,
    /// When the review was requested.
    pub created_at: Timestamp,
}

/// A page of reviews, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReviewPage {
    /// The reviews.
    pub reviews: Vec<Review>,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which reviews to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ReviewQuery {
    /// Only those in this state.
    #[serde(default)]
    pub state: Option<ReviewState>,
    /// Only those of this mailbox, by any of its names.
    #[garde(length(min = 1, max = 320))]
    #[serde(default)]
    pub mailbox_id: Option<String>,
    /// Reviews per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// An approval of a message as it is, or with edits.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Approval {
    /// The `digest` of the review that was looked at: the approval is refused if the message is another one by now.
    #[garde(length(min = 1, max = 100))]
    pub digest: String,
    /// What to change before it leaves.
    #[garde(dive)]
    #[serde(default, deserialize_with = "optional_object")]
    pub edits: Option<ReviewEdits>,
}

/// Changes to a message before it leaves. Omitted fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ReviewEdits {
    /// The new subject.
    #[garde(inner(custom(valid_subject)))]
    pub subject: Option<String>,
    /// The new text. Without `html` the message has no HTML any more.
    #[garde(inner(length(min = 1)))]
    pub text: Option<String>,
    /// The new HTML. Without `text` the text is made from it.
    #[garde(inner(length(min = 1)))]
    pub html: Option<String>,
}

/// A decision against a message.
#[derive(Clone, Debug, Default, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Refusal {
    /// Why, for the requester.
    #[garde(length(chars, min = 1, max = 500))]
    pub reason: Option<String>,
}
