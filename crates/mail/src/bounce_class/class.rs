//! The classes of bounces.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a message could not be delivered to a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BounceClass {
    /// The address does not exist or is disabled for good, or its domain does not exist or takes no mail.
    Hard,
    /// It may work later: the server is busy, unreachable or wants another try.
    Soft,
    /// The reputation or the authentication of the sender: a block list, a verdict of spam, a DMARC policy.
    Block,
    /// A rule that the message or its sender breaks, such as its size, an attachment or who may write.
    Policy,
    /// The recipient's mailbox is full.
    Full,
    /// A permanent failure that cannot be read.
    Unknown,
}

impl BounceClass {
    /// All of them, in the order of the documentation.
    pub const ALL: &[Self] = &[Self::Hard, Self::Soft, Self::Block, Self::Policy, Self::Full, Self::Unknown];

    /// The name as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
            Self::Block => "block",
            Self::Policy => "policy",
            Self::Full => "full",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for BounceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
