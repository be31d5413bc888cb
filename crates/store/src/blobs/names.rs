//! The names of blobs, checked: no input of a caller becomes part of a path unchecked.

use super::error::BlobError;
use super::hash::{BlobHash, is_hex};
use crate::vault::{hex, random};

/// Files under this name are probes of [`Blobs::probe`](super::Blobs::probe); no space can have this name.
pub(super) const PROBES: &str = ".probe";

impl BlobHash {
    /// Parses a hash from the database; anything but 64 lower-case digits is rejected.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        if text.len() == 64 && is_hex(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(BlobError::InvalidName(text.chars().take(80).collect()))
    }
}

/// The path of a blob below the root of its store; the only way from callers' names to a path.
pub(super) fn object_name(space: &str, hash: &BlobHash) -> Result<String, BlobError> {
    check_space(space)?;
    let (first, rest) = hash.as_str().split_at(2);
    let (second, rest) = rest.split_at(2);
    Ok(format!("{space}/{first}/{second}/{rest}"))
}

pub(super) fn check_space(space: &str) -> Result<(), BlobError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=64).contains(&space.len()) && space.bytes().all(allowed) {
        return Ok(());
    }
    Err(BlobError::InvalidName(space.chars().take(80).collect()))
}

/// A new name for a probe.
pub(super) fn probe_name() -> Result<String, BlobError> {
    Ok(format!("{PROBES}/{}", hex(&random::<16>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_store() {
        let hash = BlobHash::of(b"");
        let too_long = "a".repeat(65);
        for space in
            ["", ".", "..", "../x", "a/b", "/etc", "A", "a-b", ".tmp", ".probe", "a\0", "ä", "a b", &too_long]
        {
            assert!(matches!(object_name(space, &hash), Err(BlobError::InvalidName(_))), "{space:?}");
        }
        for space in ["a", "ws_0123456789", &"z".repeat(64)] {
            assert!(object_name(space, &hash).unwrap().starts_with(space));
        }
        let digits = hash.to_string();
        for text in
            ["", "..", &digits[1..], &format!("{digits}0"), &digits.to_uppercase(), &"../".repeat(22)[..64]]
        {
            assert!(BlobHash::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(BlobHash::parse(&digits).unwrap(), hash);
    }
}
