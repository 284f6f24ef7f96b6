//! PoRep (stacked DRG) vanilla proofs: what phase 1 of the commit hands to the prover.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::domain::{PoseidonDomain, Sha256Domain};
use crate::merkle::MerkleProof;

/// Vanilla proof of one challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The challenged data node in the SHA-256 tree of comm_d.
    pub comm_d_proofs: MerkleProof<Sha256Domain>,
    /// The challenged replica node in the tree of comm_r_last.
    pub comm_r_last_proof: MerkleProof<PoseidonDomain>,
    /// Columns of the challenge and of its parents.
    pub replica_column_proofs: ReplicaColumnProof,
    /// One labelling per layer, ascending.
    pub labeling_proofs: Vec<LabelingProof>,
    /// The last layer's label, which is the encoding key.
    pub encoding_proof: LabelingProof,
}

/// Columns of the challenged node and of its graph parents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaColumnProof {
    /// Column of the challenged node.
    pub c_x: ColumnProof,
    /// Columns of its 6 parents in the base (DRG) graph.
    pub drg_parents: Vec<ColumnProof>,
    /// Columns of its 8 expander parents.
    pub exp_parents: Vec<ColumnProof>,
}

/// A column and its inclusion in the tree of comm_c.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnProof {
    /// The labels of one node on all layers.
    pub column: Column,
    /// Inclusion of the column's Poseidon hash.
    pub inclusion_proof: MerkleProof<PoseidonDomain>,
}

/// The labels of one node, one per layer, first layer first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The node's number.
    pub index: u32,
    /// Its label on each layer.
    pub rows: Vec<PoseidonDomain>,
    /// The reference writes its marker type: `null` in JSON, nothing in bincode.
    #[serde(rename = "_h", default)]
    marker: PhantomData<()>,
}

impl Column {
    /// A column from its node number and labels.
    pub fn new(index: u32, rows: Vec<PoseidonDomain>) -> Self {
        Self {
            index,
            rows,
            marker: PhantomData,
        }
    }
}

/// The inputs of one label: SHA-256 over replica id, layer, node and 37 parent labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelingProof {
    /// The 37 parent labels: 6 DRG (and 8 expander) parents, repeated.
    pub parents: Vec<PoseidonDomain>,
    /// Layer number, first layer 1.
    pub layer_index: u32,
    /// Number of the labelled node.
    pub node: u64,
}
