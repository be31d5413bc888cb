//! Which characters safe text may hold, and how any text becomes such text.
//!
//! Everything that a reader cannot see, or that changes how others are seen, goes: zero-width characters, bidirectional
//! controls, tags, variation selectors, fillers, controls, private use. Joiners go as well, also where Persian or an
//! emoji sequence would use them: one rule without exceptions can be proven, and the letters stay readable.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most combining marks on one base character: enough for every living script, too few to bury a line.
const MAX_MARKS: usize = 3;

/// The most marks that are even looked at, so that normalising has short runs to sort.
const MAX_RAW_MARKS: usize = 16;

/// Whether a character never occurs in safe text.
///
/// That is everything invisible or without a meaning of its own, and every space but the plain one.
pub fn is_forbidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n';
    }
    is_other_space(c) || is_line_break(c) || is_invisible(c)
}

/// Spaces that fold to the plain one. The blank Braille pattern is one by its looks.
fn is_other_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Characters beyond ASCII that end a line.
fn is_line_break(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Characters beyond ASCII that show nothing, steer others, or mean nothing outside one program.
fn is_invisible(c: char) -> bool {
    let steers_or_hides = matches!(c,
        '\u{80}'..='\u{9f}'                            // C1 controls
        | '\u{ad}' | '\u{34f}' | '\u{61c}'             // soft hyphen, grapheme joiner, Arabic letter mark
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{16fe4}' // fillers
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffc}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'); // tags, further variation selectors
    let private_use = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let noncharacter = matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
    steers_or_hides || private_use || noncharacter
}

/// Makes text of several lines safe: allowed characters in NFC, one space between words, one empty line at most.
pub(super) fn clean_lines(text: &str) -> String {
    fold_lines(&normalise(text))
}

/// Makes text of one line safe.
pub(super) fn clean_line(text: &str) -> String {
    let normal = normalise(text);
    let mut line = String::with_capacity(normal.len());
    push_words(&mut line, &normal);
    line
}

/// Drops and folds characters, then composes; line ends become `\n`.
fn normalise(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut marks = 0;
    let mut after_return = false;
    for c in text.chars() {
        let ends_return = std::mem::replace(&mut after_return, c == '\r');
        let folded = match c {
            '\n' if ends_return => continue,
            '\n' | '\r' | '\u{b}' | '\u{c}' => '\n',
            '\t' => ' ',
            _ if !is_forbidden(c) => c,
            _ if is_line_break(c) => '\n',
            _ if is_other_space(c) => ' ',
            _ => continue,
        };
        if count_marks(&mut marks, folded) <= MAX_RAW_MARKS {
            kept.push(folded);
        }
    }
    if kept.is_ascii() {
        return kept;
    }
    marks = 0;
    kept.nfc().filter(|c| count_marks(&mut marks, *c) <= MAX_MARKS).collect()
}

/// How many marks stand in a row, up to and with this character.
fn count_marks(marks: &mut usize, c: char) -> usize {
    *marks = if !c.is_ascii() && is_combining_mark(c) { *marks + 1 } else { 0 };
    *marks
}

/// Folds spaces within lines and empty lines between them.
fn fold_lines(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut empty_lines = 0;
    for line in text.split('\n') {
        let before = folded.len();
        if before > 0 {
            folded.push_str(if empty_lines > 0 { "\n\n" } else { "\n" });
        }
        let start = folded.len();
        push_words(&mut folded, line);
        if folded.len() == start {
            folded.truncate(before);
            empty_lines += 1;
        } else {
            empty_lines = 0;
        }
    }
    folded
}

/// Appends the words of a text with one space between them.
fn push_words(out: &mut String, text: &str) {
    let words = text.split([' ', '\n']).filter(|word| !word.is_empty());
    for (position, word) in words.enumerate() {
        if position > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
}
