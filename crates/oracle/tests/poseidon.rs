//! Our Poseidon against the reference implementation, and the golden file against both.
//!
//! The product crates test against `crates/witness/testdata/poseidon.json` alone; this test
//! keeps that file honest. `UPDATE_GOLDEN=1 cargo test -p oracle --test poseidon` writes it.

#![expect(clippy::unwrap_used, reason = "tests")]

use blstrs::Scalar as Fr;
use ff::{Field, PrimeField};
use filecoin::poseidon;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher};
use filecoin_hashers::{Domain, HashFunction};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::json;
use storage_proofs_porep::stacked::Column;
use storage_proofs_update::rho;

struct Case {
    tag: &'static str,
    inputs: Vec<Fr>,
    digest: Fr,
}

fn reference(tag: &str, inputs: &[Fr]) -> Fr {
    let domains: Vec<PoseidonDomain> = inputs.iter().map(|&x| x.into()).collect();
    match (tag, inputs.len()) {
        ("tree", 2) => PoseidonFunction::hash2(&domains[0], &domains[1]).into(),
        ("tree", 8) => {
            let bytes: Vec<u8> = domains.iter().flat_map(Domain::into_bytes).collect();
            PoseidonFunction::hash(&bytes).into()
        }
        ("tree", 11) => Column::<PoseidonHasher>::new(0, domains).unwrap().hash(),
        ("randomness", 2) => {
            let number = u32::from_le_bytes(inputs[1].to_repr()[..4].try_into().unwrap());
            assert_eq!(Fr::from(u64::from(number)), inputs[1]);
            rho(&domains[0], number)
        }
        other => panic!("no reference for {other:?}"),
    }
}

fn ours(tag: &str, inputs: &[Fr]) -> Fr {
    match (tag, inputs.len()) {
        ("tree", 2) => poseidon::hash_2(inputs[0], inputs[1]),
        ("tree", 8) => poseidon::hash_8(inputs.try_into().unwrap()),
        ("tree", 11) => poseidon::hash_11(inputs.try_into().unwrap()),
        ("randomness", 2) => poseidon::hash_randomness(inputs[0], inputs[1]),
        other => panic!("unknown case {other:?}"),
    }
}

fn cases() -> Vec<Case> {
    let mut rng = ChaCha8Rng::seed_from_u64(0x706f_7365_6964_6f6e);
    let mut cases = Vec::new();
    for (tag, arity) in [("tree", 2), ("tree", 8), ("tree", 11), ("randomness", 2)] {
        for number in 0..12u64 {
            let mut inputs: Vec<Fr> = match number {
                0 => vec![Fr::ZERO; arity],
                1 => vec![-Fr::ONE; arity],
                2 => (0..arity as u64).map(Fr::from).collect(),
                _ => (0..arity).map(|_| Fr::random(&mut rng)).collect(),
            };
            if tag == "randomness" {
                inputs[1] = Fr::from(number * 0x0123_4567);
            }
            let digest = reference(tag, &inputs);
            cases.push(Case {
                tag,
                inputs,
                digest,
            });
        }
    }
    cases
}

#[test]
fn hashes_agree() {
    for case in cases() {
        assert_eq!(
            ours(case.tag, &case.inputs),
            case.digest,
            "{} of {}",
            case.tag,
            case.inputs.len()
        );
    }
}

#[test]
fn golden_file_is_the_reference() {
    let text = |x: &Fr| hex::encode(x.to_repr());
    let lines: Vec<String> = cases()
        .iter()
        .map(|case| {
            let inputs: Vec<String> = case.inputs.iter().map(text).collect();
            json!({"tag": case.tag, "inputs": inputs, "digest": text(&case.digest)}).to_string()
        })
        .collect();
    let golden = format!("[\n{}\n]\n", lines.join(",\n"));
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../witness/testdata/poseidon.json"
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &golden).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), golden);
}
