//! The three answers that every check gives: proven, disproven, or neither.
//!
//! SPF, the signatures, ARC and DMARC say the same words, so that they can be weighed against each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one check found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Proven.
    Pass,
    /// Disproven.
    Fail,
    /// Neither: nothing is published, nothing could be found out, or nothing was checked.
    #[default]
    Unknown,
}

impl Verdict {
    /// The verdict's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        }
    }
}
