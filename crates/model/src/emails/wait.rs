//! Waiting for a mail, and the codes and links that sign-up mails carry.

use std::{borrow::Cow, fmt, str::FromStr};

use garde::Validate;
use mail::address::Address;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Email, OmissionReason, ScanStatus, SenderAuthentication, named};
use crate::{EmailId, Timestamp};

/// What to wait for.
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
    /// A part of the subject, in any case.
    #[garde(length(chars, max = 998))]
    #[serde(default)]
    pub subject: Option<String>,
    /// Only mail that arrives later: the `cursor` of an earlier answer or a time. Now, if left out.
    #[serde(default)]
    pub after: Option<WaitAfter>,
    /// The scan status that counts.
    #[serde(default = "clean")]
    pub require_scan_status: ScanStatus,
    /// How long to wait.
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
    /// How waiting ended.
    WaitOutcome {
        /// Exactly one mail matches.
        Matched "matched",
        /// Several mails match.
        Ambiguous "ambiguous",
        /// A mail matches, but it is held or its scan status is another.
        Held "held",
        /// Nothing came in time.
        Timeout "timeout",
    }
}

/// What waiting brought.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitResult {
    /// How it ended.
    pub outcome: WaitOutcome,
    /// The mail, safe for an agent, when exactly one matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// The ids of all that match.
    pub matches: Vec<EmailId>,
    /// What `after` takes to go on from here.
    pub cursor: String,
}

/// The codes and links of a sign-up mail. Untrusted: they come from the mail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verification {
    /// Codes, the likeliest first.
    pub codes: Vec<VerificationCode>,
    /// Links, the likeliest first.
    pub links: Vec<VerificationLink>,
    /// Who it says it is from.
    pub sender: String,
    /// The address it was delivered to.
    pub recipient: String,
    /// What scanners found.
    pub scan_status: Option<ScanStatus>,
    /// Whether the sender is who it says.
    pub sender_authentication: SenderAuthentication,
    /// True when the mail is not clean, so that nothing was looked for.
    pub content_omitted: bool,
    /// Why nothing was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_omission_reason: Option<OmissionReason>,
}

/// A code in a mail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationCode {
    /// The code.
    pub value: String,
    /// How likely it is one, from 0 to 1.
    pub confidence: f64,
    /// The words around it.
    pub context: String,
}

/// A link in a mail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationLink {
    /// Where it leads.
    pub url: String,
    /// The host, in its ASCII form.
    pub host: String,
    /// What a reader sees of it.
    pub text: String,
    /// How likely it is the one to follow, from 0 to 1.
    pub confidence: f64,
}
