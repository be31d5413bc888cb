//! The names of blobs, checked: no input of a caller becomes part of a path unchecked.
//!
//! A blob is named by the hash of its content, and in a bucket by a suffix too, a new one with each content. So a name
//! that nothing refers to stays unused for ever, and its object can be deleted at any time, however long that takes.

use super::blob_name::{BlobName, BlobSuffix};
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
        Err(invalid(text))
    }
}

/// The digits of a suffix.
const SUFFIX_DIGITS: usize = 32;

impl BlobSuffix {
    /// Parses a suffix from the database.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        if text.len() == SUFFIX_DIGITS && is_hex(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(invalid(text))
    }
}

impl BlobName {
    /// Parses a name: the hash, or the hash, a hyphen and the suffix.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        match text.split_once('-') {
            Some((hash, suffix)) => Self::of_row(hash, Some(suffix)),
            None => Self::of_row(text, None),
        }
    }

    /// The name from a row that has hash and suffix.
    pub(crate) fn of_row(hash: &str, suffix: Option<&str>) -> Result<Self, BlobError> {
        let suffix = suffix.map(BlobSuffix::parse).transpose()?;
        Ok(Self { hash: BlobHash::parse(hash)?, suffix })
    }
}

/// The path of a blob below the root of its store; the only way from callers' names to a path.
pub(super) fn object_name(space: &str, name: &BlobName) -> Result<String, BlobError> {
    check_space(space)?;
    let text = name.to_string();
    let (first, rest) = text.split_at(2);
    let (second, rest) = rest.split_at(2);
    Ok(format!("{space}/{first}/{second}/{rest}"))
}

fn invalid(text: &str) -> BlobError {
    BlobError::InvalidName(text.chars().take(80).collect())
}

pub(super) fn check_space(space: &str) -> Result<(), BlobError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=64).contains(&space.len()) && space.bytes().all(allowed) {
        return Ok(());
    }
    Err(invalid(space))
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
        let name = BlobName::from(&hash);
        let too_long = "a".repeat(65);
        for space in
            ["", ".", "..", "../x", "a/b", "/etc", "A", "a-b", ".tmp", ".probe", "a\0", "ä", "a b", &too_long]
        {
            assert!(matches!(object_name(space, &name), Err(BlobError::InvalidName(_))), "{space:?}");
        }
        for space in ["a", "ws_0123456789", &"z".repeat(64)] {
            assert!(object_name(space, &name).unwrap().starts_with(space));
        }
        let digits = hash.to_string();
        for text in
            ["", "..", &digits[1..], &format!("{digits}0"), &digits.to_uppercase(), &"../".repeat(22)[..64]]
        {
            assert!(BlobHash::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(BlobHash::parse(&digits).unwrap(), hash);
        assert_eq!(BlobName::parse(&digits).unwrap(), name);
        let suffix = "0123456789abcdef".repeat(2);
        for suffix in
            ["", "..", &suffix[1..], &format!("{suffix}0"), &suffix.to_uppercase(), &"../".repeat(11)[..32]]
        {
            assert!(BlobName::parse(&format!("{digits}-{suffix}")).is_err(), "{suffix:?}");
        }
        for text in [format!("{digits}{suffix}"), format!("{digits}_{suffix}"), format!("{suffix}-{digits}")]
        {
            assert!(BlobName::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_with_a_suffix_comes_behind_the_one_without_and_before_the_next_hash() {
        let (one, two) = (BlobHash("a".repeat(64)), BlobHash("b".repeat(64)));
        let suffix = |millis: u64| {
            let mut id = [0xff; 16];
            id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
            BlobSuffix::of_id(&id)
        };
        let (early, late) = (suffix(1_700_000_000_000), suffix(1_800_000_000_000));
        assert_eq!((early.made_at(), late.made_at()), (1_700_000_000_000_000, 1_800_000_000_000_000));
        let named = |hash: &BlobHash, suffix| BlobName { hash: hash.clone(), suffix };
        let names = [
            named(&one, None),
            named(&one, Some(early.clone())),
            named(&one, Some(late)),
            named(&two, None),
            named(&two, Some(early)),
        ];
        assert!(names.is_sorted());
        assert!(names.iter().map(|name| object_name("ws", name).unwrap()).is_sorted());
        for name in names {
            assert_eq!(BlobName::parse(&name.to_string()).unwrap(), name);
        }
    }
}
