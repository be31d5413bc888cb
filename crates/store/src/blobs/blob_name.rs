//! The name of a blob in its space: the hash of its content, and in a bucket a suffix too.

use std::fmt;

use super::hash::BlobHash;
use crate::vault::hex;

/// What tells a blob from others with the same content: 32 hexadecimal digits, which begin with the milliseconds since 1970
/// in twelve of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobSuffix(pub(super) String);

const TIME_DIGITS: usize = 12;

impl BlobSuffix {
    /// A suffix from the bytes of an id that is ordered by time, as UUIDs of version 7 are.
    pub fn of_id(id: &[u8; 16]) -> Self {
        Self(hex(id))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When it was made, in microseconds UTC by the clock of the node that made it.
    pub fn made_at(&self) -> i64 {
        let millis = self.0.get(..TIME_DIGITS).and_then(|digits| i64::from_str_radix(digits, 16).ok());
        millis.unwrap_or_default() * 1000
    }
}

/// The name of a blob in its space. Names are in the order of their texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// The hash of its content.
    pub hash: BlobHash,
    /// What tells it from others with this content; without one it is named by its content alone.
    pub suffix: Option<BlobSuffix>,
}

impl fmt::Display for BlobName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.suffix {
            Some(suffix) => write!(out, "{}-{}", self.hash, suffix.as_str()),
            None => self.hash.fmt(out),
        }
    }
}

impl fmt::Debug for BlobName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BlobName({self})")
    }
}

impl From<BlobHash> for BlobName {
    fn from(hash: BlobHash) -> Self {
        Self { hash, suffix: None }
    }
}

impl From<&BlobHash> for BlobName {
    fn from(hash: &BlobHash) -> Self {
        hash.clone().into()
    }
}

impl From<&Self> for BlobName {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}
