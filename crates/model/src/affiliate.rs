//! Affiliates: who brought a workspace here, what they earn, what was paid out.

use std::str::FromStr;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AffiliateId, CommissionId, Day, PayoutId, Plan, Timestamp};

/// The workspace's affiliate account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Affiliate {
    /// Its id.
    pub id: AffiliateId,
    /// The code in its link.
    pub code: String,
    /// The link to share.
    pub link: String,
    /// The address that is notified of payouts.
    pub payout_email: Option<String>,
    /// The share of a referred workspace's monthly price, in percent.
    pub commission_percent: i64,
    /// When the account was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new affiliate account.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AffiliateSignUp {
    /// The code in the link: 3 to 40 characters of `a-z`, `0-9` and `-`. Generated if omitted.
    #[garde(length(min = 3, max = 40), inner(custom(valid_code)))]
    #[serde(default)]
    pub code: Option<String>,
    /// The address that is notified of payouts.
    #[garde(length(min = 3, max = 254))]
    #[serde(default)]
    pub payout_email: Option<String>,
}

/// Changes to an affiliate account. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AffiliateChange {
    /// The new code; the old link stops working.
    #[garde(length(min = 3, max = 40), inner(custom(valid_code)))]
    #[serde(default)]
    pub code: Option<String>,
    /// The address that is notified of payouts.
    #[garde(length(min = 3, max = 254))]
    #[serde(default)]
    pub payout_email: Option<String>,
}

fn valid_code(code: &str, _: &()) -> garde::Result {
    if code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        Ok(())
    } else {
        Err(garde::Error::new("expected only a-z, 0-9 and -"))
    }
}

/// The results of an affiliate link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AffiliateAnalytics {
    /// Clicks on the link.
    pub clicks: i64,
    /// Workspaces that signed up through it.
    pub sign_ups: i64,
    /// Of those, the ones on a paid plan.
    pub conversions: i64,
    /// Commissions earned.
    pub earned_cents: i64,
    /// Payouts made.
    pub paid_cents: i64,
    /// Earned but not yet paid.
    pub pending_cents: i64,
    /// The currency of the amounts.
    pub currency: String,
    /// Clicks and sign-ups per day, for days of the last 30 that had any, oldest first.
    pub days: Vec<AffiliateDay>,
}

/// One day of an affiliate link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AffiliateDay {
    /// The UTC day.
    pub date: Day,
    /// Clicks.
    pub clicks: i64,
    /// Sign-ups.
    pub sign_ups: i64,
}

/// The state of a commission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommissionStatus {
    /// Earned.
    Pending,
    /// Paid out.
    Paid,
}

impl CommissionStatus {
    /// The name as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
        }
    }
}

impl FromStr for CommissionStatus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pending" => Ok(Self::Pending),
            "paid" => Ok(Self::Paid),
            _ => Err(format!("unknown commission status {text:?}")),
        }
    }
}

/// A commission, earned when a referred workspace starts a month on a paid plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Commission {
    /// Its id.
    pub id: CommissionId,
    /// The plan that the referred workspace chose.
    pub plan: Plan,
    /// The amount.
    pub amount_cents: i64,
    /// Its currency.
    pub currency: String,
    /// Whether it was paid out.
    pub status: CommissionStatus,
    /// When it was earned.
    pub created_at: Timestamp,
}

/// The status of a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PayoutStatus {
    /// Pending.
    Pending,
    /// Paid.
    Paid,
    /// Failed.
    Failed,
}

impl PayoutStatus {
    /// The name as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for PayoutStatus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pending" => Ok(Self::Pending),
            "paid" => Ok(Self::Paid),
            "failed" => Ok(Self::Failed),
            _ => Err(format!("unknown payout status {text:?}: expected pending, paid or failed")),
        }
    }
}

/// A payout to an affiliate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Payout {
    /// Its id.
    pub id: PayoutId,
    /// The amount.
    pub amount_cents: i64,
    /// Its currency.
    pub currency: String,
    /// Its status.
    pub status: PayoutStatus,
    /// The start of the period that it pays for.
    pub period_start: Timestamp,
    /// The end of the period that it pays for (exclusive).
    pub period_end: Timestamp,
    /// The operator's reference, such as a transfer number.
    pub reference: Option<String>,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
    /// When it was recorded.
    pub created_at: Timestamp,
}
