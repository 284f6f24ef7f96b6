//! Poseidon hashes, variable for variable against the public gadget.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use bellperson::ConstraintSystem;
use bellperson::gadgets::num::AllocatedNum;
use blstrs::Scalar as Fr;
use ff::Field;
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::{HashFunction, Hasher};
use generic_array::typenum::U8;
use neptune::circuit::poseidon_hash;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use storage_proofs_update::constants::POSEIDON_CONSTANTS_GEN_RANDOMNESS;
use support::Recorder;
use witness::poseidon::gadget;

/// Random inputs, and the smallest and largest elements.
fn preimages<const N: usize>() -> Vec<[Fr; N]> {
    let mut rng = ChaCha8Rng::seed_from_u64(N as u64);
    let mut preimages = vec![[Fr::ZERO; N], [-Fr::ONE; N]];
    preimages.extend((0..8).map(|_| std::array::from_fn(|_| Fr::random(&mut rng))));
    preimages
}

fn allocated(values: &[Fr]) -> Vec<AllocatedNum<Fr>> {
    let mut outer = Recorder::default();
    values
        .iter()
        .map(|value| AllocatedNum::alloc(outer.namespace(|| "x"), || Ok(*value)).unwrap())
        .collect()
}

#[test]
fn hash_of_two() {
    for [a, b] in preimages() {
        let nums = allocated(&[a, b]);
        let mut cs = Recorder::default();
        let digest =
            <PoseidonHasher as Hasher>::Function::hash2_circuit(&mut cs, &nums[0], &nums[1])
                .unwrap();
        assert_eq!(cs.dense.len(), 311);
        let native = cs.check(|writer| gadget::hash_2(a, b, writer));
        assert_eq!(digest.get_value(), Some(native));
    }
}

#[test]
fn hash_of_two_for_randomness() {
    for [a, b] in preimages() {
        let nums = allocated(&[a, b]);
        let mut cs = Recorder::default();
        let digest = poseidon_hash(&mut cs, nums, &*POSEIDON_CONSTANTS_GEN_RANDOMNESS).unwrap();
        let native = cs.check(|writer| gadget::hash_randomness(a, b, writer));
        assert_eq!(digest.get_value(), Some(native));
    }
}

#[test]
fn hash_of_eight() {
    for children in preimages::<8>() {
        let nums = allocated(&children);
        let mut cs = Recorder::default();
        let digest = <PoseidonHasher as Hasher>::Function::hash_multi_leaf_circuit::<U8, _>(
            &mut cs, &nums, 0,
        )
        .unwrap();
        assert_eq!(cs.dense.len(), 505);
        let native = cs.check(|writer| gadget::hash_8(&children, writer));
        assert_eq!(digest.get_value(), Some(native));
    }
}

#[test]
fn hash_of_a_column() {
    for column in preimages::<11>() {
        let nums = allocated(&column);
        let mut cs = Recorder::default();
        let digest =
            poseidon_hash(&mut cs, nums, &*filecoin_hashers::POSEIDON_CONSTANTS_11).unwrap();
        assert_eq!(cs.dense.len(), 598);
        let native = cs.check(|writer| gadget::hash_11(&column, writer));
        assert_eq!(digest.get_value(), Some(native));
    }
}
