//! Whatever the bytes are: no panic, sound places, and files that come out as they went in.

use proptest::prelude::*;

use crate::message::{Message, base_subject, calendar, decode, read};

/// What must hold for every message.
fn check(raw: &[u8], message: &Message) {
    assert!(message.subject.chars().count() <= 998);
    assert!(message.references.len() <= 50);
    for file in message.files.iter().chain(&message.inner) {
        assert!(file.range.start <= file.range.end && file.range.end <= raw.len());
        assert_eq!(decode(raw, file).len() as u64, file.size);
        assert!(!file.name.is_empty() && file.name.len() <= 255, "{:?}", file.name);
        assert!(!file.name.contains(['/', '\\', '\0', '\n']), "{:?}", file.name);
    }
    let texts = [&message.text, &message.html].into_iter().flatten();
    assert!(texts.chain([&message.subject, &message.headers]).all(|text| !text.contains('\0')));
}

/// Pieces that MIME messages are made of, in any order.
fn mime_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("Content-Type: multipart/mixed; boundary=b\r\n".to_owned()),
        Just("Content-Type: multipart/alternative; boundary=\"c d\"\r\n".to_owned()),
        Just("Content-Type: message/rfc822\r\n".to_owned()),
        Just("Content-Type: text/html; charset=iso-2022-jp\r\n".to_owned()),
        Just("Content-Transfer-Encoding: base64\r\n".to_owned()),
        Just("Content-Transfer-Encoding: quoted-printable\r\n".to_owned()),
        Just("Content-Disposition: attachment; filename*0*=utf-8''a%2; filename*1=x\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("--b\r\n".to_owned()),
        Just("--b--\r\n".to_owned()),
        Just("--c d\r\n".to_owned()),
        Just("--c d--\r\n".to_owned()),
        Just("aGVsbG8=\r\n".to_owned()),
        Just("=3D=\r\n".to_owned()),
        Just("From: =?utf-8?q?a=?= <a@b>, \"c\" (d) <e@f>\r\n".to_owned()),
        Just("Subject: =?iso-2022-jp?b?GyRC?=\r\n =?x\r\n".to_owned()),
        "[ -~]{0,20}\r\n",
        "\\PC{0,10}",
    ]
}

proptest! {
    #[test]
    fn any_bytes(raw in proptest::collection::vec(any::<u8>(), 0..600)) {
        check(&raw, &read(&raw));
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(mime_piece(), 0..60)) {
        let raw = pieces.concat().into_bytes();
        check(&raw, &read(&raw));
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        base_subject(&text);
        calendar::read(&format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{text}\n"));
    }

    #[test]
    fn files_come_out_as_they_went_in(content in proptest::collection::vec(any::<u8>(), 0..300)) {
        let encoded = encode(&content);
        let raw = format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\nContent-Type: application/x-y\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n--b--\r\n"
        );
        let message = read(raw.as_bytes());
        prop_assert_eq!(&message.faults, &vec![]);
        prop_assert_eq!(decode(raw.as_bytes(), &message.files[0]), content);
    }
}

/// Base64 as mail has it, in lines.
fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (number, group) in bytes.chunks(3).enumerate() {
        let value =
            group.iter().fold(0_u32, |value, &byte| value << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let index = value >> (18 - 6 * digit) & 63;
            let is_padding = digit > group.len();
            text.push(if is_padding { '=' } else { char::from(ALPHABET[index as usize]) });
        }
        if number % 19 == 18 {
            text.push_str("\r\n");
        }
    }
    text
}

/// Runs over a folder of mail files, named by the developer.
#[test]
fn a_folder_of_mail() {
    let Some(folder) = std::env::var_os("AGENT_MAILBOX_CORPORA") else {
        println!("AGENT_MAILBOX_CORPORA names no folder: nothing read");
        return;
    };
    let mut folders = vec![std::path::PathBuf::from(folder)];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let raw = std::fs::read(&path).unwrap();
                let message = read(&raw);
                check(&raw, &message);
                crate::scan::scan(&raw, &message, &crate::scan::Blocklist::default());
                count += 1;
            }
        }
    }
    println!("{count} files read");
}
