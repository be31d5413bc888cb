//! A mistake in the configuration: the option, where it was set, and the reason.

use std::fmt;

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The option, or what was written instead; empty for a whole file.
    pub key: String,
    /// Where it was set.
    pub origin: String,
    /// The reason.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.origin, self.message);
        }
        write!(f, "{} ({}): {}", self.key, self.origin, self.message)
    }
}
