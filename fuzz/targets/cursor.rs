//! Cursors: what we did not make does not open, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (query, cursor) = input;
    assert!(!operations::fuzzing::opens_cursor(query, cursor));
});
