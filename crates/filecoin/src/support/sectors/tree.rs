//! Trees of which only the nodes that matter are known.

use std::collections::BTreeMap;

use crate::check::TreeNode;
use crate::domain::Domain;
use crate::merkle::{InclusionPath, MerkleProof, PathElement, ProofData};
use crate::registry::SectorSize;

/// A tree of which only some nodes are known; all others of a level are the same.
pub(super) struct SparseTree<D> {
    pub(super) arities: Vec<usize>,
    /// The node that stands wherever no known leaf is below, per level.
    pub(super) filler: Vec<D>,
    /// Nodes above known leafs, per level, the leafs first and the root last.
    pub(super) known: Vec<BTreeMap<u64, D>>,
}

impl<D: TreeNode> SparseTree<D> {
    pub(super) fn new(size: SectorSize, filler: D, leafs: BTreeMap<u64, D>) -> Self {
        let arities = D::arities(size);
        let mut tree = SparseTree {
            filler: vec![filler],
            known: vec![leafs],
            arities,
        };
        for level in 0..tree.arities.len() {
            let arity = tree.arities[level];
            tree.filler
                .push(D::parent(&vec![tree.filler[level]; arity]));
            let mut row = BTreeMap::new();
            for index in tree.known[level].keys() {
                let parent = index / arity as u64;
                row.entry(parent)
                    .or_insert_with(|| D::parent(&tree.children(level, parent)));
            }
            tree.known.push(row);
        }
        tree
    }

    pub(super) fn node(&self, level: usize, index: u64) -> D {
        *self.known[level].get(&index).unwrap_or(&self.filler[level])
    }

    /// Children on `level` of the node `parent` one level up.
    pub(super) fn children(&self, level: usize, parent: u64) -> Vec<D> {
        let arity = self.arities[level] as u64;
        (0..arity)
            .map(|i| self.node(level, parent * arity + i))
            .collect()
    }

    pub(super) fn root(&self) -> D {
        self.node(self.arities.len(), 0)
    }

    pub(super) fn proof(&self, leaf: u64) -> MerkleProof<D> {
        let mut index = leaf;
        let mut elements = Vec::new();
        for (level, &arity) in self.arities.iter().enumerate() {
            let (parent, position) = (index / arity as u64, index % arity as u64);
            let mut hashes = self.children(level, parent);
            hashes.remove(position as usize);
            elements.push(PathElement {
                hashes,
                index: position,
            });
            index = parent;
        }
        merkle_proof(elements, self.root(), self.node(0, leaf))
    }
}

/// A proof in the variant that the path's length calls for: base levels, then sub-trees, then a top.
pub(super) fn merkle_proof<D: Domain>(
    mut path: Vec<PathElement<D>>,
    root: D,
    leaf: D,
) -> MerkleProof<D> {
    let part = |path| InclusionPath { path };
    let eight = path[0].arity() == 8;
    let data = match path.len() {
        10 if eight => {
            let sub_proof = part(path.split_off(9));
            let base_proof = part(path);
            ProofData::Sub {
                base_proof,
                sub_proof,
                root,
                leaf,
            }
        }
        11 if eight => {
            let top_proof = part(path.split_off(10));
            let sub_proof = part(path.split_off(9));
            let base_proof = part(path);
            ProofData::Top {
                base_proof,
                sub_proof,
                top_proof,
                root,
                leaf,
            }
        }
        _ => ProofData::Single {
            root,
            leaf,
            path: part(path),
        },
    };
    MerkleProof { data }
}
