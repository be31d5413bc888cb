//! Mail as ordinary programs write it.

use super::{bytes_of, crlf, read_text};
use crate::message::{Automatic, read};

fn multipart(kind: &str, parts: &[&str]) -> String {
    let mut text = format!(
        "From: Ann <ann@example.com>\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=\"b1\"\n\npreamble\n"
    );
    for part in parts {
        text.push_str("--b1\n");
        text.push_str(part);
        text.push('\n');
    }
    text.push_str("--b1--\n");
    text
}

const PLAIN: &str = "Content-Type: text/plain; charset=utf-8\n\nHello";
const HTML: &str = "Content-Type: text/html; charset=utf-8\n\n<p>Hello</p>";
const IMAGE: &str = "Content-Type: image/png; name=\"a.png\"\nContent-ID: <img1@x>\nContent-Disposition: inline\nContent-Transfer-Encoding: base64\n\niVBORw==";
const PDF: &str = "Content-Type: application/pdf\nContent-Disposition: attachment; filename=\"a b.pdf\"\nContent-Transfer-Encoding: base64\n\nJVBERi0=";

#[test]
fn a_plain_message() {
    let message =
        read_text("From: ann@example.com\nTo: bob@example.com\nSubject: Hi\n\nline one\nline two\n");
    assert_eq!(message.faults, []);
    assert_eq!(message.text.as_deref(), Some("line one\nline two\n"));
    assert_eq!(message.html, None);
    assert!(message.files.is_empty());
    assert_eq!(message.headers, "From: ann@example.com\r\nTo: bob@example.com\r\nSubject: Hi\r\n");
}

#[test]
fn the_usual_multiparts() {
    let related = multipart("related", &[HTML, IMAGE]).replace("b1", "b2").replace("preamble", "");
    let related = related.split_once("Content-Type").map(|(_, rest)| format!("Content-Type{rest}")).unwrap();
    for (text, plain, html, files) in [
        (multipart("alternative", &[PLAIN, HTML]), Some("Hello"), Some("<p>Hello</p>"), vec![]),
        (multipart("mixed", &[PLAIN, PDF]), Some("Hello"), None, vec!["a b.pdf"]),
        (multipart("related", &[HTML, IMAGE]), None, Some("<p>Hello</p>"), vec!["a.png"]),
        (multipart("alternative", &[PLAIN, &related]), Some("Hello"), Some("<p>Hello</p>"), vec!["a.png"]),
        (multipart("mixed", &[PLAIN, IMAGE, PLAIN]), Some("Hello\nHello"), None, vec!["a.png"]),
        (multipart("mixed", &[PLAIN, HTML]), None, Some("<div>Hello</div>\n<p>Hello</p>"), vec![]),
    ] {
        let message = read_text(&text);
        assert_eq!(message.faults, [], "{text}");
        assert_eq!(message.text.as_deref(), plain, "{text}");
        assert_eq!(message.html.as_deref(), html, "{text}");
        assert_eq!(message.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), files, "{text}");
    }
}

#[test]
fn a_place_gives_the_bytes_of_the_file() {
    let text = crlf(&multipart("mixed", &[PLAIN, PDF, IMAGE]));
    let message = read(text.as_bytes());
    assert_eq!(bytes_of(text.as_bytes(), &message, "a b.pdf"), b"%PDF-");
    assert_eq!(bytes_of(text.as_bytes(), &message, "a.png"), b"\x89PNG");
    let image = &message.files[1];
    assert_eq!(image.content_id.as_deref(), Some("img1@x"));
    assert_eq!(image.disposition.as_deref(), Some("inline"));
    assert_eq!(image.media_type, "image/png");
}

#[test]
fn text_parts_that_are_files() {
    let attached = "Content-Type: text/plain\nContent-Disposition: attachment; filename=notes.txt\n\nnotes";
    let calendar = "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR";
    let message = read_text(&multipart("mixed", &[PLAIN, attached]));
    assert_eq!(message.text.as_deref(), Some("Hello"));
    assert_eq!(message.files[0].name, "notes.txt");
    let message = read_text(&multipart("alternative", &[PLAIN, calendar]));
    assert_eq!(message.text.as_deref(), Some("Hello"));
    assert_eq!(message.files[0].name, "invite-1.ics");
    let amp = "Content-Type: text/x-amp-html\n\n<html amp4email>";
    let message = read_text(&multipart("alternative", &[PLAIN, amp, HTML]));
    assert!(message.files.is_empty());
    assert_eq!(message.inner.len(), 1);
}

#[test]
fn an_attached_message_is_a_file_named_after_its_subject() {
    let inner = "Content-Type: message/rfc822\n\nFrom: x@y.test\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe/1?=\n\nInner text";
    let text = crlf(&multipart("mixed", &[PLAIN, inner]));
    let message = read(text.as_bytes());
    assert_eq!(message.faults, []);
    assert_eq!(message.files.len(), 1);
    assert_eq!(message.files[0].name, "Grüße_1.eml");
    assert!(bytes_of(text.as_bytes(), &message, "Grüße_1.eml").starts_with(b"From: x@y.test"));
    assert_eq!(message.text.as_deref(), Some("Hello"));
    assert_eq!(message.inner.len(), 1, "its text is there for the scanner");
}

