//! Decoded requests: the public values and the vanilla proof, checked for form.

mod describe;

use crate::domain::{PoseidonDomain, Sha256Domain};
use crate::registered::{
    RegisteredPostProof, RegisteredSealProof, RegisteredUpdateProof, SealVersion,
};
use crate::registry::{CircuitId, ProofKind, SectorSize};
use crate::{porep, post, snap};

pub use describe::{Description, Fact};

/// A proof to be made. Every decoded request has the counts and path lengths of
/// its proof type, canonical nodes and agreeing type, size and kind. What the
/// vanilla proof claims is *not* checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// PoRep, all partitions of one sector.
    Porep(PorepRequest),
    /// SnapDeals, all partitions of one sector.
    Snap(SnapRequest),
    /// WindowPoSt, one partition of sectors.
    Window(PostRequest),
    /// WinningPoSt, one sector.
    Winning(PostRequest),
}

/// PoRep: the output of phase 1 of the seal commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PorepRequest {
    /// Type, version and size.
    pub proof_type: RegisteredSealProof,
    /// Actor id of the miner, if anyone named it.
    pub miner_id: Option<u64>,
    /// Number of the sector, if anyone named it.
    pub sector_number: Option<u64>,
    /// Commitment of the replica.
    pub comm_r: PoseidonDomain,
    /// Commitment of the data.
    pub comm_d: Sha256Domain,
    /// Replica id that the labels were made with.
    pub replica_id: PoseidonDomain,
    /// Interactive randomness; any 32 bytes.
    pub seed: [u8; 32],
    /// Sealing randomness; any 32 bytes.
    pub ticket: [u8; 32],
    /// Per partition, one proof per challenge.
    pub partitions: Vec<Vec<porep::Proof>>,
}

/// SnapDeals: the update of an empty sector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapRequest {
    /// Type and size.
    pub proof_type: RegisteredUpdateProof,
    /// Actor id of the miner, if named; the proof does not depend on it.
    pub miner_id: Option<u64>,
    /// Number of the sector, if named; the proof does not depend on it.
    pub sector_number: Option<u64>,
    /// Commitment of the replica before the update.
    pub comm_r_old: PoseidonDomain,
    /// Commitment of the replica after it.
    pub comm_r_new: PoseidonDomain,
    /// Commitment of the new data.
    pub comm_d_new: Sha256Domain,
    /// One vanilla proof per partition, in order.
    pub partitions: Vec<snap::PartitionProof>,
}

/// WindowPoSt of one partition, or WinningPoSt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostRequest {
    /// Type, version and size.
    pub proof_type: RegisteredPostProof,
    /// Actor id of the miner, if named; the proof does not depend on it.
    pub miner_id: Option<u64>,
    /// Randomness of the challenges, a canonical scalar.
    pub randomness: PoseidonDomain,
    /// Number of the partition in its deadline. It enters the challenges of window
    /// types 5–9 only; the circuit treats the sectors as partition 0.
    pub partition_index: u32,
    /// One entry per sector, ascending; a winning request has exactly one.
    pub sectors: Vec<post::FallbackPoStSectorProof>,
}

impl Request {
    /// What is to be proven.
    pub fn kind(&self) -> ProofKind {
        match self {
            Self::Porep(_) => ProofKind::Porep,
            Self::Snap(_) => ProofKind::Snap,
            Self::Window(_) => ProofKind::Window,
            Self::Winning(_) => ProofKind::Winning,
        }
    }

    /// Size of the sectors.
    pub fn sector_size(&self) -> SectorSize {
        match self {
            Self::Porep(porep) => porep.proof_type.size,
            Self::Snap(snap) => snap.proof_type.size,
            Self::Window(post) | Self::Winning(post) => post.proof_type.size,
        }
    }

    /// The circuit that proves it.
    pub fn circuit_id(&self) -> CircuitId {
        CircuitId::new(self.kind(), self.sector_size())
    }

    /// Groth16 proofs in its result.
    pub fn partitions(&self) -> usize {
        match self {
            Self::Porep(porep) => porep.partitions.len(),
            Self::Snap(snap) => snap.partitions.len(),
            Self::Window(_) | Self::Winning(_) => 1,
        }
    }

    /// Whether it is a non-interactive PoRep, whose proofs must be aggregated.
    pub fn is_non_interactive(&self) -> bool {
        matches!(self, Self::Porep(porep)
            if porep.proof_type.version == SealVersion::NonInteractive)
    }

    /// Registered proof number and name, for example `StackedDrg32GiBV1_1 (8)`.
    pub fn proof_type(&self) -> String {
        match self {
            Self::Porep(porep) => porep.proof_type.to_string(),
            Self::Snap(snap) => snap.proof_type.to_string(),
            Self::Window(post) | Self::Winning(post) => post.proof_type.to_string(),
        }
    }
}
