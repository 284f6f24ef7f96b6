//! Sums over G2 beside blst's: the kernels are G1's over another field, so what the field changes is
//! tested, and every exceptional addition. On a GPU larger sums are taken too.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use blstrs::{G2Affine, G2Projective, Scalar};
use cuda::msm::{
    BitSelection, BitSumPlan, FullSumPlan, FullSumShape, FullSumTerms, G2, MultiplesPlan, Windows,
};
use cuda::{Arena, Device, Ledger, Phase, Slot, Stream};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

const PHASE: Phase = Phase::SumBG2;

struct Setup {
    stream: Stream,
    arena: Arena,
}

impl Setup {
    fn new(device: &Device, ledger: &Ledger) -> Self {
        Setup {
            stream: device.stream().unwrap(),
            arena: device.arena(ledger).unwrap(),
        }
    }

    fn put<T: cuda::Pod>(&self, slot: Slot<T>, values: &[T]) {
        let slice = self.arena.get(slot).slice(0..values.len());
        self.stream.upload(slice, values).unwrap();
    }
}

/// (i + 1)·G.
fn bases(count: usize) -> Vec<G2Affine> {
    let points: Vec<G2Projective> = (0..count)
        .scan(G2Projective::identity(), |point, _| {
            *point += G2Affine::generator();
            Some(*point)
        })
        .collect();
    let mut affine = vec![G2Affine::identity(); count];
    G2Projective::batch_normalize(&points, &mut affine);
    affine
}

fn scalars(count: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| Scalar::random(&mut rng)).collect()
}

fn full_sum(
    device: &Device,
    bases: &[G2Affine],
    scalars: &[Scalar],
    windows: &Windows,
) -> G2Projective {
    let multiprocessors = device.info().multiprocessors;
    let terms = bases.len();
    let mut ledger = Ledger::new("a test");
    let copies = windows.copies();
    let base_slot = ledger.reserve::<G2Affine>("bases", terms * copies as usize, PHASE);
    let scalar_slot = ledger.reserve::<[u8; 32]>("scalars", terms, PHASE);
    let multiples =
        MultiplesPlan::<G2>::new("copies", terms, copies, multiprocessors, &mut ledger, PHASE);
    let shape = FullSumShape::new(terms, terms, windows.clone());
    let plan = FullSumPlan::<G2>::new("sum", shape, multiprocessors, &mut ledger, PHASE);
    let setup = Setup::new(device, &ledger);
    setup.put(base_slot, bases);
    let canonical: Vec<[u8; 32]> = scalars.iter().map(PrimeField::to_repr).collect();
    setup.put(scalar_slot, &canonical);
    let (stream, arena) = (&setup.stream, &setup.arena);
    let all_bases = arena.get(base_slot);
    let multiples = multiples.bind(device, arena).unwrap();
    multiples.run(stream, all_bases, terms, windows).unwrap();
    let sum = plan.bind(device, arena).unwrap();
    let terms = FullSumTerms {
        bases: all_bases,
        scalars: arena.get(scalar_slot).cast(),
        indices: None,
    };
    sum.run(stream, &terms).unwrap();
    sum.finish(stream).unwrap()
}

#[test]
fn full_sums_are_blsts() {
    for device in common::devices() {
        let len = if device.info().emulated { 40 } else { 5000 };
        let distinct = bases(len);
        let mut opposite = distinct.clone();
        let mut infinite = distinct.clone();
        for i in 0..len / 2 {
            opposite[2 * i + 1] = -opposite[2 * i];
            infinite[2 * i] = G2Affine::identity();
        }
        let all_bases = [
            ("distinct", distinct.clone()),
            ("equal", vec![distinct[6]; len]),
            ("opposite", opposite),
            ("half at infinity", infinite),
        ];
        let random = scalars(len, 6);
        let all_scalars = [
            ("random", random.clone()),
            ("equal", vec![random[0]; len]),
            ("-1", vec![-Scalar::ONE; len]),
            ("0", vec![Scalar::ZERO; len]),
        ];
        for (base_kind, bases) in &all_bases {
            for (scalar_kind, scalars) in &all_scalars {
                let expected: G2Projective = bases.iter().zip(scalars).map(|(b, s)| b * s).sum();
                for (sets, copies) in [(16, 2), (1, 37)] {
                    let windows = Windows::new(sets, copies).unwrap();
                    assert_eq!(
                        full_sum(&device, bases, scalars, &windows),
                        expected,
                        "{}: bases {base_kind}, scalars {scalar_kind}, {copies} copies",
                        device.info().name
                    );
                }
            }
        }
    }
}

#[test]
fn bit_sums_are_blsts() {
    for device in common::devices() {
        let sizes: &[usize] = if device.info().emulated {
            &[1, 65, 700]
        } else {
            &[1, 65, 100_000]
        };
        for &len in sizes {
            let mut rng = ChaCha20Rng::seed_from_u64(len as u64);
            let points = bases(len);
            let ones: Vec<u64> = (0..len.div_ceil(64))
                .map(|w| rng.next_u64() & (u64::MAX >> (64 - (len - 64 * w).min(64))))
                .collect();
            let expected: G2Projective = (0..len)
                .filter(|&i| ones[i / 64] >> (i % 64) & 1 == 1)
                .map(|i| G2Projective::from(points[i]))
                .sum();
            let mut ledger = Ledger::new("a test");
            let base_slot = ledger.reserve::<G2Affine>("bases", len, PHASE);
            let ones_slot = ledger.reserve::<u64>("ones", ones.len(), PHASE);
            let multiprocessors = device.info().multiprocessors;
            let plan = BitSumPlan::<G2>::new("bits", len, len, multiprocessors, &mut ledger, PHASE);
            let setup = Setup::new(&device, &ledger);
            setup.put(base_slot, &points);
            setup.put(ones_slot, &ones);
            let sum = plan.bind(&device, &setup.arena).unwrap();
            let selection = BitSelection {
                ones: setup.arena.get(ones_slot),
                mask: None,
                first_point: 0,
            };
            let bases = setup.arena.get(base_slot);
            sum.run(&setup.stream, &selection, bases).unwrap();
            assert_eq!(
                sum.finish(&setup.stream).unwrap(),
                expected,
                "{}: {len} bits",
                device.info().name
            );
        }
    }
}
