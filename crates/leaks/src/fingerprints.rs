//! What received text is remembered by, so that it is recognised when it goes out to others.
//!
//! A text is cut into overlapping shingles of [`SHINGLE_WORDS`] words, without regard to case, punctuation, line breaks
//! and quote signs. Each becomes a number under the workspace's key. Of a received text of up to about 70 words all are
//! kept, of a longer one the least of every window (winnowing), by the smallest window that leaves no more than
//! [`MAX_FINGERPRINTS`]. All of an outgoing text are looked up.
//!
//! **Guarantee:** when a received text with window `w` and an outgoing text share a run of `SHINGLE_WORDS + w - 1` words,
//! they share a fingerprint; with a run of `SHINGLE_WORDS + 2 * w - 1` words they share two, which [`runs`] asks for. The
//! window is 1 up to 70 words, about 5 at 200 and about `words / 32` beyond. Left out are shingles that tell nothing: with
//! part of a phrase that all mail has (greetings, legal footers), of a few repeated words, or of hardly anything but
//! articles, prepositions and the like.
//!
//! Scripts without spaces count by characters, two of which weigh as much as a word.

mod addresses;
mod boilerplate;
mod runs;
mod units;
mod winnow;

use std::{collections::HashSet, hash::Hasher, ops::Range};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip::SipHasher24;
use unicode_normalization::UnicodeNormalization;

pub use self::{
    addresses::{MAX_ADDRESSES, addresses},
    runs::{MIN_RUN_WORDS, Run, runs},
};
use self::{
    boilerplate::{GRAMMAR, PHRASES},
    units::{Unit, WORD_WEIGHT, units},
    winnow::winnow,
};

/// Fingerprints that one received text is remembered by.
pub const MAX_FINGERPRINTS: usize = 64;
/// Fingerprints that are looked up for one outgoing text.
pub const MAX_LOOKUPS: usize = 4096;
/// Words of a shingle.
pub const SHINGLE_WORDS: usize = 8;
/// Different words that a shingle has at least; fewer make a table or a ruler, no sentence.
const MIN_DISTINCT: usize = 4;

/// Makes the fingerprints of one workspace. They are of no use without its key.
pub struct Fingerprinter {
    text: SipHasher24,
    address: SipHasher24,
    file: SipHasher24,
    /// Runs of [`PHRASE_WORDS`] words that all mail has.
    phrases: HashSet<i64>,
    /// Words that carry grammar.
    grammar: HashSet<u64>,
}

impl std::fmt::Debug for Fingerprinter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fingerprinter").finish_non_exhaustive()
    }
}

/// Words that a shingle has at least beside those of grammar.
const MIN_CONTENT: usize = 3;
/// A shingle that has so many words of a common phrase tells little by the others.
const PHRASE_WORDS: usize = 4;

/// A shingle: its fingerprint and the bytes that it stands for.
struct Shingle {
    fingerprint: i64,
    range: Range<usize>,
}

impl Fingerprinter {
    /// For the workspace with this key. Keep it: what it prepares costs as much as a long message.
    pub fn new(key: &[u8; 32]) -> Self {
        let mut fingerprinter = Self {
            text: hasher(key, "text"),
            address: hasher(key, "address"),
            file: hasher(key, "file"),
            phrases: HashSet::new(),
            grammar: HashSet::new(),
        };
        fingerprinter.grammar = fingerprinter.hashes(&units(GRAMMAR)).into_iter().collect();
        let phrases = PHRASES.iter().map(|phrase| fingerprinter.hashes(&units(phrase)));
        let phrases: Vec<Vec<u64>> = phrases.collect();
        let parts = phrases.iter().flat_map(|phrase| phrase.windows(PHRASE_WORDS));
        fingerprinter.phrases = parts.map(|part| fingerprinter.of_words(part)).collect();
        fingerprinter
    }

    /// What a received text is remembered by. Pass the sender's own words, without what they quote. A text of fewer than
    /// [`SHINGLE_WORDS`] words has none.
    pub fn of_received(&self, text: &str) -> Vec<i64> {
        let shingles = self.shingles(text);
        let hashes: Vec<Option<i64>> =
            shingles.iter().map(|shingle| shingle.as_ref().map(|shingle| shingle.fingerprint)).collect();
        let mut fingerprints: Vec<i64> =
            winnow(&hashes, MAX_FINGERPRINTS).into_iter().filter_map(|index| hashes[index]).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        fingerprints
    }

