//! Secrets: one automaton finds the literals with which shapes begin, and the pattern of each is tried there only.
//!
//! Patterns are anchored and look at most [`MAX_SHAPE_BYTES`] ahead, so that the work is linear in the length of the text
//! whatever it holds.

mod candidate;
mod checks;
mod names;
mod settings;
mod shape;
mod shapes;

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use self::{candidate::Candidate, shape::Shape, shapes::SHAPES};
use crate::{automaton::Automaton, finding::Mask};
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// How far the pattern of a shape reaches from where it begins.
const MAX_SHAPE_BYTES: usize = 4096;
/// How long a value is whose pattern only matches its beginning: a private key of many lines.
const MAX_VALUE_BYTES: usize = 16_384;
/// Candidates that are looked at before overlaps are resolved; a text with more has enough findings.
const MAX_CANDIDATES: usize = 400;

/// A value with the row of the table that it satisfies.
pub(crate) struct Secret {
    pub(crate) name: &'static str,
    pub(crate) range: Range<usize>,
    pub(crate) mask: Mask,
    rank: usize,
}

/// All rows, compiled.
struct Table {
    rows: Vec<&'static Shape>,
    literals: AhoCorasick,
    /// The rows that begin with each literal.
    rows_of_literal: Vec<Vec<usize>>,
    leads: Automaton,
    values: Automaton,
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(Table::compile);

impl Table {
    /// Nothing if a pattern is wrong, which a test rules out.
    fn compile() -> Option<Self> {
        let rows: Vec<&'static Shape> = SHAPES.iter().flat_map(|part| part.iter()).collect();
        let (mut literals, mut rows_of_literal) = (Vec::new(), Vec::<Vec<usize>>::new());
        let mut known = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            for start in row.starts {
                let literal = *known.entry(start.to_ascii_lowercase()).or_insert_with(|| {
                    literals.push(*start);
                    rows_of_literal.push(Vec::new());
                    literals.len() - 1
                });
                rows_of_literal[literal].push(index);
            }
        }
        let literals = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&literals)
            .ok()?;
        let leads = Automaton::new(rows.iter().map(|row| row.lead))?;
        let values = Automaton::new(rows.iter().map(|row| row.value))?;
        Some(Self { rows, literals, rows_of_literal, leads, values })
    }

    /// Tries a row where one of its literals stands.
    fn candidate<'a>(&self, text: &'a str, row: usize, hit: usize) -> Option<Candidate<'a>> {
        let shape = self.rows[row];
        let start = token_start(text, hit, shape.back);
        if shape.whole && !stands_alone(text, start) {
            return None;
        }
        let limit = text.len().min(start + MAX_SHAPE_BYTES);
        let from = if shape.lead.is_empty() { start } else { self.leads.end(text, row, start..limit)? };
        let end = self.values.end(text, row, from..limit)?;
        let range = text.floor_char_boundary(from)..text.floor_char_boundary(end);
        let is_cut = shape.whole && shape.lead.is_empty() && !ends(text, range.end);
        let candidate = Candidate { text, start, range };
        let counts = !candidate.range.is_empty() && !is_cut && (shape.check)(&candidate);
        counts.then(|| {
            let end = shape.ending.and_then(|ending| line_with(text, candidate.range.end, ending));
            Candidate { range: candidate.range.start..end.unwrap_or(candidate.range.end), ..candidate }
        })
    }
}

/// Where the line ends in which a literal stands, if that is near.
fn line_with(text: &str, from: usize, literal: &str) -> Option<usize> {
    let rest = checks::head(&text[from..], MAX_VALUE_BYTES);
    let at = rest.find(literal)?;
    let line = &rest[at..];
    let end = line.find(['\n', '"', '\'', '\\']).unwrap_or(line.len());
    Some(from + at + line[..end].trim_end().len())
}

/// The beginning of the run of token characters that a literal stands in, at most `back` bytes before it.
fn token_start(text: &str, hit: usize, back: usize) -> usize {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let run = text.as_bytes()[..hit].iter().rev().take(back).take_while(|byte| is_token(byte)).count();
    hit - run
}

/// Whether a token begins here instead of being the tail of a longer word. An escape (`\n`, `%3D`) ends a word.
fn stands_alone(text: &str, start: usize) -> bool {
    let before = &text.as_bytes()[..start];
    match before {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        // Behind a hyphen too, so that a long run of token characters is looked at once.
        [.., before, b'-'] => !before.is_ascii_alphanumeric(),
        [.., last] => !last.is_ascii_alphanumeric() && *last != b'_',
    }
}

/// Whether a token ends here.
fn ends(text: &str, end: usize) -> bool {
    text.as_bytes().get(end).is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'_')
}

/// The secrets of a text, in order, without overlaps. Of several shapes of one value the first of the table wins.
pub(crate) fn find(text: &str, max: usize) -> Vec<Secret> {
    let Some(table) = TABLE.as_ref() else { return Vec::new() };
    let mut found: Vec<Secret> = Vec::new();
    // Where the last match of each row ended: what lies within is not tried again.
    let mut ends_of_rows = vec![0; table.rows.len()];
    'hits: for hit in table.literals.find_overlapping_iter(text) {
        for row in &table.rows_of_literal[hit.pattern().as_usize()] {
            if hit.start() < ends_of_rows[*row] {
                continue;
            }
            let Some(candidate) = table.candidate(text, *row, hit.start()) else { continue };
            let shape = table.rows[*row];
            ends_of_rows[*row] = candidate.range.end;
            found.push(Secret { name: shape.name, range: candidate.range, mask: shape.mask, rank: *row });
            if found.len() >= MAX_CANDIDATES {
                break 'hits;
            }
        }
    }
    without_overlaps(found, max)
}

fn without_overlaps(mut found: Vec<Secret>, max: usize) -> Vec<Secret> {
    found.sort_by_key(|secret| (secret.range.start, secret.rank));
    let mut kept: Vec<Secret> = Vec::new();
    for secret in found {
        match kept.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                if secret.rank < last.rank {
                    *last = secret;
                }
            }
            _ => kept.push(secret),
        }
    }
    kept.truncate(max);
    kept
}

#[cfg(test)]
pub(crate) fn examples() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().flat_map(|part| part.iter()).flat_map(|row| row.matches.iter().copied())
}

#[cfg(test)]
mod tests;
