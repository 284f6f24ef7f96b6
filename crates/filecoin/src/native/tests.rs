use ::witness::Parts;
use ff::PrimeField;
use r1cs::{CompiledCircuit, Fr, PackedWitness};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{NativeWitness, fill, size};
use crate::Request;
use crate::support::fixtures::{self, Fixture};
use crate::witness::{WitnessError, WitnessGenerator};

/// SHA-256 of all auxiliary values in order of allocation, as the reference recorded it.
fn aux_digest(circuit: &CompiledCircuit, witness: &PackedWitness) -> String {
    let mut hasher = Sha256::new();
    let (mut bits, mut dense) = (0, witness.dense().iter());
    let layout = circuit.layout().bitmap();
    for aux in 0..circuit.shape().aux {
        if layout.get(aux) {
            let mut bytes = [0; 32];
            bytes[0] = (witness.bits()[bits / 64] >> (bits % 64) & 1) as u8;
            bits += 1;
            hasher.update(bytes);
        } else {
            hasher.update(dense.next().unwrap().to_repr());
        }
    }
    assert_eq!(bits, circuit.layout().bit_count());
    hex::encode(hasher.finalize())
}

fn inputs_digest(inputs: &[Fr]) -> String {
    let mut hasher = Sha256::new();
    inputs.iter().for_each(|x| hasher.update(x.to_repr()));
    hex::encode(hasher.finalize())
}

/// The reference's record of every partition, in order.
fn recorded(fixture: &Fixture) -> Vec<Value> {
    let path = fixture.folder.join("../witness.json");
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let name = fixture.folder.file_name().unwrap().to_str().unwrap();
    let entries = all.as_array().unwrap().iter();
    let mut entries: Vec<Value> = entries
        .filter(|entry| entry["fixture"] == name)
        .cloned()
        .collect();
    entries.sort_by_key(|entry| entry["partition"].as_u64());
    entries
}

/// Requests and partitions in the order of the record.
fn partitions(requests: &[Request]) -> impl Iterator<Item = (&Request, usize)> {
    requests
        .iter()
        .flat_map(|request| (0..request.partitions()).map(move |k| (request, k)))
}

#[test]
fn equal_the_public_circuits_for_every_fixture_and_partition() {
    let mut count = 0;
    for fixture in fixtures::all() {
        let requests = fixture.requests();
        let recorded = recorded(&fixture);
        assert_eq!(partitions(&requests).count(), recorded.len());
        for ((request, partition), record) in partitions(&requests).zip(recorded) {
            let what = format!("{}, partition {partition}", fixture.name);
            let circuit = request.circuit_id().compiled().unwrap();
            let witness = NativeWitness
                .witness(request, partition, &circuit)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let inputs = inputs_digest(witness.inputs());
            assert_eq!(record["inputs_sha256"], inputs, "{what}");
            let aux = aux_digest(&circuit, &witness);
            assert_eq!(record["aux_sha256"], aux, "{what}");
            count += 1;
        }
    }
    assert_eq!(count, 34);
}

/// One request of each kind, and of PoRep one of each way to derive challenges.
const SMALL: [&str; 6] = [
    "2KiB/porep-v1_1-b",
    "2KiB/porep-v1_1-synthetic",
    "2KiB/porep-v1_2-ni",
    "2KiB/empty-sector-update-b",
    "2KiB/window-post-2-partitions",
    "2KiB/winning-post-b",
];

#[test]
fn satisfy_their_circuits() {
    for name in SMALL {
        let request = fixtures::fixture(name).requests().remove(0);
        let circuit = request.circuit_id().compiled().unwrap();
        let witness = NativeWitness.witness(&request, 0, &circuit).unwrap();
        circuit.check(&witness).unwrap();
    }
}

#[test]
fn partitions_that_do_not_exist_are_refused() {
    for name in SMALL {
        let request = fixtures::fixture(name).requests().remove(0);
        let circuit = request.circuit_id().compiled().unwrap();
        for partition in [request.partitions(), usize::MAX] {
            let refused = NativeWitness.witness(&request, partition, &circuit);
            assert!(matches!(refused, Err(WitnessError::NoSuchPartition { .. })));
        }
    }
}

