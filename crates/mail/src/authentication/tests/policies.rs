//! DMARC: where policies are found, which domains they reach, and what holds without one.

use super::{Delivery, Verdict, key_of, mail, sign};

const SPF: &str =
    "example.com TXT v=spf1 ip4:192.0.2.1 -all\nbounce.example.com TXT v=spf1 ip4:192.0.2.1 -all\n";

/// The policy's verdict and the status for a message whose envelope and signature have the given domains.
async fn check(records: &str, from: &str, mail_from: &str, signed_by: Option<&str>) -> (Verdict, Verdict) {
    let keys: String = signed_by.map(key_of).unwrap_or_default();
    let zone = format!("{SPF}{keys}{records}");
    let raw = match signed_by {
        Some(domain) => sign(domain, &mail(from)),
        None => mail(from),
    };
    let found = Delivery { zone: &zone, mail_from: Some(mail_from), ..Delivery::default() }.check(&raw).await;
    (found.dmarc, found.status)
}

const PASS: (Verdict, Verdict) = (Verdict::Pass, Verdict::Pass);
const FAIL: (Verdict, Verdict) = (Verdict::Fail, Verdict::Fail);
const UNKNOWN: (Verdict, Verdict) = (Verdict::Unknown, Verdict::Unknown);
const NO_POLICY_BUT_PROVEN: (Verdict, Verdict) = (Verdict::Unknown, Verdict::Pass);

// rules: RECV-19
#[tokio::test]
async fn relaxed_alignment_takes_the_whole_organisation() {
    let policy = "_dmarc.example.com TXT v=DMARC1; p=reject";
    assert_eq!(check(policy, "ann@example.com", "ann@example.com", None).await, PASS);
    assert_eq!(check(policy, "ann@example.com", "x@bounce.example.com", None).await, PASS);
    assert_eq!(check(policy, "ann@news.example.com", "x@bounce.example.com", None).await, PASS);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", Some("mail.example.com")).await, PASS);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", Some("other.example")).await, FAIL);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", Some("notexample.com")).await, FAIL);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", None).await, FAIL);
}

// rules: RECV-19
#[tokio::test]
async fn strict_alignment_takes_the_same_domain_only() {
    let policy = "_dmarc.example.com TXT v=DMARC1; p=none; aspf=s; adkim=s";
    assert_eq!(check(policy, "ann@example.com", "ann@example.com", None).await, PASS);
    assert_eq!(check(policy, "ann@example.com", "x@bounce.example.com", None).await, FAIL);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", Some("mail.example.com")).await, FAIL);
    assert_eq!(check(policy, "ann@example.com", "x@other.example", Some("example.com")).await, PASS);
}

// rules: RECV-19
#[tokio::test]
async fn without_a_policy_only_the_same_domain_proves_anything() {
    assert_eq!(check("", "ann@example.com", "ann@example.com", None).await, NO_POLICY_BUT_PROVEN);
    let signed = check("", "ann@example.com", "x@other.example", Some("example.com")).await;
    assert_eq!(signed, NO_POLICY_BUT_PROVEN);
    assert_eq!(check("", "ann@example.com", "x@bounce.example.com", None).await, UNKNOWN);
    assert_eq!(check("", "ann@example.com", "x@other.example", Some("mail.example.com")).await, UNKNOWN);
    let two = "_dmarc.example.com TXT v=DMARC1; p=reject\n_dmarc.example.com TXT v=DMARC1; p=none";
    assert_eq!(check(two, "ann@example.com", "x@bounce.example.com", None).await, UNKNOWN);
}

// rules: RECV-19
#[tokio::test]
async fn without_a_policy_a_host_that_spf_refuses_fails() {
    let zone = "example.com TXT v=spf1 -all";
    let raw = mail("ann@example.com");
    let refused = Delivery { zone, ..Delivery::default() }.check(&raw).await;
    assert_eq!((refused.spf, refused.status), (Verdict::Fail, Verdict::Fail));
    let zone = "example.com TXT v=spf1 ~all";
    let doubtful = Delivery { zone, ..Delivery::default() }.check(&raw).await;
    assert_eq!((doubtful.spf, doubtful.status), (Verdict::Fail, Verdict::Unknown));
}

// rules: RECV-19
#[tokio::test]
async fn a_registry_does_not_join_the_names_below_it() {
    let zone = "_dmarc.com TXT v=DMARC1; p=reject\nother.com TXT v=spf1 +all";
    assert_eq!(check(zone, "ann@example.com", "x@other.com", Some("other.com")).await, FAIL);
    let marked = "_dmarc.co.test TXT v=DMARC1; p=reject; psd=y\nother.co.test TXT v=spf1 +all";
    assert_eq!(check(marked, "ann@shop.co.test", "x@other.co.test", Some("other.co.test")).await, FAIL);
    assert_eq!(check(marked, "ann@shop.co.test", "x@other.co.test", Some("a.shop.co.test")).await, PASS);
}

// rules: RECV-19
#[tokio::test]
async fn trouble_with_dns_leaves_the_policy_open() {
    let no_policy = "_dmarc.example.com SERVFAIL";
    assert_eq!(check(no_policy, "ann@example.com", "ann@example.com", None).await, UNKNOWN);
    let zone = "_dmarc.example.com TXT v=DMARC1; p=reject\nexample.com SERVFAIL";
    let found = Delivery { zone, ..Delivery::default() }.check(&mail("ann@example.com")).await;
    assert_eq!(
        (found.spf, found.dmarc, found.status),
        (Verdict::Unknown, Verdict::Unknown, Verdict::Unknown)
    );
    let zone = "_dmarc.example.com TXT v=DMARC1; p=reject\ntest._domainkey.example.com SERVFAIL";
    let raw = sign("example.com", &mail("ann@example.com"));
    let found =
        Delivery { zone, mail_from: Some("x@other.example"), ..Delivery::default() }.check(&raw).await;
    assert_eq!(
        (found.dkim, found.dmarc, found.status),
        (Verdict::Unknown, Verdict::Unknown, Verdict::Unknown)
    );
}
