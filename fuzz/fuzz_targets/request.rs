//! Requests in any form: compressed or not, C2 inputs, phase-1 outputs, request files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| filecoin::support::fuzz::request(bytes));
