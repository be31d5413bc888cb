//! The shapes of messages: forms of the text, files, names in other scripts, threading.

use super::*;
use crate::compose::{AutoSubmitted, address_needs_smtputf8, needs_smtputf8};
use crate::message::{Encoding, decode};

#[test]
fn a_short_text_is_sent_as_it_is() {
    let (raw, read) = sent(&plain());
    let expected = "Date: Mon, 2 Nov 2026 12:00:00 +0000\r\nFrom: Ann <ann@agents.test>\r\nTo: <bob@example.com>\r\n\
        Subject: Hello\r\nMessage-ID: <1.2@agents.test>\r\nMIME-Version: 1.0\r\n\
        Content-Type: text/plain; charset=\"utf-8\"\r\nContent-Transfer-Encoding: 7bit\r\n\r\nHello Bob.\r\n";
    assert_eq!(String::from_utf8(raw).unwrap(), expected);
    assert_eq!(read.date, Some(plain().date));
    assert_eq!(read.message_id.as_deref(), Some("1.2@agents.test"));
}

#[test]
fn the_same_mail_gives_the_same_bytes() {
    let mut mail = plain();
    mail.html = Some("<p>Hello</p>".to_owned());
    mail.files = vec![file("a.bin", "application/octet-stream", b"abc")];
    assert_eq!(compose(&mail).unwrap(), compose(&mail).unwrap());
}

#[test]
fn text_and_html_are_alternatives() {
    let mut mail = plain();
    mail.html = Some("<p>Grüße</p>".to_owned());
    let (raw, read) = sent(&mail);
    assert!(header(&raw, "Content-Type").starts_with("multipart/alternative;"));
    assert_eq!(unified(&read.text.unwrap()), "Hello Bob.");
    assert_eq!(unified(&read.html.unwrap()), "<p>Grüße</p>");
    assert!(read.files.is_empty());
}

#[test]
fn pictures_stand_beside_the_html_and_files_beside_both() {
    let mut mail = plain();
    mail.html = Some("<img src=\"cid:logo@x\">".to_owned());
    mail.files = vec![picture("logo@x", &[0, 1, 2, 255]), file("report.pdf", "application/pdf", b"%PDF-1.7")];
    let (raw, read) = sent(&mail);
    assert!(header(&raw, "Content-Type").starts_with("multipart/mixed;"));
    assert!(String::from_utf8_lossy(&raw).contains("Content-Type: multipart/related;"));
    let [logo, report] = read.files.as_slice() else { panic!("{:?}", read.files) };
    assert_eq!(logo.content_id.as_deref(), Some("logo@x"));
    assert_eq!(logo.disposition.as_deref(), Some("inline"));
    assert_eq!(decode(&raw, logo), [0, 1, 2, 255]);
    assert_eq!(report.name, "report.pdf");
    assert_eq!(report.media_type, "application/pdf");
    assert_eq!(report.disposition.as_deref(), Some("attachment"));
    assert_eq!(decode(&raw, report), b"%PDF-1.7");
    assert_eq!(unified(&read.html.unwrap()), "<img src=\"cid:logo@x\">");
    assert_eq!(unified(&read.text.unwrap()), "Hello Bob.");
}

#[test]
fn pictures_without_html_are_files() {
    let mut mail = plain();
    mail.files = vec![picture("a@b", b"x")];
    let (raw, read) = sent(&mail);
    assert!(header(&raw, "Content-Type").starts_with("multipart/mixed;"));
    assert_eq!(read.files.len(), 1);
}

#[test]
fn a_mail_may_be_nothing_but_files() {
    let mut mail = plain();
    mail.text = None;
    mail.files = vec![file("empty.txt", "text/plain; charset=utf-8", b"")];
    let (raw, read) = sent(&mail);
    assert_eq!(read.files.len(), 1);
    assert_eq!(decode(&raw, &read.files[0]), b"");
    assert_eq!(read.files[0].media_type, "text/plain");
}

#[test]
fn names_of_files_survive_in_every_script() {
    for name in
        ["Übersicht 2026.pdf", "レポート.pdf", "a \"b\" c.txt", "plain.txt", "very long ".repeat(20).as_str()]
    {
        let mut mail = plain();
        mail.files = vec![file(name, "application/pdf", b"x")];
        let (_, read) = sent(&mail);
        let expected = name.replace('"', "_");
        assert_eq!(read.files[0].name, expected.trim_end(), "{name}");
    }
    let mut mail = plain();
    mail.files = vec![file(&format!("{}.pdf", "é".repeat(300)), "application/pdf", b"x")];
    let (_, read) = sent(&mail);
    assert!(read.files[0].name.len() <= 255 && read.files[0].name.ends_with("é.pdf"));
}

#[test]
fn an_attached_message_is_not_encoded_unless_it_must() {
    let inner = b"From: a@b.example\r\nSubject: Inner\r\n\r\nText\r\n";
    let mut mail = plain();
    mail.files = vec![file("inner.eml", "message/rfc822", inner)];
    let (raw, read) = sent(&mail);
    assert_eq!(read.files[0].media_type, "message/rfc822");
    assert_eq!(read.files[0].encoding, Encoding::Identity);
    assert_eq!(decode(&raw, &read.files[0]), inner);
    for odd in [&b"From: a@b.example\n\nbare\n"[..], "Subject: ü\r\n\r\n".as_bytes(), b"A: b\r\n\r\nx\0\r\n"]
    {
        mail.files = vec![file("inner.eml", "message/rfc822", odd)];
        let (raw, read) = sent(&mail);
        assert_eq!(read.files[0].media_type, "application/octet-stream");
        assert_eq!(decode(&raw, &read.files[0]), odd);
    }
}

