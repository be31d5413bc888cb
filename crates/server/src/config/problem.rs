//! A mistake in the configuration: which option, where it was written, and what is wrong with it.

use std::fmt;

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The option, or what was written in its stead; empty when a whole file is at fault.
    pub key: String,
    /// Where it was written.
    pub origin: String,
    /// What is wrong with it.
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
