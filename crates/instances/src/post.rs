//! PoSt: sectors of which only the challenged leafs exist.

use std::collections::BTreeMap;

use filecoin::challenges::PostChallenges;
use filecoin::post::{FallbackPoStSectorProof, SectorProof, VanillaProof};
use filecoin::registered::{PostVersion, RegisteredPostProof};
use filecoin::{Domain, PoseidonDomain, PostRequest, poseidon};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

use crate::tree::{Node, SparseTree, Tree};

/// Challenges follow from the randomness and the sectors' numbers alone, so each replica tree is
/// made around its challenged leafs.
pub fn request(
    proof_type: RegisteredPostProof,
    sectors: usize,
    rng: &mut ChaCha8Rng,
) -> PostRequest {
    let randomness = PoseidonDomain::random(rng);
    let partition_index = match proof_type.version {
        PostVersion::WindowV1 => rng.next_u32() % 4,
        PostVersion::WindowV1_2 | PostVersion::WinningV1 => 0,
    };
    let challenges = PostChallenges {
        proof_type,
        randomness: &randomness,
        partition_index,
    };
    let mut number = u64::from(rng.next_u32() % 1000);
    let numbers: Vec<(u64, u64)> = (0..sectors)
        .map(|_| {
            number += 1 + u64::from(rng.next_u32() % 3);
            (number, rng.next_u64())
        })
        .collect();
    let sectors = numbers
        .into_par_iter()
        .enumerate()
        .map(|(position, (number, seed))| {
            let leafs = challenges.sector(position, number);
            sector(proof_type, number, &leafs, seed)
        })
        .collect();
    PostRequest {
        proof_type,
        miner_id: Some(1000),
        randomness,
        partition_index,
        sectors,
    }
}

fn sector(
    proof_type: RegisteredPostProof,
    sector_id: u64,
    leafs: &[u64],
    seed: u64,
) -> FallbackPoStSectorProof {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let size = proof_type.size;
    let values: BTreeMap<u64, PoseidonDomain> = leafs
        .iter()
        .map(|&leaf| (leaf, PoseidonDomain::random(rng)))
        .collect();
    let tree = SparseTree::new(values, size, rng);
    let (comm_c, comm_r_last) = (PoseidonDomain::random(rng), tree.root());
    FallbackPoStSectorProof {
        sector_id,
        comm_r: poseidon::hash_2(comm_c.to_fr(), comm_r_last.to_fr()).into(),
        vanilla_proof: VanillaProof {
            sectors: vec![SectorProof {
                inclusion_proofs: leafs.iter().map(|&leaf| tree.open(leaf, size)).collect(),
                comm_c,
                comm_r_last,
            }],
        },
    }
}
