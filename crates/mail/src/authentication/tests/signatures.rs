//! DKIM and ARC: published vectors, messages signed by another implementation (dkimpy), and signatures that must not
//! count.

use mail_auth::AuthenticatedMessage;
use mail_auth::common::crypto::HashAlgorithm;
use mail_auth::common::headers::{Writable, Writer};

use super::super::dkim;
use super::{Authentication, Authenticator, Delivery, Verdict, key_of, mail, sign, sign_headers};

const KEYS: &str = include_str!("fixtures/keys.zone");

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("fixtures/", $name, ".eml")).as_slice()
    };
}

async fn check(raw: &[u8]) -> Authentication {
    Delivery { zone: KEYS, mail_from: None, ..Delivery::default() }.check(raw).await
}

// rules: RECV-19
#[tokio::test]
async fn published_vectors_verify() {
    assert_eq!(check(fixture!("rfc6376")).await.dkim, Verdict::Pass);
    assert_eq!(check(fixture!("rfc8463")).await.dkim, Verdict::Pass);
}

// rules: RECV-19
#[tokio::test]
async fn messages_signed_elsewhere_verify() {
    for (name, raw) in [
        ("rsa2048", fixture!("rsa2048")),
        ("rsa1024", fixture!("rsa1024")),
        ("simple", fixture!("simple")),
        ("blank tail", fixture!("blank-tail-1")),
        ("blank tail with a tab", fixture!("blank-tail-2")),
        ("nothing but blanks", fixture!("blank-tail-3")),
        ("blank tail, simple", fixture!("blank-tail-simple")),
    ] {
        let found = check(raw).await;
        assert_eq!((found.dkim, found.status), (Verdict::Pass, Verdict::Pass), "{name}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn weak_partial_and_expired_signatures_fail() {
    for (name, raw) in [
        ("a key of 512 bits", fixture!("rsa512")),
        ("a body length", fixture!("length")),
        ("SHA-1", fixture!("sha1")),
        ("expired", fixture!("expired")),
    ] {
        let found = check(raw).await;
        assert_eq!(found.dkim, Verdict::Fail, "{name}");
        assert_ne!(found.status, Verdict::Pass, "{name}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn changed_mails_fail() {
    for (part, other) in [
        ("this is signed.", "this is changed."),
        ("Subject: A test", "Subject: No test"),
        ("ann@example.com", "eve@example.com"),
    ] {
        let changed = String::from_utf8_lossy(fixture!("rsa2048")).replacen(part, other, 1);
        let found = check(changed.as_bytes()).await;
        assert_eq!(found.dkim, Verdict::Fail, "{part}");
        assert_ne!(found.status, Verdict::Pass, "{part}");
    }
    let mut appended = fixture!("length").to_vec();
    appended.extend_from_slice(b"More text, which nobody signed.\r\n");
    assert_eq!(check(&appended).await.dkim, Verdict::Fail);
    let mut more = fixture!("blank-tail-1").to_vec();
    more.extend_from_slice(b"More text.\r\n \r\n");
    assert_eq!(check(&more).await.dkim, Verdict::Fail);
}

// rules: RECV-19
#[tokio::test]
async fn a_signature_that_leaves_out_the_author_does_not_count() {
    let zone = key_of("example.com");
    let raw = sign_headers("example.com", &["To", "Subject"], &mail("ann@example.com"));
    let found = Delivery { zone: &zone, mail_from: None, ..Delivery::default() }.check(&raw).await;
    assert_eq!(found.dkim, Verdict::Fail);
    assert_ne!(found.status, Verdict::Pass);
}

// rules: RECV-19
#[tokio::test]
async fn a_header_put_above_a_signed_one_spoils_the_verdict() {
    let zone = key_of("example.com");
    let signed = sign("example.com", &mail("ann@example.com"));
    for added in ["Subject: Pay now", "To: everybody@agents.test", "Content-Type: text/html", "Date: today"] {
        let raw = [added.as_bytes(), b"\r\n", &signed].concat();
        let found = Delivery { zone: &zone, mail_from: None, ..Delivery::default() }.check(&raw).await;
        let expected = if added.starts_with(['S', 'T']) { Verdict::Unknown } else { Verdict::Pass };
        assert_eq!(found.status, expected, "{added}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn keys_are_used_only_for_what_they_are_for() {
    let raw = sign("example.com", &mail("ann@example.com"));
    for (tags, expected) in [
        ("", Verdict::Pass),
        ("s=*; ", Verdict::Pass),
        ("s=email:other; ", Verdict::Pass),
        ("s=other; ", Verdict::Fail),
        ("h=sha1; ", Verdict::Fail),
        ("h=sha1:sha256; ", Verdict::Pass),
    ] {
        let zone = key_of("example.com").replace("k=ed25519", &format!("{tags}k=ed25519"));
        let found = Delivery { zone: &zone, mail_from: None, ..Delivery::default() }.check(&raw).await;
        assert_eq!(found.dkim, expected, "{tags}");
    }
    let revoked = "test._domainkey.example.com TXT v=DKIM1; k=ed25519; p=";
    let found = Delivery { zone: revoked, mail_from: None, ..Delivery::default() }.check(&raw).await;
    assert_eq!(found.dkim, Verdict::Fail);
    let missing = Delivery { mail_from: None, ..Delivery::default() }.check(&raw).await;
    assert_eq!(missing.dkim, Verdict::Fail);
    let broken = "test._domainkey.example.com SERVFAIL";
    let found = Delivery { zone: broken, mail_from: None, ..Delivery::default() }.check(&raw).await;
    assert_eq!(found.dkim, Verdict::Unknown);
}

// rules: RECV-19
#[tokio::test]
async fn only_the_first_signatures_are_looked_at() {
    let good = sign("example.com", &mail("ann@example.com"));
    let mut flooded = Vec::new();
    for at in 0..50 {
        let line = format!(
            "DKIM-Signature: v=1; a=ed25519-sha256; d=d{at}.example.com; s=s; h=from; bh=AAAA; b=AAAA\r\n"
        );
        flooded.extend_from_slice(line.as_bytes());
    }
    flooded.extend_from_slice(&good);
    let zone = key_of("example.com");
    let found = Delivery { zone: &zone, mail_from: None, ..Delivery::default() }.check(&flooded).await;
    assert_eq!(found.dkim, Verdict::Fail);
}

// rules: RECV-18, RECV-19
#[tokio::test]
async fn a_chain_of_forwarders_is_checked_but_never_trusted() {
    let found = check(fixture!("arc")).await;
    assert_eq!(found.arc, Verdict::Pass);
    assert_eq!(
        (found.status, found.dkim, found.dmarc),
        (Verdict::Unknown, Verdict::Unknown, Verdict::Unknown)
    );
    let changed = String::from_utf8_lossy(fixture!("arc")).replacen("Hello Bob", "Hello Eve", 1);
    assert_eq!(check(changed.as_bytes()).await.arc, Verdict::Fail);
    assert_eq!(check(&mail("ann@example.com")).await.arc, Verdict::Unknown);
}

// rules: RECV-19
#[tokio::test]
async fn line_ends_without_carriage_returns_are_read_as_the_signer_wrote_them() {
    let unix = String::from_utf8_lossy(fixture!("rsa2048")).replace("\r\n", "\n");
    assert_eq!(check(unix.as_bytes()).await.status, Verdict::Pass);
    let changed = unix.replace("this is signed", "this is changed");
    assert_ne!(check(changed.as_bytes()).await.status, Verdict::Pass);
}

#[test]
fn checks_can_run_on_any_thread() {
    fn assert_send<T: Send>(_: T) {}
    let authenticator = Authenticator::with_servers(&[]).unwrap();
    assert_send(authenticator.check("192.0.2.1".parse().unwrap(), "", "", None, b""));
}

/// The relaxed form of a body by the words of RFC 6376, section 3.4.4.
fn relaxed(body: &str) -> String {
    let mut lines: Vec<String> = body
        .split("\r\n")
        .map(|line| {
            let reduced =
                line.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
            if line.starts_with([' ', '\t']) && !reduced.is_empty() { format!(" {reduced}") } else { reduced }
        })
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.into_iter().map(|line| line + "\r\n").collect()
}

proptest::proptest! {
    #[test]
    fn bodies_are_hashed_as_the_standard_says(pieces in proptest::collection::vec(0usize..5, 0..14)) {
        let body: String = pieces.into_iter().map(|piece| ["a", " ", "\t", "\r\n", "b c"][piece]).collect();
        let head = "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=d; s=s; h=from; bh=AAAA; b=AAAA\r\nFrom: a@b.c\r\n\r\n";
        let raw = format!("{head}{body}");
        let mut message = AuthenticatedMessage::parse(raw.as_bytes()).unwrap();
        dkim::correct_body_hashes(&mut message);
        let expected = HashAlgorithm::Sha256.hash(Plain(relaxed(&body)));
        proptest::prop_assert_eq!(message.body_hashes[0].3.as_slice(), expected.as_ref(), "{:?}", body);
    }
}

/// Bytes that are hashed as they are.
struct Plain(String);

impl Writable for Plain {
    fn write(self, writer: &mut impl Writer) {
        writer.write(self.0.as_bytes());
    }
}
