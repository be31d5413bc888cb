//! Cursors: what is taken is bounded, written back as it came, and nothing that it may say panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::cursor;

fuzz_target!(|text: &str| {
    if let Some(sealed) = cursor::from_text(text) {
        assert!(sealed.len() <= cursor::LONGEST);
        assert_eq!(cursor::to_text(&sealed), text);
    }
});
