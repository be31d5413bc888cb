//! The words of a text as they are compared: lower case, compatible forms alike, without punctuation.

use std::{borrow::Cow, ops::Range};

use unicode_normalization::UnicodeNormalization;

/// What a word weighs. A character of a script without spaces weighs one.
pub(super) const WORD_WEIGHT: usize = 2;

/// A word, or a character of a script without spaces.
pub(super) struct Unit<'a> {
    pub(super) word: Cow<'a, str>,
    pub(super) range: Range<usize>,
    pub(super) weight: usize,
}

pub(super) fn units(text: &str) -> Vec<Unit<'_>> {
    let mut units = Vec::with_capacity(text.len() / 6);
    let mut start = None;
    for (offset, character) in text.char_indices() {
        let end = offset + character.len_utf8();
        if stands_alone(character) {
            add(&mut units, text, start.take(), offset);
            units.push(Unit { word: normal(&text[offset..end]), range: offset..end, weight: 1 });
        } else if character.is_alphanumeric() || start.is_some() && joins(character, &text[end..]) {
            start.get_or_insert(offset);
        } else {
            add(&mut units, text, start.take(), offset);
        }
    }
    add(&mut units, text, start, text.len());
    units
}

fn add<'a>(units: &mut Vec<Unit<'a>>, text: &'a str, start: Option<usize>, end: usize) {
    if let Some(start) = start {
        let word = normal(&text[start..end]);
        if !word.is_empty() {
            units.push(Unit { word, range: start..end, weight: WORD_WEIGHT });
        }
    }
}

/// Whether a character within a word is no end of it: apostrophes, which are written in several ways, combining marks, and
/// what has no width.
fn joins(character: char, rest: &str) -> bool {
    matches!(character, '\'' | '’' | '\u{2bc}') && rest.starts_with(char::is_alphanumeric)
        || matches!(character, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// Scripts that put no spaces between words.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9d}' // Kana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}') // Han
        && character.is_alphanumeric()
}

fn normal(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let lower = word.nfkc().flat_map(char::to_lowercase);
    Cow::Owned(lower.filter(|character| character.is_alphanumeric()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        units(text).into_iter().map(|unit| unit.word.into_owned()).collect()
    }

    #[test]
    fn words_are_compared_without_their_looks() {
        assert_eq!(words("> Don’t  PANIC,\n> it's “ﬁne”!"), ["dont", "panic", "its", "fine"]);
        assert_eq!(words("明日10時に"), ["明", "日", "10", "時", "に"]);
        assert_eq!(words("e\u{301}t\u{e9} co\u{ad}operate"), ["été", "cooperate"]);
    }
}
