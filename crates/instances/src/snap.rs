//! SnapDeals: old replica, new data and new replica in blocks of equal nodes.

use filecoin::challenges::{EncodingRandomness, snap_challenges};
use filecoin::registered::RegisteredUpdateProof;
use filecoin::snap::{ChallengeProof, PartitionProof};
use filecoin::{Domain, PoseidonDomain, Sha256Domain, SnapRequest, poseidon};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::tree::{BlockTree, Node, Tree};

/// Challenges follow from comm_r_new, and ρ from comm_d_new and comm_r_old, so all three trees are
/// whole. ρ is the same for all nodes with the same h high bits: that is a block.
pub fn request(proof_type: RegisteredUpdateProof, rng: &mut ChaCha8Rng) -> SnapRequest {
    let size = proof_type.size;
    let shape = size.snap();
    let blocks = 1u64 << shape.h;
    let old: Vec<PoseidonDomain> = (0..blocks).map(|_| Node::random(rng)).collect();
    let data: Vec<Sha256Domain> = (0..blocks).map(|_| Node::random(rng)).collect();
    let comm_c = PoseidonDomain::random(rng);
    let commit = |root: PoseidonDomain| poseidon::hash_2(comm_c.to_fr(), root.to_fr()).into();

    let tree_r_old = BlockTree::new(old.clone(), size);
    let tree_d_new = BlockTree::new(data.clone(), size);
    let (comm_r_old, comm_d_new) = (commit(tree_r_old.root()), tree_d_new.root());
    let randomness = EncodingRandomness::new(size, &comm_d_new, &comm_r_old);
    let nodes_per_block = size.nodes() / blocks;
    let new = (0..blocks).map(|block| {
        let node = (block * nodes_per_block) as u32;
        let (old, data) = (old[block as usize], data[block as usize]);
        (old.to_fr() + randomness.rho(node) * data.to_fr()).into()
    });
    let tree_r_new = BlockTree::new(new.collect(), size);
    let comm_r_new = commit(tree_r_new.root());

    let apex_level = size.log2_nodes() - (shape.partitions * shape.apex_leafs).ilog2();
    let partition = |number: usize| PartitionProof {
        comm_c,
        apex_leafs: (0..shape.apex_leafs)
            .map(|i| tree_d_new.node(apex_level as usize, (number * shape.apex_leafs + i) as u64))
            .collect(),
        challenge_proofs: snap_challenges(size, &comm_r_new, number)
            .into_iter()
            .map(|node| ChallengeProof {
                proof_r_old: tree_r_old.open(node.into(), size),
                proof_d_new: tree_d_new.open(node.into(), size),
                proof_r_new: tree_r_new.open(node.into(), size),
            })
            .collect(),
    };
    SnapRequest {
        proof_type,
        miner_id: Some(1000),
        sector_number: Some(1),
        comm_r_old,
        comm_r_new,
        comm_d_new,
        partitions: (0..shape.partitions)
            .into_par_iter()
            .map(partition)
            .collect(),
    }
}
