//! What was found in the contents of outgoing messages.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::emails::named;

named! {
    /// What was found in a message.
    FindingKind {
        /// A password, key or token.
        Secret "secret",
        /// Personal data.
        Personal "personal",
        /// Something from people who are not among the recipients.
        OtherCorrespondents "other_correspondents",
        /// A file.
        Attachment "attachment",
    }
}

/// What was found in the contents of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFinding {
    /// What it is.
    pub kind: FindingKind,
    /// Where it is, such as `text` or `attachments[0]`.
    #[serde(rename = "where")]
    pub place: String,
    /// What it looks like, without its value.
    pub masked: String,
}
