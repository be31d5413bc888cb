//! Replies of the server: a code, an enhanced code (RFC 3463) and lines of text, within bounds.

use std::fmt;

/// The longest line that is read; the standard says 512, servers do not care.
pub(super) const MAX_LINE_BYTES: usize = 2048;

/// The most lines of one reply.
pub(super) const MAX_LINES: usize = 128;

/// The most bytes of one reply.
pub(super) const MAX_REPLY_BYTES: usize = 32 * 1024;

/// How much of its text is kept for people to read, in characters.
const MAX_TEXT_CHARS: usize = 1000;

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    enhanced: Option<String>,
    lines: Vec<String>,
}

impl Reply {
    /// A reply made here, where the server need not be asked.
    pub(super) fn own(code: u16, enhanced: &str, text: &str) -> Self {
        Self { code, enhanced: Some(enhanced.to_owned()), lines: vec![text.to_owned()] }
    }

    /// The three digits.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The enhanced code such as `5.1.1`, where there is one.
    pub fn enhanced(&self) -> Option<&str> {
        self.enhanced.as_deref()
    }

    /// The text on one line, without the enhanced code and without control characters; at most 1000 characters.
    pub fn text(&self) -> String {
        let words = self.lines.iter().map(|line| self.without_enhanced(line)).filter(|line| !line.is_empty());
        words.collect::<Vec<_>>().join(" ").chars().take(MAX_TEXT_CHARS).collect()
    }

    /// Whether it is a positive completion (2yz).
    pub fn is_positive(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether it is a permanent failure (5yz).
    pub fn is_permanent(&self) -> bool {
        (500..600).contains(&self.code)
    }

    /// Whether it is a transient failure (4yz).
    pub fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    /// The lines as they were given.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    fn without_enhanced<'a>(&self, line: &'a str) -> &'a str {
        let enhanced = self.enhanced.as_deref().unwrap_or_default();
        match line.strip_prefix(enhanced) {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => rest.trim(),
            _ => line.trim(),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(enhanced) = &self.enhanced {
            write!(f, " {enhanced}")?;
        }
        write!(f, " {}", self.text())
    }
}

/// A reply while its lines come in.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    code: Option<u16>,
    lines: Vec<String>,
    bytes: usize,
}

impl PartialReply {
    /// Adds a line without its end; returns the reply after the last one.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<Option<Reply>, &'static str> {
        self.bytes += line.len();
        if self.bytes > MAX_REPLY_BYTES || self.lines.len() >= MAX_LINES {
            return Err("a reply without end");
        }
        let (code, last, text) = split(line).ok_or("a reply without a code")?;
        if self.code.is_some_and(|first| first != code) {
            return Err("a reply with two codes");
        }
        self.code = Some(code);
        self.lines.push(clean(text));
        if !last {
            return Ok(None);
        }
        let lines = std::mem::take(&mut self.lines);
        let enhanced = lines.first().and_then(|line| enhanced(code, line));
        Ok(Some(Reply { code, enhanced, lines }))
    }
}

/// Splits `250-text` into its code, whether it is the last line, and its text.
fn split(line: &[u8]) -> Option<(u16, bool, &[u8])> {
    let (digits, rest) = line.split_at_checked(3)?;
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let code: u16 = digits.parse().ok().filter(|code| (200..600).contains(code))?;
    match rest {
        [] => Some((code, true, rest)),
        [b' ', text @ ..] => Some((code, true, text)),
        [b'-', text @ ..] => Some((code, false, text)),
        _ => None,
    }
}

/// Untrusted text without control characters.
fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The enhanced code that a line begins with, if it goes with the code.
fn enhanced(code: u16, line: &str) -> Option<String> {
    let word = line.split(' ').next()?;
    let parts: Vec<&str> = word.split('.').collect();
    let small = |part: &&str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let [class, _, _] = parts.as_slice() else { return None };
    let fits = parts.iter().all(small) && class.parse() == Ok(code / 100);
    fits.then(|| word.to_owned())
}
