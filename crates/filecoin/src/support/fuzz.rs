//! Entry points for fuzzing: each takes any bytes and must return.
//!
//! The programs in `fuzz/` call them without end, the tests here with many
//! mutations of real inputs. They assert the laws that hold for any input.

use crate::check::check;
use crate::decode::{Hints, SubmitProofRequest};
use crate::error::Error;
use crate::proof_bytes;
use crate::registry::{CircuitId, ProofKind, SectorSize};
use crate::request::Request;

/// Most bytes that a compressed input may grow to here.
const LIMIT: u64 = 4 << 20;

/// Decodes a request in any form, and uses what decodes.
pub fn request(bytes: &[u8]) {
    crate::decode::assert_parts_agree(bytes);
    match Request::decode_limited(bytes, Hints::default(), LIMIT) {
        Ok(decoded) => {
            assert!(serde_json::to_vec(&decoded.describe()).is_ok());
            use_request(&decoded.request);
        }
        Err(error) => assert_well_formed(&error),
    }
}

/// Decodes a vanilla proof of a PoSt or SnapDeals partition of this kind and
/// size, and uses what decodes.
pub fn vanilla_proof(circuit: CircuitId, bytes: &[u8]) {
    let registered_proof = match circuit.kind {
        ProofKind::Window => 10,
        _ => 0,
    };
    let value = |used: bool| if used { vec![1; 32] } else { Vec::new() };
    let snap = circuit.kind == ProofKind::Snap;
    let count = if snap { circuit.partitions() } else { 1 };
    let submit = SubmitProofRequest {
        proof_kind: circuit.kind.number() as i32,
        registered_proof: registered_proof + circuit.size as u64,
        vanilla_proofs: vec![bytes.to_vec(); count],
        randomness: value(!snap),
        comm_r_old: value(snap),
        comm_r_new: value(snap),
        comm_d_new: value(snap),
        ..SubmitProofRequest::default()
    };
    let mut warnings = Vec::new();
    match submit.decode(Hints::default(), &mut warnings) {
        Ok(request) => {
            let written = match &request {
                Request::Window(post) | Request::Winning(post) => {
                    bincode::serialize(&post.sectors[0])
                }
                Request::Snap(snap) => bincode::serialize(&snap.partitions[0]),
                Request::Porep(_) => return,
            };
            let written = written.unwrap();
            assert!(bytes.starts_with(&written), "reads what it did not write");
            assert_eq!(bytes.len() > written.len(), !warnings.is_empty());
            use_request(&request);
        }
        Err(error) => assert_well_formed(&error),
    }
}

/// The sizes that a fuzzer's first byte chooses among.
pub fn size(byte: u8) -> SectorSize {
    SectorSize::ALL[usize::from(byte) % SectorSize::ALL.len()]
}

/// Whatever decodes can be checked, split and put into words.
fn use_request(request: &Request) {
    if let Err(error) = check(request, &()) {
        assert_well_formed(&error);
    }
    assert!(!request.describe().facts.is_empty());
    if let Request::Window(post) | Request::Winning(post) = request {
        let slots = request.circuit_id().post().unwrap().sectors;
        assert_eq!(post.circuit_sectors().count(), slots);
    }
    assert!(proof_bytes::split(request, &[]).is_err());
}

