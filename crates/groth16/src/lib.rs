//! Groth16 over BLS12-381: keys, test set-up, prover behind a backend trait, verification.

pub mod curve;
mod error;
pub mod key;
pub mod points;
pub mod progress;
mod proof;
mod verify;

pub use error::Error;
pub use proof::Proof;
pub use verify::{PreparedVerifyingKey, verify};
