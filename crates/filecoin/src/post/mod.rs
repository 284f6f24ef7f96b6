//! WindowPoSt and WinningPoSt (fallback PoSt) vanilla proofs.

mod sectors;

use serde::{Deserialize, Serialize};

use crate::domain::PoseidonDomain;
use crate::merkle::MerkleProof;

pub use sectors::CircuitSector;

/// One sector's entry in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackPoStSectorProof {
    /// Sector number.
    pub sector_id: u64,
    /// Commitment of the replica.
    pub comm_r: PoseidonDomain,
    /// The vanilla proof; it always holds exactly one sector.
    pub vanilla_proof: VanillaProof,
}

impl FallbackPoStSectorProof {
    /// The one sector proof inside.
    ///
    /// # Panics
    /// Never for a decoded request: decoding refuses any other count than one.
    pub fn sector(&self) -> &SectorProof {
        self.vanilla_proof
            .sectors
            .first()
            .expect("invariant: a decoded entry holds one sector")
    }
}

/// The wrapper that the encoding puts around a sector's proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VanillaProof {
    /// Exactly one element.
    pub sectors: Vec<SectorProof>,
}

/// The challenged leafs of one sector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectorProof {
    /// One inclusion proof per challenge in the tree of comm_r_last.
    pub inclusion_proofs: Vec<MerkleProof<PoseidonDomain>>,
    /// Root of the column tree.
    pub comm_c: PoseidonDomain,
    /// Root of the replica tree.
    pub comm_r_last: PoseidonDomain,
}
