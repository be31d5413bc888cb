//! How well a message matches a query, and the highlighted passages.

use std::ops::Range;

use model::search::{
    query::Clause,
    words::{MAX_TERM_CHARS, words},
};

/// Characters shown around a match.
const HIGHLIGHT_CHARS: usize = 60;

/// Bytes of a text that highlights are searched in.
const MAX_READ_BYTES: usize = 100_000;

/// Bytes of a text that count for the score.
const MAX_RANKED_BYTES: usize = 16 * 1024;

/// Terms of a text in scripts that need case folding, which takes longer.
const MAX_RANKED_TERMS: usize = 2_000;

/// Highlights of one message.
pub(super) const MAX_HIGHLIGHTS: usize = 3;

/// Scores and highlights a message. A query has few terms, and a message is read once for all of them.
pub(super) struct Rank<'a> {
    wanted: Vec<(&'a str, bool)>,
    /// The class of each byte: most words begin with other bytes than the terms of the query.
    bytes: [u8; 256],
}

/// An ASCII letter or digit.
const WORD_BYTE: u8 = 1;

/// The first byte of a term.
const FIRST_BYTE: u8 = 2;

impl<'a> Rank<'a> {
    pub(super) fn new(clauses: &'a [Clause]) -> Self {
        let mut wanted = Vec::new();
        for clause in clauses.iter().filter(|clause| !clause.negated) {
            let last = clause.words.len().saturating_sub(1);
            for (index, word) in clause.words.iter().enumerate() {
                wanted.push((word.as_str(), clause.prefix && index == last));
            }
        }
        let mut bytes = [0; 256];
        for byte in 0..=u8::MAX {
            if byte.is_ascii_alphanumeric() {
                bytes[usize::from(byte)] = WORD_BYTE;
            }
        }
        for first in wanted.iter().filter_map(|(word, _)| word.bytes().next()) {
            bytes[usize::from(first)] |= FIRST_BYTE;
            bytes[usize::from(first.to_ascii_uppercase())] |= FIRST_BYTE;
        }
        Self { wanted, bytes }
    }

    fn is_wanted(&self, word: &str) -> bool {
        self.wanted.iter().any(|(wanted, prefix)| word == *wanted || (*prefix && word.starts_with(wanted)))
    }

    /// The matches in ASCII text, compared in place. Most of the text is skipped: only bytes that begin a term are
    /// examined.
    fn plain_matches<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let mut read = 0;
        std::iter::from_fn(move || {
            loop {
                let first = |byte: &u8| self.bytes[usize::from(*byte)] & FIRST_BYTE != 0;
                let start = read + text[read..].iter().position(first)?;
                read = start + 1;
                if !text[..start].last().is_some_and(|byte| self.is_part(*byte))
                    && let Some(length) = self.plain_match(&text[start..])
                {
                    return Some(start..start + length);
                }
            }
        })
    }

    /// Whether a byte is part of a word.
    fn is_part(&self, byte: u8) -> bool {
        self.bytes[usize::from(byte)] & WORD_BYTE != 0
    }

    /// The length of the word that a text begins with, if it matches.
    fn plain_match(&self, text: &[u8]) -> Option<usize> {
        let length = text.iter().position(|byte| !self.is_part(*byte)).unwrap_or(text.len());
        let word = &text[..length.min(MAX_TERM_CHARS)];
        let is_wanted = self.wanted.iter().any(|(wanted, prefix)| {
            let head = word.get(..wanted.len());
            let begins = head.is_some_and(|head| head.eq_ignore_ascii_case(wanted.as_bytes()));
            begins && (*prefix || word.len() == wanted.len())
        });
        is_wanted.then_some(length)
    }

    /// Whether a run of letters and digits is or contains a matching word.
    fn is_match(&self, run: &str) -> bool {
        if run.is_ascii() {
            self.plain_match(run.as_bytes()).is_some()
        } else {
            words(run, 64).iter().any(|word| self.is_wanted(word))
        }
    }

    /// The number of matches at the beginning of a text.
    fn count(&self, text: &str) -> u32 {
        let text = &text[..text.floor_char_boundary(MAX_RANKED_BYTES)];
        let found = if text.is_ascii() {
            self.plain_matches(text.as_bytes()).count()
        } else {
            words(text, MAX_RANKED_TERMS).iter().filter(|word| self.is_wanted(word)).count()
        };
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    /// From 0 to 1: matches in subject and sender weigh more than those in the text, with diminishing returns.
    pub(super) fn score(&self, lines: &[String; 3], text: &str) -> f64 {
        let weight = 4.0 * f64::from(self.count(&lines[0]))
            + 2.0 * f64::from(self.count(&lines[1]))
            + f64::from(self.count(&lines[2]))
            + f64::from(self.count(text)).ln_1p();
        let score = weight / (weight + 4.0);
        (score * 10_000.0).round() / 10_000.0
    }

    /// Passages around the first matches, with the matches between `**`.
    pub(super) fn highlights(&self, text: &str) -> Vec<String> {
        let text_read = &text[..text.floor_char_boundary(MAX_READ_BYTES)];
        if text_read.is_ascii() {
            passages(text, self.plain_matches(text_read.as_bytes()))
        } else {
            passages(text, self.matches(text_read))
        }
    }

    /// Whether the start of a text has a match with all that is shown around it, or is as much as is read.
    pub(super) fn has_passage(&self, start: &str) -> bool {
        if start.len() >= MAX_READ_BYTES {
            return true;
        }
        let first = if start.is_ascii() {
            self.plain_matches(start.as_bytes()).next()
        } else {
            self.matches(start).next()
        };
        first.is_some_and(|first| start[first.end..].chars().nth(HIGHLIGHT_CHARS).is_some())
    }

    fn matches<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        runs(text).filter(|run| self.is_match(&text[run.clone()]))
    }
}

