//! Sectors of a window, or a winning one.

use super::Source;
use super::tree::SparseTree;
use crate::challenges::PostChallenges;
use crate::domain::{Domain, PoseidonDomain};
use crate::registered::RegisteredPostProof;
use crate::registry::ProofKind;
use crate::request::PostRequest;
use crate::{poseidon, post};

/// A window of `sectors` sectors numbered 100, 103, …, or a winning sector. Leafs differ between
/// sectors; within a sector the opened ones are random.
pub fn post(
    proof_type: RegisteredPostProof,
    sectors: usize,
    partition_index: u32,
    seed: u64,
) -> PostRequest {
    let mut source = Source::new(seed);
    let mut request = PostRequest {
        proof_type,
        miner_id: Some(1000),
        randomness: source.node(),
        partition_index,
        sectors: Vec::new(),
    };
    for position in 0..sectors {
        let sector_id = 100 + 3 * position as u64;
        let opened = PostChallenges::of(&request).sector(position, sector_id);
        let leafs = opened.iter().map(|&leaf| (leaf, source.node())).collect();
        let tree = SparseTree::new(proof_type.size, source.node(), leafs);
        let comm_c: PoseidonDomain = source.node();
        let proof = post::SectorProof {
            inclusion_proofs: opened.iter().map(|&leaf| tree.proof(leaf)).collect(),
            comm_c,
            comm_r_last: tree.root(),
        };
        request.sectors.push(post::FallbackPoStSectorProof {
            sector_id,
            comm_r: poseidon::hash_2(comm_c.to_fr(), tree.root().to_fr()).into(),
            vanilla_proof: post::VanillaProof {
                sectors: vec![proof],
            },
        });
    }
    assert!(proof_type.kind() == ProofKind::Window || sectors == 1);
    request
}
