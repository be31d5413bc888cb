//! Waiting for an email, and the codes and links that sign-up emails carry.

use std::{borrow::Cow, fmt, str::FromStr};

use garde::Validate;
use mail::address::Address;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Email, OmissionReason, ScanStatus, SenderAuthentication, named};
use crate::{EmailId, Timestamp};

/// The email to wait for.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct WaitForEmail {
    /// The exact address of the sender.
    #[serde(default)]
    pub from: Option<Address>,
    /// The exact address it is delivered to, with its tag.
    #[serde(default)]
    pub to: Option<Address>,
    /// Part of the subject; case does not matter.
    #[garde(length(chars, max = 998))]
    #[serde(default)]
    pub subject: Option<String>,
    /// Only emails that arrive after this: a time, or the `cursor` of an earlier response. If omitted, now.
    #[serde(default)]
    pub after: Option<WaitAfter>,
    /// The required scan status.
    #[serde(default = "clean")]
    pub require_scan_status: ScanStatus,
    /// How long to wait, in seconds.
    #[garde(range(min = 1, max = 120))]
    #[serde(default = "thirty")]
    pub timeout_seconds: u32,
}

const fn clean() -> ScanStatus {
    ScanStatus::Clean
}
const fn thirty() -> u32 {
    30
}

/// From where on to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitAfter {
    /// The `cursor` of an earlier answer.
    Cursor(String),
    /// A time.
    Time(Timestamp),
}

impl<'de> Deserialize<'de> for WaitAfter {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Timestamp::from_str(&text).map_or(Self::Cursor(text), Self::Time))
    }
}
impl JsonSchema for WaitAfter {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WaitAfter".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 2048 })
    }
}

named! {
    /// The outcome of waiting.
    WaitOutcome {
        /// Exactly one email matches.
        Matched "matched",
        /// Several emails match.
        Ambiguous "ambiguous",
        /// An email matches, but it is held or has another scan status.
        Held "held",
        /// No matching email arrived in time.
        Timeout "timeout",
    }
}

/// The result of waiting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitResult {
    /// The outcome.
    pub outcome: WaitOutcome,
    /// The email, safe for an agent, if exactly one matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// The ids of all matching emails.
    pub matches: Vec<EmailId>,
    /// The value of `after` to continue from here.
    pub cursor: String,
}

/// The codes and links of a sign-up email. Untrusted: they come from the email.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verification {
    /// Codes, most likely first.
    pub codes: Vec<VerificationCode>,
    /// Links, most likely first.
    pub links: Vec<VerificationLink>,
    /// The sender as the email states it. Untrusted.
    pub sender: String,
    /// The address it was delivered to.
    pub recipient: String,
    /// The result of scanning.
    pub scan_status: Option<ScanStatus>,
    /// Whether the sender was authenticated.
    pub sender_authentication: SenderAuthentication,
    /// True if the email is not clean; then it is not searched for codes and links.
    pub content_omitted: bool,
    /// Why it was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_omission_reason: Option<OmissionReason>,
}

/// A code in an email.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationCode {
    /// The code.
    pub value: String,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The text around it.
    pub context: String,
}

/// A link in an email.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationLink {
    /// Its URL.
    pub url: String,
    /// The host, in ASCII form.
    pub host: String,
    /// The link text that a reader sees.
    pub text: String,
    /// The confidence that it is the link to follow, from 0 to 1.
    pub confidence: f64,
}
