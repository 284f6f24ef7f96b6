//! Against the golden file, which the `oracle` crate's tests hold against the reference.

use super::*;
use crate::registry::SectorSize;
use crate::support::golden::{derivations, numbers};

#[test]
fn parents_of_all_types() {
    let mut nodes = 0;
    for entry in derivations("seal") {
        let proof_type = RegisteredSealProof::from_number(entry["seal"].as_u64().unwrap()).unwrap();
        let graph = Graph::new(proof_type);
        for pair in entry["parents"].as_array().unwrap() {
            let node = pair[0].as_u64().unwrap() as u32;
            let parents = graph
                .drg_parents(node)
                .into_iter()
                .chain(graph.expander_parents(node));
            let ours: Vec<u64> = parents.map(u64::from).collect();
            assert_eq!(ours, numbers(&pair[1]), "node {node} of {proof_type}");
            nodes += 1;
        }
    }
    assert_eq!(nodes, 100);
}

#[test]
fn drg_parents_are_below_the_node_and_hold_its_predecessor() {
    for proof_type in RegisteredSealProof::all() {
        let graph = Graph::new(proof_type);
        let last = (proof_type.size.nodes() - 1) as u32;
        assert_eq!(graph.drg_parents(0), [0; 6]);
        for node in (1..64).chain([last - 1, last].into_iter().filter(|&node| node > 63)) {
            let parents = graph.drg_parents(node);
            assert!(
                parents.iter().all(|&parent| parent < node),
                "{proof_type}: {node}: {parents:?}"
            );
            let predecessor = if proof_type.version == SealVersion::V1 {
                5
            } else {
                0
            };
            assert_eq!(parents[predecessor], node - 1);
        }
    }
}

/// Each node is expander parent exactly eight times.
#[test]
fn expander_is_regular() {
    for number in [0, 5, 10, 15] {
        let graph = Graph::new(RegisteredSealProof::from_number(number).unwrap());
        let mut children = [0; 64];
        for node in 0..64 {
            graph
                .expander_parents(node)
                .into_iter()
                .for_each(|parent| children[parent as usize] += 1);
        }
        assert_eq!(children, [8; 64]);
    }
}

/// Slots of 32 GiB sectors need 33 bits; API 1.0.0 drops the highest.
#[test]
fn legacy_expander_parents_are_in_the_lower_half() {
    let large = |number| Graph::new(RegisteredSealProof::from_number(number).unwrap());
    let half = (SectorSize::GiB32.nodes() / 2) as u32;
    let nodes = || (0..200).map(|i| i * 5_000_011);
    assert!(
        nodes()
            .flat_map(|node| large(3).expander_parents(node))
            .all(|parent| parent < half)
    );
    assert!(
        nodes()
            .flat_map(|node| large(8).expander_parents(node))
            .any(|parent| parent >= half)
    );
}
