//! Groth16 over BLS12-381: keys, test set-up, prover behind a backend trait, verification.

pub mod curve;
mod error;
pub mod fr;
pub mod key;
pub mod msm;
pub mod ntt;
pub mod points;
pub mod progress;
mod proof;
mod quotient;
mod verify;

pub use error::Error;
pub use proof::Proof;
pub use quotient::quotient;
pub use verify::{PreparedVerifyingKey, verify};
