//! An updated sector.

use std::collections::BTreeMap;

use super::Source;
use super::tree::{SparseTree, merkle_proof};
use crate::challenges::{EncodingRandomness, snap_challenges};
use crate::check::TreeNode;
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::merkle::{MerkleProof, PathElement};
use crate::registered::RegisteredUpdateProof;
use crate::registry::SectorSize;
use crate::request::SnapRequest;
use crate::{poseidon, snap};

/// An update of a whole sector: every old node is the same, every data node is the same, so that new
/// nodes differ only by ρ and the new tree can be built before its challenges are known.
///
/// # Panics
/// For 2 KiB: use the fixtures.
pub fn snap(proof_type: RegisteredUpdateProof, seed: u64) -> SnapRequest {
    snap_with_data(proof_type, seed, |_| ())
}

/// As [`snap`], but the data encoded is changed after it was committed to.
///
/// # Panics
/// As [`snap`].
pub fn snap_with_data(
    proof_type: RegisteredUpdateProof,
    seed: u64,
    change: impl FnOnce(&mut Sha256Domain),
) -> SnapRequest {
    let size = proof_type.size;
    let shape = size.snap();
    assert!(size != SectorSize::KiB2);
    let mut source = Source::new(seed);
    let (old, comm_c): (PoseidonDomain, PoseidonDomain) = (source.node(), source.node());
    let mut data: Sha256Domain = source.node();
    let tree_d = SparseTree::new(size, data, BTreeMap::new());
    change(&mut data);
    let tree_old = SparseTree::new(size, old, BTreeMap::new());
    let comm_r = |root: PoseidonDomain| poseidon::hash_2(comm_c.to_fr(), root.to_fr()).into();
    let (comm_r_old, comm_d_new) = (comm_r(tree_old.root()), tree_d.root());
    let tree_new = UpdatedTree::new(
        size,
        &EncodingRandomness::new(size, &comm_d_new, &comm_r_old),
        old,
        data,
    );
    let comm_r_new = comm_r(tree_new.top.root());
    let apex_level = (size.log2_nodes() - (shape.partitions * shape.apex_leafs).ilog2()) as usize;
    let partition = |partition| {
        let challenge = |node: u32| snap::ChallengeProof {
            proof_r_old: tree_old.proof(node.into()),
            proof_d_new: tree_d.proof(node.into()),
            proof_r_new: tree_new.proof(node.into()),
        };
        snap::PartitionProof {
            comm_c,
            apex_leafs: vec![tree_d.filler[apex_level]; shape.apex_leafs],
            challenge_proofs: snap_challenges(size, &comm_r_new, partition)
                .into_iter()
                .map(challenge)
                .collect(),
        }
    };
    SnapRequest {
        proof_type,
        miner_id: None,
        sector_number: None,
        comm_r_old,
        comm_r_new,
        comm_d_new,
        partitions: (0..shape.partitions).map(partition).collect(),
    }
}

/// The replica tree of an updated sector: below `level` every subtree holds one value throughout.
struct UpdatedTree {
    arities: Vec<usize>,
    /// Per value of the node's high bits: the one node of each level below.
    uniform: Vec<Vec<PoseidonDomain>>,
    /// log2 of the leafs that share a value.
    shift: u32,
    /// The levels from `level` on, as a sparse tree of which every leaf is known.
    top: SparseTree<PoseidonDomain>,
    level: usize,
}

impl UpdatedTree {
    fn new(
        size: SectorSize,
        randomness: &EncodingRandomness,
        old: PoseidonDomain,
        data: Sha256Domain,
    ) -> Self {
        let arities = PoseidonDomain::arities(size);
        let shift = size.log2_nodes() - size.snap().h as u32;
        // The highest level of which a node still covers leafs of one value only.
        let level = (shift / 3) as usize;
        let uniform: Vec<Vec<PoseidonDomain>> = (0..1 << size.snap().h)
            .map(|high: u32| {
                let leaf = old.to_fr() + randomness.rho(high << shift) * data.to_fr();
                let mut nodes = vec![PoseidonDomain::from(leaf)];
                for _ in 0..level {
                    nodes.push(PoseidonDomain::parent(&[nodes[nodes.len() - 1]; 8]));
                }
                nodes
            })
            .collect();
        let per_value = 1u64 << (shift - 3 * level as u32);
        let leafs = (0..uniform.len() as u64 * per_value)
            .map(|index| (index, uniform[(index / per_value) as usize][level]))
            .collect();
        let mut top = SparseTree {
            arities: arities[level..].to_vec(),
            filler: vec![PoseidonDomain::default()],
            known: vec![leafs],
        };
        for level in 0..top.arities.len() {
            top.filler.push(PoseidonDomain::default());
            let parents = top.known[level].len() / top.arities[level];
            let row =
                (0..parents as u64).map(|i| (i, PoseidonDomain::parent(&top.children(level, i))));
            let row = row.collect();
            top.known.push(row);
        }
        UpdatedTree {
            arities,
            uniform,
            shift,
            top,
            level,
        }
    }

    fn proof(&self, leaf: u64) -> MerkleProof<PoseidonDomain> {
        let nodes = &self.uniform[(leaf >> self.shift) as usize];
        let mut index = leaf;
        let mut elements = Vec::new();
        for (level, &arity) in self.arities.iter().enumerate() {
            let (parent, position) = (index / arity as u64, index % arity as u64);
            let hashes = match level.checked_sub(self.level) {
                None => vec![nodes[level]; arity - 1],
                Some(level) => {
                    let mut children = self.top.children(level, parent);
                    children.remove(position as usize);
                    children
                }
            };
            elements.push(PathElement {
                hashes,
                index: position,
            });
            index = parent;
        }
        merkle_proof(elements, self.top.root(), nodes[0])
    }
}
