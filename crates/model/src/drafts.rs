//! Drafts and scheduled sends: what their writers say, the states they go through, how they are shown.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EmailId, ThreadId, Timestamp,
    emails::{Attachment, BodyFormat, named, twenty_five},
    sending::{FileInput, Recipients, valid_answered_id, valid_subject},
};

named! {
    /// The status of a draft.
    DraftState {
        /// It is being written.
        Draft "draft",
        /// It will be sent at the scheduled time.
        Scheduled "scheduled",
        /// It is being sent.
        Sending "sending",
        /// It was sent.
        Sent "sent",
        /// A limit delays it until the time shown.
        Deferred "deferred",
        /// It could not be sent; `last_error` says why.
        Failed "failed",
        /// A person decides whether it is sent.
        InReview "in_review",
    }
}

impl DraftState {
    /// Whether it waits for its time.
    pub const fn waits(self) -> bool {
        matches!(self, Self::Scheduled | Self::Deferred)
    }

    /// Whether one state may follow another.
    pub const fn may_become(self, next: Self) -> bool {
        use DraftState as State;
        matches!(
            (self, next),
            (State::Draft, State::Draft | State::Scheduled | State::Sent | State::InReview)
                | (
                    State::Scheduled | State::Deferred,
                    State::Scheduled | State::Deferred | State::Sending | State::Draft
                )
                | (
                    State::Sending,
                    State::Sent | State::Deferred | State::Failed | State::Sending | State::InReview
                )
                | (State::Failed, State::Draft)
                | (State::InReview, State::Draft | State::Scheduled | State::Sent)
        )
    }
}

/// A draft to save.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewDraft {
    /// The recipients, as one text.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// The Cc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// The Bcc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The subject.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body.
    pub body: String,
    /// The format of the body; plain text by default.
    #[serde(default)]
    pub body_format: Option<BodyFormat>,
    /// The Message-ID of the email that it replies to.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The thread that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// An existing draft to replace.
    #[serde(default)]
    pub draft_id: Option<EmailId>,
    /// Attachments. When replacing a draft: omitted, they stay; an empty list removes them; any other list replaces
    /// them.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
}

/// A draft that was saved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SavedDraft {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same id.
    pub draft_id: EmailId,
    /// Its status.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// The recipients, as one text.
    pub recipient: String,
    /// When it was saved.
    pub date: Timestamp,
}

/// A draft.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Draft {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same id.
    pub draft_id: EmailId,
    /// Its status.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// The recipients, as one text.
    pub recipient: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The Cc recipients.
    pub cc: Vec<String>,
    /// The Bcc recipients.
    pub bcc: Vec<String>,
    /// Its body.
    pub body: String,
    /// The format of the body.
    pub body_format: BodyFormat,
    /// The Message-ID of the email that it replies to.
    pub in_reply_to: Option<String>,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its attachments.
    pub attachments: Vec<Attachment>,
    /// When it was saved.
    pub date: Timestamp,
    /// When it will be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_send_at: Option<Timestamp>,
    /// Why it could not be sent, or why it is deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A request to rewrite a draft.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DraftPrompt {
    /// The draft.
    #[serde(rename = "draftId")]
    pub draft_id: EmailId,
    /// What to change, such as "make it shorter and thank them".
    #[garde(length(chars, min = 1, max = 4000))]
    pub prompt: String,
    /// The current text, in the format of the draft. A quoted message in it is kept as it is.
    #[garde(length(chars, max = 100_000))]
    pub body: String,
    /// The quoted message, if `body` is the author's text alone. The answer is then the author's new text alone.
    #[garde(inner(length(chars, max = 100_000)))]
    #[serde(default)]
    pub quoted: Option<String>,
}

/// A rewritten draft, which is not saved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RegeneratedDraft {
    /// The new text, in the format of the draft.
    pub body: String,
}

/// A page of drafts, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DraftPage {
    /// The drafts.
    pub drafts: Vec<Draft>,
    /// Total number.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which page of drafts or scheduled sends to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DraftListQuery {
    /// Items per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// An email to send later.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewScheduledSend {
    /// When to send it: in the future, at most a year ahead.
    pub scheduled_send_at: Timestamp,
    /// The recipients. Required, unless the draft has them.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// The Cc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// The Bcc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The subject.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body. Required, unless the draft has one.
    #[serde(default)]
    pub body: Option<String>,
    /// The format of the body.
    #[serde(default)]
    pub body_format: Option<BodyFormat>,
    /// The Message-ID of the email that it replies to.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The thread that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// A draft to schedule; the other fields replace those of the draft.
    #[serde(default)]
    pub draft_id: Option<EmailId>,
    /// Attachments. With a draft: omitted, the draft's stay; an empty list removes them; any other list replaces
    /// them.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
}

/// Another time for a scheduled send.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ScheduleChange {
    /// When to send it: in the future, at most a year ahead.
    pub scheduled_send_at: Timestamp,
}

/// A scheduled send.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduledSend {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same id.
    pub draft_id: EmailId,
    /// Its status.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// The recipients.
    pub recipient: String,
    /// When it will be or was sent.
    pub scheduled_send_at: Timestamp,
    /// Why it could not be sent, or why it is deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A page of scheduled sends, soonest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduledSendPage {
    /// The scheduled sends.
    pub scheduled_sends: Vec<ScheduledSend>,
    /// Total number.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::DraftState::{self, Deferred, Draft, Failed, InReview, Scheduled, Sending, Sent};

    // rules: DRAFT-13
    #[test]
    fn nothing_follows_sent_and_only_a_cancel_follows_failed() {
        let all = [Draft, Scheduled, Sending, Sent, Deferred, Failed, InReview];
        let after =
            |state: DraftState| all.into_iter().filter(|next| state.may_become(*next)).collect::<Vec<_>>();
        assert_eq!(after(Sent), []);
        assert_eq!(after(Failed), [Draft]);
        assert_eq!(after(Draft), [Draft, Scheduled, Sent, InReview]);
        assert_eq!(after(Sending), [Sending, Sent, Deferred, Failed, InReview]);
        assert_eq!(after(InReview), [Draft, Scheduled, Sent]);
        assert_eq!(after(Scheduled), after(Deferred));
        assert_eq!(after(Scheduled), [Draft, Scheduled, Sending, Deferred]);
    }
}
