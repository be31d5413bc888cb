//! Addresses: what is taken is shown in a form that is taken as the same, and can break out of nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::check_address(text));
