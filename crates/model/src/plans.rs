//! Plans and what they allow, roles, and what a call costs.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A plan of a workspace, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// The plan of new workspaces.
    Free,
    /// Custom domains and larger pools.
    Developer,
    /// As Developer, with soft-unlimited credits.
    Enterprise,
}

impl Plan {
    /// All plans.
    pub const ALL: [Self; 3] = [Self::Free, Self::Developer, Self::Enterprise];

    /// The name in lower case, as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Developer => "developer",
            Self::Enterprise => "enterprise",
        }
    }
    /// The name as people write it.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Developer => "Developer",
            Self::Enterprise => "Enterprise",
        }
    }
}

impl FromStr for Plan {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|plan| plan.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("unknown plan {text:?}: expected free, developer or enterprise"))
    }
}

/// What a member or a key can do in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Can use mailboxes.
    Member,
    /// Can also manage the workspace.
    Admin,
}

impl Role {
    /// All roles, from the one that may least.
    pub const ALL: [Self; 2] = [Self::Member, Self::Admin];

    /// The name as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "member" => Ok(Self::Member),
            "admin" => Ok(Self::Admin),
            _ => Err(format!("unknown role {text:?}: expected admin or member")),
        }
    }
}

/// What a call costs, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CreditClass {
    /// Looking something up.
    Read,
    /// Changing something.
    Write,
    /// Sending an email now or later.
    EmailSend,
    /// Making something that lasts, such as a mailbox.
    Provision,
    /// A small piece of work for a model.
    AiLight,
    /// A large piece of work for a model.
    AiHeavy,
}

impl CreditClass {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::EmailSend, Self::Provision, Self::AiLight, Self::AiHeavy];

    /// The price in credits. The only place where a price stands.
    pub const fn credits(self) -> u64 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::EmailSend => 5,
            Self::Provision => 10,
            Self::AiLight => 15,
            Self::AiHeavy => 25,
        }
    }
    /// The name as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::EmailSend => "email_send",
            Self::Provision => "provision",
            Self::AiLight => "ai_light",
            Self::AiHeavy => "ai_heavy",
        }
    }
}

/// A number that a plan may leave open. In configuration files it is a number or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(Option<u64>);

impl Limit {
    /// No limit.
    pub const UNLIMITED: Self = Self(None);

    /// At most `number`.
    pub const fn of(number: u64) -> Self {
        Self(Some(number))
    }
    /// The number, if there is one.
    pub const fn get(self) -> Option<u64> {
        self.0
    }
    /// Whether one more fits on top of `present`.
    pub fn has_room(self, present: u64) -> bool {
        self.0.is_none_or(|limit| present < limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Limit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or \"unlimited\"")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Limit, E> {
                u64::try_from(number)
                    .map(Limit::of)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Limit, E> {
                Ok(Limit::of(number))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Limit, E> {
                if text == "unlimited" {
                    Ok(Limit::UNLIMITED)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What one plan allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanLimits {
    /// Credits for a UTC calendar month.
    pub credits_per_period: Limit,
    /// Requests in a fixed window of 60 seconds.
    pub rpm: Limit,
    /// API keys.
    pub api_keys: Limit,
    /// Mailboxes.
    pub mailboxes: Limit,
    /// Members, open invites included.
    pub members: Limit,
    /// Custom domains.
    pub domains: Limit,
    /// Stored bytes.
    pub storage_bytes: Limit,
    /// Recipients of one request.
    pub recipients_per_request: Limit,
    /// External recipients in any rolling minute.
    pub recipients_per_minute: Limit,
    /// External recipients in any rolling hour.
    pub recipients_per_hour: Limit,
    /// External recipients in any rolling day.
    pub recipients_per_day: Limit,
    /// Emails sent in a calendar month.
    pub mails_per_month: Limit,
    /// Emails sent by one mailbox in a day.
    pub mails_per_day_and_mailbox: Limit,
    /// The price of a month, the base of affiliate commissions.
    pub price_cents: u64,
}

/// The limits of all plans.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// Free.
    pub free: PlanLimits,
    /// Developer.
    pub developer: PlanLimits,
    /// Enterprise.
    pub enterprise: PlanLimits,
}

impl Plans {
    /// The limits of one plan.
    pub const fn of(&self, plan: Plan) -> &PlanLimits {
        match plan {
            Plan::Free => &self.free,
            Plan::Developer => &self.developer,
            Plan::Enterprise => &self.enterprise,
        }
    }
}
