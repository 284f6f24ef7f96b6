use proptest::prelude::*;

use super::*;
use crate::test_circuits::{Model, circuits, row_limits};

/// A file with this payload and a right digest.
fn file(payload: &[u8]) -> Vec<u8> {
    let body = zstd::bulk::compress(payload, 1).unwrap();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(digest(&body));
    bytes.extend(body);
    bytes
}

/// A circuit with every kind of section in use.
fn example() -> CompiledCircuit {
    let mut model = Model::new(8);
    let outer = model.bit();
    for _ in 0..5 {
        model.builder.begin_block();
        let x = model.bit();
        let y = model.alloc_aux();
        let input = model.builder.alloc_input();
        model.enforce([&[(x, 2)], &[(outer, 1)], &[(outer, 1), (x, 1), (y, -1)]]);
        model.enforce([&[(input, 7), (outer, 3)], &[(y, 1)], &[]]);
        model.builder.end_block();
    }
    let input = crate::Variable::Input(2);
    model.enforce([&[(input, 1)], &[], &[]]);
    model.finish().0
}

fn parts(c: &CompiledCircuit) -> impl PartialEq + std::fmt::Debug {
    (
        c.shape(),
        c.templates().to_vec(),
        c.calls().to_vec(),
        c.dictionary().clone(),
        c.layout().clone(),
        c.density().clone(),
        c.statistics().clone(),
        c.digest(),
    )
}

proptest! {
    #[test]
    fn files_round_trip(ops in circuits(), limit in row_limits()) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        let bytes = circuit.to_bytes();
        let back = CompiledCircuit::from_bytes(&bytes).unwrap();
        prop_assert_eq!(parts(&back), parts(&circuit));
        for call in circuit.calls() {
            prop_assert!(circuit.arguments(call).eq(back.arguments(call)));
        }
        prop_assert_eq!(back.to_bytes(), bytes);
    }

    /// Bytes changed below the digest: an error or a consistent circuit, never a panic.
    #[test]
    fn damaged_payloads_do_not_panic(
        ops in circuits(),
        limit in row_limits(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        let mut payload = write_payload(&circuit);
        for (index, byte) in changes {
            let index = index.index(payload.len());
            payload[index] = byte;
        }
        if let Ok((circuit, _)) = decode(&file(&payload)) {
            use_it(&circuit);
        }
    }

    #[test]
    fn any_payload_is_safe(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok((circuit, _)) = decode(&file(&payload)) {
            use_it(&circuit);
        }
    }
}

/// Whatever the decoder lets through must be usable.
fn use_it(circuit: &CompiledCircuit) {
    let shape = circuit.shape();
    // A damaged count may say millions of variables without terms: valid, but slow here.
    if shape.aux > 1 << 20 || shape.inputs > 1 << 20 || shape.constraints > 1 << 20 {
        return;
    }
    let w = crate::test_circuits::any_witness(circuit, 7);
    let values = vec![Fr::ONE; shape.constraints];
    for m in crate::Matrix::ALL {
        let mut out = values.clone();
        circuit.evaluate(m, &w, &mut out).unwrap();
        assert_eq!(
            circuit.columns_at(m, &values).len(),
            shape.inputs + shape.aux
        );
    }
    assert_eq!(decode(&circuit.to_bytes()).unwrap().0.shape(), shape);
}

#[test]
fn every_truncation_and_bit_flip_of_a_file_is_an_error() {
    let bytes = example().to_bytes();
    assert!(decode(&bytes).is_ok());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "first {length} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&damaged).is_err(), "bit {bit}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode(&longer).err(), Some(Error::DigestMismatch));
}

#[test]
fn every_truncation_and_bit_flip_of_a_payload_is_safe() {
    let payload = write_payload(&example());
    assert!(decode(&file(&payload)).is_ok());
    for length in 0..payload.len() {
        assert!(
            decode(&file(&payload[..length])).is_err(),
            "first {length} bytes"
        );
    }
    for bit in 0..payload.len() * 8 {
        let mut damaged = payload.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok((circuit, _)) = decode(&file(&damaged)) {
            use_it(&circuit);
        }
    }
    let longer = [&payload[..], &[0]].concat();
    assert!(decode(&file(&longer)).is_err());
}

#[test]
fn headers_are_told_apart() {
    let bytes = example().to_bytes();
    assert_eq!(decode(b"").err(), Some(Error::NotACircuit));
    assert_eq!(decode(&[0; 100]).err(), Some(Error::NotACircuit));
    let mut newer = bytes.clone();
    newer[8] = 2;
    let error = Error::UnsupportedVersion {
        found: 2,
        supported: 1,
    };
    assert_eq!(decode(&newer).err(), Some(error));
    let mut damaged = bytes;
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(decode(&damaged).err(), Some(Error::DigestMismatch));
}

/// A small body that unpacks to more than the cap is refused after the cap.
#[test]
fn a_zip_bomb_is_refused() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    let chunk = vec![0u8; 1 << 20];
    for _ in 0..MAX_PAYLOAD / (1 << 20) + 1 {
        std::io::Write::write_all(&mut encoder, &chunk).unwrap();
    }
    let body = encoder.finish().unwrap();
    assert!(body.len() < 1 << 20);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(digest(&body));
    bytes.extend(body);
    assert!(matches!(decode(&bytes), Err(Error::TooLarge { .. })));
}

/// Claims far beyond the file's size are refused before anything is allocated for them.
#[test]
fn huge_counts_are_refused() {
    let mut prefix = Vec::new();
    write_number(&mut prefix, Rule::ALL.len() as u64);
    for rule in Rule::ALL {
        write_number(&mut prefix, rule.name().len() as u64);
        prefix.extend(rule.name().as_bytes());
    }
    // Each list is what follows the rules: shape, coefficients, templates …
    let most = MAX_COUNT;
    for numbers in [
        &[u64::MAX, 1, 0][..],
        &[0, 1, most + 1],
        &[0, 0, 0],
        &[0, 1, 0, u64::MAX],
        &[0, 1, 0, 1 << 40],
        &[0, 1, 0, 0, 1 << 40],
        // One template with 2^28 rows and no bytes for them.
        &[most, 1, most, 0, 1, most, 0, most, 0, 0, 0, 0],
        // Templates that together exceed the circuit.
        &[1, 1, most, 0, 2, 0, 0, most, 0, 0, 0, most, 0],
        // More arguments than bytes.
        &[1, 1, 1, 0, 1, 1, 0, 1, most],
        &[0, 1, 0, 0, 0, u64::MAX],
    ] {
        let mut payload = prefix.clone();
        numbers.iter().for_each(|&n| write_number(&mut payload, n));
        let error = decode(&file(&payload)).err();
        assert!(
            matches!(error, Some(Error::Malformed { .. })),
            "{numbers:?}: {error:?}"
        );
    }
}
