//! A message without the text that is stored beside it.
//!
//! Most of an ordinary message is its text, and the text is stored on its own for those who read it. Storing it again
//! in the message would double the work of packing and sealing and the bytes on disk. So the message is kept as what
//! surrounds the text, and put together again, byte for byte, for the few who want it as it came.

use memchr::memmem;

use crate::blobs;

/// The first byte of what is sealed. Frames of whole contents start with smaller ones.
const AROUND: u8 = 2;
/// The tag, the line ending, and where the text belongs.
const HEADER: usize = 2 + size_of::<u64>();

/// How much of a text is searched for, and at how many places it is compared.
const BEGINNING_BYTES: usize = 32;
const MAX_PLACES: usize = 8;

/// How lines of the text end in the message; on its own they end with a line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    fn apply(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Lf => text.to_vec(),
            Self::CrLf => {
                let lines = memchr::memchr_iter(b'\n', text).count();
                let mut converted = Vec::with_capacity(text.len() + lines);
                for line in text.split_inclusive(|byte| *byte == b'\n') {
                    match line.strip_suffix(b"\n") {
                        Some(content) => {
                            converted.extend_from_slice(content);
                            converted.extend_from_slice(b"\r\n");
                        }
                        None => converted.extend_from_slice(line),
                    }
                }
                converted
            }
        }
    }
}

/// What surrounds a text in a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Around {
    lines: LineEnding,
    /// Where the text belongs.
    at: usize,
    /// The message without it.
    rest: Vec<u8>,
}

impl Around {
    /// Takes a text out of a message; nothing if it is not there as it is, or is not most of it.
    pub(super) fn of(message: &[u8], text: &[u8]) -> Option<Self> {
        if text.len() < message.len() / 2 {
            return None;
        }
        let ends_with_crlf = |at| at > 0 && message[at - 1] == b'\r';
        let lines = match memchr::memchr(b'\n', message) {
            Some(at) if ends_with_crlf(at) => LineEnding::CrLf,
            _ => LineEnding::Lf,
        };
        let sent = lines.apply(text);
        let at = position(message, &sent)?;
        let rest = [&message[..at], &message[at + sent.len()..]].concat();
        Some(Self { lines, at, rest })
    }

    /// The message, with the text in its place.
    pub fn with_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (before, after) = self.rest.split_at_checked(self.at)?;
        Some([before, &self.lines.apply(text), after].concat())
    }

    /// As it is sealed.
    pub(super) fn framed(&self) -> Vec<u8> {
        let mut framed = vec![AROUND, u8::from(self.lines == LineEnding::CrLf)];
        framed.extend((self.at as u64).to_le_bytes());
        framed.extend(blobs::frame(&self.rest));
        framed
    }

    /// Whether this is the frame of one.
    pub(super) fn is_framed(frame: &[u8]) -> bool {
        frame.first() == Some(&AROUND)
    }

    /// From its frame.
    pub(super) fn unframed(frame: &[u8]) -> Option<Self> {
        let (header, rest) = frame.split_at_checked(HEADER)?;
        let (tags, at) = header.split_at_checked(2)?;
        let lines = match tags {
            [AROUND, 0] => LineEnding::Lf,
            [AROUND, 1] => LineEnding::CrLf,
            _ => return None,
        };
        let at = usize::try_from(u64::from_le_bytes(at.try_into().ok()?)).ok()?;
        let rest = blobs::unframe(rest.to_vec())?.to_vec();
        Some(Self { lines, at, rest })
    }
}

/// Where a text is in a message.
fn position(message: &[u8], sent: &[u8]) -> Option<usize> {
    // It is the end of a message that has no other parts.
    let last = message.len().checked_sub(sent.len())?;
    if message[last..] == *sent {
        return Some(last);
    }
    // Finding its beginning takes no preparation, and is nearly always enough.
    let beginning = &sent[..sent.len().min(BEGINNING_BYTES)];
    memmem::find_iter(message, beginning).take(MAX_PLACES).find(|at| message[*at..].starts_with(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_comes_back(message: &[u8], text: &[u8]) {
        let around = Around::of(message, text).expect("the text is most of the message");
        assert_eq!(around.rest.len() + around.lines.apply(text).len(), message.len());
        let stored = Around::unframed(&around.framed()).expect("a frame");
        assert_eq!(stored, around);
        assert_eq!(stored.with_text(text).as_deref(), Some(message));
    }

    #[test]
    fn a_message_comes_back_byte_for_byte() {
        assert_comes_back(b"Subject: a\r\n\r\none\r\ntwo\r\n three \r\n", b"one\ntwo\n three \n");
        assert_comes_back(b"Subject: a\n\none\ntwo\nand three", b"one\ntwo\nand three");
        assert_comes_back(
            b"S: a\r\n\r\n--b\r\n\r\none line, and\r\nanother one\r\n--b--\r\n",
            b"one line, and\nanother one",
        );
        assert_comes_back(b"a text alone", b"a text alone");
    }

    #[test]
    fn a_text_that_is_not_there_as_it_is_stays_in_the_message() {
        // Decoded, with bare line feeds among others, a small part of it.
        assert_eq!(Around::of(b"S: a\r\n\r\ncaf=C3=A9 and more\r\n", "café and more\n".as_bytes()), None);
        assert_eq!(Around::of(b"S: a\r\n\r\none line\ntwo lines\r\n", b"one line\ntwo lines\n"), None);
        assert_eq!(Around::of(b"S: a\r\n\r\none\r\nand a lot of something else\r\n", b"one\n"), None);
    }

    #[test]
    fn a_damaged_frame_is_refused() {
        let framed =
            Around::of(b"Subject: a\r\n\r\none line of text\r\n", b"one line of text\n").unwrap().framed();
        for end in 0..framed.len() {
            assert_eq!(Around::unframed(&framed[..end]), None, "cut after {end} bytes");
        }
        let beyond = Around { lines: LineEnding::Lf, at: 7, rest: b"short".to_vec() };
        assert_eq!(beyond.with_text(b"text"), None);
    }
}
