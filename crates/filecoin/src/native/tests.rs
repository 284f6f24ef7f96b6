use ::witness::Parts;
use ff::PrimeField;
use proptest::prelude::*;
use r1cs::{CompiledCircuit, Fr, PackedWitness};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{NativeWitness, fill, size};
use crate::Request;
use crate::check::check;
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

/// The vanilla proof with one byte of its binary form changed; none if that is not a proof any
/// more. `at` is taken modulo the length.
fn damaged(request: &Request, at: usize, flip: u8) -> Option<Request> {
    fn change<T: serde::Serialize + serde::de::DeserializeOwned>(
        proof: &T,
        at: usize,
        flip: u8,
    ) -> Option<T> {
        let mut bytes = bincode::serialize(proof).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        bincode::deserialize(&bytes).ok()
    }
    let mut request = request.clone();
    match &mut request {
        Request::Porep(porep) => porep.partitions[0] = change(&porep.partitions[0], at, flip)?,
        Request::Snap(snap) => snap.partitions[0] = change(&snap.partitions[0], at, flip)?,
        Request::Window(post) | Request::Winning(post) => {
            post.sectors[0] = change(&post.sectors[0], at, flip)?;
        }
    }
    Some(request)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Wherever one byte is wrong, the generator refuses exactly what the vanilla check refuses;
    /// what both accept has the same witness as before.
    #[test]
    fn a_flipped_byte_is_refused_or_does_not_matter(
        which in 0..SMALL.len(),
        at in any::<usize>(),
        flip in 1u8..,
    ) {
        let request = fixtures::fixture(SMALL[which]).requests().remove(0);
        let circuit = request.circuit_id().compiled().unwrap();
        if let Some(damaged) = damaged(&request, at, flip) {
            let checked = check(&damaged, &());
            match NativeWitness.witness(&damaged, 0, &circuit) {
                Ok(witness) => {
                    prop_assert!(checked.is_ok());
                    let sound = NativeWitness.witness(&request, 0, &circuit).unwrap();
                    prop_assert!(witness == sound);
                }
                Err(WitnessError::Vanilla(_)) => prop_assert!(checked.is_err()),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
