//! However bytes are cut into pieces, the conversation is the same; and what a client sends arrives.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Words that conversations are made of, in any order; many make sense only to somebody who wants to do harm.
const WORDS: [&str; 40] = [
    "EHLO me\r\n",
    "HELO me\r\n",
    "LHLO me\r\n",
    "MAIL FROM:<a@b.example>\r\n",
    "MAIL FROM:<> BODY=BINARYMIME\r\n",
    "RCPT TO:<c@d.example>\r\n",
    "RCPT TO:<c@d.example>\r\n",
    "DATA\r\n",
    "DATA\r\n",
    "text\r\n",
    ".\r\n",
    ".\r\n",
    "..\r\n",
    "\r\n",
    "BDAT 5\r\n",
    "BDAT 0 LAST\r\n",
    "BDAT 7 LAST\r\n",
    "BDAT 150\r\n",
    "BDAT 99999999999999999999\r\n",
    "BDAT x\r\n",
    "RSET\r\n",
    "NOOP\r\n",
    "QUIT\r\n",
    "STARTTLS\r\n",
    "VRFY a\r\n",
    "WHAT\r\n",
    "\0",
    "\r",
    "\n",
    "\r\n",
    "é",
    "x",
    "12345",
    ".",
    " ",
    "RCPT TO:<",
    "GET / HTTP/1.1\r\n",
    "SIZE=1",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "MAIL FROM:<a@b.example> SMTPUTF8\r\n",
];

/// Small limits, so that random conversations reach them.
fn narrow() -> Arc<Settings> {
    Arc::new(Settings { max_message_bytes: 200, ..Settings::clone(&settings()) })
}

/// What both conversations say, if one of them was cut short because it was sent too fast.
fn without_haste(driven: &DrivenSession) -> &[u8] {
    let hasty = b"554 5.5.0 You sent more before our reply, where pipelining is not allowed\r\n";
    driven.replies.strip_suffix(hasty).unwrap_or(&driven.replies)
}

proptest! {
    /// Being too fast depends on the cuts, and dropping what follows STARTTLS does; nothing else may.
    #[test]
    fn cuts_change_nothing(
        words in vec(select(&WORDS[..]), 0..40),
        first in vec(1_u8..50, 1..8),
        second in vec(1_u8..4, 1..8),
        lmtp: bool,
        opened in 1_usize..=3,
    ) {
        let (protocol, hello) = if lmtp { (Protocol::Lmtp, "LHLO me\r\n") } else { (Protocol::Smtp, "EHLO me\r\n") };
        let words: Vec<&str> = words.into_iter().filter(|word| *word != "STARTTLS\r\n").collect();
        let bytes = words.concat();
        let opening = &[hello, ENVELOPE[1], "DATA\r\n"][..opened];
        let run = |sizes: &[u8]| {
            let pieces = opening.iter().map(|piece| piece.as_bytes()).chain(split_into_pieces(bytes.as_bytes(), sizes));
            drive_session(&narrow(), protocol, pieces)
        };
        let (one, other) = (run(&first), run(&second));
        let (mut short, mut long) = (without_haste(&one), without_haste(&other));
        if short.len() > long.len() {
            std::mem::swap(&mut short, &mut long);
        }
        prop_assert!(long.starts_with(short), "{}\n---\n{}", String::from_utf8_lossy(short), String::from_utf8_lossy(long));
        let hasty = short.len() < one.replies.len().max(other.replies.len());
        if !hasty {
            prop_assert_eq!(&one, &other);
        }
        let count = one.messages.len().min(other.messages.len());
        prop_assert_eq!(&one.messages[..count], &other.messages[..count]);
    }

    /// Without anything to wait for, even haste is the same.
    #[test]
    fn byte_by_byte_is_like_piece_by_piece(words in vec(select(&WORDS[..]), 0..40), sizes in vec(1_u8..3, 1..8)) {
        let bytes = words.concat();
        let single = drive_session(&narrow(), Protocol::Smtp, split_into_pieces(bytes.as_bytes(), &[1]));
        let cuts = drive_session(&narrow(), Protocol::Smtp, split_into_pieces(bytes.as_bytes(), &sizes));
        let (mut short, mut long) = (without_haste(&single), without_haste(&cuts));
        if short.len() > long.len() {
            std::mem::swap(&mut short, &mut long);
        }
        if !bytes.contains("STARTTLS") {
            prop_assert!(long.starts_with(short));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..2000), sizes in vec(any::<u8>(), 1..5)) {
        let opening: &[u8] = b"EHLO me\r\n";
        drive_session(&narrow(), Protocol::Smtp, std::iter::once(opening).chain(split_into_pieces(&bytes, &sizes)));
        drive_session(&narrow(), Protocol::Lmtp, split_into_pieces(&bytes, &sizes));
    }

    #[test]
    fn what_a_client_sends_by_data_arrives(
        text in vec(prop_oneof![Just(b"\r\n".to_vec()), Just(b".".to_vec()), vec(any::<u8>(), 0..20)], 0..60),
        sizes in vec(1_u8..40, 1..8),
    ) {
        let message = proper_lines(&text.concat());
        let stuffed = stuffed(&message);
        let opening = with_data(&[]);
        let pieces = opening.iter().map(|piece| piece.as_bytes()).chain(split_into_pieces(&stuffed, &sizes));
        let driven = drive_session(&settings(), Protocol::Smtp, pieces);
        prop_assert_eq!(messages(&driven), [Bytes::from(message)]);
    }

    #[test]
    fn what_a_client_sends_by_bdat_arrives(
        chunks in vec(vec(any::<u8>(), 0..50), 0..10),
        sizes in vec(1_u8..40, 1..8),
    ) {
        let mut bytes = b"MAIL FROM:<> BODY=BINARYMIME\r\nRCPT TO:<c@d.example>\r\n".to_vec();
        for chunk in &chunks {
            bytes.extend(format!("BDAT {}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
        }
        bytes.extend(b"BDAT 0 LAST\r\n");
        let opening: &[u8] = b"EHLO me\r\n";
        let driven = drive_session(&settings(), Protocol::Smtp, std::iter::once(opening).chain(split_into_pieces(&bytes, &sizes)));
        prop_assert_eq!(messages(&driven), [Bytes::from(chunks.concat())]);
    }
}

/// The bytes as lines that all end with CRLF.
fn proper_lines(bytes: &[u8]) -> Vec<u8> {
    let mut proper = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        proper.extend(line.iter().filter(|byte| **byte != b'\r'));
        proper.extend(b"\r\n");
    }
    proper
}

/// What a client sends for a message: a dot before each that begins a line, and the end.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::new();
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend(line);
    }
    stuffed.extend(b".\r\n");
    stuffed
}
