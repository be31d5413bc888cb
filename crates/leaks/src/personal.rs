//! Personal data: payment cards, accounts, identity numbers and bulk lists of addresses.
//!
//! One automaton tries all patterns where a word begins that may be a number. A row's check proves it; where the check
//! alone would be true of one number in ten, a word must say nearby what the number is.

mod africa_asia;
mod americas;
mod checksums;
mod europe;
mod general;
mod north;
mod number;

use std::{ops::Range, sync::LazyLock};

use self::number::{Context, Notation, Number, has_word};
use crate::{automaton::Automaton, finding::Mask, fingerprints::addresses, links::is_in_link};

/// A text with so many different email addresses hands over a list.
pub const MIN_BULK_ADDRESSES: usize = 20;

/// Longer than any number with its separators.
const MAX_NUMBER_BYTES: usize = 96;
/// How near a word must be that says what a number is.
const CONTEXT_BYTES: usize = 60;
/// The same behind the number: "… (SSN)".
const CONTEXT_BYTES_BEHIND: usize = 20;
/// How far from its beginning a word must have a digit to be looked at.
const FIRST_DIGIT_BYTES: usize = 9;

/// Personal data at its place in the text.
pub(crate) struct Item {
    pub(crate) name: &'static str,
    pub(crate) range: Range<usize>,
    pub(crate) masked: String,
}

struct Table {
    rows: Vec<&'static Number>,
    patterns: Automaton,
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
    let parts = [general::NUMBERS, europe::NUMBERS, north::NUMBERS, americas::NUMBERS, africa_asia::NUMBERS];
    let rows: Vec<&'static Number> = parts.into_iter().flatten().collect();
    let patterns = Automaton::new(rows.iter().map(|row| row.pattern))?;
    Some(Table { rows, patterns })
});

/// The personal data of a text, in order, without overlaps.
pub(crate) fn find(text: &str, max: usize) -> Vec<Item> {
    let mut found = numbers(text, max);
    found.extend(bulk_addresses(text));
    found
}

fn numbers(text: &str, max: usize) -> Vec<Item> {
    let Some(table) = TABLE.as_ref() else { return Vec::new() };
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() && found.len() < max {
        let word = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        if word == 0 {
            at += 1;
            continue;
        }
        let may_be_number = bytes[at..]
            .iter()
            .take(FIRST_DIGIT_BYTES)
            .take_while(|byte| **byte != b'\n')
            .any(u8::is_ascii_digit);
        let item = if may_be_number && begins(text, at) { table.number(text, at) } else { None };
        at = item.as_ref().map_or(at + word, |item| item.range.end);
        found.extend(item);
    }
    found
}

impl Table {
    fn number(&self, text: &str, start: usize) -> Option<Item> {
        let limit = text.len().min(start + MAX_NUMBER_BYTES);
        let matching = self.patterns.matching(text, start..limit);
        matching.iter().find_map(|id| {
            let row = self.rows[id.as_usize()];
            let raw = &text[start..self.patterns.end(text, id.as_usize(), start..limit)?];
            let line = &text[text.floor_char_boundary(start.saturating_sub(CONTEXT_BYTES))..start];
            let line = line.rsplit('\n').next().unwrap_or_default();
            let dense =
                raw.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
            let count = (row.check)(&Notation { raw, dense, line })?;
            let end = start + end_of(raw, count);
            let value = &text[start..end];
            let counts = match row.context {
                Context::Free => true,
                Context::Needed(words) => is_near(text, &(start..end), words),
                Context::UnlessGrouped(words) => {
                    !value.bytes().all(|byte| byte.is_ascii_alphanumeric())
                        || is_near(text, &(start..end), words)
                }
            };
            let mask = if row.name == general::CARD { Mask::LastFour } else { Mask::LastTwo };
            (counts && ends(text, end)).then(|| Item {
                name: row.name,
                range: start..end,
                masked: mask.apply(value),
            })
        })
    }
}

/// Where the given number of letters and digits ends.
fn end_of(raw: &str, count: usize) -> usize {
    let positions = raw.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_alphanumeric() || *byte == b'<');
    positions.map(|(at, _)| at + 1).nth(count.saturating_sub(1)).unwrap_or(raw.len())
}

/// Whether a number may begin here: not within a longer number, a link, a path or a phone number.
fn begins(text: &str, start: usize) -> bool {
    match &text.as_bytes()[..start] {
        // A name ends with its point and the number follows: "Nr.", "No.".
        [.., before, b'.'] => before.is_ascii_alphabetic(),
        [.., before, b'-' | b','] => !before.is_ascii_alphanumeric(),
        [.., last] => !b"_@%&#+$~/.".contains(last) && !is_in_link(text, start),
        [] => true,
    }
}

fn ends(text: &str, end: usize) -> bool {
    match &text.as_bytes()[end..] {
        [b'_' | b'@' | b'%', ..] => false,
        [b'-' | b'/' | b'.' | b',', next, ..] => {
            !next.is_ascii_alphanumeric() || text.as_bytes()[end] == b','
        }
        [next, ..] => !next.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// Whether one of the words stands near, in whatever case, or in capitals if it is written so here: the short name of a
/// number can be an ordinary word otherwise.
fn is_near(text: &str, range: &Range<usize>, words: &[&str]) -> bool {
    let start = text.floor_char_boundary(range.start.saturating_sub(CONTEXT_BYTES));
    let end = text.floor_char_boundary(range.end + CONTEXT_BYTES_BEHIND);
    let before = &text[start..range.start];
    let behind = text[range.end..end].lines().next().unwrap_or_default();
    [before, behind].iter().any(|part| {
        let lower = part.to_lowercase();
        let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
        words.iter().any(|word| has_word(if is_name(word) { part } else { &lower }, word))
    })
}

fn bulk_addresses(text: &str) -> Option<Item> {
    let ranges = addresses(text);
    let mut distinct: Vec<String> = ranges.iter().map(|range| text[range.clone()].to_lowercase()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let range = ranges.first()?.clone();
    let masked = format!("{} addresses", distinct.len());
    (distinct.len() >= MIN_BULK_ADDRESSES).then_some(Item { name: "address_list", range, masked })
}

#[cfg(test)]
pub(crate) fn examples() -> impl Iterator<Item = &'static str> {
    TABLE.as_ref().into_iter().flat_map(|table| &table.rows).flat_map(|row| row.matches.iter().copied())
}

#[cfg(test)]
mod tests;
