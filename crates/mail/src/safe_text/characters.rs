//! Which characters safe text may contain, and how any text becomes such text.
//!
//! Everything that a person cannot see, or that changes how others are displayed, is removed: zero-width characters,
//! bidirectional controls, tags, variation selectors, fillers, controls, private use. Joiners are removed as well, also
//! where Persian or an emoji sequence would use them: one rule without exceptions can be proven, and the text stays
//! readable.

use memchr::memmem;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// The most combining marks on one base character: enough for every living script, too few to bury a line.
const MAX_MARKS: usize = 3;

/// Marks that are read at most, so that normalising has short runs to sort.
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

/// Spaces that fold to the plain one. The blank Braille pattern looks like one.
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

/// Non-ASCII characters that are invisible, control others, or are for private use.
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
    if is_plain(text.as_bytes()) { fold_lines(text) } else { fold_lines(&normalise(text)) }
}

/// Whether normalising would change nothing: letters, digits, signs, spaces and line feeds of ASCII, as most mail is.
fn is_plain(text: &[u8]) -> bool {
    // In chunks of one size without an early exit, so that the compiler vectorises the comparison.
    let (pieces, rest) = text.as_chunks::<32>();
    let plain = |piece: &[u8]| {
        piece.iter().fold(true, |plain, &byte| plain & (byte.wrapping_sub(b' ') < 0x5f || byte == b'\n'))
    };
    pieces.iter().all(|piece| plain(piece)) && plain(rest)
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
    let (mut marks, mut most_marks) = (0, 0);
    let mut after_return = false;
    let mut rest = text;
    loop {
        // Most characters stay as they are, in runs.
        let run = rest.bytes().take_while(|byte| matches!(byte, b' '..=b'~')).count();
        if run > 0 {
            kept.push_str(rest.get(..run).unwrap_or_default());
            (marks, after_return) = (0, false);
            rest = rest.get(run..).unwrap_or_default();
        }
        let Some(c) = rest.chars().next() else { break };
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
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
        most_marks = most_marks.max(marks);
    }
    // Composing would give the same characters again.
    let is_composed = kept.is_ascii() || is_nfc_quick(kept.chars()) == IsNormalized::Yes;
    if is_composed && most_marks <= MAX_MARKS {
        return kept;
    }
    marks = 0;
    kept.nfc().filter(|c| count_marks(&mut marks, *c) <= MAX_MARKS).collect()
}

/// The number of consecutive marks, including this character.
fn count_marks(marks: &mut usize, c: char) -> usize {
    *marks = if !c.is_ascii() && is_combining_mark(c) { *marks + 1 } else { 0 };
    *marks
}

/// Folds spaces within lines and empty lines between them.
fn fold_lines(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut empty_lines = 0;
    let single = memmem::find(text.as_bytes(), b"  ").is_none();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let line;
        (line, rest) = match memchr::memchr(b'\n', text.as_bytes()).and_then(|end| text.split_at_checked(end))
        {
            Some((line, after)) => (line, after.get(1..)),
            None => (text, None),
        };
        let before = folded.len();
        if before > 0 {
            folded.push_str(if empty_lines > 0 { "\n\n" } else { "\n" });
        }
        let start = folded.len();
        if single && !line.starts_with(' ') && !line.ends_with(' ') {
            folded.push_str(line);
        } else {
            push_words(&mut folded, line);
        }
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
