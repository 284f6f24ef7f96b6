//! Groth16 over BLS12-381: keys, test set-up, prover behind a backend trait, verification.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod backend;
mod blinding;
mod cpu;
pub mod curve;
mod error;
pub mod fr;
mod kernel;
pub mod key;
pub mod msm;
pub mod ntt;
pub mod points;
pub mod progress;
mod proof;
mod prove;
mod quotient;
pub mod setup;
mod verify;

pub use backend::{
    Backend, BackendError, DeviceInfo, DeviceKind, GroupSums, PhaseSpan, PhaseTimes,
};
pub use blinding::Blinding;
pub use cpu::CpuBackend;
pub use error::Error;
pub use kernel::Kernel;
pub use proof::Proof;
pub use prove::{finish, prove, sums};
pub use quotient::{coset_product, quotient};
pub use verify::{PreparedVerifyingKey, verify};
