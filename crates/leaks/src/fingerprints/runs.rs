//! Runs of shared text, made of the shingles that were recognised.

use std::ops::Range;

use super::{
    SHINGLE_WORDS,
    units::{WORD_WEIGHT, units},
};

/// Words of a run that counts: those of two shingles. Shorter phrases are common to people who never met.
pub const MIN_RUN_WORDS: usize = SHINGLE_WORDS + 1;

/// How many words may lie between two recognised shingles of one run: winnowing keeps only some.
const MAX_GAP_WORDS: usize = 10;

/// A run of text that came from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The bytes of the outgoing text.
    pub range: Range<usize>,
    /// Its words, two characters of a script without spaces as one.
    pub words: usize,
    /// The shingles that were recognised.
    pub matches: usize,
}

/// Groups the ranges of recognised shingles to runs, in order. Pass only those that are a leak: neither common nor known to
/// all recipients. Runs of fewer than [`MIN_RUN_WORDS`] words are left out.
pub fn runs(text: &str, recognised: &[Range<usize>]) -> Vec<Run> {
    let mut ranges = recognised.to_vec();
    ranges.retain(|range| text.get(range.clone()).is_some_and(|part| !part.is_empty()));
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut runs: Vec<Run> = Vec::new();
    for range in ranges {
        match runs.last_mut() {
            Some(run) if range.start <= run.range.end || is_near(&text[run.range.end..range.start]) => {
                run.range.end = run.range.end.max(range.end);
                run.matches += 1;
            }
            _ => runs.push(Run { range, words: 0, matches: 1 }),
        }
    }
    for run in &mut runs {
        run.words = words(&text[run.range.clone()]);
    }
    runs.retain(|run| run.words >= MIN_RUN_WORDS);
    runs
}

fn is_near(gap: &str) -> bool {
    // No ten words are longer.
    gap.len() <= 400 && words(gap) <= MAX_GAP_WORDS
}

fn words(text: &str) -> usize {
    units(text).iter().map(|unit| unit.weight).sum::<usize>() / WORD_WEIGHT
}
