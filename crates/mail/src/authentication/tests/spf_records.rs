//! SPF: what records say, and the limits on what they may ask for.

use std::fmt::Write;
use std::time::Duration;

use super::{Authentication, Authenticator, Verdict, key_of, mail, sign};
use crate::authentication::spf::{self, Envelope, Outcome};
use crate::dns::Dns;
use crate::dns::name_server::NameServer;

/// What SPF says about `ann@example.com` from a peer.
async fn ask(zone: &str, peer: &str) -> Outcome {
    let server = NameServer::start(zone).await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let envelope =
        Envelope::new(peer.parse().unwrap(), "mail.example.com", "mx.agents.test", Some("ann@example.com"));
    spf::check(&dns, &envelope).await
}

/// The result of records for a message from 192.0.2.1.
const CASES: &[(&str, Outcome)] = &[
    ("example.com TXT v=spf1 ip4:192.0.2.0/24 -all", Outcome::Pass),
    ("example.com TXT v=spf1 ip4:192.0.3.0/24 -all", Outcome::Fail),
    ("example.com TXT v=spf1 ~all", Outcome::SoftFail),
    ("example.com TXT v=spf1 ?all", Outcome::Neutral),
    ("example.com TXT v=spf1 ip4:198.51.100.1", Outcome::Neutral),
    ("example.com TXT V=SPF1 +all", Outcome::Pass),
    ("example.com TXT v=spf1", Outcome::Neutral),
    ("example.com TXT v=spf10 -all", Outcome::None),
    ("example.com TXT something else", Outcome::None),
    ("other.example TXT v=spf1 -all", Outcome::None),
    ("example.com TXT v=spf1 nonsense:x -all", Outcome::PermError),
    ("example.com TXT v=spf1 ip4:192.0.2.1/33 +all", Outcome::PermError),
    ("example.com TXT v=spf1 ip4:192.0.2.300 +all", Outcome::PermError),
    ("example.com TXT v=spf1 ip6:192.0.2.1 +all", Outcome::PermError),
    ("example.com TXT v=spf1 all:example.com", Outcome::PermError),
    ("example.com TXT v=spf1 +-all", Outcome::PermError),
    ("example.com TXT v=spf1 include +all", Outcome::PermError),
    ("example.com TXT v=spf1 a:example +all", Outcome::PermError),
    ("example.com TXT v=spf1 exists:%{x}.example.com +all", Outcome::PermError),
    ("example.com TXT v=spf1 exists:%{d0}.example.com +all", Outcome::PermError),
    ("example.com TXT v=spf1 redirect=a.example.com redirect=b.example.com", Outcome::PermError),
    ("example.com TXT v=spf1 moo.cow-far_out=man:dog/cat ip4:192.0.2.1 -all", Outcome::Pass),
    ("example.com TXT v=spf1 a/24//64 -all\nexample.com A 192.0.2.200", Outcome::Pass),
    ("example.com TXT v=spf1 -all\nexample.com TXT v=spf1 +all", Outcome::PermError),
    ("example.com TXT v=spf1 a -all\nexample.com A 192.0.2.1", Outcome::Pass),
    ("example.com TXT v=spf1 a:mail.example.com/24 -all\nmail.example.com A 192.0.2.99", Outcome::Pass),
    (
        "example.com TXT v=spf1 mx -all\nexample.com MX 10 a.example.com\nexample.com MX 20 b.example.com\n\
             a.example.com A 192.0.2.7\nb.example.com A 192.0.2.1",
        Outcome::Pass,
    ),
    (
        "example.com TXT v=spf1 include:_spf.example.net -all\n_spf.example.net TXT v=spf1 ip4:192.0.2.1 -all",
        Outcome::Pass,
    ),
    (
        "example.com TXT v=spf1 include:_spf.example.net ~all\n_spf.example.net TXT v=spf1 -all",
        Outcome::SoftFail,
    ),
    ("example.com TXT v=spf1 include:none.example.net -all", Outcome::PermError),
    ("example.com TXT v=spf1 redirect=_spf.example.net\n_spf.example.net TXT v=spf1 -all", Outcome::Fail),
    ("example.com TXT v=spf1 redirect=none.example.net", Outcome::PermError),
    (
        "example.com TXT v=spf1 exists:%{ir}.%{l1r-}._spf.%{d2} -all\n1.2.0.192.ann._spf.example.com A 127.0.0.2",
        Outcome::Pass,
    ),
    (
        "example.com TXT v=spf1 ptr -all\n1.2.0.192.in-addr.arpa PTR mail.example.com\n\
             mail.example.com A 192.0.2.1",
        Outcome::Pass,
    ),
    (
        "example.com TXT v=spf1 ptr -all\n1.2.0.192.in-addr.arpa PTR mail.example.com\n\
             mail.example.com A 192.0.2.9",
        Outcome::Fail,
    ),
    (
        "example.com TXT v=spf1 ptr -all\n1.2.0.192.in-addr.arpa PTR notexample.com\nnotexample.com A 192.0.2.1",
        Outcome::Fail,
    ),
];

