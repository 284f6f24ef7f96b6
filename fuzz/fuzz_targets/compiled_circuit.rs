//! Files of compiled circuits: what is read is written again as the same bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(circuit) = r1cs::CompiledCircuit::from_bytes(bytes) {
        assert_eq!(circuit.to_bytes(), bytes);
    }
});
