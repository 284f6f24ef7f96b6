//! Fabricated requests: vanilla proofs of any circuit size that pass every check, made in seconds
//! to minutes and without sealing a sector.
//!
//! A real 32 GiB sector takes hours to seal. But a proof opens only a few thousand of its nodes,
//! and nothing else about it can be seen. So it is enough to make up the nodes that are opened,
//! consistently: labels are real SHA-256 of their parents, columns, encodings and Merkle paths
//! hash to real commitments. Witness, proof and verification cannot tell the difference, which is
//! how full-size circuits are tested and measured.
//!
//! What is opened depends on challenges, and those on commitments; hence two kinds of [`tree`]s.
//! Where the challenges do not depend on a tree's root, the tree is made around the challenged
//! leafs; where they do, it is a whole tree, with leafs equal in blocks so that it fits.
//!
//! Synthetic and non-interactive PoRep derive their challenges from comm_r, which commits to the
//! labels at the challenges. No made-up sector can satisfy that, so sectors for those are
//! sealed completely, and only for the sizes where that is quick (2 KiB, 8 MiB).

#![forbid(unsafe_code)]

mod porep;
mod post;
mod snap;
pub mod tree;
mod wire;

pub use wire::submit;

use filecoin::registered::{PostVersion, RegisteredPostProof, RegisteredUpdateProof};
use filecoin::{CircuitId, ProofKind, RegisteredSealProof, Request, SealVersion, SectorSize};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Why an instance cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The construction needs a completely sealed sector.
    #[error(
        "a {version:?} PoRep of {size} cannot be made up: its challenges follow from labels of \
         the whole sector; use 2 KiB or 8 MiB, or seal type V1_1"
    )]
    NeedsSealing {
        /// The seal type.
        version: SealVersion,
        /// The size.
        size: SectorSize,
    },
}

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The circuit.
    pub circuit: CircuitId,
    /// Everything random follows from it; equal instances are equal requests.
    pub seed: u64,
    /// PoRep: the seal type.
    pub seal: SealVersion,
    /// Window PoSt: the version of its challenges.
    pub window: PostVersion,
    /// Window PoSt: number of sectors, if fewer than the circuit takes.
    pub sectors: Option<usize>,
}

impl Instance {
    /// A full request of the current proof type.
    pub fn new(circuit: CircuitId, seed: u64) -> Self {
        Self {
            circuit,
            seed,
            seal: SealVersion::V1_1,
            window: PostVersion::WindowV1_2,
            sectors: None,
        }
    }

    /// Makes the request, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::NeedsSealing`].
    pub fn request(&self) -> Result<Request, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let size = self.circuit.size;
        Ok(match self.circuit.kind {
            ProofKind::Porep => {
                let proof_type = RegisteredSealProof {
                    version: self.seal,
                    size,
                };
                Request::Porep(porep::request(proof_type, &mut rng)?)
            }
            ProofKind::Snap => {
                let proof_type = RegisteredUpdateProof { size };
                Request::Snap(snap::request(proof_type, &mut rng))
            }
            ProofKind::Window => {
                let version = self.window;
                let proof_type = RegisteredPostProof { version, size };
                let most = size.window().sectors;
                let sectors = self.sectors.unwrap_or(most).clamp(1, most);
                Request::Window(post::request(proof_type, sectors, &mut rng))
            }
            ProofKind::Winning => {
                let version = PostVersion::WinningV1;
                let proof_type = RegisteredPostProof { version, size };
                Request::Winning(post::request(proof_type, 1, &mut rng))
            }
        })
    }
}
