//! Signatures of ours, checked by our own verifier and by dkimpy.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Algorithm, Identity, Key, SignError, header, signed};
use crate::authentication::{Authenticator, Verdict};
use crate::dns::name_server::NameServer;

/// Seconds of November 2026.
const NOW: i64 = 1_793_620_800;

static RSA: LazyLock<Key> = LazyLock::new(|| Key::generate(Algorithm::Rsa).unwrap());
static ED25519: LazyLock<Key> = LazyLock::new(|| Key::generate(Algorithm::Ed25519).unwrap());

const HEADERS: &str = "From: Ann <ann@example.com>\r\nTo: bob@agents.test\r\nSubject: Hello\r\n folded\r\n\
     Date: Mon, 2 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@example.com>\r\n\r\n";

fn identities() -> [Identity<'static>; 2] {
    [
        Identity { domain: "example.com", selector: "r1", key: &RSA },
        Identity { domain: "example.com", selector: "e1", key: &ED25519 },
    ]
}

fn zone() -> String {
    format!(
        "r1._domainkey.example.com TXT {}\ne1._domainkey.example.com TXT {}\n",
        RSA.record(),
        ED25519.record()
    )
}

/// Bodies that end in every way.
fn bodies(count: usize) -> Vec<String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,40}",
        2 => Just("\r\n".to_owned()),
        2 => Just("\r\n\r\n".to_owned()),
        2 => Just(" \r\n".to_owned()),
        1 => Just("\t \r\n".to_owned()),
        1 => "[ \t]{1,4}",
        1 => "\\PC{0,10}",
    ];
    let strategy = proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::deterministic();
    let fixed = [
        "",
        "\r\n",
        " \r\n",
        "hi",
        "hi ",
        "hi\r\n \r\n",
        "hi\r\n\t \r\n\r\n",
        "hi\r\n\r\n\r\n",
        " ",
        "\t\r\nhi\r\n ",
    ];
    let mut bodies: Vec<String> = fixed.map(str::to_owned).to_vec();
    bodies.extend((fixed.len()..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()));
    bodies
}

#[tokio::test]
async fn our_verifier_accepts_a_thousand_bodies() {
    let server = NameServer::start(&zone()).await;
    let authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
    for (number, body) in bodies(1000).into_iter().enumerate() {
        // The two kinds take turns, so that neither can hide behind the other.
        let identity = identities()[number % 2];
        let raw = signed(format!("{HEADERS}{body}").as_bytes(), &[identity], NOW).unwrap();
        let check = || authenticator.check("192.0.2.1".parse().unwrap(), "a", "b", None, &raw);
        let mut found = check().await;
        // On a busy machine the name server may answer too late, which says nothing about the signature.
        for _ in 0..5 {
            if found.dkim == Verdict::Unknown || found.status == Verdict::Unknown {
                found = check().await;
            }
        }
        assert_eq!((found.dkim, found.status), (Verdict::Pass, Verdict::Pass), "{body:?}");
    }
}

#[tokio::test]
async fn what_is_added_or_changed_breaks_the_signature() {
    let server = NameServer::start(&zone()).await;
    let authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
    let raw = signed(format!("{HEADERS}Hello.\r\n").as_bytes(), &identities(), NOW).unwrap();
    let text = String::from_utf8(raw).unwrap();
    let verdict = async |raw: &str| {
        authenticator.check("192.0.2.1".parse().unwrap(), "a", "b", None, raw.as_bytes()).await.dkim
    };
    assert_eq!(verdict(&text).await, Verdict::Pass);
    assert_eq!(verdict(&format!("Received: from somewhere\r\n{text}")).await, Verdict::Pass);
    assert_eq!(verdict(&format!("List-Unsubscribe: <https://list.example>\r\n{text}")).await, Verdict::Pass);
    for added in [
        "Subject: Other",
        "To: eve@example.com",
        "Cc: eve@example.com",
        "Reply-To: eve@example.com",
        "Date: x",
        "Message-ID: <2@example.com>",
        "Content-Type: text/html",
        "References: <x@y>",
        "MIME-Version: 1.0",
    ] {
        assert_ne!(verdict(&format!("{added}\r\n{text}")).await, Verdict::Pass, "{added}");
    }
    assert_eq!(verdict(&text.replace("Hello.", "Hullo.")).await, Verdict::Fail);
    assert_eq!(verdict(&text.replace("Subject: Hello", "Subject: Hallo")).await, Verdict::Fail);
}

