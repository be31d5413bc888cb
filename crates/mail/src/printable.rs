//! Text of strangers on its way into a log or onto a terminal: on one line, of bounded length, with nothing in it that
//! ends a line, moves the cursor or turns the text around.

use crate::message::is_hidden;

/// A text as it can be shown, cut to so many characters. What shows nothing by itself becomes a question mark.
pub fn printable(text: &str, most: usize) -> String {
    let mut letters = text.chars();
    let mut shown = String::with_capacity(text.len().min(most));
    for letter in letters.by_ref().take(most) {
        shown.push(if is_hidden(letter) || letter.is_control() { '?' } else { letter });
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_line_or_hides() {
        for (text, shown) in [
            ("plain and accented: é", "plain and accented: é"),
            ("a\r\nb\tc\0d", "a??b?c?d"),
            ("a\u{85}b\u{2028}c\u{2029}d", "a?b?c?d"),
            ("\u{1b}[31mred\u{9b}0m", "?[31mred?0m"),
            ("\u{202e}txt.exe\u{200b}\u{feff}", "?txt.exe??"),
        ] {
            assert_eq!(printable(text, 100), shown, "{text:?}");
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
