//! Merkle levels, insertion, selection and packing against the public gadgets.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use bellperson::ConstraintSystem;
use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::num::AllocatedNum;
use blstrs::Scalar as Fr;
use ff::{Field, PrimeField};
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_hashers::sha256::Sha256Hasher;
use filecoin_hashers::{HashFunction, Hasher, PoseidonArity};
use generic_array::typenum::{U0, U2, U8};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use storage_proofs_core::gadgets::insertion;
use storage_proofs_core::gadgets::por::{AuthPath, PoRCircuit};
use storage_proofs_core::gadgets::variables::Root;
use storage_proofs_core::merkle::{DiskStore, MerkleTreeWrapper};
use support::Recorder;
use witness::merkle;

fn allocated(values: &[Fr]) -> Vec<AllocatedNum<Fr>> {
    let mut outer = Recorder::default();
    values
        .iter()
        .map(|value| AllocatedNum::alloc(outer.namespace(|| "x"), || Ok(*value)).unwrap())
        .collect()
}

fn index_bits(index: usize, count: usize) -> Vec<Boolean> {
    let mut outer = Recorder::default();
    (0..count)
        .map(|i| {
            AllocatedBit::alloc(&mut outer, Some(index >> i & 1 == 1))
                .unwrap()
                .into()
        })
        .collect()
}

fn random<const N: usize>(seed: u64) -> [Fr; N] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    std::array::from_fn(|_| Fr::random(&mut rng))
}

#[test]
fn insertion_at_every_position() {
    for index in 0..8 {
        let [node, siblings @ ..] = random::<8>(index as u64);
        let nums = allocated(&siblings);
        let mut cs = Recorder::default();
        let children = insertion::insert(
            &mut cs,
            &allocated(&[node])[0],
            &index_bits(index, 3),
            &nums,
        )
        .unwrap();
        let native = cs.check(|writer| merkle::insert_8(node, index, &siblings, writer));
        let gadget: Vec<Fr> = children.iter().map(|c| c.get_value().unwrap()).collect();
        assert_eq!(native.to_vec(), gadget);
        let mut plain = siblings.to_vec();
        plain.insert(index, node);
        assert_eq!(native.to_vec(), plain);
    }
    for index in 0..2 {
        let [node, sibling] = random(index as u64);
        let mut cs = Recorder::default();
        let children = insertion::insert(
            &mut cs,
            &allocated(&[node])[0],
            &index_bits(index, 1),
            &allocated(&[sibling]),
        )
        .unwrap();
        let native = cs.check(|writer| merkle::insert_2(node, index == 1, sibling, writer));
        let gadget: Vec<Fr> = children.iter().map(|c| c.get_value().unwrap()).collect();
        assert_eq!(native.to_vec(), gadget);
    }
}

#[test]
fn selection_of_every_element() {
    for log in 0..=7 {
        let from = &random::<128>(1)[..1 << log];
        let nums = allocated(from);
        for index in 0..from.len() {
            let mut cs = Recorder::default();
            insertion::select(&mut cs, &nums, &index_bits(index, log)).unwrap();
            let native = cs.check(|writer| merkle::select(from, index, writer));
            assert_eq!(native, from[index]);
        }
    }
}

fn random_node(rng: &mut ChaCha8Rng) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes[31] &= 0x3f;
    bytes
}

#[test]
fn sha256_pair() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut cases = vec![[[0; 32]; 2], [(-Fr::ONE).to_repr(); 2]];
    cases.extend((0..4).map(|_| [random_node(&mut rng), random_node(&mut rng)]));
    for [left, right] in cases {
        let nums = allocated(&[left, right].map(|bytes| Fr::from_repr(bytes).unwrap()));
        let mut cs = Recorder::default();
        let digest =
            <Sha256Hasher as Hasher>::Function::hash2_circuit(&mut cs, &nums[0], &nums[1]).unwrap();
        let native = cs.check(|writer| merkle::hash_pair(&left, &right, writer));
        assert_eq!(digest.get_value().unwrap().to_repr(), native);
    }
}

/// The inclusion gadget over paths with the given arities below, at and above the sub-tree.
fn inclusion<H, U, V, W>(
    arities: &[usize],
    native: impl Fn(Fr, &[(Vec<Fr>, usize)], &mut witness::Writer<'_>) -> Fr,
) where
    H: Hasher + 'static,
    U: PoseidonArity + 'static,
    V: PoseidonArity + 'static,
    W: PoseidonArity + 'static,
{
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for round in 0..6u64 {
        // SHA-256 nodes are below 2^254; all others may be anything.
        let mut node = || Fr::from_repr(random_node(&mut rng)).unwrap();
        let leaf = node();
        let path: Vec<(Vec<Fr>, usize)> = arities
            .iter()
            .enumerate()
            .map(|(level, arity)| {
                let siblings = (1..*arity).map(|_| node()).collect();
                (siblings, (round as usize * 5 + level * 3) % arity)
            })
            .collect();
        let options: Vec<(Vec<Option<Fr>>, Option<usize>)> = path
            .iter()
            .map(|(siblings, index)| (siblings.iter().copied().map(Some).collect(), Some(*index)))
            .collect();
        let nums = allocated(&[leaf, Fr::ZERO]);
        let mut cs = Recorder::default();
        PoRCircuit::<MerkleTreeWrapper<H, DiskStore<H::Domain>, U, V, W>>::synthesize(
            &mut cs,
            Root::from_allocated::<Recorder>(nums[0].clone()),
            AuthPath::from(options),
            Root::from_allocated::<Recorder>(nums[1].clone()),
            true,
        )
        .unwrap();
        let mut number = 0;
        let mut weight = 1;
        for ((_, index), arity) in path.iter().zip(arities) {
            number += *index as u64 * weight;
            weight *= *arity as u64;
        }
        cs.check(|writer| {
            native(leaf, &path, writer);
            writer.input(Fr::from(number));
        });
    }
}

fn poseidon_path(leaf: Fr, path: &[(Vec<Fr>, usize)], writer: &mut witness::Writer<'_>) -> Fr {
    path.iter()
        .fold(leaf, |node, (siblings, index)| match siblings[..] {
            [sibling] => merkle::pair_level(node, *index == 1, sibling, writer),
            _ => merkle::oct_level(node, *index, siblings[..].try_into().unwrap(), writer),
        })
}

#[test]
fn inclusion_in_poseidon_trees() {
    inclusion::<PoseidonHasher, U8, U0, U0>(&[8, 8], poseidon_path);
    inclusion::<PoseidonHasher, U8, U8, U0>(&[8, 8, 8], poseidon_path);
    inclusion::<PoseidonHasher, U8, U8, U2>(&[8, 8, 8, 2], poseidon_path);
}

#[test]
fn inclusion_in_sha256_trees() {
    inclusion::<Sha256Hasher, U2, U0, U0>(&[2, 2, 2], |leaf, path, writer| {
        let root = path.iter().fold(leaf.to_repr(), |node, (siblings, index)| {
            merkle::sha256_level(&node, *index == 1, &siblings[0].to_repr(), writer)
        });
        Fr::from_repr(root).unwrap()
    });
}
