//! SnapDeals (empty sector update) vanilla proofs.

use serde::{Deserialize, Serialize};

use crate::domain::{PoseidonDomain, Sha256Domain};
use crate::merkle::MerkleProof;

/// Vanilla proof of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionProof {
    /// Root of the column tree of the sealed sector; the update keeps it.
    pub comm_c: PoseidonDomain,
    /// The nodes of the new data tree that are this partition's apex leafs.
    pub apex_leafs: Vec<Sha256Domain>,
    /// One proof per challenge.
    pub challenge_proofs: Vec<ChallengeProof>,
}

/// Vanilla proof of one challenge: the node before, its new data, the node after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeProof {
    /// Inclusion of the old replica's node in the tree of comm_r_last_old.
    pub proof_r_old: MerkleProof<PoseidonDomain>,
    /// Inclusion of the new data node in the tree of comm_d_new.
    pub proof_d_new: MerkleProof<Sha256Domain>,
    /// Inclusion of the new replica's node in the tree of comm_r_last_new.
    pub proof_r_new: MerkleProof<PoseidonDomain>,
}
