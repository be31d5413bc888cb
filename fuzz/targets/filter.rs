//! Filter expressions and search queries: what parses is shown in a form that parses to the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::check_filter(text));