#[test]
fn a_digest_holds_messages() {
    let message = read_text(&multipart("digest", &["\nSubject: one\n\n1", "\nSubject: two\n\n2"]));
    assert_eq!(
        message.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(),
        ["one.eml", "two.eml"]
    );
}

#[test]
fn charsets_and_encodings() {
    for (head, body, expected) in [
        ("charset=windows-1251", &b"\xcf\xf0\xe8"[..], "При"),
        ("charset=iso-2022-jp", b"\x1b$B%O%m\x1b(B", "ハロ"),
        ("charset=gb18030", b"\xc4\xe3\xba\xc3", "你好"),
        ("charset=koi8-r", b"\xf0\xd2\xc9", "При"),
        ("charset=utf-8", b"caf\xe9", "caf\u{fffd}"),
        ("charset=\"x-nobody-knows\"", "Grüße".as_bytes(), "Grüße"),
        ("charset=utf-7", b"+ADw-script", "+ADw-script"),
        ("format=plain", b"caf\xe9", "café"),
        ("charset=us-ascii", "naïve".as_bytes(), "naïve"),
        ("charset=iso-2022-kr", b"abc", "abc"),
        ("charset=utf-8", b"a\xc0\xafb", "a\u{fffd}\u{fffd}b"),
        ("charset=iso-2022-jp", b"\x1b$Bx", "\u{fffd}"),
    ] {
        let mut raw = format!("From: a@b.test\r\nContent-Type: text/plain; {head}\r\n\r\n").into_bytes();
        raw.extend_from_slice(body);
        // rules: RECV-14
        assert_eq!(read(&raw).text.as_deref(), Some(expected), "{head}");
    }
    let page = b"Content-Type: text/html\r\n\r\n<meta charset=\"koi8-r\">\xf0\xd2\xc9";
    assert!(read(page).html.unwrap().ends_with("При"));
    let utf_16 = "Content-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n\nAGgAaQ==";
    assert_eq!(read_text(utf_16).text.as_deref(), Some("hi"));
}

#[test]
fn flowed_text() {
    let head = "Content-Type: text/plain; format=flowed; delsp=";
    let body = "\n\nlong \nline\n> quoted \n> text\n  stuffed\n-- \nme\n";
    let message = read_text(&format!("{head}no{body}"));
    assert_eq!(message.text.as_deref(), Some("long line\n> quoted text\n stuffed\n-- \nme\n"));
    let message = read_text(&format!("{head}yes{body}"));
    assert_eq!(message.text.as_deref(), Some("longline\n> quotedtext\n stuffed\n-- \nme\n"));
}

#[test]
fn messages_with_little_in_them() {
    let nothing = read(b"");
    assert_eq!((nothing.faults.len(), nothing.subject.as_str(), nothing.text.as_deref()), (0, "", Some("")));
    let no_headers = read(b"just some text\r\nand more");
    assert_eq!(no_headers.text.as_deref(), Some("just some text\nand more"));
    assert!(!no_headers.faults.is_empty());
    let no_body = read(b"Subject: only\r\nFrom: a@b.test");
    assert_eq!((no_body.subject.as_str(), no_body.from.unwrap().address.as_str()), ("only", "a@b.test"));
    let empty_line_first = read(b"\r\nSubject: not a header");
    assert_eq!(empty_line_first.subject, "");
    let from_a_file = read(b"From ann@example.com Sat Jan  3 01:05:34 1996\nSubject: x\n\ntext\n");
    assert_eq!((from_a_file.subject.as_str(), from_a_file.faults.len()), ("x", 0));
}

#[test]
fn automatic_mail() {
    for (headers, expected) in [
        ("Subject: hi", None),
        ("Auto-Submitted: no", None),
        ("Auto-Submitted: auto-replied (vacation)", Some(Automatic::Reply)),
        ("X-Autoreply: yes", Some(Automatic::Reply)),
        ("Precedence: auto_reply", Some(Automatic::Reply)),
        ("Auto-Submitted: auto-generated", Some(Automatic::Generated)),
        ("X-Auto-Response-Suppress: All", Some(Automatic::Generated)),
        ("Feedback-ID: a:b:c", Some(Automatic::Generated)),
        ("Feedback-ID: a:b:c\nList-Unsubscribe: <https://x.test/u>", Some(Automatic::List)),
        ("List-Id: <users.example.org>", Some(Automatic::List)),
        ("Precedence: bulk", Some(Automatic::List)),
    ] {
        assert_eq!(read_text(&format!("{headers}\n\nbody")).automatic, expected, "{headers}");
    }
    let status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x.test\n\nAction: failed";
    let complaint = "Content-Type: message/feedback-report\n\nFeedback-Type: abuse";
    let report = read_text(&multipart("report; report-type=delivery-status", &[PLAIN, status]));
    assert_eq!(report.automatic, Some(Automatic::DeliveryReport));
    assert_eq!((report.text.as_deref(), report.files.len()), (Some("Hello"), 1));
    let report = read_text(&multipart("report; report-type=feedback-report", &[PLAIN, complaint]));
    assert_eq!(report.automatic, Some(Automatic::Complaint));
}
