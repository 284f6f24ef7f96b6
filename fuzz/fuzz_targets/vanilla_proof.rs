//! Binary vanilla proofs; the first byte chooses the sector size, the second the kind.
#![no_main]

use filecoin::support::fuzz;
use filecoin::{CircuitId, ProofKind};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [size, kind, proof @ ..] = bytes {
        let kinds = [ProofKind::Window, ProofKind::Winning, ProofKind::Snap];
        let kind = kinds[usize::from(*kind) % kinds.len()];
        fuzz::vanilla_proof(CircuitId::new(kind, fuzz::size(*size)), proof);
    }
});
