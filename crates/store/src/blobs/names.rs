//! The names that blobs lie under, checked: nothing that a caller gives becomes part of a path unseen.

use super::error::BlobError;
use super::hash::{BlobHash, is_hex};
use crate::vault::{hex, random};

/// Files under this name are trials of [`Blobs::probe`](super::Blobs::probe); no space can have the name.
pub(super) const PROBES: &str = ".probe";

impl BlobHash {
    /// Reads a hash as it is kept in the database; anything else than 64 lower-case digits is refused.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        if text.len() == 64 && is_hex(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(BlobError::InvalidName(text.chars().take(80).collect()))
    }
}

/// The path of a blob below the root of its store; the only way from names that callers give to a path.
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

/// A new name for a trial.
pub(super) fn trial_name() -> Result<String, BlobError> {
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
