//! Links that deceive, and links that only look as if they did.

use super::{Status, kinds, scan_text};
use crate::message::read;
use crate::scan::{Blocklist, scan};

fn page(html: &str) -> String {
    format!("From: a@example.com\nContent-Type: text/html; charset=utf-8\n\n{html}")
}

#[test]
fn harmful_links() {
    for (html, kind) in [
        ("<a href='https://paypal.com@evil.test/'>x</a>", "url_credentials"),
        ("<a href='https://user:pass@example.com/'>x</a>", "url_credentials"),
        ("<a href='http://192.0.2.7/login'>x</a>", "ip_address_link"),
        ("<a href='http://3221225991/'>x</a>", "ip_address_link"),
        ("<a href='http://0xC0.0.2.7/'>x</a>", "ip_address_link"),
        ("<a href='https://paypa1.com/'>x</a>", "lookalike_host"),
        ("<a href='https://www.rnicrosoft.com/'>x</a>", "lookalike_host"),
        ("<a href='https://paypal.com.evil.test/'>x</a>", "lookalike_host"),
        ("<a href='https://lnstagram.com/'>x</a>", "lookalike_host"),
        ("<a href='https://xn--pple-43d.com/'>x</a>", "punycode_host"),
        ("<a href='https://раураӏ.com/'>x</a>", "punycode_host"),
        ("<a href='https://gооgle.com/'>x</a>", "punycode_host"),
        ("<a href='https://pаypal-login.com/'>x</a>", "punycode_host"),
        ("<a href='javascript:alert(1)'>x</a>", "script_link"),
        ("<a href='java&#x73;cript&colon;alert(1)'>x</a>", "script_link"),
        ("<a href='java\tscript:alert(1)'>x</a>", "script_link"),
        ("<a href='data:text/html,&lt;script&gt;'>x</a>", "data_url"),
        ("<a href='https://example.com.evil.test/'>example.com</a>", "misleading_link"),
        ("<a href='https://evil.test/'>https://bank.example/login</a>", "misleading_link"),
        ("<a href='https://evil.test/'>www.paypal.com</a>", "misleading_link"),
        ("<a href='https://click.evil.test/'>paypal.com</a>", "misleading_link"),
        ("<a href='https://evil.test/'><b>https://my</b>bank.example</a>", "misleading_link"),
        ("<a href='https://exarnple.com/'>https://example.com</a>", "misleading_link"),
        ("<a href='http://192.0.2.7/'>https://example.com</a>", "misleading_link"),
        ("<a href='https://click.example-com.test/'>example.com</a>", "misleading_link"),
        ("<form action='https://paypa1.com/'>", "lookalike_host"),
        ("<area href='https://paypa1.com/'>", "lookalike_host"),
        ("<base href='https://paypa1.com/'>", "lookalike_host"),
        ("<img src=https://paypa1.com/x.png>", "lookalike_host"),
        ("<meta http-equiv=refresh content=\"0; url='https://paypa1.com/'\">", "lookalike_host"),
        ("<div style=\"background:url('https://paypa1.com/x')\">", "lookalike_host"),
        ("<style>a { b: url(https://paypa1.com/x) }</style>", "lookalike_host"),
        ("<!-- <a href='https://paypa1.com/'> -->", "lookalike_host"),
        ("text https://paypa1.com/ text", "lookalike_host"),
        ("<a href='//paypa1.com/'>x</a>", "lookalike_host"),
        ("<a href='https:\\\\paypa1.com'>x</a>", "lookalike_host"),
    ] {
        let verdict = scan_text(&page(html));
        // rules: SCAN-2
        assert!(kinds(&verdict).contains(&kind), "{html}: {:?}", verdict.threats);
        assert_eq!(verdict.status, Status::Flagged, "{html}");
    }
    assert_eq!(kinds(&scan_text("Subject: x\n\nlog in at https://paypa1.com/ now")), ["lookalike_host"]);
    assert_eq!(kinds(&scan_text("Subject: x\n\nlog in at www.paypa1.com now")), ["lookalike_host"]);
}

