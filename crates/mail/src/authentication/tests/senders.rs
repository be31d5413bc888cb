//! Ways to pose as somebody else: two From lines, strange From lines, and envelopes that speak for another domain.

use super::super::author::{self, Author};
use super::{Authentication, Delivery, Verdict, key_of, mail, sign};

/// `bank.test` protects itself; `evil.test` may say anything about itself.
const ZONE: &str = "bank.test TXT v=spf1 ip4:198.51.100.1 -all\n\
    _dmarc.bank.test TXT v=DMARC1; p=reject\n\
    evil.test TXT v=spf1 ip4:192.0.2.1 -all\n\
    mail.evil.test TXT v=spf1 ip4:192.0.2.1 -all\n\
    _dmarc.evil.test TXT v=DMARC1; p=reject\n";

/// What is found about a message that `evil.test` sends with everything about itself in order.
async fn attack(raw: &[u8]) -> Authentication {
    let zone = format!("{ZONE}{}", key_of("evil.test"));
    let signed = sign("evil.test", raw);
    let envelope = Delivery {
        zone: &zone,
        helo: "mail.evil.test",
        mail_from: Some("eve@evil.test"),
        ..Delivery::default()
    };
    envelope.check(&signed).await
}

// rules: RECV-15, RECV-19
#[tokio::test]
async fn an_honest_mail_of_the_same_host_passes() {
    let found = attack(&mail("Eve <eve@evil.test>")).await;
    let all = [found.status, found.spf, found.dkim, found.dmarc];
    assert_eq!(all, [Verdict::Pass; 4]);
}

// rules: RECV-15
#[tokio::test]
async fn two_authors_never_pass() {
    for headers in [
        "From: eve@evil.test\r\nFrom: ceo@bank.test\r\n",
        "From: ceo@bank.test\r\nFrom: eve@evil.test\r\n",
        "From: eve@evil.test\r\nFROM: ceo@bank.test\r\n",
        "From: eve@evil.test\r\nFr om: ceo@bank.test\r\n",
        "From: eve@evil.test\r\nFrom : ceo@bank.test\r\n",
        "From: eve@evil.test\r\nFrom\t: ceo@bank.test\r\n",
        "From: eve@evil.test\r\nX: a\rFrom: ceo@bank.test\r\n",
        "From: eve@evil.test\r\nX: a\nFrom: ceo@bank.test\r\n",
        "From: eve@evil.test\r\nX: a\0b\r\n",
        "From: eve@evil.test\r\nno colon here\r\n",
    ] {
        let raw = format!("{headers}To: bob@agents.test\r\nSubject: Hello\r\n\r\nHello.\r\n");
        let found = attack(raw.as_bytes()).await;
        assert_eq!(found.status, Verdict::Fail, "{headers:?}");
        for verdict in [found.spf, found.dkim, found.dmarc] {
            assert_ne!(verdict, Verdict::Pass, "{headers:?}");
        }
    }
}

