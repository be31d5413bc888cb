//! Send policies: who may be written to, how much, when, and what a person decides first.
//!
//! There is one for the server (its floor), one for each workspace and one for each mailbox. A message must satisfy all of
//! them, so that a narrower one can only tighten. [`gate`] compares a message with them.

pub mod gate;
mod merge;
mod patterns;
mod quiet_hours;

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    merge::PolicyFault,
    patterns::AddressPattern,
    quiet_hours::{ClockTime, QuietAction, QuietHours},
};
use crate::{Timestamp, emails::named, findings::FindingKind, nulls::given, object::optional_object};

/// The patterns that one list of a policy can have.
pub const MAX_PATTERNS: usize = 500;
/// The hours that a message can be held for review at most.
const MAX_HOLD_HOURS: i64 = 720;
/// The largest cap: more recipients than a mailbox can have in a day.
const MAX_CAP: i64 = 1_000_000;

named! {
    /// Who may be written to, beside the addresses in `allow`. From wide to narrow.
    RecipientMode {
        /// Everyone.
        Open "open",
        /// Addresses that this workspace has sent to, and those that received messages were from.
        Correspondents "correspondents",
        /// Addresses that this workspace has sent to.
        Known "known",
        /// Nobody else.
        List "list",
    }
}

named! {
    /// What happens to a message that a rule matches.
    RuleAction {
        /// It is sent.
        Allow "allow",
        /// A person decides about it.
        Review "review",
        /// It is refused.
        Block "block",
    }
}

named! {
    /// Which messages a person decides about.
    ReviewMode {
        /// Those that a rule says `review` for.
        None "none",
        /// The same.
        Matched "matched",
        /// All messages.
        All "all",
    }
}

named! {
    /// What happens to a message with certain contents. From wide to narrow.
    ScanAction {
        /// Nothing is looked for.
        Off "off",
        /// A person decides about it.
        Review "review",
        /// It is refused.
        Block "block",
    }
}

named! {
    /// Whether contents are compared with what other people wrote. Only `off` is available yet.
    CorrespondentScan {
        /// They are not.
        Off "off",
    }
}

named! {
    /// What happens to a message that nobody has decided about in time.
    HoldOutcome {
        /// It is rejected.
        Reject "reject",
    }
}

/// A send policy with all its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SendPolicy {
    /// Who may be written to.
    pub recipients: RecipientRules,
    /// What happens to a message to an address that this workspace has never sent to, and that is not in `recipients.allow`.
    pub new_recipient: RuleAction,
    /// How many recipients messages may have in a rolling hour or day.
    pub caps: SendCaps,
    /// When messages do not leave by themselves; null for never.
    pub quiet_hours: Option<QuietHours>,
    /// What happens to messages with certain contents.
    pub scan: ScanRules,
    /// Which messages a person decides about.
    pub review: ReviewMode,
    /// How long a message waits for the decision.
    pub hold: HoldRules,
}

/// Who may be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecipientRules {
    /// Who may be written to, beside the addresses in `allow`.
    pub mode: RecipientMode,
    /// Addresses, `@domain`, `@*.domain` or `*`. They are never new, and allowed in every mode.
    pub allow: Vec<AddressPattern>,
    /// Addresses, `@domain`, `@*.domain` or `*` that are never written to, whatever else says.
    pub block: Vec<AddressPattern>,
}

/// How many recipients messages may have, in rolling windows. Null for no cap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SendCaps {
    /// Recipients in an hour.
    pub per_hour: Option<i64>,
    /// Recipients in a day.
    pub per_day: Option<i64>,
    /// Recipients in a day that this workspace has never sent to before.
    pub new_recipients_per_day: Option<i64>,
    /// Messages to one recipient in a day.
    pub per_recipient_per_day: Option<i64>,
}

/// What happens to messages with certain contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScanRules {
    /// Passwords, keys and tokens.
    pub secrets: ScanAction,
    /// Personal data.
    pub personal: ScanAction,
    /// What came from people who are not among the recipients.
    pub other_correspondents: CorrespondentScan,
    /// Files.
    pub attachments: ScanAction,
}

/// How long a message waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HoldRules {
    /// Hours.
    pub hours: i64,
    /// What happens then.
    pub then: HoldOutcome,
}

#[expect(clippy::derivable_impls, reason = "`named` marks no default")]
impl Default for RecipientMode {
    fn default() -> Self {
        Self::Open
    }
}

#[expect(clippy::derivable_impls, reason = "`named` marks no default")]
impl Default for RuleAction {
    fn default() -> Self {
        Self::Allow
    }
}

#[expect(clippy::derivable_impls, reason = "`named` marks no default")]
impl Default for ReviewMode {
    fn default() -> Self {
        Self::None
    }
}

#[expect(clippy::derivable_impls, reason = "`named` marks no default")]
impl Default for ScanAction {
    fn default() -> Self {
        Self::Off
    }
}

#[expect(clippy::derivable_impls, reason = "`named` marks no default")]
impl Default for CorrespondentScan {
    fn default() -> Self {
        Self::Off
    }
}