// rules: RECV-19
#[tokio::test]
async fn records_give_the_results_of_the_standard() {
    for &(zone, expected) in CASES {
        assert_eq!(ask(zone, "192.0.2.1").await, expected, "{zone}");
    }
}

// rules: RECV-19
#[tokio::test]
async fn addresses_of_both_families_are_understood() {
    let zone = "example.com TXT v=spf1 ip4:192.0.2.1 ip6:2001:db8::/32 a -all\nexample.com AAAA 2001:db9::1";
    assert_eq!(ask(zone, "2001:db8::25").await, Outcome::Pass);
    assert_eq!(ask(zone, "2001:db9::1").await, Outcome::Pass);
    assert_eq!(ask(zone, "2001:dba::1").await, Outcome::Fail);
    assert_eq!(ask(zone, "::ffff:192.0.2.1").await, Outcome::Pass);
}

/// A chain of includes of the given length, the last of which passes.
fn chain(length: usize) -> String {
    let mut zone = String::from("example.com TXT v=spf1 include:i1.example.com -all\n");
    for at in 1..length {
        writeln!(zone, "i{at}.example.com TXT v=spf1 include:i{}.example.com -all", at + 1).unwrap();
    }
    zone + &format!("i{length}.example.com TXT v=spf1 +all\n")
}

// rules: RECV-19
#[tokio::test]
async fn a_record_may_ask_ten_questions_and_find_nothing_twice() {
    assert_eq!(ask(&chain(10), "192.0.2.1").await, Outcome::Pass);
    assert_eq!(ask(&chain(11), "192.0.2.1").await, Outcome::PermError);
    assert_eq!(ask("example.com TXT v=spf1 include:example.com -all", "192.0.2.1").await, Outcome::PermError);
    assert_eq!(ask("example.com TXT v=spf1 redirect=example.com", "192.0.2.1").await, Outcome::PermError);
    let two = "example.com TXT v=spf1 a:n1.example.com mx:n2.example.com +all";
    assert_eq!(ask(two, "192.0.2.1").await, Outcome::Pass);
    let three = "example.com TXT v=spf1 a:n1.example.com mx:n2.example.com exists:n3.example.com +all";
    assert_eq!(ask(three, "192.0.2.1").await, Outcome::PermError);
    let servers: Vec<String> = (1..=11).map(|at| format!("example.com MX {at} m{at}.example.com")).collect();
    let too_many = format!("example.com TXT v=spf1 mx +all\n{}", servers.join("\n"));
    assert_eq!(ask(&too_many, "192.0.2.1").await, Outcome::PermError);
}

// rules: RECV-19
#[tokio::test]
async fn a_hostile_record_cannot_make_us_ask_without_end() {
    let mut zone = String::new();
    let includes: Vec<String> = (0..20).map(|next| format!("include:i{next}.example.com")).collect();
    for at in 0..20 {
        writeln!(zone, "i{at}.example.com TXT v=spf1 {} -all", includes.join(" ")).unwrap();
    }
    zone += "example.com TXT v=spf1 include:i0.example.com -all\n";
    let server = NameServer::start(&zone).await;
    let authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
    let peer = "192.0.2.1".parse().unwrap();
    let raw = mail("ann@example.com");
    let found =
        authenticator.check(peer, "mail.example.com", "mx.agents.test", Some("ann@example.com"), &raw).await;
    assert_eq!(found.spf, Verdict::Unknown);
    assert!(server.questions() <= 20, "{} questions", server.questions());
}

// rules: RECV-19
#[tokio::test]
async fn trouble_with_dns_is_no_verdict() {
    assert_eq!(ask("example.com SERVFAIL", "192.0.2.1").await, Outcome::TempError);
    let included = "example.com TXT v=spf1 include:i.example.com -all\ni.example.com SERVFAIL";
    assert_eq!(ask(included, "192.0.2.1").await, Outcome::TempError);
}

// rules: RECV-19
#[tokio::test]
async fn silent_name_servers_leave_unknown_what_they_were_asked() {
    let zone = "example.com SILENT\n_dmarc.example.com SILENT";
    let server = NameServer::start(zone).await;
    let mut authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
    authenticator.time_limit = Duration::from_millis(300);
    let peer = "192.0.2.1".parse().unwrap();
    let raw = mail("ann@example.com");
    let found =
        authenticator.check(peer, "mail.example.com", "mx.agents.test", Some("ann@example.com"), &raw).await;
    assert_eq!(found, Authentication::default());
    let signed = sign("example.com", &raw);
    let zone = format!("example.com SILENT\n{}", key_of("example.com"));
    let server = NameServer::start(&zone).await;
    let mut authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
    authenticator.time_limit = Duration::from_millis(300);
    let found = authenticator
        .check(peer, "mail.example.com", "mx.agents.test", Some("ann@example.com"), &signed)
        .await;
    assert_eq!((found.spf, found.dkim, found.status), (Verdict::Unknown, Verdict::Pass, Verdict::Pass));
}
