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
    /// What a draft is at the moment.
    DraftState {
        /// Somebody is writing it.
        Draft "draft",
        /// It leaves at its time.
        Scheduled "scheduled",
        /// It is leaving right now.
        Sending "sending",
        /// It has left.
        Sent "sent",
        /// A limit keeps it back until the time that it shows.
        Deferred "deferred",
        /// It could not be sent; `last_error` says why.
        Failed "failed",
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
            (State::Draft, State::Draft | State::Scheduled | State::Sent)
                | (
                    State::Scheduled | State::Deferred,
                    State::Scheduled | State::Deferred | State::Sending | State::Draft
                )
                | (State::Sending, State::Sent | State::Deferred | State::Failed | State::Sending)
                | (State::Failed, State::Draft)
        )
    }
}

/// A draft to be saved.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewDraft {
    /// Who is to get it.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// Who is to get a copy.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// Who is to get a copy that the others do not know of.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The subject.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body.
    pub body: String,
    /// What the body is written in; plain text, if left out.
    #[serde(default)]
    pub body_format: Option<BodyFormat>,
    /// The Message-ID that it answers.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The thread of the mailbox that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// The draft that this one replaces.
    #[serde(default)]
    pub draft_id: Option<EmailId>,
    /// Files. In a replacement: left out they stay, an empty list clears them, any other list is the whole new set.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
}

/// A draft that was saved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SavedDraft {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same.
    pub draft_id: EmailId,
    /// What it is at the moment.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// Who is to get it.
    pub recipient: String,
    /// When it was saved.
    pub date: Timestamp,
}

/// A draft with everything in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Draft {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same.
    pub draft_id: EmailId,
    /// What it is at the moment.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// Who is to get it.
    pub recipient: String,
    /// Who is to get it, one by one.
    pub to: Vec<String>,
    /// Who is to get a copy.
    pub cc: Vec<String>,
    /// Who is to get a copy that the others do not know of.
    pub bcc: Vec<String>,
    /// Its body.
    pub body: String,
    /// What the body is written in.
    pub body_format: BodyFormat,
    /// The Message-ID that it answers.
    pub in_reply_to: Option<String>,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its files.
    pub attachments: Vec<Attachment>,
    /// When it was saved.
    pub date: Timestamp,
    /// When it is to leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_send_at: Option<Timestamp>,
    /// Why it could not be sent, or why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What a draft is rewritten from.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DraftPrompt {
    /// The draft.
    #[serde(rename = "draftId")]
    pub draft_id: EmailId,
    /// Instructions, such as "shorter, and thank them".
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

/// A draft that was rewritten, and not saved.
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
    /// How many there are in all.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page begins; null when there is none.
    pub next_cursor: Option<String>,
}

/// Which page of drafts or scheduled sends to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DraftListQuery {
    /// How many a page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// A mail to be sent later.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewScheduledSend {
    /// When it is to leave: in the future, at most a year ahead.
    pub scheduled_send_at: Timestamp,
    /// Who gets it. Required, unless the draft says.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// Who gets a copy.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// Who gets a copy that the others do not know of.
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
    /// What the body is written in.
    #[serde(default)]
    pub body_format: Option<BodyFormat>,
    /// The Message-ID that it answers.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The thread of the mailbox that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// A draft to schedule; what is given beside it replaces its own.
    #[serde(default)]
    pub draft_id: Option<EmailId>,
    /// Files. With a draft: left out they stay, an empty list clears them, any other list is the whole new set.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
}

/// Another time for a scheduled send.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ScheduleChange {
    /// When it is to leave: in the future, at most a year ahead.
    pub scheduled_send_at: Timestamp,
}

/// A mail that is to leave later.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduledSend {
    /// Its id, also as an email.
    pub id: EmailId,
    /// The same.
    pub draft_id: EmailId,
    /// What it is at the moment.
    pub status: DraftState,
    /// Its subject.
    pub subject: String,
    /// Who gets it.
    pub recipient: String,
    /// When it is to leave, or left.
    pub scheduled_send_at: Timestamp,
    /// Why it could not be sent, or why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A page of scheduled sends, soonest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduledSendPage {
    /// The scheduled sends.
    pub scheduled_sends: Vec<ScheduledSend>,
    /// How many there are in all.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page begins; null when there is none.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::DraftState::{self, Deferred, Draft, Failed, Scheduled, Sending, Sent};

    // rules: DRAFT-13
    #[test]
    fn nothing_follows_sent_and_only_a_cancel_follows_failed() {
        let all = [Draft, Scheduled, Sending, Sent, Deferred, Failed];
        let after =
            |state: DraftState| all.into_iter().filter(|next| state.may_become(*next)).collect::<Vec<_>>();
        assert_eq!(after(Sent), []);
        assert_eq!(after(Failed), [Draft]);
        assert_eq!(after(Draft), [Draft, Scheduled, Sent]);
        assert_eq!(after(Sending), [Sending, Sent, Deferred, Failed]);
        assert_eq!(after(Scheduled), after(Deferred));
        assert_eq!(after(Scheduled), [Draft, Scheduled, Sending, Deferred]);
    }
}
