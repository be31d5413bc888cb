//! Messages of ours, read back by our own reader.

mod forwarding;
mod hostile;
mod shapes;

use bytes::Bytes;

use super::{File, Person, UnencodedMessage, compose};
use crate::message::{self, Message};

fn person(name: &str, address: &str) -> Person {
    Person { name: (!name.is_empty()).then(|| name.to_owned()), address: address.to_owned() }
}

/// A message with a text.
fn plain() -> UnencodedMessage {
    UnencodedMessage {
        message_id: "1.2@agents.test".to_owned(),
        date: 1_793_620_800_000_000,
        from: person("Ann", "ann@agents.test"),
        to: vec![person("", "bob@example.com")],
        subject: "Hello".to_owned(),
        text: Some("Hello Bob.\n".to_owned()),
        ..UnencodedMessage::default()
    }
}

fn file(filename: &str, media_type: &str, bytes: &[u8]) -> File {
    File {
        filename: filename.to_owned(),
        media_type: media_type.to_owned(),
        bytes: Bytes::copy_from_slice(bytes),
        content_id: None,
    }
}

fn picture(id: &str, bytes: &[u8]) -> File {
    File { content_id: Some(id.to_owned()), ..file("picture.png", "image/png", bytes) }
}

/// Writes a message, checks what holds for every one, and reads it back.
fn sent(mail: &UnencodedMessage) -> (Vec<u8>, Message) {
    let raw = compose(mail).unwrap();
    check_wire(&raw);
    let read = message::read(&raw);
    assert_eq!(read.faults, [], "{}", String::from_utf8_lossy(&raw));
    (raw, read)
}

/// Only CRLF ends lines, none is over 998 bytes, there is no NUL, and the last line is ended.
fn check_wire(raw: &[u8]) {
    let text = String::from_utf8_lossy(raw);
    assert!(raw.ends_with(b"\r\n"), "{text}");
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap_or_else(|| panic!("a bare line feed: {text}"));
        assert!(!line.contains(&b'\r') && !line.contains(&0), "{text}");
        assert!(line.len() <= 998, "{text}");
    }
}

/// The header lines of a message, unfolded.
fn headers(raw: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8(raw.to_vec()).unwrap();
    let block = text.split_once("\r\n\r\n").unwrap().0.replace("\r\n ", " ");
    block
        .split("\r\n")
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("no header: {line:?}")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn header(raw: &[u8], name: &str) -> String {
    let found: Vec<String> =
        headers(raw).into_iter().filter(|(other, _)| other == name).map(|(_, value)| value).collect();
    assert_eq!(found.len(), 1, "{name}");
    found.into_iter().next().unwrap()
}

/// Text with plain line ends, without blanks at its end.
fn unified(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").trim_end().to_owned()
}

/// Text as it reads on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
