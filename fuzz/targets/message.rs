//! The way of a message: reading, scanning, taking files out, safe text, codes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mail::{classify, message, reports, safe_text, scan, verification};

fuzz_target!(|raw: &[u8]| {
    let read = message::read(raw);
    let _ = message::count_received(raw);
    let verdict = scan::scan(raw, &read, &scan::Blocklist::default());
    assert!(read.faults.is_empty() || verdict.status != scan::Status::Clean, "faults are never clean");
    for file in &read.files {
        let bytes = message::decode(raw, file);
        assert_eq!(bytes.len() as u64, file.size);
        assert!(!file.name.is_empty() && file.name.len() <= 255);
    }
    let body = safe_text::body(read.text.as_deref(), read.html.as_deref());
    assert!(!body.text.as_str().chars().any(safe_text::is_forbidden));
    let _ = verification::find(&read.subject, &body.text, read.html.as_deref());
    let _ = classify::classify("", &read.subject, body.text.as_str(), read.automatic);
    let _ = reports::read(raw, &read);
    let _ = message::base_subject(&read.subject);
});
