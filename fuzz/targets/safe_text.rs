//! Safe text: bounded, without forbidden characters, and the same when it is made safe again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mail::safe_text::{SafeText, is_forbidden, snippet};

fuzz_target!(|text: &str| {
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
});