impl ScanRules {
    /// What happens to a message in which something of a kind was found.
    pub const fn action(&self, kind: FindingKind) -> ScanAction {
        match kind {
            FindingKind::Secret => self.secrets,
            FindingKind::Personal => self.personal,
            FindingKind::OtherCorrespondents => ScanAction::Off,
            FindingKind::Attachment => self.attachments,
        }
    }

    /// Whether anything is looked for.
    pub fn is_on(&self) -> bool {
        FindingKind::ALL.iter().any(|kind| self.action(*kind) != ScanAction::Off)
    }
}

impl Default for HoldRules {
    fn default() -> Self {
        Self { hours: 72, then: HoldOutcome::Reject }
    }
}

impl SendCaps {
    /// Whether anything has to be counted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A send policy to set. It replaces the one before. A field that is left out has the value of the policy above it: for a
/// mailbox that of its workspace, for a workspace that of the server, which is the widest unless its operator set another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewSendPolicy {
    /// Who may be written to.
    #[garde(dive)]
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub recipients: Option<NewRecipientRules>,
    /// What happens to a message to an address that this workspace has never sent to, and that is not in `recipients.allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_recipient: Option<RuleAction>,
    /// How many recipients messages may have in a rolling hour or day.
    #[garde(dive)]
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub caps: Option<NewSendCaps>,
    /// When messages do not leave by themselves; null for never.
    #[garde(dive)]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<QuietHours>")]
    pub quiet_hours: Option<Option<QuietHours>>,
    /// What happens to messages with certain contents.
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub scan: Option<NewScanRules>,
    /// Which messages a person decides about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewMode>,
    /// How long a message waits for the decision.
    #[garde(dive)]
    #[serde(deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub hold: Option<NewHoldRules>,
}

/// Who may be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewRecipientRules {
    /// Who may be written to, beside the addresses in `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<RecipientMode>,
    /// Addresses, `@domain` (without its subdomains), `@*.domain` (only its subdomains) or `*`. They are never new, and
    /// allowed in every mode.
    #[garde(length(max = MAX_PATTERNS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<AddressPattern>>,
    /// Addresses, `@domain`, `@*.domain` or `*` that are never written to, whatever else says.
    #[garde(length(max = MAX_PATTERNS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Vec<AddressPattern>>,
}

/// How many recipients messages may have, in rolling windows. Null for no cap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewSendCaps {
    /// Recipients in an hour.
    #[garde(inner(inner(range(min = 0, max = MAX_CAP))))]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = MAX_CAP))]
    pub per_hour: Option<Option<i64>>,
    /// Recipients in a day.
    #[garde(inner(inner(range(min = 0, max = MAX_CAP))))]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = MAX_CAP))]
    pub per_day: Option<Option<i64>>,
    /// Recipients in a day that this workspace has never sent to before.
    #[garde(inner(inner(range(min = 0, max = MAX_CAP))))]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = MAX_CAP))]
    pub new_recipients_per_day: Option<Option<i64>>,
    /// Messages to one recipient in a day.
    #[garde(inner(inner(range(min = 0, max = MAX_CAP))))]
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = MAX_CAP))]
    pub per_recipient_per_day: Option<Option<i64>>,
}

/// What happens to messages with certain contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewScanRules {
    /// Passwords, keys and tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<ScanAction>,
    /// Personal data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personal: Option<ScanAction>,
    /// What came from people who are not among the recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_correspondents: Option<CorrespondentScan>,
    /// Files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<ScanAction>,
}

/// How long a message waits for a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewHoldRules {
    /// Hours.
    #[garde(inner(range(min = 1, max = MAX_HOLD_HOURS)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<i64>,
    /// What happens then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<HoldOutcome>,
}

named! {
    /// What happens to a message under the policies that it must satisfy.
    PolicyVerdict {
        /// It is sent.
        Send "send",
        /// It is sent when the quiet hours end.
        Schedule "schedule",
        /// A person decides about it.
        Review "review",
        /// It is refused.
        Block "block",
    }
}

named! {
    /// Why a policy does not simply let a message leave.
    PolicyReason {
        /// A recipient is on a block list, or not among those who may be written to.
        RecipientBlocked "recipient_blocked",
        /// This workspace has never sent to a recipient.
        NewRecipient "new_recipient",
        /// The policy asks for a review of all messages.
        ReviewAll "review_all",
        /// Something was found in the contents.
        Content "content",
        /// The contents could not be searched in time.
        ScanFailed "scan_failed",
        /// These are quiet hours.
        QuietHours "quiet_hours",
        /// A cap has no room for the message yet.
        CapReached "send_cap_exceeded",
        /// A recipient is suppressed.
        RecipientSuppressed "recipient_suppressed",
        /// The sender cannot ask for a review, so that what would need one is refused.
        ReviewNeeded "review_needed",
    }
}

/// Why a policy does not simply let a message leave, and what of it is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyFinding {
    /// Why.
    pub code: PolicyReason,
    /// What is concerned, such as `to[0]`; absent if it is the message as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What would happen to a message that is sent now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PolicyCheck {
    /// What would happen.
    pub verdict: PolicyVerdict,
    /// Why, unless it would simply be sent.
    pub reasons: Vec<PolicyFinding>,
    /// When it would leave, if it would be scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_send_at: Option<Timestamp>,
    /// In how many seconds a cap has room for it, if one has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}
