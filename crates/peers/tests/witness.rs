//! Every fixture's witness: the digests that the reference implementation recorded, the compiled
//! circuit's constraints, and the public inputs derived from the request alone.

#![expect(clippy::unwrap_used, reason = "tests")]

use ff::PrimeField;
use filecoin::{Request, WitnessGenerator, native::NativeWitness};
use oracle::Oracle;
use peers::{
    fixtures::{self, WitnessMeta},
    reference,
};
use r1cs::{CompiledCircuit, Fr, PackedWitness, Variable};
use sha2::{Digest, Sha256};

#[test]
fn the_first_partition_of_every_2kib_fixture() {
    assert_eq!(check_sizes(&["2KiB"], |partition| partition == 0), 14);
}

#[test]
#[ignore = "minutes of synthesis; scripts/verify-full runs it"]
fn all_of_2kib() {
    assert_eq!(check_sizes(&["2KiB"], |_| true), 27);
}

#[test]
#[ignore = "minutes of synthesis; scripts/verify-full runs it"]
fn all_of_8mib() {
    assert_eq!(check_sizes(&["8MiB"], |_| true), 7);
}

/// Checks the wanted partitions of the fixtures of these sizes and returns how many there were.
fn check_sizes(sizes: &[&str], wanted: impl Fn(usize) -> bool) -> usize {
    let expected = fixtures::witnesses(sizes).unwrap();
    let mut seen = 0;
    for fixture in fixtures::load(sizes).unwrap() {
        let mut partition = 0;
        for request in fixture.requests().unwrap() {
            let circuit = request.circuit_id().compiled().unwrap();
            let inputs = filecoin::public_inputs(&request).unwrap();
            for (local, inputs) in inputs.iter().enumerate() {
                let meta = &expected[&(fixture.name.clone(), partition)];
                if wanted(partition) {
                    check(&circuit, &request, local, inputs, meta);
                    seen += 1;
                }
                partition += 1;
            }
        }
        let of_fixture = expected
            .keys()
            .filter(|(name, _)| *name == fixture.name)
            .count();
        assert_eq!(partition, of_fixture, "{}", fixture.name);
    }
    seen
}

fn check(
    circuit: &CompiledCircuit,
    request: &Request,
    partition: usize,
    inputs: &[Fr],
    meta: &WitnessMeta,
) {
    let what = format!("{} partition {}", meta.fixture, meta.partition);
    let plain = Oracle::assignment(request, partition, 0, 0).unwrap();
    assert_eq!(plain.inputs.len(), meta.inputs_including_one, "{what}");
    assert_eq!(plain.aux.len(), meta.aux, "{what}");
    assert_eq!(
        digest(plain.inputs.iter()),
        meta.inputs_sha256.0,
        "{what}: inputs"
    );
    assert_eq!(digest(plain.aux.iter()), meta.aux_sha256.0, "{what}: aux");

    // The oracle packs as it goes, or all at once; either way the same witness.
    let packed = Oracle.witness(request, partition, circuit).unwrap();
    assert_eq!(
        packed,
        PackedWitness::from_assignment(circuit, &plain.inputs, &plain.aux).unwrap(),
        "{what}"
    );
    let native = NativeWitness.witness(request, partition, circuit).unwrap();
    assert!(native == packed, "{what}: the native witness differs");

    let unpacked: Vec<Fr> = (0..u32::try_from(plain.aux.len()).unwrap())
        .map(|index| packed.value(circuit, Variable::Aux(index)))
        .collect();
    assert!(unpacked == plain.aux, "{what}: packing loses values");

    circuit
        .check(&packed)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&packed.inputs()[1..], inputs, "{what}: public inputs");
    assert_eq!(
        inputs,
        reference::scalars(&meta.public_inputs).unwrap(),
        "{what}"
    );
}

fn digest<'a>(values: impl Iterator<Item = &'a Fr>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(value.to_repr());
    }
    hash.finalize().into()
}
