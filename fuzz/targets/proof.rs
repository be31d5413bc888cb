//! Proofs of payment: whatever a header says is read or refused within its bounds, and only what was signed counts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::check_proof(bytes));