/// An error's text is one line of bearable length, and the input's fault.
fn assert_well_formed(error: &Error) {
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.len() < 2000, "{} bytes of message", text.len());
    assert!(!error.is_internal(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::post::FallbackPoStSectorProof;
    use crate::snap::PartitionProof;
    use crate::support::corpus;
    use crate::support::fixtures::fixture;

    /// A change to an input: where (as a fraction of its length) and what.
    #[derive(Debug, Clone)]
    enum Mutation {
        Flip(f64, u8),
        Word(f64, u64),
        Cut(f64),
        Remove(f64, usize),
        Insert(f64, Vec<u8>),
        Repeat(f64, usize),
    }

    /// Mutations that hit structure: single bits, counts small and absurd, and
    /// the punctuation of JSON.
    fn mutation() -> impl Strategy<Value = Mutation> {
        let place = 0.0..1.0;
        let word = prop_oneof![
            0..100u64,
            Just(10_000_000_000),
            Just(u64::MAX),
            any::<u64>()
        ];
        let text = prop_oneof![
            Just(b"[".to_vec()),
            Just(b"}".to_vec()),
            Just(b"\"".to_vec()),
            Just(b",".to_vec()),
            Just(b"null".to_vec()),
            Just(b"[[[[[[[[".to_vec()),
            Just(b"-1e999".to_vec()),
            proptest::collection::vec(any::<u8>(), 1..40),
        ];
        prop_oneof![
            4 => (place.clone(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
            3 => (place.clone(), word).prop_map(|(at, word)| Mutation::Word(at, word)),
            1 => place.clone().prop_map(Mutation::Cut),
            1 => (place.clone(), 1..100usize).prop_map(|(at, n)| Mutation::Remove(at, n)),
            2 => (place.clone(), text).prop_map(|(at, text)| Mutation::Insert(at, text)),
            1 => (place, 1..200usize).prop_map(|(at, n)| Mutation::Repeat(at, n)),
        ]
    }

    fn apply(bytes: &mut Vec<u8>, mutation: &Mutation) {
        let place = |at: &f64| (at * bytes.len() as f64) as usize;
        match mutation {
            Mutation::Flip(at, bits) => {
                let at = place(at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Mutation::Word(at, word) => {
                // Counts and tags of bincode stand on multiples of four.
                let at = place(at) / 4 * 4;
                if let Some(slot) = bytes.get_mut(at..at + 8) {
                    slot.copy_from_slice(&word.to_le_bytes());
                }
            }
            Mutation::Cut(at) => bytes.truncate(place(at)),
            Mutation::Remove(at, n) => {
                let at = place(at);
                drop(bytes.drain(at..bytes.len().min(at + n)));
            }
            Mutation::Insert(at, text) => {
                let at = place(at);
                bytes.splice(at..at, text.iter().copied());
            }
            Mutation::Repeat(at, n) => {
                let at = place(at);
                let piece = bytes[at..bytes.len().min(at + n)].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }

    fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
        proptest::collection::vec(mutation(), 1..4)
    }

    fn mutated(seed: &[u8], mutations: &[Mutation]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for mutation in mutations {
            apply(&mut bytes, mutation);
        }
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Requests in every form and kind, small ones.
    fn request_seeds() -> Vec<Vec<u8>> {
        let porep = fixture("2KiB/porep-v1_1-a");
        let mut seeds = vec![
            porep.read("c1.json"),
            porep.read("c2-input.json"),
            gzip(&porep.read("c2-input.json")),
            zstd::encode_all(&porep.read("c1.json")[..], 1).unwrap(),
        ];
        for name in [
            "2KiB/porep-v1",
            "2KiB/empty-sector-update-a",
            "2KiB/window-post-v1",
            "2KiB/winning-post-a",
        ] {
            seeds.push(fixture(name).submits().remove(0).to_json());
        }
        seeds
    }

    fn vanilla_seeds() -> Vec<(CircuitId, Vec<u8>)> {
        let id = |kind, size| CircuitId::new(kind, size);
        [
            (
                "2KiB/window-post-1-sector",
                id(ProofKind::Window, SectorSize::KiB2),
            ),
            (
                "8MiB/window-post-1-sector",
                id(ProofKind::Window, SectorSize::MiB8),
            ),
            (
                "2KiB/winning-post-b",
                id(ProofKind::Winning, SectorSize::KiB2),
            ),
            (
                "2KiB/empty-sector-update-b",
                id(ProofKind::Snap, SectorSize::KiB2),
            ),
        ]
        .map(|(name, id)| {
            (
                id,
                fixture(name).submits().remove(0).vanilla_proofs.remove(0),
            )
        })
        .into()
    }

    /// What bincode itself reads must be what we read, value for value.
    fn same_as_bincode(circuit: CircuitId, bytes: &[u8]) {
        use crate::decode::read_vanilla;
        if circuit.kind == ProofKind::Snap {
            let ours = read_vanilla::<PartitionProof>(bytes).ok();
            assert_eq!(ours, bincode::deserialize(bytes).ok());
        } else {
            let ours = read_vanilla::<FallbackPoStSectorProof>(bytes).ok();
            assert_eq!(ours, bincode::deserialize(bytes).ok());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn mutated_requests_never_panic(which in 0..8usize, mutations in mutations()) {
            let seeds = request_seeds();
            request(&mutated(&seeds[which], &mutations));
        }

        #[test]
        fn mutated_vanilla_proofs_never_panic(which in 0..4usize, mutations in mutations()) {
            let (circuit, seed) = &vanilla_seeds()[which];
            let bytes = mutated(seed, &mutations);
            same_as_bincode(*circuit, &bytes);
            vanilla_proof(*circuit, &bytes);
        }

        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            request(&bytes);
            for circuit in CircuitId::all().filter(|id| id.kind != ProofKind::Porep) {
                vanilla_proof(circuit, &bytes);
            }
        }

        #[test]
        fn messages_survive_their_json(
            request_id in ".*",
            proof_kind in any::<i32>(),
            numbers in any::<[u64; 4]>(),
            priority in 0..5i32,
            partition_index in any::<u32>(),
            vanilla_proof in proptest::collection::vec(any::<u8>(), 0..50),
            vanilla_proofs in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..50), 0..4),
            bytes in any::<[[u8; 32]; 4]>(),
        ) {
            let [sector_size, registered_proof, sector_number, miner_id] = numbers;
            let [randomness, comm_r_old, comm_r_new, comm_d_new] = bytes.map(|b| b.to_vec());
            let submit = SubmitProofRequest {
                request_id, proof_kind, sector_size, registered_proof, priority,
                vanilla_proof, vanilla_proofs, sector_number, miner_id, randomness,
                partition_index, comm_r_old, comm_r_new, comm_d_new,
            };
            let read = SubmitProofRequest::from_json(&submit.to_json()).unwrap();
            prop_assert_eq!(read, submit);
        }
    }

    #[test]
    fn the_corpus_never_panics() {
        for case in corpus::requests() {
            request(&case.bytes);
        }
    }
}
