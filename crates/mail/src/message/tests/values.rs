//! Header values: subjects, people, ids, dates, names.

use super::{crlf, read_text};
use crate::message::{Person, author, base_subject, calendar, read, without_verdicts};

fn person(name: &str, address: &str) -> Person {
    Person { name: Some(name.to_owned()).filter(|name| !name.is_empty()), address: address.to_owned() }
}

#[test]
fn subjects() {
    for (header, expected) in [
        ("plain", "plain"),
        ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
        ("=?ISO-8859-1?Q?Gr=FC=DFe_?= =?iso-8859-1?q?da?=", "Grüße da"),
        ("=?utf-8?b?44GT?= and more", "こ and more"),
        ("=?utf-8?b?44G?= =?utf-8?b?T?=", "\u{fffd}"),
        ("=?utf-8?q?split_=E3=81?=\n =?utf-8?q?=93?=", "split こ"),
        ("folded\n  twice\n\tover", "folded twice over"),
        ("=?broken", "=?broken"),
        ("=?x?z?y?=", "=?x?z?y?="),
        ("tab\tand \u{7}bell", "tab and bell"),
        ("raw ü", "raw ü"),
        ("=?utf-8*en?q?lang?=", "lang"),
    ] {
        assert_eq!(read_text(&format!("Subject: {header}\n\n")).subject, expected, "{header}");
    }
    assert_eq!(read(b"Subject: caf\xe9\r\n\r\n").subject, "café");
    assert_eq!(read_text(&format!("Subject: {}\n\n", "ü".repeat(2000))).subject.chars().count(), 998);
}

#[test]
fn people() {
    for (header, expected) in [
        ("ann@example.com", vec![person("", "ann@example.com")]),
        ("Ann <ann@example.com>", vec![person("Ann", "ann@example.com")]),
        (
            "\"Doe, Ann\" <ann@example.com>, bob@example.com",
            vec![person("Doe, Ann", "ann@example.com"), person("", "bob@example.com")],
        ),
        ("ann@example.com (Ann)", vec![person("Ann", "ann@example.com")]),
        ("=?utf-8?q?J=C3=BCrgen?= <j@example.com>", vec![person("Jürgen", "j@example.com")]),
        (
            "friends: a@b.test, C <c@d.test>;, e@f.test",
            vec![person("", "a@b.test"), person("C", "c@d.test"), person("", "e@f.test")],
        ),
        ("undisclosed-recipients:;", vec![]),
        ("<@relay.test,@other.test:ann@example.com>", vec![person("", "ann@example.com")]),
        ("\"a \\\"b\\\"\" <x@y.test>", vec![person("a \"b\"", "x@y.test")]),
        ("real@good.test <shown@other.test>", vec![person("real@good.test", "shown@other.test")]),
        ("<a@b.test> <c@d.test>", vec![]),
        ("<a@b.test> c@d.test", vec![]),
        ("\"quoted local\"@example.com", vec![]),
        ("a@b.test c@d.test", vec![]),
        ("<unclosed@b.test", vec![]),
        ("MAILER-DAEMON", vec![]),
    ] {
        assert_eq!(read_text(&format!("To: {header}\n\n")).to, expected, "{header}");
    }
}

#[test]
fn ids() {
    let message = read_text(
        "Message-ID: <a@b>\nIn-Reply-To: Your mail of today <x@y> and <z@y>\nReferences: <1@x>\n <2@x>\n\t<3@x>\n\n",
    );
    assert_eq!(message.message_id.as_deref(), Some("a@b"));
    assert_eq!(message.in_reply_to.as_deref(), Some("x@y"));
    assert_eq!(message.references, ["1@x", "2@x", "3@x"]);
    assert_eq!(read_text("Message-ID: bare@id\n\n").message_id.as_deref(), Some("bare@id"));
    assert_eq!(read_text("Message-ID: <a b@c>\n\n").message_id, None);
    assert_eq!(read_text(&format!("Message-ID: <{}>\n\n", "x".repeat(501))).message_id, None);
    let many = (0..200).map(|number| format!(" <{number}@x>\n")).collect::<Vec<_>>().concat();
    let references = read_text(&format!("References:\n{many}\n")).references;
    assert_eq!((references.len(), references[0].as_str(), references[49].as_str()), (50, "0@x", "199@x"));
    assert_eq!(references[1], "151@x");
}

#[test]
fn dates() {
    for (header, expected) in [
        ("Tue, 14 Jul 2026 09:00:00 +0000", Some(1_784_019_600)),
        ("Tue, 14 Jul 2026 11:00:00 +0200 (CEST)", Some(1_784_019_600)),
        ("14 Jul 2026 04:00 -0500", Some(1_784_019_600)),
        ("Tue, 14 Jul 26 05:00:00 EDT", Some(1_784_019_600)),
        ("Tue, 14 Jul 2026 09:00:00 GMT", Some(1_784_019_600)),
        ("Tue, 14-Jul-2026 09:00:00 UT", Some(1_784_019_600)),
        ("Tue, 14 Jul 2026 09:00:00 Z", Some(1_784_019_600)),
        ("Tue,14 Jul 2026 09:00:00", Some(1_784_019_600)),
        ("Thu, 1 Jan 1970 00:00:00 +0000", Some(0)),
        ("Wed, 31 Dec 1969 23:59:60 +0000", Some(-1)),
        ("Thu, 29 Feb 1996 00:00:00 +0000", Some(825_552_000)),
        ("Thu, 29 Feb 1900 00:00:00 +0000", None),
        ("yesterday", None),
        ("", None),
        ("Tue, 99 Jul 2026 09:00:00 +0000", None),
        ("Tue, 14 Jul 2026 29:00:00 +0000", None),
    ] {
        let date = read_text(&format!("Date: {header}\n\n")).date;
        assert_eq!(date, expected.map(|seconds: i64| seconds * 1_000_000), "{header}");
    }
}

