//! An in-memory index over the passages of one workspace: 8-bit quantised vectors, scanned exhaustively, and an
//! inverted index of terms.
//!
//! An exhaustive scan needs no tuning, misses nothing and is limited only by memory bandwidth. Terms are numbers
//! here: the caller decides what they mean. Only the ranks of results matter; the caller computes exact distances
//! from the 32-bit vectors.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

/// BM25's usual constants: term saturation and length normalisation.
const SATURATION: f32 = 1.2;
const LENGTH_SHARE: f32 = 0.75;
/// Maximum passages of an index: a position has 24 bits.
pub const MAX_PASSAGES: usize = 1 << 24;
/// Bytes of a term in a passage's list.
const TERM_BYTES: usize = 5;

/// An 8-bit quantised vector as stored: the scale, then the numbers.
pub fn encode(vector: &[f32]) -> Vec<u8> {
    let (scale, codes) = quantise(vector);
    let mut bytes = Vec::with_capacity(4 + codes.len());
    bytes.extend_from_slice(&scale.to_le_bytes());
    bytes.extend(codes.into_iter().map(i8::cast_unsigned));
    bytes
}

#[expect(clippy::cast_possible_truncation, reason = "the quotient is between -127 and 127")]
fn quantise(vector: &[f32]) -> (f32, Vec<i8>) {
    let highest = vector.iter().fold(0.0_f32, |highest, number| highest.max(number.abs()));
    let scale = if highest > 0.0 { highest / 127.0 } else { 1.0 };
    (scale, vector.iter().map(|number| (number / scale).round() as i8).collect())
}

/// The terms of a passage as stored: each once, with its frequency.
pub fn encode_terms(terms: &[u32]) -> Vec<u8> {
    let mut counts: HashMap<u32, u8> = HashMap::new();
    for term in terms {
        let count = counts.entry(*term).or_default();
        *count = count.saturating_add(1);
    }
    let mut sorted: Vec<(u32, u8)> = counts.into_iter().collect();
    sorted.sort_unstable();
    let mut bytes = Vec::with_capacity(sorted.len() * TERM_BYTES);
    for (term, count) in sorted {
        bytes.extend_from_slice(&term.to_le_bytes());
        bytes.push(count);
    }
    bytes
}

/// A matching passage: its number and its score; higher is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The passage's number.
    pub number: i64,
    /// The score.
    pub score: f32,
}

impl Eq for Hit {}
impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        // Ties go to the older passage, so that results are the same on every node.
        self.score.total_cmp(&other.score).then(other.number.cmp(&self.number))
    }
}

/// Keeps the best of many.
struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Hit>>,
}

impl Best {
    fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::with_capacity(limit + 1) }
    }

    fn offer(&mut self, hit: Hit) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit > worst.0
        {
            *worst = Reverse(hit);
        }
    }

    fn into_vec(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(hit)| hit).collect()
    }
}

/// The index.
pub struct Index {
    dimension: usize,
    numbers: Vec<i64>,
    /// The group of each passage; callers give the numbers their meaning.
    groups: Vec<u16>,
    codes: Vec<i8>,
    /// 0 without a vector, or with one of another model.
    scales: Vec<f32>,
    /// Number of terms of each passage.
    lengths: Vec<u16>,
    alive: Vec<bool>,
    dead: usize,
    total_terms: u64,
    /// The postings of each term: the position in 24 bits, the frequency in 8.
    postings: HashMap<u32, Vec<u32>>,
    posting_count: usize,
    positions: HashMap<i64, u32>,
}