#[test]
fn honest_links() {
    for html in [
        "<a href='https://example.com/'>example.com</a>",
        "<a href='https://www.example.com/a'>https://example.com</a>",
        "<a href='https://example.co.uk/'>shop.example.co.uk</a>",
        "<a href='https://münchen.de/'>münchen.de</a>",
        "<a href='https://xn--mnchen-3ya.de/'>münchen.de</a>",
        "<a href='https://пример.рф/'>пример.рф</a>",
        "<a href='https://例え.jp/'>例え.jp</a>",
        "<a href='https://café.example.com/'>menu</a>",
        "<a href='https://click.mailer.com/abc'>example.com</a>",
        "<a href='https://u123.ct.sendgrid.net/ls/click'>https://example.com/page</a>",
        "<a href='https://nam02.safelinks.protection.outlook.com/?url=x'>https://paypal.com</a>",
        "<a href='https://amazon.de/'>amazon.com</a>",
        "<a href='https://click.data.com.br/'>a.com</a>",
        "<a href='https://evil.test/'>Click here for example things</a>",
        "<a href='https://files.example.com/x'>report.pdf</a>",
        "<a href='https://files.example.com/x'>setup.sh</a>",
        "<a href='mailto:a@example.com'>a@example.com</a>",
        "<a href='https://other.example.net/'>a@example.com</a>",
        "<a href='https://medium.com/@ann/x'>story</a>",
        "<a href='http://192.0.2.7/status'>status</a>",
        "<a href='javascript:void(0)'>x</a>",
        "<img src='data:image/png;base64,iVBORw0KGgo='>",
        "<a href='#top'>example.com</a>",
        "<a href='https://www.google.com.br/'>x</a>",
        "<a href='https://paypal.com/'>PayPal.com</a>",
    ] {
        let verdict = scan_text(&page(html));
        assert_eq!((verdict.status, kinds(&verdict)), (Status::Clean, vec![]), "{html}");
    }
    let link = "<a href='https://click.mailer.com/abc'>https://example.com/page</a>";
    assert_eq!(scan_text(&page(link)).status, Status::Flagged);
    let newsletter = format!("List-Unsubscribe: <https://mailer.com/u>\n{}", page(link));
    assert_eq!(scan_text(&newsletter).status, Status::Clean);
}

#[test]
fn block_lists() {
    let list = Blocklist::parse(
        "# comment\n\nevil.test\n*.worse.test # why\nhttps://example.com/bad/\n0.0.0.0 ads.test\nEXAMPLE.NET/x?y\nbücher.test\n",
    );
    for (url, is_blocked) in [
        ("https://evil.test/", true),
        ("http://a.b.evil.test:8080/x", true),
        ("https://EVIL.test./", true),
        ("https://notevil.test/", false),
        ("https://worse.test", true),
        ("https://ads.test/", true),
        ("https://example.com/bad/thing", true),
        ("http://example.com/bad/", true),
        ("https://example.com/good", false),
        ("https://sub.example.com/bad/", false),
        ("https://example.net/x?y=1", true),
        ("https://xn--bcher-kva.test/", true),
        ("evil", false),
        ("", false),
    ] {
        // rules: SCAN-7
        assert_eq!(list.matches(url), is_blocked, "{url}");
    }
    for text in [
        "Subject: x\n\nsee http://sub.evil.test/a",
        "Content-Type: text/html\n\n<a href=http://sub.evil.test/a>x</a>",
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<a href=3D\"http://sub.ev=\nil.test/a\">x</a>",
        "Content-Type: multipart/mixed; boundary=b\n\nhttp://evil.test/ in the preamble\n--b\n\nx\n--b--\n",
    ] {
        let raw = text.replace('\n', "\r\n");
        let verdict = scan(raw.as_bytes(), &read(raw.as_bytes()), &list);
        // rules: SCAN-2
        assert_eq!(kinds(&verdict).first(), Some(&"blocked_url"), "{text}");
    }
    let mut both = Blocklist::default();
    both.extend(list);
    assert!(both.matches("https://evil.test/"));
}

#[test]
fn a_long_list_is_no_burden() {
    let text = (0..100_000).map(|number| format!("host{number}.test\n")).collect::<Vec<_>>().concat();
    let list = Blocklist::parse(&text);
    assert!(list.matches("https://a.host99999.test/"));
    assert!(!list.matches("https://host100000.test/"));
}

#[test]
fn too_many_links() {
    let text = (0..2500).map(|number| format!("https://example.com/{number}\n")).collect::<Vec<_>>().concat();
    assert_eq!(scan_text(&format!("Subject: x\n\n{text}")).status, Status::Skipped);
}
