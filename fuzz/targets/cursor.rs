//! Cursors: what is taken is bounded, written back as it came, and nothing that it may say panics.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::check_cursor(text));
