//! What proves a secret beyond its pattern: checksums, encodings, and whether a value looks made by chance.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::candidate::Candidate;
use crate::links::{MAX_LINK_BYTES, is_in_link};

/// Bits a character that values made by chance have at least, even short ones.
const MIN_BITS: f64 = 2.7;
/// The same for long values without a prefix of their own.
const MIN_BITS_OF_LONG: f64 = 3.4;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// What stands where a real value would, in documentation and templates.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your",
    "redacted",
    "removed",
    "hidden",
    "dummy",
    "sample",
    "xxxx",
    "****",
    "....",
    "••",
    "…",
    "todo",
    "insert",
    "replace",
    "${",
    "{{",
    "}}",
    "%(",
    "$(",
    "foobar",
    "0000000",
    "1111111",
    "123456789",
    "abcdefgh",
    "deadbeef",
    "------",
    "______",
    "▒",
    "█",
    "●●",
];

/// The pattern says it all.
pub(super) fn always(_: &Candidate<'_>) -> bool {
    true
}

/// A value that looks made by chance and is no placeholder.
pub(super) fn random(candidate: &Candidate<'_>) -> bool {
    is_random(candidate.value())
}

pub(super) fn random_and_whole(candidate: &Candidate<'_>) -> bool {
    random(candidate) && candidate.after().bytes().next().is_none_or(|next| !next.is_ascii_alphanumeric())
}

/// A value of several kinds of characters, for shapes without much of a prefix.
pub(super) fn very_random(candidate: &Candidate<'_>) -> bool {
    let value = candidate.value();
    let ends = candidate.after().bytes().next();
    let kinds = Kinds::of(value);
    ends.is_none_or(|next| !next.is_ascii_alphanumeric() && !matches!(next, b'/' | b'+' | b'_' | b'='))
        && is_random(value)
        && kinds.digits > 0
        && kinds.lower + kinds.upper > 3
        && bits(value) >= MIN_BITS_OF_LONG
}

/// A token of GitHub: the last six characters are a checksum of the thirty before.
pub(super) fn github(candidate: &Candidate<'_>) -> bool {
    candidate.value().get(4..).is_some_and(|rest| has_checksum(rest, 30))
}

/// A key of this service: the last six characters are a checksum of the 43 before.
pub(super) fn own_key(candidate: &Candidate<'_>) -> bool {
    candidate.value().strip_prefix("sk-proj-").is_some_and(|rest| has_checksum(rest, 43))
}

pub(super) fn slack(candidate: &Candidate<'_>) -> bool {
    random(candidate) && Kinds::of(candidate.value()).digits >= 4
}

/// The first part of a bot's token is its number in base 64.
pub(super) fn discord(candidate: &Candidate<'_>) -> bool {
    let number = candidate.value().split('.').next().unwrap_or_default();
    random(candidate)
        && BASE64_URL
            .decode(number)
            .is_ok_and(|digits| digits.len() >= 17 && digits.iter().all(u8::is_ascii_digit))
}

/// The header names the algorithm. Links carry signed tokens of no use beyond them.
pub(super) fn json_web_token(candidate: &Candidate<'_>) -> bool {
    let header = candidate.value().split('.').next().unwrap_or_default();
    let names_algorithm = BASE64_URL
        .decode(header)
        .is_ok_and(|json| json.first() == Some(&b'{') && memchr::memmem::find(&json, b"\"alg\"").is_some());
    let before = candidate.before(MAX_LINK_BYTES);
    let is_access = ["access_token=", "id_token=", "api_key="].iter().any(|name| before.ends_with(name));
    names_algorithm && (is_access || !is_in_link(candidate.text, candidate.start))
}

/// A signature in the query of a storage URL that also says until when it is valid.
pub(super) fn shared_access_signature(candidate: &Candidate<'_>) -> bool {
    let around = [candidate.before(MAX_LINK_BYTES), head(candidate.after(), MAX_LINK_BYTES)];
    let has = |name: &str| around.iter().any(|part| part.contains(name));
    has("se=") && (has("sv=") || has("sr=")) && random(candidate)
}

/// The body of a key block is no filler.
pub(super) fn key_block(candidate: &Candidate<'_>) -> bool {
    let body = candidate.value().rsplit("-----").next().unwrap_or_default();
    bits(body) >= MIN_BITS_OF_LONG && !is_placeholder(body)
}

pub(super) fn is_random(value: &str) -> bool {
    bits(value) >= MIN_BITS && !is_placeholder(value)
}

pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    PLACEHOLDERS.iter().any(|placeholder| lower.contains(placeholder))
}

/// The first bytes of a text.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Decodes base 64 of either alphabet to text.
pub(super) fn decode(value: &str) -> Option<String> {
    let bytes = BASE64.decode(value).or_else(|_| BASE64_URL.decode(value)).ok()?;
    String::from_utf8(bytes).ok()
}

/// The entropy of a value by its own characters, in bits a character.
#[expect(clippy::cast_precision_loss, reason = "values are short")]
pub(super) fn bits(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    let share = |count: u32| f64::from(count) / length;
    counts.iter().filter(|count| **count > 0).map(|count| -share(*count) * share(*count).log2()).sum()
}

/// How many characters of each kind a value has.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    pub(super) others: usize,
}

impl Kinds {
    pub(super) fn of(value: &str) -> Self {
        let mut kinds = Self::default();
        for character in value.chars() {
            match character {
                _ if character.is_ascii_digit() => kinds.digits += 1,
                _ if character.is_uppercase() => kinds.upper += 1,
                _ if character.is_alphabetic() => kinds.lower += 1,
                _ => kinds.others += 1,
            }
        }
        kinds
    }
}

/// Whether a CRC-32 in base 62 follows a body.
fn has_checksum(text: &str, body: usize) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some((body, checksum)) = text.split_at_checked(body) else { return false };
    let number = checksum.bytes().try_fold(0_u64, |number, byte| {
        let digit = DIGITS.iter().position(|known| *known == byte)?;
        number.checked_mul(62)?.checked_add(digit as u64)
    });
    checksum.len() == 6 && number == Some(u64::from(crc32fast::hash(body.as_bytes())))
}