#[test]
fn an_attached_copy_of_a_mail_cannot_end_its_parts() {
    let mut mail = plain();
    mail.html = Some("<p>x</p>".to_owned());
    let (copy, _) = sent(&mail);
    // The copy has the same Message-ID, and so the same boundaries.
    mail.files = vec![file("copy.eml", "message/rfc822", &copy)];
    let (raw, read) = sent(&mail);
    assert_eq!(read.files.len(), 1);
    assert_eq!(decode(&raw, &read.files[0]), copy);
    mail.text = Some(String::from_utf8(copy).unwrap());
    let (_, read) = sent(&mail);
    assert_eq!(unified(&read.text.unwrap()), unified(mail.text.as_deref().unwrap()));
}

#[test]
fn international_domains_become_a_labels_and_names_encoded_words() {
    let mut mail = plain();
    mail.from = person("Jürgen Müller", "j@bücher.example");
    mail.to =
        vec![person("Doe, John \"JD\"", "john@EXAMPLE.com"), person("=?utf-8?q?evil?=", "e@example.com")];
    mail.subject =
        "Grüße aus Köln, dies ist ein Betreff, der auf keine einzelne Zeile passt, weil er so lang ist"
            .to_owned();
    let (raw, read) = sent(&mail);
    assert!(raw.is_ascii() && !needs_smtputf8(&mail));
    assert_eq!(read.subject, mail.subject);
    let from = read.from.unwrap();
    assert_eq!(
        (from.name.as_deref(), from.address.as_str()),
        (Some("Jürgen Müller"), "j@xn--bcher-kva.example")
    );
    assert_eq!(read.to[0].name.as_deref(), Some("Doe, John \"JD\""));
    assert_eq!(read.to[0].address, "john@example.com");
    assert_eq!(read.to[1].name.as_deref(), Some("=?utf-8?q?evil?="));
    let lines = String::from_utf8(raw).unwrap();
    assert!(lines.split("\r\n").filter(|line| line.contains("=?")).all(|line| line.len() <= 76), "{lines}");
}

#[test]
fn only_a_local_part_needs_smtputf8() {
    let mut mail = plain();
    mail.to = vec![person("", "jürgen@bücher.example")];
    assert!(needs_smtputf8(&mail));
    let (raw, read) = sent(&mail);
    assert_eq!(header(&raw, "To"), "<jürgen@xn--bcher-kva.example>");
    assert_eq!(read.to[0].address, "jürgen@xn--bcher-kva.example");
    assert!(!address_needs_smtputf8("a@bücher.example"));
}

#[test]
fn threading_headers_are_folded() {
    let mut mail = plain();
    mail.references =
        (0..40).map(|number| format!("{number}.some-long-identifier@mail.example.com")).collect();
    mail.in_reply_to = mail.references.last().cloned();
    let (raw, read) = sent(&mail);
    assert_eq!(read.references, mail.references);
    assert_eq!(read.in_reply_to, mail.in_reply_to);
    assert!(String::from_utf8(raw).unwrap().split("\r\n").all(|line| line.len() <= 78));
}

#[test]
fn own_headers_and_the_mark_of_programs_are_written() {
    let mut mail = plain();
    let link = format!("<https://agents.test/{}>", "u".repeat(300));
    mail.headers = vec![
        ("X-Campaign".to_owned(), "Frühling".to_owned()),
        ("List-Unsubscribe".to_owned(), format!("{link}, <mailto:leave@agents.test>")),
    ];
    mail.auto_submitted = Some(AutoSubmitted::Replied);
    mail.reply_to = vec![person("Team", "team@agents.test")];
    mail.cc = vec![person("", "c@example.com")];
    let (raw, read) = sent(&mail);
    assert_eq!(header(&raw, "X-Campaign"), "=?utf-8?B?RnLDvGhsaW5n?=");
    assert_eq!(header(&raw, "List-Unsubscribe"), mail.headers[1].1);
    assert_eq!(header(&raw, "Auto-Submitted"), "auto-replied");
    assert_eq!(read.reply_to[0].address, "team@agents.test");
    assert_eq!(read.cc[0].address, "c@example.com");
    assert_eq!(read.automatic, Some(crate::message::Automatic::Reply));
}

#[test]
fn a_mail_with_blind_copies_only_names_nobody() {
    let mut mail = plain();
    mail.to.clear();
    let (raw, read) = sent(&mail);
    assert_eq!(header(&raw, "To"), "undisclosed-recipients:;");
    assert!(read.to.is_empty() && read.cc.is_empty());
    assert!(!String::from_utf8_lossy(&raw).to_lowercase().contains("bcc"));
}

#[test]
fn every_line_end_becomes_crlf_and_long_lines_are_encoded() {
    let long = "word ".repeat(500);
    for text in [
        "a\nb\rc\r\nd\n\n\re",
        ".\n.\r\n..\r",
        "From here\nFrom there\n",
        &long,
        "trailing  \n",
        "\u{1b}[0m",
        "",
    ] {
        let mut mail = plain();
        mail.text = Some(text.to_owned());
        let (raw, read) = sent(&mail);
        assert_eq!(unified(&read.text.unwrap_or_default()), unified(text), "{text:?}");
        assert!(!raw.windows(6).any(|window| window == b"\nFrom "), "{text:?}");
        assert!(String::from_utf8(raw).unwrap().split("\r\n").all(|line| line.len() <= 78), "{text:?}");
    }
}
