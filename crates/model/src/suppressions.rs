//! Suppressions: addresses that a workspace or a mailbox does not write to any more.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EmailId, MailboxId, SuppressionId, Timestamp,
    emails::{named, twenty_five},
};

named! {
    /// Whose messages a suppression stops.
    SuppressionScope {
        /// Those of all mailboxes.
        Workspace "workspace",
        /// Those of one mailbox.
        Mailbox "mailbox",
    }
}

named! {
    /// Why an address is suppressed.
    SuppressionReason {
        /// Its server said that it does not exist.
        HardBounce "hard_bounce",
        /// Its owner complained about a message.
        Complaint "complaint",
        /// Its owner unsubscribed.
        Unsubscribe "unsubscribe",
        /// Somebody added it.
        Manual "manual",
    }
}

/// An address that is not written to any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suppression {
    /// Its id.
    pub id: SuppressionId,
    /// The address, in lower case.
    pub address: String,
    /// Whose messages it stops.
    pub scope: SuppressionScope,
    /// The mailbox, if the scope is `mailbox`.
    pub mailbox_id: Option<MailboxId>,
    /// Why.
    pub reason: SuppressionReason,
    /// The message that led to it, if one did.
    pub email_id: Option<EmailId>,
    /// A remark.
    pub note: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
}

/// An address to suppress. Its reason will be `manual`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewSuppression {
    /// The address.
    #[garde(length(min = 3, max = 320))]
    pub address: String,
    /// Whose messages stop. Without it those of all mailboxes, unless `mailbox_id` names one, which `mailbox` needs.
    #[serde(default)]
    pub scope: Option<SuppressionScope>,
    /// A mailbox, by any of its names.
    #[garde(length(min = 1, max = 320))]
    #[serde(default)]
    pub mailbox_id: Option<String>,
    /// A remark.
    #[garde(length(max = 500))]
    #[serde(default)]
    pub note: Option<String>,
}

/// Why a suppression is removed, for the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SuppressionRemoval {
    /// The reason, in your words.
    #[garde(length(max = 500))]
    #[serde(default)]
    pub reason: Option<String>,
}

/// Which suppressions to list.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SuppressionQuery {
    /// Part of the address.
    #[garde(length(min = 1, max = 320))]
    #[serde(default)]
    pub q: Option<String>,
    /// Why.
    #[serde(default)]
    pub reason: Option<SuppressionReason>,
    /// A mailbox. Those that stop its messages: its own, and those of the workspace.
    #[garde(length(min = 1, max = 320))]
    #[serde(default)]
    pub mailbox_id: Option<String>,
    /// Suppressions per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// A page of suppressions, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SuppressionPage {
    /// The suppressions.
    pub suppressions: Vec<Suppression>,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// How the recipient of a message can unsubscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsubscribe {
    /// `managed`. This service takes care of it.
    pub mode: UnsubscribeMode,
    /// Whose messages stop. Those of the mailbox unless it says otherwise.
    #[serde(default = "of_mailbox")]
    pub scope: SuppressionScope,
}

const fn of_mailbox() -> SuppressionScope {
    SuppressionScope::Mailbox
}

named! {
    /// Who takes care of unsubscribing.
    UnsubscribeMode {
        /// This service: it adds the headers, and suppresses the address of those who unsubscribe.
        Managed "managed",
    }
}
