//! Graph parents and challenges of all sizes and versions against the reference implementation.
//!
//! Fixtures cover the small sizes; this covers the others, and keeps the golden file
//! `crates/filecoin/testdata/derivations.json` honest, against which the product crate tests
//! alone. `UPDATE_GOLDEN=1 cargo test -p oracle --test derivations` writes it.

#![allow(
    clippy::unwrap_used,
    reason = "test code: a value that is missing must stop the test"
)]

use ff::PrimeField;
use filecoin::challenges::{EncodingRandomness, PorepChallenges, PostChallenges, snap_challenges};
use filecoin::graph::Graph;
use filecoin::registered::{PostVersion, RegisteredPostProof, RegisteredSealProof, SealVersion};
use filecoin::registry::SectorSize;
use filecoin::{Domain, PoseidonDomain, Sha256Domain};
use filecoin_hashers::poseidon::{PoseidonDomain as RefPoseidon, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Domain as RefSha256;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::drgraph::{BASE_DEGREE, Graph as _};
use storage_proofs_porep::stacked::{self, Challenges, EXP_DEGREE, StackedBucketGraph, Tau};
use storage_proofs_post::fallback;
use storage_proofs_update::{phi, rho};

fn bytes(rng: &mut ChaCha8Rng) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes[31] &= 0x3f;
    bytes
}

fn poseidon(bytes: [u8; 32]) -> PoseidonDomain {
    PoseidonDomain::from_bytes(bytes).unwrap()
}

fn api_version(proof_type: RegisteredSealProof) -> ApiVersion {
    match proof_type.version {
        SealVersion::V1 => ApiVersion::V1_0_0,
        SealVersion::V1_1 => ApiVersion::V1_1_0,
        SealVersion::Synthetic | SealVersion::NonInteractive => ApiVersion::V1_2_0,
    }
}

/// (node, its 14 parents) by the reference.
fn reference_parents(proof_type: RegisteredSealProof, nodes: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let graph = StackedBucketGraph::<PoseidonHasher>::new_stacked(
        proof_type.size.nodes() as usize,
        BASE_DEGREE,
        EXP_DEGREE,
        proof_type.porep_id(),
        api_version(proof_type),
    )
    .unwrap();
    let parents = |&node: &u32| {
        let mut parents = vec![0; 14];
        graph.parents(node as usize, &mut parents).unwrap();
        (node, parents)
    };
    nodes.iter().map(parents).collect()
}

fn our_parents(graph: &Graph, node: u32) -> Vec<u32> {
    graph
        .drg_parents(node)
        .into_iter()
        .chain(graph.expander_parents(node))
        .collect()
}

/// The first and last nodes, those around powers of two, and random ones.
fn sample_nodes(size: SectorSize, count: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let last = (size.nodes() - 1) as u32;
    let mut nodes: Vec<u32> = (0..6).chain([last - 1, last]).collect();
    nodes.extend((3..size.log2_nodes()).flat_map(|bit| [(1 << bit) - 1, 1 << bit]));
    nodes.extend((0..count).map(|_| rng.next_u32() & last));
    nodes
}

#[test]
fn graphs_agree() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for proof_type in RegisteredSealProof::all() {
        let graph = Graph::new(proof_type);
        let nodes = match proof_type.size {
            SectorSize::KiB2 => (0..64).collect(),
            size => sample_nodes(size, 500, &mut rng),
        };
        for (node, expected) in reference_parents(proof_type, &nodes) {
            assert_eq!(
                our_parents(&graph, node),
                expected,
                "node {node} of {proof_type}"
            );
        }
    }
}

/// A few derived values per proof type, in the reference's words.
struct Values {
    replica_id: [u8; 32],
    comm_r: [u8; 32],
    seed: [u8; 32],
}

impl Values {
    fn new(rng: &mut ChaCha8Rng) -> Values {
        Values {
            replica_id: bytes(rng),
            comm_r: bytes(rng),
            seed: bytes(rng),
        }
    }

    fn reference(&self, proof_type: RegisteredSealProof, partition: usize) -> Vec<usize> {
        let count = proof_type.size.porep().challenges;
        let challenges = match proof_type.version {
            SealVersion::V1 | SealVersion::V1_1 => Challenges::new_interactive(count),
            SealVersion::Synthetic => Challenges::new_synthetic(count),
            SealVersion::NonInteractive => Challenges::new_non_interactive(count),
        };
        let inputs = stacked::PublicInputs::<RefPoseidon, RefSha256> {
            replica_id: self.replica_id.into(),
            seed: Some(self.seed),
            tau: Some(Tau {
                comm_d: [0; 32].into(),
                comm_r: self.comm_r.into(),
            }),
            k: None,
        };
        inputs.challenges(
            &challenges,
            proof_type.size.nodes() as usize,
            Some(partition),
        )
    }

    fn ours(&self, proof_type: RegisteredSealProof, partition: usize) -> Vec<usize> {
        let (replica_id, comm_r) = (poseidon(self.replica_id), poseidon(self.comm_r));
        let challenges = PorepChallenges {
            proof_type,
            replica_id: &replica_id,
            comm_r: &comm_r,
            seed: &self.seed,
        };
        challenges
            .partition(partition)
            .into_iter()
            .map(|node| node as usize)
            .collect()
    }
}

#[test]
fn porep_challenges_agree() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for proof_type in RegisteredSealProof::all() {
        for _ in 0..5 {
            let values = Values::new(&mut rng);
            for partition in 0..proof_type.partitions() {
                let ours = values.ours(proof_type, partition);
                assert_eq!(
                    ours,
                    values.reference(proof_type, partition),
                    "{proof_type}"
                );
            }
        }
    }
}

