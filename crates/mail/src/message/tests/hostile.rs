//! Mail that is made to break readers, or to be read in two ways.

use std::fmt::Write;

use super::{crlf, read_text};
use crate::message::{Fault, Message, count_received, read};

fn assert_fault(message: &Message, fault: Fault, what: &str) {
    assert!(message.faults.contains(&fault), "{what}: {:?}", message.faults);
}

#[test]
fn nested_messages_end_at_the_limit() {
    let mut text = String::from("From: a@b.test\nSubject: deep\n");
    text.push_str(&"Content-Type: message/rfc822\n\n".repeat(50_000));
    let message = read_text(&text);
    // rules: RECV-13
    assert_fault(&message, Fault::NestedTooDeep, "50,000 messages");
    assert_eq!((message.subject.as_str(), message.from.unwrap().address.as_str()), ("deep", "a@b.test"));
    assert_eq!((message.text, message.files.len()), (None, 0));
}

#[test]
fn nested_multiparts_end_at_the_limit() {
    let mut text = String::from("Subject: deep\n");
    for level in 0..20_000 {
        write!(text, "Content-Type: multipart/mixed; boundary=\"b{level:06}\"\n\n--b{level:06}\n").unwrap();
    }
    // rules: RECV-13
    assert_fault(&read_text(&text), Fault::NestedTooDeep, "20,000 levels");
}

#[test]
fn too_many_headers() {
    let flood =
        |line: &str, times: usize| format!("From: a@b.test\nSubject: s\n{}\n\nbody", line.repeat(times));
    // rules: RECV-13
    for (what, text) in [
        ("a million headers", flood("X-A: b\n", 1_000_000)),
        (
            "500,000 addresses",
            format!("From: a@b.test\nSubject: s\nTo: a@b.test{}\n\n", ",\n a@b.test".repeat(500_000)),
        ),
        (
            "200,000 encoded words",
            format!("From: a@b.test\nSubject: s\nComments: {}\n\n", "=?utf-8?q?x?=\n ".repeat(200_000)),
        ),
        (
            "300,000 references",
            format!("From: a@b.test\nSubject: s\nReferences: {}\n\n", "<a@b>\n ".repeat(300_000)),
        ),
        ("one long line", format!("From: a@b.test\nSubject: s\nX: {}\n\nbody", "x".repeat(5_000_000))),
    ] {
        let message = read(text.as_bytes());
        assert_fault(&message, Fault::HeadersTooLarge, what);
        assert_eq!(message.from.as_ref().unwrap().address, "a@b.test", "{what}");
        assert_eq!(message.text, None, "{what}");
        assert!(message.headers.len() <= 100 * 1024, "{what}");
    }
}

#[test]
fn too_many_parts() {
    let text =
        format!("Content-Type: multipart/mixed; boundary=b\n\n{}--b--\n", "--b\n\nx\n".repeat(200_000));
    // rules: RECV-13
    assert_fault(&read_text(&text), Fault::NestedTooDeep, "200,000 parts");
}

#[test]
fn many_parameters() {
    let parameters = (0..15_000).map(|number| format!("p*{number}=a;")).collect::<Vec<_>>().concat();
    let message = read_text(&format!("Content-Type: text/plain; {}\n\nbody", &parameters[..100_000]));
    assert_eq!(message.text.as_deref(), Some("body"));
}

#[test]
fn a_second_sender_is_never_shown() {
    for (headers, fault, from) in [
        ("From: real@good.test\nFrom: spoof@evil.test", Fault::RepeatedHeader, None),
        ("From: real@good.test\nFr om: spoof@evil.test", Fault::HeaderName, Some("real@good.test")),
        ("From : spoof@evil.test\nFrom: real@good.test", Fault::HeaderName, Some("real@good.test")),
        ("From: real@good.test\nfrom\t: spoof@evil.test", Fault::HeaderName, Some("real@good.test")),
        ("From: <real@good.test> <spoof@evil.test>", Fault::RepeatedHeader, None),
        ("From: real@good.test\nFr\u{e9}om: spoof@evil.test", Fault::HeaderName, Some("real@good.test")),
        (" From: spoof@evil.test\nFrom: real@good.test", Fault::HeaderName, Some("real@good.test")),
    ] {
        let message = read_text(&format!("{headers}\n\nbody"));
        // rules: RECV-15
        assert_fault(&message, fault, headers);
        assert_eq!(message.from.map(|from| from.address).as_deref(), from, "{headers}");
    }
    let message = read_text("From: a@good.test, b@evil.test\n\n");
    assert_eq!((message.from.unwrap().address.as_str(), message.authors), ("a@good.test", 2));
}

