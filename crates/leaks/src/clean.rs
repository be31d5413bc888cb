//! The text as it is searched: without what hides a value from a search but not from a reader, such as characters
//! without width, full-width digits and soft line breaks, with the way back to the text as it was given.

use std::{borrow::Cow, ops::Range};

/// A searchable text.
pub(crate) struct CleanText<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Where the two texts drift apart: from this byte of the clean text on, that byte of the original. In order.
    offsets: Vec<(usize, usize)>,
}

/// Soft line breaks of quoted-printable stand in lines of about 76 characters.
const SOFT_BREAK_COLUMNS: Range<usize> = 70..79;

impl<'a> CleanText<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        if text.is_ascii() && !text.contains("=\n") && !text.contains("=\r\n") {
            return Self { text: Cow::Borrowed(text), offsets: Vec::new() };
        }
        let (mut clean, mut offsets) = (String::with_capacity(text.len()), vec![(0, 0)]);
        let (mut line_start, mut skip_until) = (0, 0);
        for (offset, character) in text.char_indices() {
            if offset < skip_until {
                continue;
            }
            let rest = &text[offset..];
            let soft_break = match character {
                '=' if rest.starts_with("=\n") => 2,
                '=' if rest.starts_with("=\r\n") => 3,
                _ => 0,
            };
            let end = if soft_break > 0 && SOFT_BREAK_COLUMNS.contains(&(offset - line_start)) {
                skip_until = offset + soft_break;
                line_start = skip_until;
                skip_until
            } else {
                if character == '\n' {
                    line_start = offset + 1;
                }
                if let Some(plain) = plain(character) {
                    clean.push(plain);
                }
                offset + character.len_utf8()
            };
            if offsets.last().is_some_and(|(from, to)| clean.len() - from != end - to) {
                offsets.push((clean.len(), end));
            }
        }
        Self { text: Cow::Owned(clean), offsets }
    }

    /// The bytes of the original text that a range of the clean one stands for, with what was left out behind it.
    pub(crate) fn original(&self, range: &Range<usize>) -> Range<usize> {
        self.position(range.start)..self.position(range.end)
    }

    fn position(&self, offset: usize) -> usize {
        let index = self.offsets.partition_point(|(from, _)| *from <= offset);
        let (from, to) = index.checked_sub(1).map_or((0, 0), |index| self.offsets[index]);
        to + (offset - from)
    }
}

/// What a character is searched as; nothing if it has no width.
fn plain(character: char) -> Option<char> {
    Some(match character {
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => {
            return None;
        }
        '\u{ff01}'..='\u{ff5e}' => {
            u32::from(character).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(character)
        }
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{201a}' => '\'',
        '\u{201c}'..='\u{201e}' | '\u{ab}' | '\u{bb}' => '"',
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original<'a>(text: &'a str, part: &str) -> &'a str {
        let clean = CleanText::new(text);
        let start = clean.text.find(part).unwrap();
        &text[clean.original(&(start..start + part.len()))]
    }

    #[test]
    fn what_hides_a_value_is_left_out() {
        assert_eq!(original("a to\u{200b}ken b", "token"), "to\u{200b}ken");
        assert_eq!(original("é １２３ é", "123"), "１２３");
        assert_eq!(original("plain é text", "text"), "text");
        let line = "x".repeat(75);
        assert_eq!(original(&format!("{line}=\nyz é"), "xyz"), "x=\nyz");
        assert_eq!(CleanText::new("a=\nb").text, "a=\nb");
    }
}
