//! The hash of a content, which names its blobs, written in hexadecimal digits.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

use crate::vault::hex;

/// The SHA-256 of a content, as 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(pub(super) String);

impl BlobHash {
    /// Computes the hash of a content, with the implementation that is the quickest for long ones.
    pub fn of(content: &[u8]) -> Self {
        Self(hex(digest(&SHA256, content).as_ref()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BlobHash({})", self.0)
    }
}

/// Whether a text consists of lower-case hexadecimal digits only.
pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