impl Index {
    /// An empty index for vectors of this dimension.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            numbers: Vec::new(),
            groups: Vec::new(),
            codes: Vec::new(),
            scales: Vec::new(),
            lengths: Vec::new(),
            alive: Vec::new(),
            dead: 0,
            total_terms: 0,
            postings: HashMap::new(),
            posting_count: 0,
            positions: HashMap::new(),
        }
    }

    /// The number of searchable passages.
    pub fn len(&self) -> usize {
        self.numbers.len() - self.dead
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether so many passages were removed that it should be rebuilt.
    pub fn is_sparse(&self) -> bool {
        self.dead > 1000 && self.dead * 3 > self.numbers.len()
    }

    /// Its approximate size in memory.
    pub fn bytes(&self) -> usize {
        self.codes.len() + self.numbers.len() * 48 + self.posting_count * 6 + self.postings.len() * 48
    }

    /// Adds a passage, or replaces the one with this number. Without a vector it is found by its terms alone.
    pub fn insert(&mut self, number: i64, group: u16, code: Option<&[u8]>, terms: &[u8]) {
        if self.numbers.len() >= MAX_PASSAGES {
            return;
        }
        self.remove(number);
        let Ok(position) = u32::try_from(self.numbers.len()) else { return };
        let code = code.filter(|code| code.len() == self.dimension + 4);
        let (scale, codes) = code.and_then(|code| code.split_first_chunk::<4>()).unzip();
        match codes {
            Some(codes) => self.codes.extend(codes.iter().map(|code| code.cast_signed())),
            None => self.codes.extend(std::iter::repeat_n(0, self.dimension)),
        }
        self.scales.push(scale.map_or(0.0, |scale| f32::from_le_bytes(*scale)));
        let mut length: u16 = 0;
        let (terms, _) = terms.as_chunks::<TERM_BYTES>();
        for [a, b, c, d, count] in terms {
            let term = u32::from_le_bytes([*a, *b, *c, *d]);
            self.postings.entry(term).or_default().push(position << 8 | u32::from(*count));
            length = length.saturating_add(u16::from(*count));
        }
        self.posting_count += terms.len();
        self.lengths.push(length);
        self.total_terms += u64::from(length);
        self.numbers.push(number);
        self.groups.push(group);
        self.alive.push(true);
        self.positions.insert(number, position);
    }

    /// Removes a passage.
    pub fn remove(&mut self, number: i64) {
        if let Some(position) = self.positions.remove(&number) {
            self.alive[position as usize] = false;
            self.total_terms -= u64::from(self.lengths[position as usize]);
            self.dead += 1;
        }
    }

    /// The passages with the nearest vectors, best first, within the given groups.
    pub fn nearest(&self, query: &[f32], limit: usize, in_group: impl Fn(u16) -> bool) -> Vec<Hit> {
        let mut best = Best::new(limit);
        if query.len() != self.dimension || limit == 0 {
            return Vec::new();
        }
        let (scale, query) = quantise(query);
        let query: Vec<i16> = query.into_iter().map(i16::from).collect();
        let rows = self.codes.chunks_exact(self.dimension);
        for (position, (codes, own_scale)) in rows.zip(&self.scales).enumerate() {
            if *own_scale == 0.0 || !self.alive[position] || !in_group(self.groups[position]) {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "digits beyond the seventh do not matter here")]
            let score = dot(codes, &query) as f32 * own_scale * scale;
            best.offer(Hit { number: self.numbers[position], score });
        }
        best.into_vec()
    }

    /// The passages with the best BM25 scores for the terms, best first, within the given groups.
    #[expect(clippy::cast_precision_loss, reason = "digits beyond the seventh do not matter here")]
    pub fn matching(&self, terms: &[u32], limit: usize, in_group: impl Fn(u16) -> bool) -> Vec<Hit> {
        if self.is_empty() || limit == 0 {
            return Vec::new();
        }
        let count = self.len() as f32;
        let mean_length = (self.total_terms as f32 / count).max(1.0);
        let mut scores = vec![0.0_f32; self.numbers.len()];
        for term in terms {
            let Some(postings) = self.postings.get(term) else { continue };
            let found = (postings.len() as f32).min(count);
            let weight = (1.0 + (count - found + 0.5) / (found + 0.5)).ln();
            for posting in postings {
                let (position, times) = ((posting >> 8) as usize, (posting & 255) as f32);
                let length = f32::from(self.lengths[position]) / mean_length;
                let damped = times + SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
                scores[position] += weight * times * (SATURATION + 1.0) / damped;
            }
        }
        let mut best = Best::new(limit);
        for (position, score) in scores.into_iter().enumerate() {
            if score > 0.0 && self.alive[position] && in_group(self.groups[position]) {
                best.offer(Hit { number: self.numbers[position], score });
            }
        }
        best.into_vec()
    }
}

