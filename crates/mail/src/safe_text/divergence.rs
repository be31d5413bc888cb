//! Whether the text part and the HTML part of a message say different things.
//!
//! Both are compared as words. URLs are left out, because each part writes them in its own way.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Consecutive words that are compared, and how many of them the other part must lack to diverge.
const WINDOW_WORDS: usize = 12;
const MISSING_IN_WINDOW: usize = 8;

/// Below this many words a part is judged as a whole.
const MIN_WORDS: usize = 3;

/// Numbers with at least this many digits must be the same in both parts: amounts, codes and accounts.
const LONG_NUMBER_DIGITS: usize = 6;

/// The share of the HTML's words that a text part may omit, and the minimum number to count.
const MAX_OMITTED_SHARE: f64 = 0.6;
const MIN_OMITTED_WORDS: usize = 30;

/// Compares two cleaned texts.
pub(super) fn differ(text: &str, html: &str) -> bool {
    let hasher = RandomState::new();
    let text = Words::of(text, &hasher);
    let html = Words::of(html, &hasher);
    let text_only = text.sequence.iter().filter(|word| !html.set.contains(word)).count();
    let html_only = html.set.difference(&text.set).count();
    let whole = text.sequence.len() >= MIN_WORDS && text_only * 2 > text.sequence.len();
    whole
        || has_own_passage(&text, &html)
        || text.numbers.symmetric_difference(&html.numbers).next().is_some()
        || (html_only >= MIN_OMITTED_WORDS && share(html_only, html.set.len()) > MAX_OMITTED_SHARE)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words in a mail are far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Whether a passage of one text consists mostly of words that the other lacks.
fn has_own_passage(text: &Words, other: &Words) -> bool {
    let missing: Vec<bool> = text.sequence.iter().map(|word| !other.set.contains(word)).collect();
    let mut in_window = 0;
    for (index, is_missing) in missing.iter().enumerate() {
        in_window += usize::from(*is_missing);
        if index >= WINDOW_WORDS {
            in_window -= usize::from(missing.get(index - WINDOW_WORDS).copied().unwrap_or_default());
        }
        if in_window >= MISSING_IN_WINDOW {
            return true;
        }
    }
    false
}

/// The words of a text, as hashes.
struct Words {
    sequence: Vec<u64>,
    set: HashSet<u64>,
    numbers: HashSet<String>,
}

impl Words {
    fn of(text: &str, hasher: &RandomState) -> Self {
        let mut sequence = Vec::new();
        let mut numbers = HashSet::new();
        let chunks = text.split_whitespace().filter(|chunk| !is_address(chunk));
        for word in chunks
            .flat_map(|chunk| chunk.split(|c: char| !c.is_alphanumeric()))
            .filter(|word| !word.is_empty())
        {
            if word.len() >= LONG_NUMBER_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit()) {
                numbers.insert(word.to_owned());
            }
            // Scripts without spaces between words are compared character by character.
            if word.chars().any(|c| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')) {
                sequence.extend(word.chars().map(|c| hasher.hash_one(c)));
            } else {
                sequence.push(hasher.hash_one(word.to_lowercase()));
            }
        }
        let set = sequence.iter().copied().collect();
        Self { sequence, set, numbers }
    }
}

fn is_address(chunk: &str) -> bool {
    chunk.contains("://") || chunk.contains("mailto:") || chunk.contains("tel:") || chunk.contains("www.")
}
