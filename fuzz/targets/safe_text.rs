//! Safe text: bounded, without forbidden characters, and the same when it is made safe again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::check_safe_text(text));