#[test]
fn another_circuit_is_refused() {
    for (name, other) in SMALL.iter().zip(SMALL.iter().cycle().skip(3)) {
        let request = fixtures::fixture(name).requests().remove(0);
        let other = fixtures::fixture(other).requests().remove(0).circuit_id();
        if request.circuit_id() != other {
            let circuit = other.compiled().unwrap();
            assert!(NativeWitness.witness(&request, 0, &circuit).is_err());
        }
    }
}

/// Memory of one witness serves the next, of whatever circuit.
#[test]
fn memory_is_reused_across_circuits() {
    let mut parts = Parts::default();
    for name in SMALL.iter().chain(SMALL.iter().rev()) {
        let request = fixtures::fixture(name).requests().remove(0);
        let circuit = request.circuit_id().compiled().unwrap();
        let last = request.partitions() - 1;
        fill(&request, last, size(&circuit), &mut parts).unwrap();
        let fresh = NativeWitness.witness(&request, last, &circuit).unwrap();
        assert_eq!(parts.inputs, fresh.inputs());
        assert_eq!(parts.bits, fresh.bits());
        assert_eq!(parts.dense, fresh.dense());
    }
}

/// The pass over a whole request reports what the check alone reports, and its witnesses are those
/// made one by one, whatever number of them is kept.
#[test]
fn one_pass_checks_and_makes_the_witnesses() {
    for fixture in fixtures::all() {
        for request in fixture.requests() {
            let circuit = request.circuit_id().compiled().unwrap();
            let partitions = request.partitions();
            let report = crate::check(&request, &()).unwrap();
            for keep in [0, 1, partitions] {
                let checked = super::check(&request, &circuit, keep, &()).unwrap();
                assert_eq!(checked.report, report, "{}", fixture.name);
                assert_eq!(checked.witnesses.len(), keep.min(partitions));
                for (k, kept) in checked.witnesses.iter().enumerate() {
                    let alone = NativeWitness.witness(&request, k, &circuit).unwrap();
                    assert!(*kept == alone, "{}, partition {k}", fixture.name);
                }
            }
        }
    }
}

/// Of several wrong partitions the first is reported, also where it is not one to be kept.
#[test]
fn the_first_wrong_partition_is_reported() {
    let mut request = fixtures::fixture("2KiB/porep-v1_2-ni").requests().remove(0);
    let circuit = request.circuit_id().compiled().unwrap();
    let Request::Porep(porep) = &mut request else {
        panic!("a PoRep");
    };
    for partition in [3, 4, 11] {
        porep.partitions[partition][0].encoding_proof.node ^= 1;
    }
    for keep in [0, 1, 13] {
        match super::check(&request, &circuit, keep, &()) {
            Err(WitnessError::Vanilla(failure)) => {
                assert_eq!(failure.place.partition, Some(3));
                assert_eq!(failure.place.element, "encoding_proof.node");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Requests that were not decoded may have any counts.
#[test]
fn wrong_counts_are_refused() {
    for name in SMALL {
        let request = fixtures::fixture(name).requests().remove(0);
        let circuit = request.circuit_id().compiled().unwrap();
        for extra in [false, true] {
            let mut request = request.clone();
            match &mut request {
                Request::Porep(porep) if extra => porep.partitions.push(Vec::new()),
                Request::Porep(porep) => porep.partitions.clear(),
                Request::Snap(snap) if extra => snap.partitions.push(snap.partitions[0].clone()),
                Request::Snap(snap) => snap.partitions.clear(),
                Request::Window(post) | Request::Winning(post) if extra => {
                    post.sectors.push(post.sectors[0].clone());
                }
                Request::Window(post) | Request::Winning(post) => post.sectors.clear(),
            }
            let refused = super::check(&request, &circuit, 1, &());
            assert!(matches!(refused, Err(WitnessError::Vanilla(_))), "{name}");
        }
    }
}
