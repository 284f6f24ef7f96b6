//! Filecoin proof kinds: requests, public inputs, vanilla checks, circuit registry, proof bytes.
//!
//! [`registry`] lists the circuits and the network's fixed numbers, [`registered`]
//! the proof types, [`request`] what is to be proven.

#![forbid(unsafe_code)]

pub mod domain;
pub mod error;
pub mod merkle;
pub mod porep;
pub mod poseidon;
pub mod post;
pub mod registered;
pub mod registry;
pub mod request;
pub mod snap;

pub use domain::{Domain, PoseidonDomain, Sha256Domain};
pub use error::Error;
pub use registered::{
    PostVersion, RegisteredPostProof, RegisteredSealProof, RegisteredUpdateProof, SealVersion,
};
pub use registry::{CircuitId, ProofKind, SectorSize};
pub use request::{PorepRequest, PostRequest, Request, SnapRequest};
