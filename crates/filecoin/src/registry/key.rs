//! What a circuit asks of its key files.

use groth16::key::{KeyCounts, KeyDigest, KeySpec, ProductionDigests};
use r1cs::CompiledCircuit;

use super::CircuitId;

impl CircuitId {
    /// Names, sizes and published digests of the circuit's key files; `circuit` is
    /// [`CircuitId::compiled`].
    ///
    /// # Panics
    /// Never: the registry's digests are tested to be hex.
    pub fn key_spec(self, circuit: &CompiledCircuit) -> KeySpec {
        let digest = |hex: &str| {
            hex.parse::<KeyDigest>()
                .expect("invariant: the registry's digests are tested to be hex")
        };
        KeySpec {
            circuit: self.name().to_owned(),
            stem: self.params_stem(),
            sector: self.size.label().to_owned(),
            counts: KeyCounts::of(circuit),
            production: Some(ProductionDigests {
                params: digest(self.params_digest()),
                vk: digest(self.vk_digest()),
            }),
        }
    }
}
