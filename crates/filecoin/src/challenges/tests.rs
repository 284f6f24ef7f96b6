//! Against the golden file, which the `oracle` crate's tests hold against the reference. The
//! fixtures' challenges are covered by the public inputs' and the check's tests.

use serde_json::Value;

use super::*;
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::registered::{RegisteredPostProof, RegisteredSealProof};
use crate::registry::{ProofKind, SectorSize};
use crate::support::golden::{bytes, derivations, numbers, poseidon};

#[test]
fn porep_challenges_of_all_types() {
    let mut types = 0;
    for entry in derivations("seal") {
        let proof_type = RegisteredSealProof::from_number(entry["seal"].as_u64().unwrap()).unwrap();
        let challenges = PorepChallenges {
            proof_type,
            replica_id: &poseidon(&entry["replica_id"]),
            comm_r: &poseidon(&entry["comm_r"]),
            seed: &bytes(&entry["seed"]),
        };
        let partition = entry["partition"].as_u64().unwrap() as usize;
        let ours = challenges.partition(partition).into_iter().map(u64::from);
        assert_eq!(
            ours.collect::<Vec<_>>(),
            numbers(&entry["challenges"]),
            "{proof_type}"
        );
        types += 1;
    }
    assert_eq!(types, 20);
}

#[test]
fn porep_challenges_are_never_node_zero() {
    let digest = [0; 32];
    let zero = poseidon_of(digest);
    for proof_type in RegisteredSealProof::all() {
        for partition in 0..proof_type.partitions() {
            let challenges = PorepChallenges {
                proof_type,
                replica_id: &zero,
                comm_r: &zero,
                seed: &digest,
            };
            let nodes = 1..proof_type.size.nodes();
            assert!(
                challenges
                    .partition(partition)
                    .iter()
                    .all(|&node| nodes.contains(&u64::from(node)))
            );
        }
    }
}

fn poseidon_of(bytes: [u8; 32]) -> PoseidonDomain {
    PoseidonDomain::from_bytes(bytes).unwrap()
}

#[test]
fn post_challenges_of_all_types() {
    let mut types = 0;
    for entry in derivations("post") {
        let number = entry["post"].as_u64().unwrap();
        let kind = if number < 5 {
            ProofKind::Winning
        } else {
            ProofKind::Window
        };
        let challenges = PostChallenges {
            proof_type: RegisteredPostProof::from_number(kind, number).unwrap(),
            randomness: &poseidon(&entry["randomness"]),
            partition_index: entry["partition_index"].as_u64().unwrap() as u32,
        };
        let position = entry["position"].as_u64().unwrap() as usize;
        let ours = challenges.sector(position, entry["sector"].as_u64().unwrap());
        assert_eq!(ours, numbers(&entry["challenges"]), "type {number}");
        types += 1;
    }
    assert_eq!(types, 15);
}

/// The lists in the fixtures' public values.
#[test]
fn post_challenges_of_the_fixtures() {
    use crate::request::Request;
    for fixture in crate::support::fixtures::all() {
        let sectors: Vec<Value> = fixture.meta["sectors"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut expected = sectors.iter();
        for request in fixture.requests() {
            let (Request::Window(post) | Request::Winning(post)) = request else {
                continue;
            };
            for (position, sector) in post.sectors.iter().enumerate() {
                let ours = PostChallenges::of(&post).sector(position, sector.sector_id);
                assert_eq!(
                    ours,
                    numbers(&expected.next().unwrap()["challenges"]),
                    "{}",
                    fixture.name
                );
            }
        }
    }
}

#[test]
fn snap_challenges_and_randomness_of_all_sizes() {
    let mut sizes = 0;
    for entry in derivations("snap") {
        let size = SectorSize::of_registered(entry["snap"].as_u64().unwrap());
        let partition = entry["partition"].as_u64().unwrap() as usize;
        let nodes = snap_challenges(size, &poseidon(&entry["comm_r_new"]), partition);
        let ours: Vec<u64> = nodes.iter().map(|&node| node.into()).collect();
        assert_eq!(ours, numbers(&entry["challenges"]), "{size}");
        let comm_d_new = Sha256Domain::from_bytes(bytes(&entry["comm_d_new"])).unwrap();
        let randomness =
            EncodingRandomness::new(size, &comm_d_new, &poseidon(&entry["comm_r_old"]));
        let rho: PoseidonDomain = randomness.rho(nodes[0]).into();
        assert_eq!(rho, poseidon(&entry["rho_of_first"]), "{size}");
        sizes += 1;
    }
    assert_eq!(sizes, 5);
}

#[test]
fn snap_challenges_stay_in_their_partition() {
    for size in SectorSize::ALL {
        let shape = size.snap();
        let nodes_per_partition = size.nodes() / shape.partitions as u64;
        for partition in 0..shape.partitions {
            let nodes = snap_challenges(size, &poseidon_of([9; 32]), partition);
            assert_eq!(nodes.len(), shape.challenges);
            assert!(
                nodes
                    .iter()
                    .all(|&node| u64::from(node) / nodes_per_partition == partition as u64)
            );
        }
    }
}
