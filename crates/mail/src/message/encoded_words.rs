//! Header text: encoded words (RFC 2047), raw UTF-8, and unlabelled eight-bit charsets of old mail.
//!
//! Adjacent words of one charset are joined before they are decoded, because many senders split a character between two
//! words.

use memchr::memmem;

use super::{charset, transfer};

/// The longest encoded word that is read; the standard says 75, but senders exceed it.
const MAX_WORD: usize = 1000;

/// The bytes of a header value as text, without decoding anything in it.
pub(super) fn plain(value: &[u8]) -> String {
    charset::guess(value)
}

/// A header value with its encoded words decoded, folds and all.
pub(super) fn decode(value: &[u8]) -> String {
    let mut decoder = Decoder::default();
    let mut position = 0;
    let mut literal = 0;
    while let Some(found) = value.get(position..).and_then(|rest| memmem::find(rest, b"=?")) {
        let start = position + found;
        let Some((word, end)) = Word::read(value, start) else {
            position = start + 2;
            continue;
        };
        decoder.literal(value.get(literal..start).unwrap_or_default());
        decoder.word(word);
        (position, literal) = (end, end);
    }
    decoder.literal(value.get(literal..).unwrap_or_default());
    decoder.flush();
    decoder.text
}

/// Text on one line: every run of white space and control characters becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    line
}

/// The first `most` characters of a text.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
    text
}

/// One encoded word with its bytes decoded, but not yet its charset.
struct Word {
    charset: String,
    bytes: Vec<u8>,
}

impl Word {
    /// Reads the word that begins at `start`, and says where it ends.
    fn read(value: &[u8], start: usize) -> Option<(Self, usize)> {
        let rest = value.get(start + 2..)?;
        let window = rest.get(..rest.len().min(MAX_WORD))?;
        let charset_end = window.iter().take(64).position(|&byte| !is_charset(byte))?;
        let charset = window.get(..charset_end)?;
        let (encoding, text) = match window.get(charset_end..)? {
            [b'?', encoding, b'?', text @ ..] => (encoding.to_ascii_lowercase(), text),
            _ => return None,
        };
        let text = text.get(..memmem::find(text, b"?=")?)?;
        let bytes = match encoding {
            b'b' => transfer::base64(text),
            b'q' => unquote(text),
            _ => return None,
        };
        let end = start + 2 + charset_end + 3 + text.len() + 2;
        let charset = charset.split(|&byte| byte == b'*').next().unwrap_or_default();
        Some((Self { charset: String::from_utf8_lossy(charset).to_ascii_lowercase(), bytes }, end))
    }
}

/// Whether a charset's name may contain the byte.
fn is_charset(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'?' | b'(' | b')' | b'<' | b'>' | b'@' | b',' | b';' | b'"')
}

/// The text of a Q word as bytes.
fn unquote(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'_' { b' ' } else { byte }).collect();
    let mut bytes = transfer::quoted_printable(&spaced);
    // Trailing spaces are layout in a body, but meant in a word.
    let trailing = spaced.iter().rev().take_while(|&&byte| byte == b' ').count();
    bytes.resize(bytes.len() + trailing, b' ');
    bytes
}

/// The text so far, and the pending words of one charset.
#[derive(Default)]
struct Decoder {
    text: String,
    pending: Option<Word>,
}

impl Decoder {
    /// Adds text between words; white space between two encoded words is dropped.
    fn literal(&mut self, bytes: &[u8]) {
        if self.pending.is_some() && bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.flush();
        self.text.push_str(&charset::guess(bytes));
    }

    /// Adds a word to the pending ones, or flushes them first.
    fn word(&mut self, word: Word) {
        match &mut self.pending {
            Some(pending) if pending.charset == word.charset => pending.bytes.extend(word.bytes),
            _ => {
                self.flush();
                self.pending = Some(word);
            }
        }
    }

    /// Decodes what is pending.
    fn flush(&mut self) {
        if let Some(word) = self.pending.take() {
            self.text.push_str(&charset::decode(&word.bytes, Some(&word.charset)));
        }
    }
}
