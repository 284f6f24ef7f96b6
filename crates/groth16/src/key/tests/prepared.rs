//! Files of prepared keys that are right, and every way of being wrong that was thought of.

use std::path::Path;

use super::*;
use crate::key::check::check_points;
use crate::key::prepared::HEADER_BYTES;
use crate::points::Points;
use crate::setup::{CpuFixedBase, EphemeralRequest, generate_ephemeral};

/// x·x = x with two inputs: a key of a few points, at least one in each vector.
fn key_bytes() -> (KeyCounts, Vec<u8>) {
    let mut builder = r1cs::Builder::new();
    let input = builder.alloc_input();
    let x = builder.alloc_aux();
    let [input, x] = [input, x].map(|v| [(v, blstrs::Scalar::from(1))]);
    builder.enforce(&x, &x, &x);
    builder.enforce(&x, &input, &input);
    let circuit = builder.finish().unwrap();
    let counts = KeyCounts::of(&circuit);
    let request = EphemeralRequest {
        circuit: "tiny",
        seed: 9,
        form: KeyForm::Prepared,
    };
    let made = generate_ephemeral(&circuit, &request, &CpuFixedBase::new(&counts), &()).unwrap();
    let file = made.key.file();
    (counts, file.slice(0, file.len()).unwrap().to_vec())
}

fn open(bytes: &[u8], counts: &KeyCounts) -> Result<ProvingKey, KeyError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cuzk-tiny.key");
    std::fs::write(&path, bytes).unwrap();
    ProvingKey::open(&path, counts)
}

#[test]
fn a_key_reads_back_with_what_its_header_says() {
    let (counts, bytes) = key_bytes();
    assert_eq!(bytes.len() as u64, counts.prepared_bytes());
    let key = open(&bytes, &counts).unwrap();
    let header = *key.prepared().unwrap();
    assert_eq!(
        (header.seed, header.source, header.content),
        (Some(9), None, None)
    );
    assert_eq!(header.to_bytes(&counts), bytes[..HEADER_BYTES]);
    let full = PreparedHeader {
        source: Some(KeyDigest::of_bytes(b"source")),
        content: Some(KeyDigest::of_bytes(b"content")),
        seed: None,
        ..header
    };
    let mut bytes = bytes;
    bytes[..HEADER_BYTES].copy_from_slice(&full.to_bytes(&counts));
    assert_eq!(*open(&bytes, &counts).unwrap().prepared().unwrap(), full);
}

#[test]
fn no_byte_of_the_header_can_be_changed_and_no_length_but_one_is_taken() {
    let (counts, bytes) = key_bytes();
    for index in (0..200).chain([200, 1000, HEADER_BYTES - 1]) {
        let mut spoiled = bytes.clone();
        spoiled[index] ^= 1;
        let error = open(&spoiled, &counts).err();
        assert!(error.is_some(), "byte {index}");
    }
    let lengths = [
        1,
        7,
        8,
        100,
        HEADER_BYTES - 1,
        HEADER_BYTES,
        bytes.len() - 1,
    ];
    for length in lengths {
        assert!(open(&bytes[..length], &counts).is_err(), "{length} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    let error = open(&longer, &counts).unwrap_err();
    assert!(matches!(error, KeyError::Prepared { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("cuzk params prepare"), "{text}");
}

#[test]
fn a_key_of_another_circuit_is_refused_by_section() {
    let (counts, bytes) = key_bytes();
    let others = [
        (
            "ic",
            KeyCounts {
                inputs: counts.inputs + 1,
                l: counts.l - 1,
                ..counts
            },
        ),
        (
            "h",
            KeyCounts {
                h: 2 * counts.h + 1,
                ..counts
            },
        ),
        (
            "l",
            KeyCounts {
                l: counts.l + 1,
                ..counts
            },
        ),
        (
            "a",
            KeyCounts {
                a: counts.a + 1,
                ..counts
            },
        ),
        (
            "b",
            KeyCounts {
                b: counts.b + 1,
                ..counts
            },
        ),
    ];
    for (name, other) in others {
        match open(&bytes, &other).unwrap_err() {
            KeyError::OtherCircuit { section, .. } => assert_eq!(section, name),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn coordinates_are_below_the_modulus_and_the_identity_is_a_point() {
    let (counts, mut bytes) = key_bytes();
    let h = PreparedLayout::of(&counts).offsets[1] as usize;
    bytes[h..h + 96].fill(0);
    let key = open(&bytes, &counts).unwrap();
    let mut point = [G1Affine::generator()];
    key.h().read(0, &mut point).unwrap();
    assert_eq!(point, [G1Affine::identity()]);
    // The identity passes the check of every point, as do the others.
    check_points(&key, &()).unwrap();

    // p itself, as 48 little-endian bytes, then p − 1, which is no point's coordinate.
    let modulus = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    let mut p = hex::decode(modulus).unwrap();
    p.reverse();
    for (last, expected) in [(p[0], None), (p[0] - 1, Some(PointFault::NotOnCurve))] {
        for coordinate in 0..2 {
            let mut bytes = bytes.clone();
            let place = &mut bytes[h + 48 * coordinate..][..48];
            place.copy_from_slice(&p);
            place[0] = last;
            let key = open(&bytes, &counts).unwrap();
            match (key.h().read(0, &mut point), expected) {
                (Err(KeyError::Point { fault, .. }), None) => {
                    assert_eq!(fault, PointFault::NotCanonical);
                }
                (Ok(()), Some(_)) => {
                    let error = check_points(&key, &()).unwrap_err();
                    assert!(error.to_string().contains("does not lie"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_bad_point_in_the_verifying_key_is_named() {
    let (counts, mut bytes) = key_bytes();
    bytes[HEADER_BYTES] ^= 1;
    assert!(open(&bytes, &counts).is_err());
    assert!(ProvingKey::open(Path::new("/nonexistent.key"), &counts).is_err());
}
