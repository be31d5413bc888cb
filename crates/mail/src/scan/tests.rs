//! What is flagged, what is not, and what cannot be said.

mod archives;
mod clamd;
mod files;
mod links;
mod pack;
mod properties;

use super::{Blocklist, Kind, Status, Verdict, scan};
use crate::message::read;

/// Scans a message written with plain line ends.
fn scan_text(text: &str) -> Verdict {
    let raw = text.replace('\n', "\r\n");
    scan(raw.as_bytes(), &read(raw.as_bytes()), &Blocklist::default())
}

/// The kinds of what was found.
fn kinds(verdict: &Verdict) -> Vec<&'static str> {
    verdict.threats.iter().map(|threat| threat.kind.as_str()).collect()
}

/// A message with one file.
fn with_file(name: &str, bytes: &[u8]) -> String {
    format!(
        "From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n\
         Content-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"{name}\"\n\
         Content-Transfer-Encoding: base64\n\n{}\n--b--\n",
        pack::base64(bytes)
    )
}

fn scan_file(name: &str, bytes: &[u8]) -> Verdict {
    scan_text(&with_file(name, bytes))
}

/// The test file of scanners, put together here so that this source is none.
fn test_virus() -> Vec<u8> {
    [&b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$"[..], b"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat()
}

#[test]
fn ordinary_mail_is_clean() {
    let verdict =
        scan_text("From: a@example.com\nSubject: hi\n\nSee https://example.com/a?b=c and www.example.org.\n");
    assert_eq!(verdict, Verdict { status: Status::Clean, threats: vec![] });
}

#[test]
fn malformed_mail_is_never_clean() {
    for text in [
        "From: a@b.test\nFrom: c@d.test\n\nhi",
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n",
        "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\naGVsbG8",
        "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogeAoKaGk=",
    ] {
        // rules: SCAN-4
        assert_eq!(scan_text(text).status, Status::Skipped, "{text}");
    }
}

#[test]
fn a_threat_says_what_and_where() {
    let verdict = scan_file("tool.exe", b"MZ\0\0");
    // rules: SCAN-8
    let threat = &verdict.threats[0];
    assert_eq!(
        (threat.kind, threat.file_name.as_deref(), threat.url.as_deref()),
        (Kind::Executable, Some("tool.exe"), None)
    );
    let verdict = scan_text("Content-Type: text/html\n\n<a href=\"https://user:pass@example.com/\">x</a>");
    assert_eq!(verdict.threats[0].url.as_deref(), Some("https://user:pass@example.com/"));
    let many: Vec<String> = (0..200).map(|number| format!("https://u:p@h{number}.example.com/\n")).collect();
    assert_eq!(scan_text(&format!("Subject: x\n\n{}", many.concat())).threats.len(), 50);
}