#[test]
fn headers_of_lists_are_signed_where_they_are() {
    let raw = format!("List-Unsubscribe: <https://a.example>\r\n{HEADERS}x\r\n");
    let signature = header(raw.as_bytes(), &identities()[1], NOW).unwrap().replace("\r\n\t", "");
    assert!(signature.contains("List-Unsubscribe"), "{signature}");
    let names = signature.split_once("h=").unwrap().1.split(';').next().unwrap().to_lowercase();
    let count = |wanted: &str| names.split(':').filter(|name| name.trim() == wanted).count();
    for (name, times) in
        [("from", 2), ("subject", 2), ("to", 2), ("cc", 1), ("reply-to", 1), ("list-unsubscribe", 1)]
    {
        assert_eq!(count(name), times, "{name} in {names}");
    }
    assert!(signature.contains("t=1793620800"), "{signature}");
    assert!(signature.contains("c=relaxed/relaxed"), "{signature}");
}

#[test]
fn keys_come_back_from_their_bytes() {
    for key in [&*RSA, &*ED25519] {
        let again = Key::from_private(key.algorithm(), key.private_bytes()).unwrap();
        assert_eq!(again.record(), key.record());
    }
    assert!(
        RSA.record().starts_with("v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"),
        "{}",
        RSA.record()
    );
    assert_eq!(ED25519.record().len(), "v=DKIM1; k=ed25519; p=".len() + 44);
    assert_ne!(Key::generate(Algorithm::Ed25519).unwrap().record(), ED25519.record());
    assert_eq!(
        Key::from_private(Algorithm::Rsa, ED25519.private_bytes()).unwrap_err(),
        SignError::Key(Algorithm::Rsa)
    );
    assert_eq!(Key::from_private(Algorithm::Ed25519, b"x").unwrap_err(), SignError::Key(Algorithm::Ed25519));
    assert!(!format!("{:?}", *RSA).contains("private"));
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let identity = identities()[1];
    for domain in ["", "a b", "example.com; x", "b\u{fc}cher.example", "a..b", "x\r\nBcc: y"] {
        let odd = Identity { domain, ..identity };
        assert_eq!(header(HEADERS.as_bytes(), &odd, NOW), Err(SignError::Name(domain.to_owned())));
    }
    assert_eq!(header(b"To: a@b\r\n\r\nx", &identity, NOW), Err(SignError::Message));
    assert_eq!(header(b"no header\r\n\r\nx", &identity, NOW), Err(SignError::Message));
}

/// The interpreter that has dkimpy: the one that `scripts/dkimpy` made, or that of the system.
fn dkimpy() -> Option<String> {
    let python = std::env::var("AGENT_MAILBOX_DKIMPY").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import dkim, nacl"]).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success()).then_some(python)
}

/// Reads records and messages from its input, each after a line with its length, and prints the numbers of those whose
/// signatures do not all hold.
const CHECK: &str = r"
import sys, dkim
def read():
    line = sys.stdin.buffer.readline()
    return sys.stdin.buffer.read(int(line)) if line else None
records = {}
for line in read().decode().splitlines():
    name, _, value = line.split(' ', 2)
    records[(name + '.').encode()] = value.encode()
number = 0
while (message := read()) is not None:
    checker = dkim.DKIM(message)
    for index in range(2):
        try:
            held = checker.verify(idx=index, dnsfunc=lambda name, timeout=5: records[name])
        except dkim.DKIMException as error:
            held, _ = False, print(error)
        if not held:
            print(number, index, message[-60:])
    number += 1
print('checked', number)
";

// rules: SEND-27
#[test]
fn dkimpy_accepts_our_signatures() {
    let Some(python) = dkimpy() else {
        println!("SKIPPED: dkimpy is not here; see scripts/dkimpy.");
        return;
    };
    let bodies = bodies(150);
    let mut input = Vec::new();
    let mut add = |bytes: &[u8]| {
        writeln!(input, "{}", bytes.len()).unwrap();
        input.extend_from_slice(bytes);
    };
    add(zone().as_bytes());
    for body in &bodies {
        let mut raw = signed(format!("{HEADERS}{body}").as_bytes(), &identities(), NOW).unwrap();
        // A message without an end of its last line gets one on its way.
        if !raw.ends_with(b"\r\n") {
            raw.extend_from_slice(b"\r\n");
        }
        add(&raw);
    }
    let mut child = Command::new(python)
        .args(["-c", CHECK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("checked {}\n", bodies.len()));
}
