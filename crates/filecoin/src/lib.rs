//! Filecoin proof kinds: requests, public inputs, vanilla checks, circuit registry, proof bytes.
//!
//! [`registry`] lists the circuits and the network's fixed numbers, [`registered`]
//! the proof types, [`request`] what is to be proven, [`decode`] how it comes in.

#![forbid(unsafe_code)]

pub mod decode;
pub mod domain;
pub mod error;
pub mod merkle;
pub mod porep;
pub mod post;
pub mod proof_bytes;
pub mod registered;
pub mod registry;
pub mod request;
pub mod snap;
#[cfg(any(test, feature = "test-support"))]
pub mod support;
pub mod witness;

pub use ::witness::poseidon;
pub use decode::{Decoded, Hints, SubmitProofRequest};
pub use domain::{Domain, PoseidonDomain, Sha256Domain};
pub use error::Error;
pub use registered::{
    PostVersion, RegisteredPostProof, RegisteredSealProof, RegisteredUpdateProof, SealVersion,
};
pub use registry::{CircuitId, ProofKind, SectorSize};
pub use request::{PorepRequest, PostRequest, Request, SnapRequest};
pub use witness::{WitnessError, WitnessGenerator};