#[test]
fn headers_that_stand_twice() {
    for name in ["Subject", "Date", "To", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"] {
        let message =
            read_text(&format!("From: a@b.test\n{name}: one\n{}: two\n\nbody", name.to_lowercase()));
        assert_fault(&message, Fault::RepeatedHeader, name);
    }
    let part = "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\nContent-Type: text/html\n\nx\n--b--\n";
    assert_fault(&read_text(part), Fault::RepeatedHeader, "in a part");
}

#[test]
fn boundaries_that_readers_see_differently() {
    let long = "x".repeat(71);
    let cases = [
        ("none", "multipart/mixed", "--b\n\nx\n--b--\n"),
        ("empty", "multipart/mixed; boundary=\"\"", "--\n\nx\n----\n"),
        ("too long", &format!("multipart/mixed; boundary={long}"), &format!("--{long}\n\nx\n--{long}--\n")),
        ("twice", "multipart/mixed; boundary=b; boundary=c", "--b\n\nx\n--b--\n"),
        ("folded", "multipart/mixed; boundary=\"b\n c\"", "--b c\n\nx\n--b c--\n"),
        ("with a space", "multipart/mixed; boundary =b", "--b\n\nx\n--b--\n"),
        ("behind a comment", "multipart/mixed(); boundary=b", "--b\n\nx\n--b--\n"),
        ("of no multipart", "ultipart/mixed; boundary=b", "--b\nContent-Type: image/png\n\nx\n--b--\n"),
        ("of nothing", "text/plain", "\n--b\ncontent-type: image/png\n\nx\n--b--\n"),
        ("in pieces", "multipart/mixed; boundary*0=b", "--b\n\nx\n--b--\n"),
        ("never used", "multipart/mixed; boundary=b", "just text\n"),
        ("not ended", "multipart/mixed; boundary=b", "--b\n\nx\n"),
        ("used after its end", "multipart/mixed; boundary=b", "--b\n\nx\n--b--\n--b\n\ny\n--b--\n"),
        ("in a line", "multipart/mixed; boundary=b1b", "--b1b\n\nx --b1b y\n--b1b--\n"),
        ("after a space", "multipart/mixed; boundary=b1b", "--b1b\n\nx\n --b1b\ny\n--b1b--\n"),
        ("with more behind it", "multipart/mixed; boundary=b1b", "--b1b\n\nx\n--b1bb\ny\n--b1b--\n"),
        ("in the headers", "multipart/mixed; boundary=b1b", "--b1b\nX: y\n--b1b\n\ny\n--b1b--\n"),
        (
            "nested in itself",
            "multipart/mixed; boundary=b",
            "--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b--\n--b--\n",
        ),
        (
            "begins like another",
            "multipart/mixed; boundary=b",
            "--b\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n\nx\n--bb--\n--b--\n",
        ),
        (
            "inner not ended",
            "multipart/mixed; boundary=b",
            "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n--b--\n",
        ),
    ];
    for (what, kind, body) in cases {
        // rules: SCAN-4
        assert_fault(&read_text(&format!("Content-Type: {kind}\n\n{body}")), Fault::Boundary, what);
    }
    let eudora = "Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\nContent-Type: multipart/alternative; boundary=\"x.ALT\"\n\n\
        --x.ALT\n\nplain\n--x.ALT\nContent-Type: text/html\n\n<p>\n--x.ALT--\n\n--x\nContent-Type: image/png; name=a.png\n\n1\n--x--\n";
    let message = read_text(eudora);
    assert_eq!(
        (message.text.as_deref(), message.html.as_deref(), message.files.len()),
        (Some("plain"), Some("<p>"), 1)
    );
    assert_fault(&message, Fault::Boundary, "still, not every program reads it so");
    let padded = read_text("Content-Type: multipart/mixed; boundary=b\n\n--b \t\n\nx\n--b-- \nepilogue\n");
    assert_eq!((padded.faults.len(), padded.text.as_deref()), (0, Some("x")));
}

