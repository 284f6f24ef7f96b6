//! Groth16 over BLS12-381: keys, test set-up, prover behind a backend trait, verification.

pub mod key;
pub mod points;
