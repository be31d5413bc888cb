//! Preprocessing of CSS: removes comments, and resolves quotation marks and escapes.
//!
//! Escaped and quoted characters are masked, so that they cannot end a rule and are no keyword; [`unmask`] restores
//! them.

/// Marks syntax characters that were escaped or in a string.
const MASK: u32 = 0xe000;

/// Replaces a comment: nothing in a selector, white space in a value.
pub(super) const SEAM: char = '\u{e080}';

/// Where a string begins or ends.
pub(super) const QUOTE: char = '\u{e081}';

/// Takes comments out of CSS, resolves escapes and strings, folds white space.
pub(super) fn prepare(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut chars = css.chars().peekable();
    let (mut quote, mut depth) = (None, 0_usize);
    while let Some(c) = chars.next() {
        match c {
            '\\' => push_masked(&mut out, read_escape(&mut chars)),
            _ if quote == Some(c) || (quote.is_some() && c == '\n') => {
                quote = None;
                out.push(QUOTE);
            }
            _ if quote.is_some() => push_masked(&mut out, Some(c)),
            '"' | '\'' => {
                quote = Some(c);
                out.push(QUOTE);
            }
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                skip_comment(&mut chars);
                out.push(SEAM);
            }
            '(' if ends_in_url(&out) => {
                out.push(c);
                skip_address(&mut chars);
            }
            _ if c.is_ascii_whitespace() => push_space(&mut out),
            // `<!--` and `-->` around a style sheet are ignored.
            '-' if depth == 0 && out.ends_with("<!-") => out.truncate(out.len().saturating_sub(3)),
            '>' if depth == 0 && out.ends_with("--") => out.truncate(out.len().saturating_sub(2)),
            _ => {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                out.push(if is_reserved(c) { char::REPLACEMENT_CHARACTER } else { c });
            }
        }
    }
    out
}

/// Characters that are used as masks here.
fn is_reserved(c: char) -> bool {
    matches!(c, '\0' | '\u{e000}'..='\u{e0ff}')
}

/// Whether a text can be part of a name.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii() && c != SEAM
}

fn ends_in_url(out: &str) -> bool {
    let mut last = out.chars().rev();
    let word: Vec<char> = last.by_ref().take(3).map(|c| c.to_ascii_lowercase()).collect();
    word == ['l', 'r', 'u'] && last.next().is_none_or(|c| !is_name(c))
}

/// Skips an unquoted URL: only the bracket ends it.
fn skip_address(chars: &mut Chars<'_>) {
    while chars.next_if(char::is_ascii_whitespace).is_some() {}
    if matches!(chars.peek(), Some('"' | '\'')) {
        return;
    }
    while let Some(c) = chars.next_if(|c| *c != ')') {
        if c == '\\' {
            chars.next();
        }
    }
}

/// A selector without the seams of comments; `None` where one separates two names.
pub(super) fn without_seams(text: &str) -> Option<String> {
    if !text.contains(SEAM) {
        return Some(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut after_seam = false;
    for c in text.chars() {
        if c == SEAM {
            after_seam = true;
            continue;
        }
        if after_seam && is_name(c) && out.ends_with(is_name) {
            return None;
        }
        after_seam = false;
        out.push(c);
    }
    Some(out)
}

/// Declarations in lower case, with white space instead of comments.
pub(super) fn lower(text: &str) -> String {
    let mut text = text.replace(SEAM, " ");
    text.make_ascii_lowercase();
    text
}

fn push_space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

fn push_masked(out: &mut String, c: Option<char>) {
    match c {
        None => {}
        Some(c) if c.is_ascii() && !c.is_ascii_alphabetic() && !matches!(c, '-' | '_') => {
            out.extend(char::from_u32(MASK + u32::from(c)));
        }
        Some(c) if is_reserved(c) => out.push(char::REPLACEMENT_CHARACTER),
        Some(c) => out.push(c),
    }
}

/// Restores what [`prepare`] masked.
pub(super) fn unmask(text: &str) -> String {
    text.chars()
        .map(|c| match u32::from(c).checked_sub(MASK) {
            Some(code) if code < 0x80 => char::from_u32(code).unwrap_or(c),
            _ => c,
        })
        .collect()
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_comment(chars: &mut Chars<'_>) {
    let mut after_star = false;
    for c in chars {
        if after_star && c == '/' {
            return;
        }
        after_star = c == '*';
    }
}

/// Reads what follows a backslash; an escaped line end is nothing.
fn read_escape(chars: &mut Chars<'_>) -> Option<char> {
    let mut value = 0;
    let mut digits = 0;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)).filter(|_| digits < 6) {
        value = value * 16 + digit;
        digits += 1;
        chars.next();
    }
    if digits == 0 {
        return chars.next().filter(|c| *c != '\n');
    }
    chars.next_if(char::is_ascii_whitespace);
    Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
}
