//! Untrusted text for logs and terminals: on one line, of bounded length, without characters that end a line, move the
//! cursor or change the text direction.

use crate::message::is_hidden;

/// A printable text, cut to `max_chars` characters. Control and invisible characters become question marks.
pub fn printable(text: &str, max_chars: usize) -> String {
    let mut characters = text.chars();
    let mut printed = String::with_capacity(text.len().min(max_chars));
    for character in characters.by_ref().take(max_chars) {
        printed.push(if is_hidden(character) || character.is_control() { '?' } else { character });
    }
    if characters.next().is_some() {
        printed.push('…');
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_line_or_hides() {
        for (text, printed) in [
            ("plain and accented: é", "plain and accented: é"),
            ("a\r\nb\tc\0d", "a??b?c?d"),
            ("a\u{85}b\u{2028}c\u{2029}d", "a?b?c?d"),
            ("\u{1b}[31mred\u{9b}0m", "?[31mred?0m"),
            ("\u{202e}txt.exe\u{200b}\u{feff}", "?txt.exe??"),
        ] {
            assert_eq!(printable(text, 100), printed, "{text:?}");
        }
    }

    #[test]
    fn length_is_bounded_in_characters() {
        assert_eq!(printable("éééé", 4), "éééé");
        assert_eq!(printable("ééééé", 4), "éééé…");
        assert_eq!(printable("", 0), "");
        assert_eq!(printable("a", 0), "…");
    }
}
