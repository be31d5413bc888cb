//! What must hold for any input, one function for each fuzz target.
//!
//! The targets under `targets/` give these to libFuzzer; the module `fuzz` of the tests, which includes this file, gives
//! them the seeds and what is near them, so that neither the targets nor the seeds go stale between long runs.

use std::sync::Arc;

use mail::address::{Address, MAX_ADDRESS_BYTES, Mailbox};
use mail::safe_text::{SafeText, is_forbidden, snippet};
use mail::smtp::{Budget, Protocol, Settings, drive_session, split_into_pieces};
use mail::{classify, message, reports, safe_text, scan, verification};
use model::cursor;
use model::filter::{Filter, parse_rules};
use model::search::{
    query::{Query, forgive},
    words::words,
};
use pay::{Terms, encoding, facilitator, mpp, networks, siwx, x402};
use serde_json::Value;

/// Addresses: what is taken is shown in a form that is taken as the same, and can break out of nothing.
pub fn check_address(text: &str) {
    if let Ok(address) = Address::parse(text) {
        assert!(address.as_str().len() <= MAX_ADDRESS_BYTES);
        assert!(
            !address
                .as_str()
                .contains(|c: char| c.is_control() || c.is_whitespace() || "<>,;:\"".contains(c))
        );
        assert_eq!(Address::parse(address.as_str()).as_ref(), Ok(&address));
        let bare = address.without_tag();
        assert_eq!(bare.tag(), None);
        assert_eq!(Address::parse(bare.as_str()).as_ref(), Ok(&bare));
    }
    if let Ok(mailbox) = Mailbox::parse(text) {
        let shown = mailbox.to_string();
        assert!(!shown.contains(char::is_control));
        assert_eq!(Mailbox::parse(&shown), Ok(mailbox));
    }
}

/// Cursors: what is taken is bounded, written back as it came, and nothing that it may say panics.
pub fn check_cursor(text: &str) {
    if let Some(sealed) = cursor::from_text(text) {
        assert!(sealed.len() <= cursor::MAX_CURSOR_CHARS);
        assert_eq!(cursor::to_text(&sealed), text);
    }
}

/// Filter expressions and search queries: what parses is shown in a form that parses to the same.
pub fn check_filter(text: &str) {
    let _ = parse_rules(text);
    if let Ok(filter) = Filter::parse(text) {
        let again = Filter::parse(&filter.to_string());
        assert_eq!(again.ok(), Some(filter));
    }
    if let Ok(forgiven) = forgive(text) {
        assert!(Query::parse(&forgiven).is_ok(), "{text:?} is forgiven as {forgiven:?}, which has a mistake");
    }
    for clause in Query::parse(text).into_iter().flat_map(|query| query.clauses) {
        assert!(!clause.words.is_empty());
        let joined = clause.words.join(" ");
        assert_eq!(words(&joined, 1000), clause.words, "words of words are the same words");
    }
}

/// The way of a message: reading, scanning, taking files out, safe text, codes.
pub fn check_message(raw: &[u8]) {
    let read = message::read(raw);
    let _ = message::count_received(raw);
    let verdict = scan::scan(raw, &read, &scan::Blocklist::default());
    assert!(read.faults.is_empty() || verdict.status != scan::Status::Clean, "faults are never clean");
    for file in &read.files {
        let bytes = message::decode(raw, file);
        assert_eq!(u64::try_from(bytes.len()).ok(), Some(file.size));
        assert!(!file.name.is_empty() && file.name.len() <= 255);
    }
    let body = safe_text::body(read.text.as_deref(), read.html.as_deref());
    assert!(!body.text.as_str().chars().any(safe_text::is_forbidden));
    let _ = verification::find(&read.subject, &body.text, read.html.as_deref());
    let _ = classify::classify("", &read.subject, body.text.as_str(), read.automatic);
    let _ = reports::read(raw, &read);
    let _ = message::base_subject(&read.subject);
}

/// Proofs of payment: whatever a header says is read or refused within its bounds, and only what was signed counts.
pub fn check_proof(bytes: &[u8]) {
    let network = &networks::NETWORKS[0];
    let terms = Terms {
        network: network.id.to_owned(),
        v1_network: network.v1_name.to_owned(),
        domain: network.domain(),
        pay_to: pay::Address([4; 20]),
        amount: 10_000,
        max_timeout: 300,
    };
    let audience = siwx::Audience {
        domain: "mail.test".to_owned(),
        uri: "http://mail.test/api".to_owned(),
        network: network.id.to_owned(),
        statement: "Show your wallet".to_owned(),
    };
    let text = String::from_utf8_lossy(bytes);
    // As it comes, and packed as a client would pack it.
    let packed = serde_json::from_slice::<Value>(bytes).ok();
    let standard = packed.as_ref().map(encoding::to_standard).unwrap_or_default();
    let url_safe = packed.as_ref().map(encoding::to_url_safe).unwrap_or_default();
    for header in [&*text, &standard, &url_safe] {
        for payment in [x402::read_v2(header, &terms), x402::read_v1(header, &terms)].into_iter().flatten() {
            // Nobody has signed anything here.
            let kept = facilitator::recall(&facilitator::keep(&payment)).expect("what was read can be kept");
            assert_eq!(kept.authorization, payment.authorization);
            let _ = pay::verify(&terms, &payment);
            let _ = pay::within_time(&terms, &payment.authorization, 1_800_000_000);
        }
        assert!(siwx::verify(header, &audience, b"secret", 1_800_000_000).is_err());
        let bound = mpp::Bound { realm: "mail.test", method: "POST", path: "/", body: b"" };
        assert!(mpp::read(header, &terms, &bound, b"secret").is_err());
        let _ = mpp::read_challenge(header);
    }
    let _ = facilitator::read_settle(bytes, &terms, pay::Address([1; 20]));
    let _ = facilitator::read_verify(bytes, pay::Address([1; 20]));
    let _ = facilitator::supports(bytes, network.id);
}

/// Safe text: bounded, without forbidden characters, and the same when it is made safe again.
pub fn check_safe_text(text: &str) {
    let plain = SafeText::from_plain(text);
    assert_eq!(SafeText::from_plain(plain.as_str()), plain);
    let html = SafeText::from_html(text);
    let line = SafeText::line(text);
    for safe in [&plain, &html, &line] {
        assert!(!safe.as_str().chars().any(is_forbidden));
        assert_eq!(safe.as_str().chars().count(), safe.char_count());
    }
    assert!(!line.as_str().contains('\n'));
    assert!(snippet(&html, 200).chars().count() <= 201);
}

/// SMTP: the same bytes in any pieces give the same replies and the same messages.
pub fn check_smtp(lmtp: bool, sizes: &[u8], bytes: &[u8]) {
    let settings = Arc::new(Settings {
        hostname: "mx.test".to_owned(),
        max_message_bytes: 64 * 1024,
        starttls: true,
        budget: Budget::new(1 << 20),
    });
    let protocol = if lmtp { Protocol::Lmtp } else { Protocol::Smtp };
    if sizes.is_empty() {
        return;
    }
    let whole = drive_session(&settings, protocol, std::iter::once(bytes));
    let pieces = drive_session(&settings, protocol, split_into_pieces(bytes, sizes));
    assert_eq!(whole.messages, pieces.messages);
}
