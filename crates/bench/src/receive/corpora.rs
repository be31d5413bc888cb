//! The public collections of real messages that `scripts/corpora` fetches, prepared for sending.
//!
//! A collection is a folder of a Python package, with programs and pages besides the messages. What begins like a
//! message is taken for one.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The variable that names the folder, as for the tests.
pub(super) const VARIABLE: &str = "AGENT_MAILBOX_CORPORA";
/// The collection of bounces, which are far rarer among real messages.
const BOUNCES: &str = "flufl.bounce";
/// A file of 1 MB, encoded: larger ones would decide about the average.
const MAX_MESSAGE_BYTES: usize = 1_400_000;
/// The longest line of a message without its end (RFC 5322).
const MAX_LINE_BYTES: usize = 998;
/// Fields that each sent copy has of its own. With the fields about other messages, all copies of a message would be in
/// one thread, which would grow to thousands.
const OWN_FIELDS: [&str; 5] = ["message-id", "date", "subject", "in-reply-to", "references"];
/// Fields of which a message has more than one. Other files that begin with fields have none or one.
const USUAL_FIELDS: [&str; 6] = ["from", "to", "subject", "date", "received", "message-id"];

/// What is in a message, as far as the mix is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Html,
    File,
    Bounce,
}

/// A message without the fields that each sent copy has of its own, as it goes over the wire after DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreparedMessage {
    pub(super) kind: Kind,
    pub(super) subject: Vec<u8>,
    /// With CRLF at the end of lines, dots doubled, and the dot at the end.
    pub(super) rest: Vec<u8>,
}

impl PreparedMessage {
    /// `None` for what is no message, or none that may be sent as it is.
    pub(super) fn new(raw: &[u8]) -> Option<Self> {
        if raw.len() > MAX_MESSAGE_BYTES {
            return None;
        }
        let lines = lines(raw);
        if lines.iter().any(|line| line.len() > MAX_LINE_BYTES || line.contains(&0)) {
            return None;
        }
        let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
        let (header, body) = lines.split_at(end);
        let fields = fields(header)?;
        let is_usual = |field: &&Field<'_>| USUAL_FIELDS.contains(&field.name.as_str());
        if fields.iter().filter(is_usual).count() < 2 {
            return None;
        }
        let subject = fields.iter().find(|field| field.name == "subject").map(Field::value);
        let others = fields.iter().filter(|field| !OWN_FIELDS.contains(&field.name.as_str()));
        let mut rest = Vec::with_capacity(raw.len() + raw.len() / 50);
        for line in others.flat_map(|field| field.lines).chain(body) {
            if line.starts_with(b".") {
                rest.push(b'.');
            }
            rest.extend_from_slice(line);
            rest.extend_from_slice(b"\r\n");
        }
        rest.extend_from_slice(b".\r\n");
        Some(Self { kind: kind(&rest), subject: subject.unwrap_or_default(), rest })
    }
}

/// The messages of a folder and its subfolders, always in the same order.
pub(super) fn read_folder(folder: &Path) -> Vec<PreparedMessage> {
    let mut paths = Vec::new();
    list_files(folder, &mut paths);
    paths.sort();
    let mut messages = Vec::new();
    for path in paths {
        let Ok(raw) = fs::read(&path) else { continue };
        let is_bounce = path.components().any(|part| part.as_os_str() == BOUNCES);
        for message in split_mbox(&raw).into_iter().filter_map(PreparedMessage::new) {
            let kind = if is_bounce { Kind::Bounce } else { message.kind };
            messages.push(PreparedMessage { kind, ..message });
        }
    }
    messages
}

fn list_files(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            list_files(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// The messages of an mbox file, without the lines that separate them; any other file as it is.
fn split_mbox(raw: &[u8]) -> Vec<&[u8]> {
    const SEPARATOR: &[u8] = b"From ";
    if !raw.starts_with(SEPARATOR) {
        return vec![raw];
    }
    let (mut messages, mut start, mut at, mut after_blank) = (Vec::new(), 0, 0, true);
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        if after_blank && line.starts_with(SEPARATOR) {
            messages.push(&raw[start..at]);
            start = at + line.len();
        }
        after_blank = line.trim_ascii().is_empty();
        at += line.len();
    }
    messages.push(&raw[start..]);
    // Before the first separator is nothing.
    messages.remove(0);
    messages
}

/// The lines, whatever they end with.
fn lines(raw: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = Vec::new();
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        lines.extend(line.split(|byte| *byte == b'\r'));
    }
    lines
}

