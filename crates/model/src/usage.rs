//! What a workspace has used.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Day, MailboxId, Plan, Timestamp, WorkspaceId};

/// The credits of the current period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CreditUsage {
    /// The plan.
    pub plan: Plan,
    /// The display name of the plan.
    pub plan_name: String,
    /// When the period began.
    pub period_start: Timestamp,
    /// When the next period begins.
    pub period_end: Timestamp,
    /// The credits of the period; null if soft-unlimited.
    pub limit: Option<i64>,
    /// Credits used, this call included.
    pub used: i64,
    /// Credits left; null if soft-unlimited.
    pub remaining: Option<i64>,
}

/// Emails in the current period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EmailUsage {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The plan.
    pub plan: Plan,
    /// The display name of the plan.
    pub plan_name: String,
    /// When the period began.
    pub period_start: Timestamp,
    /// When the next period begins.
    pub period_end: Timestamp,
    /// Emails that can be sent in the period; null if unlimited.
    pub quota: Option<i64>,
    /// Emails sent.
    pub used: i64,
    /// Emails that can still be sent; null if unlimited.
    pub remaining: Option<i64>,
    /// Usage per mailbox.
    pub mailboxes: Vec<MailboxEmailUsage>,
}

/// Emails of one mailbox in the current period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MailboxEmailUsage {
    /// The mailbox.
    pub id: MailboxId,
    /// Its name.
    pub name: String,
    /// Its address.
    pub email: String,
    /// Emails sent.
    pub sent: i64,
    /// Emails received.
    pub received: i64,
}

/// Which days of the history to show.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// Number of days, including today.
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
    /// One entry per day, also for days without usage.
    pub days: Vec<UsageDay>,
}

/// The usage of one day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UsageDay {
    /// The UTC day.
    pub date: Day,
    /// Credits by class.
    pub credits: CreditsByClass,
    /// Metered calls.
    pub calls: i64,
    /// Metered calls that failed, which cost nothing.
    pub errors: i64,
    /// Emails received.
    pub mails_in: i64,
    /// Emails sent.
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

/// How much a mailbox stores. This is usage, not a quota.
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