// rules: SAFE-13
#[test]
fn domains_of_people_are_shown_in_ascii() {
    for (from, address) in [
        ("Ann <ann@bücher.example>", "ann@xn--bcher-kva.example"),
        ("ann@BÜCHER.example", "ann@xn--bcher-kva.example"),
        ("<security@\u{430}pple.example>", "security@xn--pple-43d.example"),
        ("müller@example.com", "müller@example.com"),
        ("a@x\u{fffd}y.example", "a@x\u{fffd}y.example"),
    ] {
        let message = read_text(&format!("From: {from}\nCc: {from}\n\n"));
        assert_eq!(message.from.unwrap().address, address, "{from}");
        assert_eq!(message.cc[0].address, address, "{from}");
    }
}

// rules: READ-20
#[test]
fn file_names() {
    let long = format!("filename=\"{}.pdf\"", "n".repeat(300));
    for (parameter, expected) in [
        ("filename=\"a.pdf\"", "a.pdf"),
        ("filename=\"../../etc/passwd\"", "passwd"),
        ("filename=\"C:\\dir\\b.doc\"", "b.doc"),
        ("filename*=utf-8''Gr%C3%BC%C3%9Fe.txt", "Grüße.txt"),
        ("filename*0=\"long \"; filename*1=\"name.txt\"", "long name.txt"),
        ("filename*0*=iso-8859-1''caf%E9; filename*1=.txt", "café.txt"),
        ("filename=\"=?utf-8?q?w=C3=B6rd.txt?=\"", "wörd.txt"),
        ("filename=\"inv\u{202e}fdp.exe\"", "invfdp.exe"),
        ("filename=\"..\"", "file-1.bin"),
        ("filename=\"con.txt\"", "_con.txt"),
        ("filename=\"a\0b.txt\"", "a\u{fffd}b.txt"),
        ("filename=\"x<y>:z?.txt\"", "x_y__z_.txt"),
        (long.as_str(), &format!("{}.pdf", "n".repeat(251))),
    ] {
        let message = read_text(&format!(
            "Content-Type: application/x-thing\nContent-Disposition: attachment; {parameter}\n\nx"
        ));
        assert_eq!(message.files[0].name, expected, "{parameter}");
    }
}

#[test]
fn base_subjects() {
    for (subject, expected) in [
        ("Re: Hello", "hello"),
        ("RE: re[2]: Fwd:  Hello   world (fwd)", "hello world"),
        ("AW: WG: Angebot", "angebot"),
        ("[users] Re: [users] Question", "question"),
        ("回复：答复: 转发: 会议", "会议"),
        ("[only]", "[only]"),
        ("Re:", ""),
        ("Re: Re:", ""),
        ("", ""),
        ("SV: Sv: hej", "hej"),
        ("Ｈｅｌｌｏ", "hello"),
        ("Note: keep this", "note: keep this"),
        ("Re(3): x", "x"),
    ] {
        assert_eq!(base_subject(subject), expected, "{subject}");
    }
}

#[test]
fn invitations() {
    let text = "BEGIN:VCALENDAR\r\nMETHOD:request\r\nBEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nBEGIN:STANDARD\r\nDTSTART:16011028T030000\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nUID:abc@x\r\nSEQUENCE:2\r\nSUMMARY;LANGUAGE=en:Lunch\\, at\r\n  noon\r\nDTSTART;TZID=Europe/Berlin:20260714T120000\r\nDTEND;TZID=\"a:b\":20260714T130000\r\nORGANIZER;CN=Ann:MAILTO:ann@example.com\r\nBEGIN:VALARM\r\nSUMMARY:no\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let invitation = calendar::read(text).unwrap();
    assert_eq!(invitation.method.as_deref(), Some("REQUEST"));
    assert_eq!(invitation.uid.as_deref(), Some("abc@x"));
    assert_eq!(invitation.sequence, Some(2));
    assert_eq!(invitation.summary.as_deref(), Some("Lunch, at noon"));
    assert_eq!(invitation.start.as_deref(), Some("20260714T120000"));
    assert_eq!(invitation.end.as_deref(), Some("20260714T130000"));
    assert_eq!(invitation.organizer.as_deref(), Some("ann@example.com"));
    assert_eq!(calendar::read("no calendar"), None);
}

#[test]
fn verdicts_of_others_are_left_out() {
    let headers = crlf(
        "Received: by x\nAuthentication-Results: agents.test;\n\tdkim=pass\n spf=pass\nFrom: a@b.test\nreceived-spf : pass\n\
         ARC-Authentication-Results: i=1; x\nSubject: Authentication-Results: kept\n",
    );
    let kept = crlf("Received: by x\nFrom: a@b.test\nSubject: Authentication-Results: kept\n");
    assert_eq!(without_verdicts(&headers), kept);
}

#[test]
fn the_author_is_the_one_address_of_the_one_line() {
    let author = |text: &str| author(crlf(text).as_bytes());
    assert_eq!(
        author("Subject: x\nFrom: Ann <ann@a.test>\n\nFrom: b@b.test\n").as_deref(),
        Some("ann@a.test")
    );
    assert_eq!(author("From: ann@a.test\nFrom: bob@b.test\n\n"), None);
    assert_eq!(author("Subject: x\n\n"), None);
}