    /// Those of an outgoing text to look up, each with the bytes that it stands for, in order: every shingle, or of a text
    /// of more than [`MAX_LOOKUPS`] those that winnowing keeps.
    pub fn of_outgoing(&self, text: &str) -> Vec<(i64, Range<usize>)> {
        let shingles = self.shingles(text);
        let chosen: Vec<usize> = if shingles.len() <= MAX_LOOKUPS {
            (0..shingles.len()).collect()
        } else {
            let hashes: Vec<Option<i64>> =
                shingles.iter().map(|shingle| shingle.as_ref().map(|shingle| shingle.fingerprint)).collect();
            winnow(&hashes, MAX_LOOKUPS)
        };
        let chosen = chosen.into_iter().filter_map(|index| shingles[index].as_ref());
        chosen.map(|shingle| (shingle.fingerprint, shingle.range.clone())).collect()
    }

    /// That of an email address, in whatever case.
    pub fn of_address(&self, address: &str) -> i64 {
        let normal: String = address.trim().nfkc().flat_map(char::to_lowercase).collect();
        digest(&self.address, normal.as_bytes())
    }

    /// That of a file by the hash of its content.
    pub fn of_file(&self, sha256: &[u8; 32]) -> i64 {
        digest(&self.file, sha256)
    }

    /// The shingle that begins at each unit; nothing where too little is left or it says nothing.
    fn shingles(&self, text: &str) -> Vec<Option<Shingle>> {
        let units = units(text);
        let hashes = self.hashes(&units);
        let common = self.next_phrases(&hashes);
        let ends = shingle_ends(&units);
        ends.into_iter()
            .enumerate()
            .map(|(start, end)| {
                let parts = &hashes[start..end];
                let mut distinct = parts.to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                let is_common = common[start].is_some_and(|phrase| phrase + PHRASE_WORDS <= end);
                let content = parts.iter().filter(|word| !self.grammar.contains(word)).count();
                let says_something = distinct.len() >= MIN_DISTINCT && content >= MIN_CONTENT && !is_common;
                let range = units[start].range.start..units[end - 1].range.end;
                says_something.then(|| Shingle { fingerprint: self.of_words(parts), range })
            })
            .collect()
    }

    fn hashes(&self, units: &[Unit<'_>]) -> Vec<u64> {
        let hash = |unit: &Unit<'_>| {
            let mut hasher = self.text;
            hasher.write(unit.word.as_bytes());
            hasher.finish()
        };
        units.iter().map(hash).collect()
    }

    /// From each unit on, where the next phrase begins that all mail has.
    fn next_phrases(&self, hashes: &[u64]) -> Vec<Option<usize>> {
        let mut next = vec![None; hashes.len()];
        let mut last = None;
        for start in (0..hashes.len()).rev() {
            let phrase = hashes.get(start..start + PHRASE_WORDS);
            if phrase.is_some_and(|phrase| self.phrases.contains(&self.of_words(phrase))) {
                last = Some(start);
            }
            next[start] = last;
        }
        next
    }

    fn of_words(&self, hashes: &[u64]) -> i64 {
        let mut bytes = [0; WORD_WEIGHT * SHINGLE_WORDS * size_of::<u64>()];
        for (target, hash) in bytes.chunks_exact_mut(size_of::<u64>()).zip(hashes) {
            target.copy_from_slice(&hash.to_le_bytes());
        }
        digest(&self.text, &bytes[..size_of_val(hashes)])
    }
}

/// Behind which unit each shingle ends, as long as whole ones begin.
fn shingle_ends(units: &[Unit<'_>]) -> Vec<usize> {
    let (mut end, mut weight, mut ends) = (0, 0, Vec::with_capacity(units.len()));
    for unit in units {
        while weight < SHINGLE_WORDS * WORD_WEIGHT && end < units.len() {
            weight += units[end].weight;
            end += 1;
        }
        if weight < SHINGLE_WORDS * WORD_WEIGHT {
            break;
        }
        ends.push(end);
        weight -= unit.weight;
    }
    ends
}

/// A keyed hash for one purpose.
fn hasher(key: &[u8; 32], purpose: &str) -> SipHasher24 {
    let mut derived = [0; 16];
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) {
        mac.update(b"leaks/fingerprints/1/");
        mac.update(purpose.as_bytes());
        derived.copy_from_slice(&mac.finalize().into_bytes()[..16]);
    }
    SipHasher24::new_with_key(&derived)
}

/// 63 bits, so that a signed column of a database orders them as they are.
fn digest(hasher: &SipHasher24, bytes: &[u8]) -> i64 {
    let mut hasher = *hasher;
    hasher.write(bytes);
    i64::try_from(hasher.finish() >> 1).unwrap_or_default()
}

#[cfg(test)]
mod tests;
