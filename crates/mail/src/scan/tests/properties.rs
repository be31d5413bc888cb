//! Whatever the bytes are, the scanner answers.

use proptest::prelude::*;

use super::pack::{item, zip};
use super::scan_file;
use crate::message::read;
use crate::scan::{Blocklist, Status, scan};

proptest! {
    #[test]
    fn any_html(html in "(<|>|a|href=|'|\"|/|://|http|www\\.|&#x?|;|style=|url\\(|\\PC| ){0,60}") {
        let raw = format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}");
        scan(raw.as_bytes(), &read(raw.as_bytes()), &Blocklist::parse("evil.test"));
    }

    #[test]
    fn any_file(bytes in proptest::collection::vec(any::<u8>(), 0..400), magic in 0_usize..8) {
        let magics: [&[u8]; 8] =
            [b"", b"PK\x03\x04", b"\x1f\x8b\x08\0", b"%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"Rar!\x1a\x07", b"MZ", b"<svg "];
        scan_file("a.bin", &[magics[magic], &bytes].concat());
    }

    #[test]
    fn any_damage_to_a_zip(place in 0_usize..200, value in any::<u8>()) {
        let mut bytes = zip(&[item("a.txt", "hello hello hello"), item("b.txt", "world")]);
        let length = bytes.len();
        bytes[place % length] = value;
        let verdict = scan_file("a.zip", &bytes);
        prop_assert!(verdict.threats.len() <= 50);
    }

    #[test]
    fn any_list(text in "\\PC{0,200}", url in "\\PC{0,50}") {
        Blocklist::parse(&text).matches(&url);
    }

    #[test]
    fn a_fault_is_never_clean(name in "[ -~]{1,20}") {
        let raw = format!("{name} :x\r\n\r\nbody");
        let message = read(raw.as_bytes());
        let verdict = scan(raw.as_bytes(), &message, &Blocklist::default());
        prop_assert!(message.faults.is_empty() || verdict.status != Status::Clean);
    }
}
