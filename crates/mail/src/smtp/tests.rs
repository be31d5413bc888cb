//! What the tests of SMTP share: settings, scripts of conversations, and a reception that remembers.

mod bdat;
mod conversation;
mod limits;
pub(crate) mod reception;
mod records;
mod smuggling;
mod splits;
mod transcripts;

use std::sync::Arc;

use bytes::Bytes;

use super::*;

/// The largest message in these tests.
const MAX_MESSAGE: usize = 100_000;

pub(crate) fn settings() -> Arc<Settings> {
    Arc::new(Settings {
        hostname: "mx.test".to_owned(),
        max_message_bytes: MAX_MESSAGE,
        starttls: true,
        budget: Budget::new(10 * MAX_MESSAGE),
    })
}

/// What comes of pieces that are sent one after the other.
fn driven(pieces: &[&str]) -> DrivenSession {
    drive_session(&settings(), Protocol::Smtp, pieces.iter().map(|piece| piece.as_bytes()))
}

/// The replies to pieces, a line each, without the greeting.
fn replies(pieces: &[&str]) -> Vec<String> {
    lines(&driven(pieces).replies)
}

fn lines(replies: &[u8]) -> Vec<String> {
    let text = String::from_utf8(replies.to_vec()).unwrap();
    assert!(text.ends_with("\r\n"), "{text:?}");
    let mut lines: Vec<String> = text.split_terminator("\r\n").map(str::to_owned).collect();
    assert!(lines.iter().all(|line| !line.contains(['\r', '\n'])), "{lines:?}");
    lines.remove(0);
    lines
}

/// The codes of the replies, of lines that are the last of theirs.
fn codes(pieces: &[&str]) -> Vec<u16> {
    final_codes(&replies(pieces))
}

fn final_codes(lines: &[String]) -> Vec<u16> {
    let last = lines.iter().filter(|line| line.as_bytes()[3] == b' ');
    last.map(|line| line[..3].parse().unwrap()).collect()
}

/// The contents of the messages.
fn messages(driven: &DrivenSession) -> Vec<Bytes> {
    driven.messages.iter().map(|(_, _, message)| message.clone()).collect()
}

/// Plays a script: lines of `C: ` are sent together up to the next lines of `S: `, which must be the replies.
fn transcript(protocol: Protocol, script: &str) -> DrivenSession {
    let mut pieces = Vec::new();
    let mut expected = String::new();
    let mut replying = true;
    for line in script.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        let text = line.get(3..).unwrap_or_default();
        if line.starts_with("S:") {
            replying = true;
            expected.push_str(text);
            expected.push_str("\r\n");
            continue;
        }
        assert!(line.starts_with("C:"), "{line}");
        if std::mem::take(&mut replying) {
            pieces.push(String::new());
        }
        let piece: &mut String = pieces.last_mut().unwrap();
        piece.push_str(text);
        piece.push_str("\r\n");
    }
    let driven = drive_session(&settings(), protocol, pieces.iter().map(String::as_bytes));
    assert_eq!(String::from_utf8(driven.replies.clone()).unwrap(), expected);
    driven
}

/// The start of every conversation about one message, up to where DATA or BDAT follows.
const ENVELOPE: [&str; 2] = ["EHLO me\r\n", "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n"];

/// The pieces of a conversation in which `content` follows DATA.
fn with_data<'a>(content: &[&'a str]) -> Vec<&'a str> {
    let mut pieces: Vec<&str> = ENVELOPE.to_vec();
    pieces.push("DATA\r\n");
    pieces.extend(content);
    pieces
}
