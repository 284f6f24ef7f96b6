//! Completeness on every fixture and on synthetic sectors of all sizes; soundness by changing
//! one thing at a time.

mod path;
mod porep;
mod post;
mod snap;

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::decode::Hints;
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::merkle::{InclusionPath, MerkleProof, PathElement, ProofData};
use crate::support::fixtures;
use crate::support::fixtures::Fixture;

/// Another node of the same kind: the lowest bit is flipped.
trait Flip {
    fn flip(&mut self);
}

impl Flip for PoseidonDomain {
    fn flip(&mut self) {
        *self = flipped(*self.as_bytes());
    }
}

impl Flip for Sha256Domain {
    fn flip(&mut self) {
        *self = flipped(*self.as_bytes());
    }
}

fn flipped<D: Domain>(mut bytes: [u8; 32]) -> D {
    bytes[0] ^= 1;
    D::from_bytes(bytes).unwrap()
}

/// The parts of a proof, to change.
struct Parts<'a, D> {
    root: &'a mut D,
    leaf: &'a mut D,
    paths: Vec<&'a mut InclusionPath<D>>,
}

fn parts<D>(proof: &mut MerkleProof<D>) -> Parts<'_, D> {
    match &mut proof.data {
        ProofData::Single { root, leaf, path } => Parts {
            root,
            leaf,
            paths: vec![path],
        },
        ProofData::Sub {
            base_proof,
            sub_proof,
            root,
            leaf,
        } => {
            let paths = vec![base_proof, sub_proof];
            Parts { root, leaf, paths }
        }
        ProofData::Top {
            base_proof,
            sub_proof,
            top_proof,
            root,
            leaf,
        } => {
            let paths = vec![base_proof, sub_proof, top_proof];
            Parts { root, leaf, paths }
        }
    }
}

/// Element `level` of the lowest part of a proof's path.
fn element<D>(proof: &mut MerkleProof<D>, level: usize) -> &mut PathElement<D> {
    &mut parts(proof).paths.swap_remove(0).path[level]
}

/// Removes the last item.
fn shorten<T>(list: &mut Vec<T>) {
    list.pop().unwrap();
}

/// The failure that the check reports.
fn refused(request: &Request) -> Failure {
    match check(request, &()) {
        Err(Error::CheckFailed(failure)) => *failure,
        other => panic!("expected a failed check, got {other:?}"),
    }
}

/// Asserts place and fault of the failure, and that the message is one line with a remedy.
fn assert_refused(what: &str, request: &Request, place: &str, code: &str) {
    let failure = refused(request);
    assert_eq!(
        (failure.place.to_string().as_str(), failure.fault.code()),
        (place, code),
        "{what}: {failure}"
    );
    let message = Error::from(Box::new(failure)).to_string();
    assert!(
        message.starts_with(place) && message.contains("; ") && !message.contains('\n'),
        "{message}"
    );
}

#[derive(Default)]
struct Counter {
    total: AtomicU64,
    done: AtomicU64,
}

impl Progress for Counter {
    fn begin(&self, stage: &'static str, total: u64) {
        assert_eq!(stage, "vanilla check");
        self.total.fetch_add(total, Ordering::Relaxed);
    }

    fn advance(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

#[test]
fn accepts_every_fixture() {
    for fixture in fixtures::all() {
        for request in fixture.requests() {
            let counter = Counter::default();
            let report = check(&request, &counter)
                .unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
            let (total, done) = (counter.total.into_inner(), counter.done.into_inner());
            assert!(
                total > 0 && total == done,
                "{}: {done} of {total}",
                fixture.name
            );
            let replica_id = match request {
                Request::Porep(_) => ReplicaIdCheck::Recomputed,
                _ => ReplicaIdCheck::NotInvolved,
            };
            assert_eq!(report.replica_id, replica_id, "{}", fixture.name);
        }
    }
}

/// A bare phase-1 output names neither miner nor sector.
#[test]
fn replica_id_is_skipped_when_miner_or_sector_is_unknown() {
    let fixture = fixtures::fixture("2KiB/porep-v1_1-a");
    let phase1 = fixture.read("c1.json");
    for (miner_id, sector_number, expected) in [
        (None, None, ReplicaIdCheck::Skipped),
        (fixture.hints().miner_id, None, ReplicaIdCheck::Skipped),
        (None, fixture.hints().sector_number, ReplicaIdCheck::Skipped),
        (
            fixture.hints().miner_id,
            fixture.hints().sector_number,
            ReplicaIdCheck::Recomputed,
        ),
    ] {
        let decoded = Request::decode(
            &phase1,
            Hints {
                miner_id,
                sector_number,
            },
        )
        .unwrap();
        assert_eq!(check(&decoded.request, &()).unwrap().replica_id, expected);
    }
}

/// Every byte of every field counts: flips the lowest bit of each of many bytes of the encoded
/// proofs. A flip must be refused by decoding or by the check.
#[test]
fn no_flipped_byte_goes_unnoticed() {
    for name in [
        "2KiB/window-post-1-partition",
        "2KiB/winning-post-a",
        "2KiB/empty-sector-update-a",
    ] {
        let fixture = fixtures::fixture(name);
        flip_vanilla_bytes(&fixture);
    }
}

fn flip_vanilla_bytes(fixture: &Fixture) {
    let submit = fixture.submits().remove(0);
    let length = submit.vanilla_proofs[0].len();
    let mut noticed = 0;
    // 61 is prime to all field lengths, so all places within fields are met.
    for offset in (0..length).step_by(61) {
        let mut damaged = submit.clone();
        damaged.vanilla_proofs[0][offset] ^= 1;
        let decoded = Request::decode(&damaged.to_json(), Hints::default());
        let outcome = decoded.and_then(|decoded| check(&decoded.request, &()));
        assert!(
            outcome.is_err(),
            "{}: byte {offset} of {length}",
            fixture.name
        );
        noticed += 1;
    }
    assert!(noticed > 90);
}

/// Flips the lowest bit of number `wanted` (in document order) of a JSON value; counts the numbers.
fn flip_number(value: &mut serde_json::Value, wanted: usize, seen: &mut usize) {
    use serde_json::Value;
    match value {
        Value::Number(number) => {
            if *seen == wanted {
                let flipped = number.as_u64().unwrap() ^ 1;
                *value = Value::from(flipped);
            }
            *seen += 1;
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| flip_number(item, wanted, seen)),
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| flip_number(field, wanted, seen));
        }
        _ => (),
    }
}

/// The same for the JSON of a PoRep: any number in it, bytes and indices alike.
#[test]
fn no_flipped_number_of_a_phase_1_output_goes_unnoticed() {
    let fixture = fixtures::fixture("2KiB/porep-v1_1-b");
    let original: serde_json::Value = serde_json::from_slice(&fixture.read("c1.json")).unwrap();
    let mut numbers = 0;
    flip_number(&mut original.clone(), usize::MAX, &mut numbers);
    assert!(numbers > 20_000, "{numbers}");
    for wanted in (0..numbers).step_by(127) {
        let mut damaged = original.clone();
        flip_number(&mut damaged, wanted, &mut 0);
        let decoded = Request::decode(damaged.to_string().as_bytes(), fixture.hints());
        let outcome = decoded.and_then(|decoded| check(&decoded.request, &()));
        assert!(outcome.is_err(), "number {wanted} of {numbers}");
    }
}
