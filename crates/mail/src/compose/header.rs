//! Encoding of header values, so that a parser gets back exactly the original.
//!
//! Lines are folded only at spaces between words; no value contains a line end.

use mail_builder::encoders::Base64Encoder;
use mail_builder::headers::date::Date;

use super::checks::{check_text, is_id};
use super::error::ComposeError;
use super::unencoded::Person;
use crate::address::Address;

/// The longest subject in bytes after encoding.
pub const MAX_SUBJECT_BYTES: usize = 998;

/// The longest word that is written unencoded, so that a folded line stays within 998 bytes.
const MAX_WORD_BYTES: usize = 800;

/// Bytes of text in one encoded word: it fits a line of 76, also after a short header name.
const ENCODED_WORD_BYTES: usize = 39;

/// The longest name of a custom header.
const MAX_HEADER_NAME_BYTES: usize = 100;

/// The longest value of a custom header.
const MAX_HEADER_VALUE_BYTES: usize = 4000;

/// The last moment of the year 9999, in seconds.
const MAX_UNIX_SECONDS: i64 = 253_402_300_799;

/// The value of the Date header.
pub(super) fn date(micros: i64) -> Result<String, ComposeError> {
    let seconds = micros.div_euclid(1_000_000);
    if !(0..=MAX_UNIX_SECONDS).contains(&seconds) {
        return Err(ComposeError::Date);
    }
    Ok(Date::new(seconds).to_rfc822())
}

/// A list of people.
pub(super) fn people(field: &str, people: &[Person]) -> Result<String, ComposeError> {
    let written: Result<Vec<String>, _> = people.iter().map(|one| person(field, one)).collect();
    Ok(written?.join(", "))
}

fn person(field: &str, person: &Person) -> Result<String, ComposeError> {
    let address = address(field, person)?;
    let name = person.name.as_deref().unwrap_or_default();
    check_text(&format!("name in {field}"), name)?;
    match name.trim() {
        "" => Ok(format!("<{address}>")),
        name => Ok(format!("{} <{address}>", phrase(name))),
    }
}

/// Reads the bare address of a person, with its domain in A-labels.
fn address(field: &str, person: &Person) -> Result<Address, ComposeError> {
    Address::parse(&person.address)
        .map_err(|source| ComposeError::Address { field: field.to_owned(), source })
}

/// A display name: plain words, a quoted string or encoded words.
fn phrase(name: &str) -> String {
    let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/^_`{|}~ ".contains(&byte);
    if !is_plain(name) {
        encoded_words(name)
    } else if name.bytes().all(is_atom) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
    }
}

/// The value of the Subject header.
pub(super) fn subject(text: &str) -> Result<String, ComposeError> {
    check_text("subject", text)?;
    let value = encoded_subject(text.trim());
    if value.len() > MAX_SUBJECT_BYTES {
        return Err(ComposeError::SubjectTooLong);
    }
    Ok(value)
}

fn encoded_subject(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { encoded_words(text) }
}

/// A generated subject, cut at a character boundary with an ellipsis when it would be too long once encoded.
pub(super) fn fit_subject(text: &str) -> String {
    let fits = |text: &str| encoded_subject(text).len() <= MAX_SUBJECT_BYTES;
    if fits(text) {
        return text.to_owned();
    }
    let mut kept = &text[..text.floor_char_boundary(MAX_SUBJECT_BYTES)];
    // ASCII dots keep a plain subject unencoded, so that more of it fits.
    let ellipsis = if is_plain(kept) { "..." } else { "…" };
    loop {
        let cut = format!("{}{ellipsis}", kept.trim_end());
        let mut shorter = kept.chars();
        if fits(&cut) || shorter.next_back().is_none() {
            return cut;
        }
        kept = shorter.as_str();
    }
}

/// Ids in angle brackets.
pub(super) fn ids(field: &str, ids: &[String]) -> Result<String, ComposeError> {
    if !ids.iter().all(|id| is_id(id)) {
        return Err(ComposeError::Id { field: field.to_owned() });
    }
    let bracketed: Vec<String> = ids.iter().map(|id| format!("<{id}>")).collect();
    Ok(bracketed.join(" "))
}

/// Checks the name of a header that the sender sets.
pub(super) fn own_name(name: &str) -> Result<&str, ComposeError> {
    let rest = ["x-", "list-"].into_iter().find_map(|prefix| {
        let start = name.get(..prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then(|| name.get(prefix.len()..))?
    });
    let is_sound = rest.is_some_and(|rest| {
        !rest.is_empty()
            && name.len() <= MAX_HEADER_NAME_BYTES
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    });
    if is_sound { Ok(name) } else { Err(ComposeError::HeaderName(name.to_owned())) }
}

/// The value of a header that the sender sets.
///
/// List-* headers have addresses and links, which no client decodes: they are written unencoded or refused.
pub(super) fn own_value(name: &str, value: &str) -> Result<String, ComposeError> {
    check_text(&format!("header {name}"), value)?;
    let value = value.trim();
    let is_text = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"));
    match () {
        () if value.len() > MAX_HEADER_VALUE_BYTES => Err(ComposeError::HeaderValue(name.to_owned())),
        () if is_plain(value) => Ok(value.to_owned()),
        () if is_text => Ok(encoded_words(value)),
        () => Err(ComposeError::HeaderValue(name.to_owned())),
    }
}

/// Whether a text needs no encoding: visible ASCII, words that fit a line, and nothing that looks like an encoded word.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !text.contains("=?")
        && text.split(' ').all(|word| word.len() <= MAX_WORD_BYTES)
}

/// A text as encoded words (RFC 2047), no character split between two of them.
fn encoded_words(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(ENCODED_WORD_BYTES);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, tail) = rest.split_at(end);
        let mut encoded = Vec::new();
        Base64Encoder::new().encode_into(piece.as_bytes(), &mut encoded);
        words.push(format!("=?utf-8?B?{}?=", String::from_utf8_lossy(&encoded)));
        rest = tail;
    }
    words.join(" ")
}