#[test]
fn encodings_that_readers_see_differently() {
    let part = |encoding: &str, body: &str| {
        format!("Content-Type: text/plain\nContent-Transfer-Encoding: {encoding}\n\n{body}")
    };
    for (what, text, expected) in [
        ("garbage", part("base64", "aGVs!bG8="), Some("hello")),
        ("no padding", part("base64", "aGVsbG8"), Some("hello")),
        ("too much padding", part("base64", "aGVsbG8=="), Some("hello")),
        ("text after padding", part("base64", "aGVsbG8=IHdv"), Some("hello wo")),
        ("bad quoted-printable", part("quoted-printable", "a=3Db=zz"), Some("a=b=zz")),
        ("unknown", part("x-uuencode", "text"), Some("text")),
        (
            "a file in the text",
            part("7bit", "hi\nbegin 644 a.zip\n#0V%T\n`\nend\n"),
            Some("hi\nbegin 644 a.zip\n#0V%T\n`\nend\n"),
        ),
        ("two words", part("base64, base64", "aGVsbG8="), Some("hello")),
    ] {
        let message = read_text(&text);
        assert_fault(&message, Fault::Encoding, what);
        assert_eq!(message.text.as_deref(), expected, "{what}");
    }
    for (what, headers) in [
        ("an encoded message", "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64"),
        (
            "an encoded multipart",
            "Content-Type: multipart/mixed; boundary=b\nContent-Transfer-Encoding: quoted-printable",
        ),
        ("a piece of a message", "Content-Type: message/partial; id=1; number=1; total=2"),
    ] {
        assert_fault(&read_text(&format!("{headers}\n\n--b\n\nx\n--b--\n")), Fault::Encoding, what);
    }
    for sound in [part("base64", "aGVs\nbG8=\n"), part("quoted-printable", "a=\nb=3d \n"), part("8-bit", "x")]
    {
        assert_eq!(read_text(&sound).faults, [], "{sound}");
    }
}

#[test]
fn bytes_that_readers_see_differently() {
    for raw in [
        &b"Subject: a\r\n\r\nx\0y"[..],
        b"Subject: a\r\n\r\nx\ny\r\n",
        b"Subject: a\r\n\r\nx\ry\r\n",
        b"Subject: a\nX: y\r\n\r\n",
    ] {
        assert_fault(&read(raw), Fault::Bytes, &String::from_utf8_lossy(raw));
    }
    assert_eq!(read(b"Subject: a\n\nx\ny\n").faults, []);
    for kind in [
        "foo multipart/mixed; boundary=b",
        ": multipart/mixed; boundary=b",
        "boundary=b",
        "multipart",
        "\"text/plain\"",
    ] {
        assert_fault(&read_text(&format!("Content-Type: {kind}\n\n")), Fault::Disagreement, kind);
    }
    for part in
        ["\nContent-Type: image/png\n\nx", "Content-Type: image/png\n Content-Transfer-Encoding: base64\n\nx"]
    {
        let text = format!("Content-Type: multipart/mixed; boundary=b\n\n--b\n{part}\n--b--\n");
        assert_fault(&read_text(&text), Fault::HeaderName, part);
    }
}

#[test]
fn content_beyond_the_limit() {
    let text = format!("Content-Type: text/plain\n\n{}", "long line of text\n".repeat(600_000));
    let message = read(text.as_bytes());
    // rules: RECV-13
    assert_fault(&message, Fault::TooMuchContent, "10 MB of text");
    assert_eq!(message.text.unwrap().len(), 8 * 1024 * 1024);
}

#[test]
fn received_lines() {
    let text =
        crlf(&format!("{}Subject: Received:\n\nReceived: no\n", "Received: from x\n by y\n".repeat(51)));
    assert_eq!(count_received(text.as_bytes()), 51);
    assert_eq!(read(text.as_bytes()).received_lines, 51);
    assert_eq!(count_received(b""), 0);
}

#[test]
fn too_many_dashes() {
    let head = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n";
    let message = read_text(&format!("{head}{}--b--\n", "--c\n".repeat(1_100_000)));
    // rules: RECV-13
    assert_fault(&message, Fault::Boundary, "a million lines of dashes");
    let table = read_text(&format!("{head}{}--b--\n", format!("{}\n", "-".repeat(70)).repeat(5000)));
    assert_eq!((table.faults.len(), table.text.unwrap().len()), (0, 71 * 5000 - 1));
    let row = read_text("Content-Type: multipart/mixed; boundary=\"--b\"\n\n----b\n\nx -------b\n----b--\n");
    assert_fault(&row, Fault::Boundary, "a boundary at the end of a row");
}