/// A field of the header.
struct Field<'a> {
    /// In lower case.
    name: String,
    lines: &'a [&'a [u8]],
}

impl Field<'_> {
    /// The value on one line, cut where even that would be too long.
    fn value(&self) -> Vec<u8> {
        let mut value = self.lines.concat();
        value.drain(..=self.name.len());
        value.truncate(MAX_LINE_BYTES / 2);
        value.trim_ascii().to_vec()
    }
}

/// The fields of a header; `None` if it has other lines.
fn fields<'a>(header: &'a [&'a [u8]]) -> Option<Vec<Field<'a>>> {
    let mut fields = Vec::new();
    let is_folded = |line: &[u8]| line.starts_with(b" ") || line.starts_with(b"\t");
    let mut rest = header;
    while let Some((first, following)) = rest.split_first() {
        let colon = first.iter().position(|byte| *byte == b':').filter(|colon| *colon > 0)?;
        if !first[..colon].iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let folded = following.iter().take_while(|line| is_folded(line)).count();
        let (lines, others) = rest.split_at(1 + folded);
        let name = String::from_utf8_lossy(&first[..colon]).to_ascii_lowercase();
        fields.push(Field { name, lines });
        rest = others;
    }
    Some(fields)
}

fn kind(message: &[u8]) -> Kind {
    let text = message.to_ascii_lowercase();
    let has = |what: &str| text.windows(what.len()).any(|window| window == what.as_bytes());
    if has("\r\ncontent-disposition: attachment") {
        Kind::File
    } else if has("text/html") {
        Kind::Html
    } else {
        Kind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_prepared_for_the_wire() {
        let raw =
            b"From: a@b.test\nSUBJECT: Hello\n  you\nMessage-Id: <1@b.test>\nTo: c@d.test\n\nhi\r\n.\r..x\n";
        let message = PreparedMessage::new(raw).unwrap();
        assert_eq!(message.subject, b"Hello  you");
        let expected = "From: a@b.test\r\nTo: c@d.test\r\n\r\nhi\r\n..\r\n...x\r\n.\r\n";
        assert_eq!(String::from_utf8_lossy(&message.rest), expected);
        assert_eq!(message.kind, Kind::Text);
    }

    #[test]
    fn what_may_not_be_sent_is_left_out() {
        let with = |body: &[u8]| [b"From: a@b.test\nTo: c@d.test\n\n", body].concat();
        assert!(PreparedMessage::new(&with(b"hello")).is_some());
        assert!(PreparedMessage::new(&with(&[b'x'; 998])).is_some());
        assert!(PreparedMessage::new(&with(&[b'x'; 999])).is_none(), "a long line");
        assert!(PreparedMessage::new(&with(b"\0")).is_none(), "a zero byte");
        assert!(PreparedMessage::new(b"import os\n\nFrom: a@b.test\nTo: c@d.test\n").is_none(), "a program");
        assert!(PreparedMessage::new(b"Name: flufl\nVersion: 1\n\n").is_none(), "fields of something else");
        assert!(PreparedMessage::new(b"").is_none());
    }

    #[test]
    fn kinds_are_told_apart() {
        let kind = |part: &str| {
            let raw = format!("From: a@b.test\nTo: c@d.test\n{part}\n\nx\n");
            PreparedMessage::new(raw.as_bytes()).unwrap().kind
        };
        assert_eq!(kind("Content-Type: text/plain"), Kind::Text);
        assert_eq!(kind("Content-Type: Text/HTML"), Kind::Html);
        assert_eq!(kind("Content-Type: text/html\nContent-Disposition: attachment; filename=x"), Kind::File);
    }

    #[test]
    fn an_mbox_file_is_split() {
        let mbox = b"From a Mon\nFrom: a\n\nOne\n\nFrom b Tue\nFrom: b\n\nTwo\nFrom here on\n";
        let expected: [&[u8]; 2] = [b"From: a\n\nOne\n\n", b"From: b\n\nTwo\nFrom here on\n"];
        assert_eq!(split_mbox(mbox), expected);
        let other: [&[u8]; 1] = [b"x\n\nFrom b\n"];
        assert_eq!(split_mbox(other[0]), other);
    }
}
