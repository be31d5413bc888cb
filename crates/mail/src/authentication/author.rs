//! The author of a message, read so strictly that no other parser can see a different one.
//!
//! The header block is checked line by line before any parser sees it: one From line, names without blanks, line ends
//! of one kind. mail-parser 0.11.9 takes `Fr om:` for From and lets the last one win; its release 1.0 does not.

use mail_parser::HeaderValue;
use mail_parser::parsers::MessageStream;
use memchr::{memchr, memchr2};

use crate::address::Address;

/// The most bytes of headers that are read; a longer block is not judged.
const MAX_HEADER_BYTES: usize = 100 * 1024;

/// The most header lines that are read.
const MAX_HEADER_LINES: usize = 1000;

/// The longest From value that is read.
const MAX_FROM_BYTES: usize = 4096;

/// Headers that may occur once. A second one above a signed one would be shown without having been signed.
const SINGLE_HEADERS: [&[u8]; 11] = [
    b"cc",
    b"content-transfer-encoding",
    b"content-type",
    b"date",
    b"in-reply-to",
    b"message-id",
    b"references",
    b"reply-to",
    b"sender",
    b"subject",
    b"to",
];

/// Who wrote a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// One readable address.
    One(Address),
    /// Several From lines, or headers that two readers could read differently.
    Ambiguous,
    /// No From line, none with exactly one address, or a repeated header that may occur only once.
    Unreadable,
}

/// Reads the author from the raw bytes of a message.
pub(super) fn read(raw: &[u8]) -> Author {
    let mut from: Option<Vec<u8>> = None;
    let mut open = false;
    let mut seen = [false; SINGLE_HEADERS.len()];
    let mut repeated = false;
    let mut lines = HeaderLines { rest: raw, count: 0, bytes: 0, kind: None };
    loop {
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(author) => return author,
        };
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if lines.count == 1 {
                return Author::Ambiguous;
            }
            if let (true, Some(value)) = (open, &mut from) {
                value.extend_from_slice(line);
            }
            continue;
        }
        let Some((name, value)) = split_header(line) else {
            return Author::Ambiguous;
        };
        open = name.eq_ignore_ascii_case(b"from");
        if open && from.replace(value.to_vec()).is_some() {
            return Author::Ambiguous;
        }
        if let Some((_, seen)) =
            SINGLE_HEADERS.iter().zip(&mut seen).find(|(once, _)| name.eq_ignore_ascii_case(once))
        {
            repeated |= std::mem::replace(seen, true);
        }
    }
    if repeated {
        return Author::Unreadable;
    }
    let Some(value) = from.filter(|value| value.len() <= MAX_FROM_BYTES) else { return Author::Unreadable };
    match one_address(&value) {
        Some(address) if parser_agrees(value, &address) => Author::One(address),
        Some(_) => Author::Ambiguous,
        None => Author::Unreadable,
    }
}

/// Whether the parser that finds the sender to show sees the same address, and no other.
fn parser_agrees(mut value: Vec<u8>, address: &Address) -> bool {
    value.extend_from_slice(b"\r\n");
    let HeaderValue::Address(seen) = MessageStream::new(&value).parse_address() else { return false };
    let mut addresses = seen.iter().filter_map(|person| person.address());
    let first = addresses.next().and_then(|text| Address::parse(text).ok());
    first.as_ref() == Some(address) && addresses.next().is_none()
}

/// The lines of a header block, without their ends.
struct HeaderLines<'a> {
    rest: &'a [u8],
    count: usize,
    bytes: usize,
    /// Whether lines end with a carriage return too; all must do the same.
    kind: Option<bool>,
}

impl<'a> HeaderLines<'a> {
    /// The next line, or nothing at the end of the block.
    fn next_line(&mut self) -> Result<Option<&'a [u8]>, Author> {
        let window = self.rest.get(..MAX_HEADER_BYTES).unwrap_or(self.rest);
        let (line, length) = match memchr(b'\n', window) {
            Some(end) => (&window[..end], end + 1),
            None if window.len() == self.rest.len() => (window, window.len()),
            None => return Err(Author::Unreadable),
        };
        if length == 0 {
            return Ok(None);
        }
        let stripped = line.strip_suffix(b"\r");
        if *self.kind.get_or_insert(stripped.is_some()) != stripped.is_some() && length != line.len() {
            return Err(Author::Ambiguous);
        }
        let text = stripped.unwrap_or(line);
        if memchr2(b'\r', 0, text).is_some() {
            return Err(Author::Ambiguous);
        }
        self.rest = self.rest.get(length..).unwrap_or_default();
        self.count += 1;
        self.bytes += length;
        if self.count > MAX_HEADER_LINES || self.bytes > MAX_HEADER_BYTES {
            return Err(Author::Unreadable);
        }
        Ok((!text.is_empty()).then_some(text))
    }
}

/// Splits a line at its colon, if the name has only the characters that a name may have.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (name, value) = line.split_at_checked(colon)?;
    let plain = !name.is_empty() && name.iter().all(|byte| (33..=126).contains(byte));
    plain.then_some((name, value.get(1..)?))
}

/// Reads `a@b`, `Name <a@b>` or `a@b (Name)`, and nothing that could be read as more than one address.
fn one_address(value: &[u8]) -> Option<Address> {
    let text = str::from_utf8(value).ok()?.replace('\t', " ");
    let trimmed = text.trim_matches(' ');
    if let Some(opened) = trimmed.strip_suffix('>') {
        let (phrase, address) = opened.rsplit_once('<')?;
        return is_phrase(phrase).then(|| Address::parse(address).ok())?;
    }
    if let Some((address, comment)) = trimmed.strip_suffix(')').and_then(|inner| inner.split_once('(')) {
        let plain = !comment.contains(|c: char| "()<>\"\\@,;:".contains(c) || c.is_control());
        return plain.then(|| Address::parse(address.trim_end_matches(' ')).ok())?;
    }
    Address::parse(trimmed).ok()
}

/// Whether a display name is made of plain words and quoted strings only.
fn is_phrase(phrase: &str) -> bool {
    let mut quoted = false;
    let mut escaped = false;
    for c in phrase.chars() {
        if c.is_control() {
            return false;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' => return false,
            _ => {}
        }
    }
    !quoted && !escaped
}