fn reference_post(
    proof_type: RegisteredPostProof,
    randomness: [u8; 32],
    sector: u64,
    first: u64,
) -> Vec<u64> {
    let count = match proof_type.version {
        PostVersion::WinningV1 => 66,
        _ => 10,
    };
    let params = fallback::PublicParams {
        sector_size: proof_type.size.bytes(),
        challenge_count: count,
        sector_count: 1,
        api_version: ApiVersion::V1_2_0,
    };
    let challenge = |n| {
        fallback::generate_leaf_challenge(&params, RefPoseidon::from(randomness), sector, first + n)
    };
    (0..count as u64).map(challenge).collect()
}

#[test]
fn post_challenges_agree() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for proof_type in RegisteredPostProof::all() {
        for (position, partition_index) in [(0, 0), (1, 0), (0, 1), (1, 3)] {
            let (randomness, sector) = (bytes(&mut rng), rng.next_u64());
            let slots = proof_type.size.window().sectors as u64;
            let first = match proof_type.version {
                PostVersion::WindowV1 => {
                    let index = u64::from(partition_index) * slots + position as u64;
                    fallback::get_challenge_index(ApiVersion::V1_0_0, index as usize, 10, 0)
                }
                _ => 0,
            };
            let challenges = PostChallenges {
                proof_type,
                randomness: &poseidon(randomness),
                partition_index,
            };
            let expected = reference_post(proof_type, randomness, sector, first);
            assert_eq!(
                challenges.sector(position, sector),
                expected,
                "{proof_type}"
            );
        }
    }
}

#[test]
fn snap_challenges_and_randomness_agree() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for size in SectorSize::ALL {
        for _ in 0..5 {
            let (comm_r_old, comm_r_new, comm_d_new) =
                (bytes(&mut rng), bytes(&mut rng), bytes(&mut rng));
            let comm_d = Sha256Domain::from_bytes(comm_d_new).unwrap();
            let randomness = EncodingRandomness::new(size, &comm_d, &poseidon(comm_r_old));
            let phi = phi(&RefSha256::from(comm_d_new), &comm_r_old.into());
            let shift = size.log2_nodes() - size.snap().h as u32;
            for partition in 0..size.snap().partitions {
                let nodes = snap_challenges(size, &poseidon(comm_r_new), partition);
                let reference = storage_proofs_update::Challenges::new(
                    size.nodes() as usize,
                    comm_r_new.into(),
                    partition,
                );
                assert_eq!(nodes, reference.collect::<Vec<u32>>(), "{size}");
                for node in nodes.into_iter().take(3) {
                    assert_eq!(randomness.rho(node), rho(&phi, node >> shift), "{size}");
                }
            }
        }
    }
}

/// One entry per seal type, PoSt type and size.
fn golden() -> Vec<Value> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let hex = |bytes: [u8; 32]| hex::encode(bytes);
    let mut entries = Vec::new();
    for proof_type in RegisteredSealProof::all() {
        let values = Values::new(&mut rng);
        let partition = proof_type.partitions() - 1;
        let nodes = [
            1,
            2,
            5,
            (proof_type.size.nodes() - 1) as u32,
            rng.next_u32() & (proof_type.size.nodes() - 1) as u32,
        ];
        entries.push(json!({
            "seal": proof_type.number(),
            "replica_id": hex(values.replica_id),
            "comm_r": hex(values.comm_r),
            "seed": hex(values.seed),
            "partition": partition,
            "challenges": values.reference(proof_type, partition),
            "parents": reference_parents(proof_type, &nodes),
        }));
    }
    for proof_type in RegisteredPostProof::all() {
        let (randomness, sector) = (bytes(&mut rng), rng.next_u64() >> 1);
        let first = match proof_type.version {
            PostVersion::WindowV1 => (proof_type.size.window().sectors as u64 * 2 + 1) * 10,
            _ => 0,
        };
        entries.push(json!({
            "post": proof_type.number(),
            "randomness": hex(randomness),
            "sector": sector,
            "position": 1,
            "partition_index": 2,
            "challenges": reference_post(proof_type, randomness, sector, first),
        }));
    }
    for size in SectorSize::ALL {
        let (comm_r_old, comm_r_new, comm_d_new) =
            (bytes(&mut rng), bytes(&mut rng), bytes(&mut rng));
        let partition = size.snap().partitions - 1;
        let phi = phi(&RefSha256::from(comm_d_new), &comm_r_old.into());
        let nodes: Vec<u32> = storage_proofs_update::Challenges::new(
            size.nodes() as usize,
            comm_r_new.into(),
            partition,
        )
        .collect();
        let rho = rho(&phi, nodes[0] >> (size.log2_nodes() - size.snap().h as u32));
        entries.push(json!({
            "snap": size as u64,
            "comm_r_old": hex(comm_r_old),
            "comm_r_new": hex(comm_r_new),
            "comm_d_new": hex(comm_d_new),
            "partition": partition,
            "challenges": nodes,
            "rho_of_first": hex(rho.to_repr()),
        }));
    }
    entries
}

#[test]
fn golden_file_is_the_reference() {
    let lines: Vec<String> = golden().iter().map(Value::to_string).collect();
    let golden = format!("[\n{}\n]\n", lines.join(",\n"));
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../filecoin/testdata/derivations.json"
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &golden).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), golden);
}
