//! Brackets in prepared CSS: where they close, and what is outside of them.
//!
//! Strings need no handling, because preparing has masked their content.

/// Splits a text at a separator outside brackets.
pub(super) fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = (depth - 1).max(0),
            _ => {}
        }
        c == separator && depth == 0
    })
}

/// Where the bracket closes that is open at the beginning.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(place),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}
