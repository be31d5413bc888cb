//! What a workspace has used.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Day, MailboxId, Plan, Timestamp, WorkspaceId};

/// The credits of the present period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CreditUsage {
    /// The plan.
    pub plan: Plan,
    /// The plan as people write it.
    pub plan_name: String,
    /// When the period began.
    pub period_start: Timestamp,
    /// When the next one begins.
    pub period_end: Timestamp,
    /// The pool; null when it is soft-unlimited.
    pub limit: Option<i64>,
    /// Credits used, this call included.
    pub used: i64,
    /// Credits left; null when the pool is soft-unlimited.
    pub remaining: Option<i64>,
}

/// The mails of the present period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EmailUsage {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The plan.
    pub plan: Plan,
    /// The plan as people write it.
    pub plan_name: String,
    /// When the period began.
    pub period_start: Timestamp,
    /// When the next one begins.
    pub period_end: Timestamp,
    /// Mails that may be sent in the period; null when unlimited.
    pub quota: Option<i64>,
    /// Mails sent.
    pub used: i64,
    /// Mails that may still be sent; null when unlimited.
    pub remaining: Option<i64>,
    /// The figures of each mailbox.
    pub mailboxes: Vec<MailboxEmailUsage>,
}

/// The mails of one mailbox in the present period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MailboxEmailUsage {
    /// The mailbox.
    pub id: MailboxId,
    /// Its name.
    pub name: String,
    /// Its address.
    pub email: String,
    /// Mails it sent.
    pub sent: i64,
    /// Mails it received.
    pub received: i64,
}

/// Which days of the history to show.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// How many days, today included.
    #[garde(range(min = 1, max = 90))]
    #[serde(default = "thirty")]
    pub days: i64,
}

const fn thirty() -> i64 {
    30
}

/// The days of the history, oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UsageHistory {
    /// One entry a day, also for days without use.
    pub days: Vec<UsageDay>,
}

/// The use of one day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UsageDay {
    /// The UTC day.
    pub date: Day,
    /// Credits by class.
    pub credits: CreditsByClass,
    /// Metered calls.
    pub calls: i64,
    /// Metered calls that failed.
    pub errors: i64,
    /// Mails received.
    pub mails_in: i64,
    /// Mails sent.
    pub mails_out: i64,
}

impl UsageDay {
    /// A day without use.
    pub fn empty(date: Day) -> Self {
        Self { date, credits: CreditsByClass::default(), calls: 0, errors: 0, mails_in: 0, mails_out: 0 }
    }
}

/// Credits by class.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CreditsByClass {
    /// Reads.
    pub read: i64,
    /// Writes.
    pub write: i64,
    /// Sends.
    pub email_send: i64,
    /// Provisioning.
    pub provision: i64,
    /// Light AI work.
    pub ai_light: i64,
    /// Heavy AI work.
    pub ai_heavy: i64,
}

/// What a mailbox stores. This is use, not a quota.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MailboxStorage {
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// Its address.
    pub email: String,
    /// Gigabytes (10⁹ bytes) stored.
    pub storage_gb: f64,
    /// Stored objects.
    pub blob_count: i64,
}
