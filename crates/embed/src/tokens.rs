//! The word-piece tokenizer of the model: lower case, without accents.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Longer words become the unknown token.
const MAX_WORD_CHARS: usize = 100;

/// The vocabulary, by text. Pieces inside a word start with `##`.
pub(crate) struct Vocabulary {
    numbers: HashMap<&'static str, u16>,
    unknown: u16,
    start: u16,
    end: u16,
}

impl Vocabulary {
    pub(crate) fn parse(lines: &'static str) -> Self {
        let numbers: HashMap<&str, u16> = lines.lines().zip(0..).collect();
        let of = |piece: &str| numbers.get(piece).copied().unwrap_or_default();
        Self { unknown: of("[UNK]"), start: of("[CLS]"), end: of("[SEP]"), numbers }
    }

    /// The tokens of a text between the markers of its ends, at most so many in all.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<u16> {
        let max_tokens = limit.saturating_sub(1);
        let mut tokens = vec![self.start];
        let mut word = String::new();
        // A token has at least one character, so text far behind cannot count; words are never that long.
        for character in text.chars() {
            if tokens.len() >= max_tokens {
                break;
            }
            self.add_character(character, &mut word, &mut tokens);
        }
        self.finish(&mut word, &mut tokens);
        tokens.truncate(max_tokens.max(1));
        tokens.push(self.end);
        tokens
    }

    fn add_character(&self, character: char, word: &mut String, tokens: &mut Vec<u16>) {
        if character.is_ascii_alphanumeric() {
            return word.push(character.to_ascii_lowercase());
        }
        if character.is_whitespace() {
            return self.finish(word, tokens);
        }
        if is_dropped(character) {
            return;
        }
        if is_ideograph(character) {
            self.finish(word, tokens);
            word.push(character);
            return self.finish(word, tokens);
        }
        for folded in character.to_lowercase().nfd() {
            if folded.general_category() == GeneralCategory::NonspacingMark {
                continue;
            }
            if is_punctuation(folded) {
                self.finish(word, tokens);
                word.push(folded);
                self.finish(word, tokens);
            } else {
                word.push(folded);
            }
        }
    }

    /// Splits a word into the longest known pieces, from its start.
    fn finish(&self, word: &mut String, tokens: &mut Vec<u16>) {
        if word.is_empty() {
            return;
        }
        let known = tokens.len();
        let mut rest = word.as_str();
        let mut piece = String::with_capacity(word.len() + 2);
        let is_short = word.len() <= MAX_WORD_CHARS || word.chars().count() <= MAX_WORD_CHARS;
        while !rest.is_empty() {
            let found = is_short.then(|| self.longest(rest, known < tokens.len(), &mut piece)).flatten();
            let Some((token, length)) = found else {
                tokens.truncate(known);
                tokens.push(self.unknown);
                break;
            };
            tokens.push(token);
            rest = &rest[length..];
        }
        word.clear();
    }

    /// The longest known piece at the start of a text, and its length in bytes.
    fn longest(&self, text: &str, goes_on: bool, piece: &mut String) -> Option<(u16, usize)> {
        piece.clear();
        piece.push_str(if goes_on { "##" } else { "" });
        let mark = piece.len();
        piece.push_str(text);
        while piece.len() > mark {
            if let Some(token) = self.numbers.get(piece.as_str()) {
                return Some((*token, piece.len() - mark));
            }
            piece.pop();
        }
        None
    }
}

fn is_dropped(character: char) -> bool {
    character == '\u{fffd}' || character.general_category_group() == GeneralCategoryGroup::Other
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || character.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Characters that are words of their own.
fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}
