//! Side-by-side benchmarks against the reference implementation, and its judgement of our proofs.
//!
//! The binary `peers` is a thin shell over these modules; the whole-proof tests run the same code.

#![deny(unsafe_code)]

pub mod compare;
pub mod exact;
pub mod fixtures;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod kernels;
pub mod keys;
pub mod measure;
pub mod ours;
pub mod reference;
pub mod whole;
pub mod witness;