fn passages(text: &str, matches: impl Iterator<Item = Range<usize>>) -> Vec<String> {
    let mut passages = Vec::new();
    let mut covered = 0;
    for Range { start, end } in matches {
        if start < covered {
            continue;
        }
        let from = boundary_before(text, start);
        let until = boundary_after(text, end);
        let passage = format!("{}**{}**{}", &text[from..start], &text[start..end], &text[end..until]);
        passages.push(passage.replace('\n', " "));
        covered = until;
        if passages.len() >= MAX_HIGHLIGHTS {
            break;
        }
    }
    passages
}

/// The runs of letters and digits of a text.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut indices = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = indices.find(|(_, character)| character.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        while let Some((at, character)) = indices.next_if(|(_, character)| character.is_alphanumeric()) {
            end = at + character.len_utf8();
        }
        Some(start..end)
    })
}

fn boundary_before(text: &str, at: usize) -> usize {
    text[..at].char_indices().rev().take(HIGHLIGHT_CHARS).last().map_or(at, |(index, _)| index)
}

fn boundary_after(text: &str, at: usize) -> usize {
    text[at..].char_indices().nth(HIGHLIGHT_CHARS).map_or(text.len(), |(index, _)| at + index)
}

#[cfg(test)]
mod tests {
    use model::search::query::Query;

    use super::*;

    // rules: SEARCH-3
    #[test]
    fn highlights_mark_the_words() {
        let query = Query::parse("invoice due*").unwrap();
        let rank = Rank::new(&query.clauses);
        assert_eq!(rank.highlights("Your Invoice is here"), ["Your **Invoice** is here"]);
        assert_eq!(rank.highlights("nothing"), Vec::<String>::new());
        let long = format!("{} overDUE duedate {}", "é".repeat(100), "x".repeat(100));
        assert!(rank.highlights(&long)[0].contains("**duedate**"));
        let lines = |subject: &str| [subject.to_owned(), String::new(), String::new()];
        assert!(rank.score(&lines("invoice"), "") > rank.score(&lines(""), "invoice"));
    }

    #[test]
    fn a_passage_is_a_match_with_what_is_around_it() {
        let query = Query::parse("due").unwrap();
        let rank = Rank::new(&query.clauses);
        for after in ["x", "é"] {
            let text = |chars: usize| format!("It is due {}", after.repeat(chars - 1));
            assert!(!rank.has_passage(&text(HIGHLIGHT_CHARS)));
            assert!(rank.has_passage(&text(HIGHLIGHT_CHARS + 1)));
        }
        assert!(!rank.has_passage("nothing"));
        assert!(rank.has_passage(&"nothing ".repeat(MAX_READ_BYTES / 8)));
    }

    #[test]
    fn plain_text_is_read_like_any_other() {
        let query = Query::parse("due* 7 invoice").unwrap();
        let rank = Rank::new(&query.clauses);
        let long = format!("invoice{}", "x".repeat(2 * MAX_TERM_CHARS));
        let texts =
            ["", "7", "due", "Dues,INVOICE-77 7.undue _due_", "invoices invoice", "\n due\0due", &long];
        for text in texts {
            let plain: Vec<_> = rank.plain_matches(text.as_bytes()).collect();
            let holds =
                |run: &Range<usize>| words(&text[run.clone()], 64).iter().any(|word| rank.is_wanted(word));
            assert_eq!(plain, runs(text).filter(holds).collect::<Vec<_>>(), "{text:?}");
        }
    }
}
