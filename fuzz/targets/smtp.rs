//! SMTP: the same bytes in any pieces give the same replies and the same messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (bool, Vec<u8>, Vec<u8>)| fuzz::check_smtp(input.0, &input.1, &input.2));