/// The dot product of two vectors, in lanes that the compiler vectorises.
fn dot(codes: &[i8], query: &[i16]) -> i32 {
    const LANES: usize = 32;
    let (codes, codes_rest) = codes.as_chunks::<LANES>();
    let (query, query_rest) = query.as_chunks::<LANES>();
    let product = |(code, query): (&i8, &i16)| i32::from(*code) * i32::from(*query);
    let mut sum = 0;
    for (codes, query) in codes.iter().zip(query) {
        sum += codes.iter().zip(query).map(product).sum::<i32>();
    }
    sum + codes_rest.iter().zip(query_rest).map(product).sum::<i32>()
}

/// The weight of the list by vectors when lists are fused.
pub const VECTOR_WEIGHT: f64 = 1.0;
/// The weight of the list by terms. Lower: most questions share their common words with many texts. Tuned with the
/// damping below on the questions of `scripts/make-recall-set`, where equal weights are worse than vectors alone.
pub const TERM_WEIGHT: f64 = 0.5;

/// Fuses ranked lists with their weights (reciprocal rank fusion). The first of all lists has the score 1.
pub fn fuse(lists: &[(f64, &[i64])]) -> Vec<(i64, f64)> {
    /// The damping of reciprocal rank fusion.
    const DAMPING: f64 = 5.0;
    let best: f64 = lists.iter().map(|(weight, _)| weight).sum::<f64>() / (DAMPING + 1.0);
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for (weight, list) in lists {
        for (rank, number) in (0_u32..).zip(*list) {
            *scores.entry(*number).or_default() += weight / (DAMPING + 1.0 + f64::from(rank)) / best;
        }
    }
    let mut fused: Vec<(i64, f64)> = scores.into_iter().collect();
    fused.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(hits: &[Hit]) -> Vec<i64> {
        hits.iter().map(|hit| hit.number).collect()
    }

    fn filled() -> Index {
        let mut index = Index::new(4);
        index.insert(1, 0, Some(&encode(&[1.0, 0.0, 0.0, 0.0])), &encode_terms(&[10, 11, 11]));
        index.insert(2, 0, Some(&encode(&[0.8, 0.6, 0.0, 0.0])), &encode_terms(&[10, 12]));
        index.insert(3, 1, Some(&encode(&[0.0, 1.0, 0.0, 0.0])), &encode_terms(&[13]));
        index.insert(4, 1, None, &encode_terms(&[11]));
        index
    }

    #[test]
    fn the_nearest_come_first() {
        let index = filled();
        let hits = index.nearest(&[1.0, 0.1, 0.0, 0.0], 10, |_| true);
        assert_eq!(numbers(&hits), [1, 2, 3]);
        assert_eq!(numbers(&index.nearest(&[0.0, 1.0, 0.0, 0.0], 1, |_| true)), [3]);
        assert_eq!(numbers(&index.nearest(&[0.0, 1.0, 0.0, 0.0], 9, |group| group == 0)), [2, 1]);
        assert!(index.nearest(&[1.0], 10, |_| true).is_empty());
    }

    #[test]
    fn rare_words_count_more() {
        let index = filled();
        assert_eq!(numbers(&index.matching(&[11], 10, |_| true)), [4, 1]);
        assert_eq!(numbers(&index.matching(&[10, 12], 10, |_| true)), [2, 1]);
        assert!(index.matching(&[99], 10, |_| true).is_empty());
    }

    #[test]
    fn passages_come_and_go() {
        let mut index = filled();
        index.remove(1);
        index.remove(1);
        assert_eq!((index.len(), numbers(&index.nearest(&[1.0, 0.0, 0.0, 0.0], 1, |_| true))), (3, vec![2]));
        index.insert(2, 0, Some(&encode(&[0.0, 0.0, 1.0, 0.0])), &encode_terms(&[14]));
        assert_eq!(numbers(&index.nearest(&[0.0, 0.0, 1.0, 0.0], 1, |_| true)), [2]);
        assert!(index.matching(&[12], 10, |_| true).is_empty());
        assert_eq!(index.len(), 3);
    }

    #[test]
    fn lists_are_fused_by_rank() {
        let fused = fuse(&[(VECTOR_WEIGHT, &[1, 2, 3]), (TERM_WEIGHT, &[3, 4])]);
        assert_eq!(fused.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 1, 2, 4]);
        assert_eq!(fuse(&[(VECTOR_WEIGHT, &[1]), (TERM_WEIGHT, &[1, 2])]).first(), Some(&(1, 1.0)));
    }
}
