//! Filecoin proof kinds: requests, public inputs, vanilla checks, circuit registry, proof bytes.
//!
//! [`registry`] lists the circuits and the network's fixed numbers, [`registered`]
//! the proof types, [`request`] what is to be proven, [`decode`] how it comes in.

#![forbid(unsafe_code)]

pub mod challenges;
pub mod check;
pub mod decode;
pub mod domain;
pub mod error;
pub mod graph;
pub mod merkle;
pub mod native;
pub mod porep;
pub mod post;
pub mod proof_bytes;
pub mod public_inputs;
pub mod registered;
pub mod registry;
pub mod request;
pub mod sha256;
pub mod snap;
#[cfg(any(test, feature = "test-support"))]
pub mod support;
pub mod witness;

pub use ::witness::poseidon;
pub use check::{CheckReport, check};
pub use decode::{Decoded, Hints, SubmitProofRequest};
pub use domain::{Domain, PoseidonDomain, Sha256Domain};
pub use error::Error;
pub use public_inputs::public_inputs;
pub use registered::{
    PostVersion, RegisteredPostProof, RegisteredSealProof, RegisteredUpdateProof, SealVersion,
};
pub use registry::{CircuitId, ProofKind, SectorSize};
pub use request::{PorepRequest, PostRequest, Request, SnapRequest};
pub use witness::{WitnessError, WitnessGenerator};