// rules: RECV-15, RECV-19
#[tokio::test]
async fn strange_authors_never_pass() {
    for from in [
        "",
        "nobody",
        "ceo@bank.test, eve@evil.test",
        "eve@evil.test, ceo@bank.test",
        "<ceo@bank.test> <eve@evil.test>",
        "<eve@evil.test> <ceo@bank.test>",
        "ceo@bank.test <eve@evil.test>",
        "<ceo@bank.test>, eve@evil.test",
        "Friends: eve@evil.test;",
        "<@bank.test,@evil.test:eve@evil.test>",
        "<ceo@bank.test>(<eve@evil.test>)",
        "ceo@bank.test(\\)eve@evil.test)",
        "\"ceo@bank.test\"@evil.test@evil.test",
        "=?utf-8?b?Y2VvQGJhbmsudGVzdA==?=",
        "=?utf-8?q?ceo=40bank.test?= <eve@evil.test",
        "eve@[192.0.2.1]",
        "eve@evil.test\u{202e}",
        "ceo@bank.test\u{0}@evil.test",
    ] {
        let found = attack(&mail(from)).await;
        assert_ne!(found.status, Verdict::Pass, "{from:?}");
        assert_ne!(found.dmarc, Verdict::Pass, "{from:?}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn another_domain_in_the_author_never_passes() {
    for from in
        ["ceo@bank.test", "CEO <ceo@BANK.TEST>", "ceo@mail.bank.test", "\"eve@evil.test\" <ceo@bank.test>"]
    {
        let found = attack(&mail(from)).await;
        assert_eq!((found.spf, found.dkim), (Verdict::Pass, Verdict::Pass), "{from}");
        assert_eq!((found.dmarc, found.status), (Verdict::Fail, Verdict::Fail), "{from}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn the_name_of_the_host_speaks_only_for_mail_without_a_sender() {
    let raw = mail("ceo@bank.test");
    let delivery = |helo, mail_from| Delivery { zone: ZONE, helo, mail_from, ..Delivery::default() };
    for (helo, mail_from) in [
        ("bank.test", Some("eve@evil.test")),
        ("mail.evil.test", Some("x@nothing.bank.test")),
        ("mail.evil.test", Some("ceo@bank.test")),
        ("mail.evil.test", Some("ceo@bank.test@evil.test")),
        ("mail.evil.test", Some("@bank.test:eve@evil.test")),
        ("mail.evil.test", Some("(ceo@bank.test)eve")),
        ("mail.evil.test", None),
        ("mail.evil.test", Some("")),
        ("bank.test", None),
        ("[192.0.2.1]", None),
    ] {
        let found = delivery(helo, mail_from).check(&raw).await;
        assert_eq!(found.status, Verdict::Fail, "{helo} {mail_from:?}");
    }
    let own = delivery("mail.evil.test", None).check(&mail("postmaster@evil.test")).await;
    assert_eq!((own.spf, own.dmarc, own.status), (Verdict::Pass, Verdict::Pass, Verdict::Pass));
}

// rules: RECV-18
#[tokio::test]
async fn verdicts_inside_the_mail_are_not_believed() {
    let mut raw = b"Authentication-Results: mx.agents.test; spf=pass; dkim=pass; dmarc=pass\r\n\
        Received-SPF: pass\r\nARC-Authentication-Results: i=1; mx.agents.test; dmarc=pass\r\n"
        .to_vec();
    raw.extend_from_slice(&mail("ceo@bank.test"));
    let found = attack(&raw).await;
    assert_eq!((found.status, found.dmarc), (Verdict::Fail, Verdict::Fail));
    let alone = Delivery { mail_from: None, ..Delivery::default() }.check(&raw).await;
    assert_eq!((alone.status, alone.spf, alone.dkim, alone.dmarc), Default::default());
}

#[test]
fn ordinary_authors_are_read() {
    for (from, expected) in [
        ("ann@example.com", "ann@example.com"),
        ("<ann@example.com>", "ann@example.com"),
        ("Ann <ann@example.com>", "ann@example.com"),
        ("\"Ann, the (first)\" <ann@example.com>", "ann@example.com"),
        ("=?utf-8?B?QW5u?= =?utf-8?Q?_B=2E?= <ann@example.com>", "ann@example.com"),
        ("ann@example.com (Ann)", "ann@example.com"),
        ("J. Doe\r\n <ann@example.com>", "ann@example.com"),
        ("Änne <änne@bücher.example>", "änne@xn--bcher-kva.example"),
        ("ann+tag=x.org@Example.COM", "ann+tag=x.org@example.com"),
    ] {
        match author::read(&mail(from)) {
            Author::One(address) => assert_eq!(address.as_str(), expected, "{from}"),
            other => panic!("{from}: {other:?}"),
        }
    }
    let lines_of_one_kind = b"From: ann@example.com\nTo: bob@agents.test\n\nHello.\n";
    assert!(matches!(author::read(lines_of_one_kind), Author::One(_)));
    let no_body = b"From: ann@example.com\r\nTo: bob@agents.test";
    assert!(matches!(author::read(no_body), Author::One(_)));
}

// rules: RECV-15
#[test]
fn a_block_that_begins_with_a_continued_line_is_not_trusted() {
    let raw = b" From: ceo@bank.test\r\nFrom: eve@evil.test\r\n\r\nHello.\r\n";
    assert_eq!(author::read(raw), Author::Ambiguous);
}

#[test]
fn endless_headers_are_not_read() {
    let many = "X: y\r\n".repeat(5_000) + "From: ann@example.com\r\n\r\n";
    assert_eq!(author::read(many.as_bytes()), Author::Unreadable);
    let long = format!("X: {}\r\nFrom: ann@example.com\r\n\r\n", "y".repeat(200_000));
    assert_eq!(author::read(long.as_bytes()), Author::Unreadable);
}
