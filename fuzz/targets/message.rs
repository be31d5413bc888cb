//! The way of a message: reading, scanning, taking files out, safe text, codes.
#![no_main]

libfuzzer_sys::fuzz_target!(|raw: &[u8]| fuzz::check_message(raw));
