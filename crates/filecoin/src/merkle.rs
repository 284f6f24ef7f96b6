//! Merkle inclusion proofs in the reference's data layout.
//!
//! One tree shape has three levels of arity `base-sub-top` (8-0-0, 8-8-0 or
//! 8-8-2 for Poseidon trees, binary for the SHA-256 data tree): a `Single` proof
//! has one path, `Sub` adds the step over the sub-trees, `Top` the step over the
//! top. Field order is the bincode order, field names are the JSON keys.

use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// One step towards the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathElement<D> {
    /// The siblings in order, without the node itself: arity − 1 of them.
    pub hashes: Vec<D>,
    /// Position of the node among its siblings, 0..arity.
    pub index: u64,
}

impl<D> PathElement<D> {
    /// Children of the parent node: the siblings and the node itself.
    pub fn arity(&self) -> usize {
        self.hashes.len() + 1
    }
}

/// Steps from a node upwards, lowest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InclusionPath<D> {
    /// The steps, leaf to root.
    pub path: Vec<PathElement<D>>,
}

/// The proof's variants, tagged 0, 1, 2 in bincode and by name in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProofData<D> {
    /// One tree of one arity.
    Single {
        /// Root of the tree.
        root: D,
        /// The node whose inclusion is shown.
        leaf: D,
        /// All steps.
        path: InclusionPath<D>,
    },
    /// Base trees joined by one level of sub-trees.
    Sub {
        /// Steps inside the base tree.
        base_proof: InclusionPath<D>,
        /// Step over the base trees' roots.
        sub_proof: InclusionPath<D>,
        /// Root of the whole tree.
        root: D,
        /// The node whose inclusion is shown.
        leaf: D,
    },
    /// Sub-trees joined by a top level.
    Top {
        /// Steps inside the base tree.
        base_proof: InclusionPath<D>,
        /// Step over the base trees' roots.
        sub_proof: InclusionPath<D>,
        /// Step over the sub-trees' roots.
        top_proof: InclusionPath<D>,
        /// Root of the whole tree.
        root: D,
        /// The node whose inclusion is shown.
        leaf: D,
    },
}

/// Inclusion of one leaf in one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MerkleProof<D> {
    /// Variant and contents.
    pub data: ProofData<D>,
}

impl<D: Domain> MerkleProof<D> {
    /// The root that the proof claims.
    pub fn root(&self) -> D {
        match &self.data {
            ProofData::Single { root, .. }
            | ProofData::Sub { root, .. }
            | ProofData::Top { root, .. } => *root,
        }
    }

    /// The leaf that the proof claims.
    pub fn leaf(&self) -> D {
        match &self.data {
            ProofData::Single { leaf, .. }
            | ProofData::Sub { leaf, .. }
            | ProofData::Top { leaf, .. } => *leaf,
        }
    }

    /// The parts of the path, lowest first, with their field names.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &InclusionPath<D>)> {
        let parts = match &self.data {
            ProofData::Single { path, .. } => [Some(("path", path)), None, None],
            ProofData::Sub {
                base_proof,
                sub_proof,
                ..
            } => [
                Some(("base_proof", base_proof)),
                Some(("sub_proof", sub_proof)),
                None,
            ],
            ProofData::Top {
                base_proof,
                sub_proof,
                top_proof,
                ..
            } => [
                Some(("base_proof", base_proof)),
                Some(("sub_proof", sub_proof)),
                Some(("top_proof", top_proof)),
            ],
        };
        parts.into_iter().flatten()
    }

    /// All steps from the leaf to the root, over all parts.
    pub fn elements(&self) -> impl Iterator<Item = &PathElement<D>> {
        self.parts().flat_map(|(_, part)| part.path.iter())
    }

    /// Number of the leaf that the path's indices lead to: the sum of index ×
    /// product of the arities below. `None` if it does not fit 64 bits (which a
    /// proof of a shape this crate knows never reaches).
    pub fn leaf_index(&self) -> Option<u64> {
        let mut leaf = 0u64;
        let mut weight = 1u64;
        for element in self.elements() {
            leaf = leaf.checked_add(element.index.checked_mul(weight)?)?;
            weight = weight.checked_mul(u64::try_from(element.arity()).ok()?)?;
        }
        Some(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PoseidonDomain;

    fn node(n: u64) -> PoseidonDomain {
        blstrs::Scalar::from(n).into()
    }

    fn path(steps: &[(usize, u64)]) -> InclusionPath<PoseidonDomain> {
        let path = steps
            .iter()
            .map(|&(siblings, index)| PathElement {
                hashes: vec![node(7); siblings],
                index,
            })
            .collect();
        InclusionPath { path }
    }

    #[test]
    fn leaf_index_counts_in_mixed_radix() {
        let proof = MerkleProof {
            data: ProofData::Top {
                base_proof: path(&[(7, 3), (7, 5)]),
                sub_proof: path(&[(7, 1)]),
                top_proof: path(&[(1, 1)]),
                root: node(1),
                leaf: node(2),
            },
        };
        assert_eq!(proof.leaf_index(), Some(3 + 8 * 5 + 64 + 512));
        assert_eq!(proof.elements().count(), 4);
        assert_eq!((proof.root(), proof.leaf()), (node(1), node(2)));
    }

    #[test]
    fn leaf_index_never_overflows() {
        let proof = MerkleProof {
            data: ProofData::Single {
                root: node(1),
                leaf: node(2),
                path: path(&[(7, u64::MAX), (7, 1)]),
            },
        };
        assert_eq!(proof.leaf_index(), None);
    }

    #[test]
    fn encodings_are_the_references() {
        let proof = MerkleProof {
            data: ProofData::Sub {
                base_proof: path(&[(1, 1)]),
                sub_proof: path(&[]),
                root: node(1),
                leaf: node(2),
            },
        };
        let n = |v: u8| format!("[{v}{}]", ",0".repeat(31));
        let json = format!(
            r#"{{"data":{{"Sub":{{"base_proof":{{"path":[{{"hashes":[{}],"index":1}}]}},"sub_proof":{{"path":[]}},"root":{},"leaf":{}}}}}}}"#,
            n(7),
            n(1),
            n(2)
        );
        assert_eq!(serde_json::to_string(&proof).unwrap(), json);
        // tag, count, count, node, index, count, root, leaf
        assert_eq!(
            bincode::serialize(&proof).unwrap().len(),
            4 + 8 + 8 + 32 + 8 + 8 + 32 + 32
        );
    }
}
