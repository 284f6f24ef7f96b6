//! The sums on the emulated device, and on a real one if there is one, against sums by blst.

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::device::{Arena, Device, Ledger, Phase, Slot, Stream};
use crate::msm::{
    BitSelection, BitSumPlan, FullSumPlan, FullSumShape, FullSumTerms, G1, Mask, MultiplesPlan,
    TermIndices, Windows,
};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// (i + 1)·G.
fn bases(count: usize) -> Vec<G1Affine> {
    let mut point = G1Projective::identity();
    let points: Vec<G1Projective> = (0..count)
        .map(|_| {
            point += G1Affine::generator();
            point
        })
        .collect();
    let mut affine = vec![G1Affine::identity(); count];
    G1Projective::batch_normalize(&points, &mut affine);
    // The device's infinity is zero bytes, as is blst's.
    affine
}

fn canonical(scalars: &[Scalar]) -> Vec<[u32; 8]> {
    let words = |scalar: &Scalar| {
        let bytes = scalar.to_bytes_le();
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| bytes[4 * i + j])))
    };
    scalars.iter().map(words).collect()
}

fn naive(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    bases
        .iter()
        .zip(scalars)
        .map(|(base, scalar)| base * scalar)
        .sum()
}

/// The devices there are, with as many multiprocessors as plans are to use.
fn devices() -> Vec<(Device, u32)> {
    let mut devices = Vec::new();
    #[cfg(feature = "emulation")]
    devices.push((Device::emulated(), 1));
    if let Ok(device) = Device::open(0) {
        let multiprocessors = device.info().multiprocessors;
        devices.push((device, multiprocessors));
    }
    devices
}

/// A device with an arena.
struct Bench {
    device: Device,
    stream: Stream,
    arena: Arena,
}

impl Bench {
    fn new(device: &Device, ledger: &Ledger) -> Self {
        Bench {
            stream: device.stream().unwrap(),
            arena: device.arena(ledger).unwrap(),
            device: device.clone(),
        }
    }

    fn put<T: crate::device::Pod>(&self, slot: Slot<T>, values: &[T]) {
        let slice = self.arena.get(slot);
        self.stream
            .upload(slice.slice(0..values.len()), values)
            .unwrap();
    }
}

const PHASE: Phase = Phase::SumH;

/// Checks a sum on every device; `indices`: for each term its base and scalar.
fn check(
    bases: &[G1Affine],
    scalars: &[Scalar],
    indices: Option<(&[u32], &[u32])>,
    shape: &FullSumShape,
    expected: G1Projective,
) {
    for (device, multiprocessors) in devices() {
        let sum = full_sum(
            &device,
            multiprocessors,
            bases,
            scalars,
            indices,
            shape.clone(),
        );
        assert_eq!(sum, expected, "{}, {shape:?}", device.info().name);
    }
}

fn full_sum(
    device: &Device,
    multiprocessors: u32,
    bases: &[G1Affine],
    scalars: &[Scalar],
    indices: Option<(&[u32], &[u32])>,
    shape: FullSumShape,
) -> G1Projective {
    let (windows, terms) = (shape.windows.clone(), shape.terms);
    let mut ledger = Ledger::new("a test");
    let copies = windows.copies() as usize;
    let base_slot = ledger.reserve::<G1Affine>("bases", bases.len() * copies, PHASE);
    let scalar_slot = ledger.reserve::<[u32; 8]>("scalars", scalars.len(), PHASE);
    let index_slots =
        [(); 2].map(|()| ledger.reserve::<u32>("indices", indices.map_or(0, |_| terms), PHASE));
    let multiples = MultiplesPlan::<G1>::new(
        "copies",
        bases.len(),
        windows.copies(),
        multiprocessors,
        &mut ledger,
        PHASE,
    );
    let plan = FullSumPlan::<G1>::new("sum", shape, multiprocessors, &mut ledger, PHASE);

    let bench = Bench::new(device, &ledger);
    let stream = &bench.stream;
    bench.put(base_slot, bases);
    bench.put(scalar_slot, &canonical(scalars));
    if let Some((points, scalars)) = indices {
        bench.put(index_slots[0], points);
        bench.put(index_slots[1], scalars);
    }
    let all_bases = bench.arena.get(base_slot);
    let multiples = multiples.bind(&bench.device, &bench.arena).unwrap();
    multiples
        .run(stream, all_bases, bases.len(), &windows)
        .unwrap();
    let sum = plan.bind(&bench.device, &bench.arena).unwrap();
    let terms = FullSumTerms {
        bases: all_bases,
        scalars: bench.arena.get(scalar_slot),
        indices: indices.map(|_| TermIndices {
            points: bench.arena.get(index_slots[0]),
            scalars: bench.arena.get(index_slots[1]),
        }),
    };
    // Twice: a run must not depend on what an earlier one has left.
    sum.run(stream, &terms).unwrap();
    sum.finish(stream).unwrap();
    sum.run(stream, &terms).unwrap();
    sum.finish(stream).unwrap()
}

fn shape(terms: usize, points: usize, sets: u32, copies: u32) -> FullSumShape {
    FullSumShape::new(terms, points, Windows::new(sets, copies).unwrap())
}

fn random_scalars(count: usize) -> Vec<Scalar> {
    (0..count).map(|i| Scalar::random(rng(i as u64))).collect()
}

#[test]
fn full_sums_of_small_sizes() {
    for terms in [0, 1, 2, 3, 33, 130] {
        let (bases, scalars) = (bases(terms), random_scalars(terms));
        let expected = naive(&bases, &scalars);
        for (sets, copies) in [(37, 1), (1, 43), (9, 5)] {
            check(
                &bases,
                &scalars,
                None,
                &shape(terms, terms, sets, copies),
                expected,
            );
        }
    }
}

#[test]
fn full_sums_with_several_passes() {
    const TERMS: usize = 4097;
    let (bases, scalars) = (bases(TERMS), random_scalars(TERMS));
    let expected = naive(&bases, &scalars);
    for (sets, copies, sets_per_pass, passes_per_group) in
        [(26, 1, 26, 1), (26, 1, 7, 3), (1, 26, 1, 1), (8, 3, 3, 1)]
    {
        let shape = FullSumShape {
            sets_per_pass,
            passes_per_group,
            ..shape(TERMS, TERMS, sets, copies)
        };
        check(&bases, &scalars, None, &shape, expected);
    }
}

#[test]
fn full_sums_with_a_bucket_of_several_blocks() {
    // Every window has one bucket, whose entries are those of three blocks of the list kernel: the
    // first of them are left ones in more rounds than are counted at once.
    const TERMS: usize = 5000;
    let (bases, scalar) = (bases(TERMS), random_scalars(1)[0]);
    let scalars = vec![scalar; TERMS];
    let sum = G1Projective::generator() * Scalar::from((TERMS * (TERMS + 1) / 2) as u64);
    check(
        &bases,
        &scalars,
        None,
        &shape(TERMS, TERMS, 26, 1),
        sum * scalar,
    );
}

#[test]
fn full_sums_of_skewed_scalars_and_bases() {
    const TERMS: usize = 100;
    let distinct = bases(TERMS);
    let equal = vec![distinct[6]; TERMS];
    let mut opposite: Vec<G1Affine> = distinct.clone();
    for i in 0..TERMS / 2 {
        opposite[2 * i + 1] = -opposite[2 * i];
    }
    let mut with_infinity = distinct.clone();
    for point in with_infinity.iter_mut().step_by(3) {
        *point = G1Affine::identity();
    }
    let random: Vec<Scalar> = (0..TERMS).map(|i| Scalar::random(rng(i as u64))).collect();
    let bits: Vec<Scalar> = (0..TERMS)
        .map(|i| Scalar::from(rng(i as u64).next_u64() & 1))
        .collect();
    let mut sparse = random.clone();
    for (i, scalar) in sparse.iter_mut().enumerate() {
        if i % 16 != 0 {
            *scalar = Scalar::ZERO;
        }
    }
    let scalars = [
        ("random", random.clone()),
        ("all equal", vec![random[0]; TERMS]),
        ("all zero", vec![Scalar::ZERO; TERMS]),
        ("bits", bits),
        ("15/16 zero", sparse),
        ("all -1", vec![-Scalar::ONE; TERMS]),
        ("the largest magnitude", vec![Scalar::TWO_INV; TERMS]),
        ("the other largest magnitude", vec![-Scalar::TWO_INV; TERMS]),
    ];
    let bases = [
        ("distinct", distinct),
        ("equal", equal),
        ("opposite", opposite),
        ("some at infinity", with_infinity),
    ];
    for (base_kind, bases) in &bases {
        for (scalar_kind, scalars) in &scalars {
            println!("bases {base_kind}, scalars {scalar_kind}");
            check(
                bases,
                scalars,
                None,
                &shape(TERMS, TERMS, 16, 2),
                naive(bases, scalars),
            );
        }
    }
}

#[test]
fn full_sums_over_indices() {
    let bases = bases(500);
    let scalars = random_scalars(300);
    let points: Vec<u32> = (0..300).map(|i| (i * 7) % 500).collect();
    let places: Vec<u32> = (0..300).map(|i| (i * 11) % 300).collect();
    let expected = naive(
        &points
            .iter()
            .map(|&i| bases[i as usize])
            .collect::<Vec<_>>(),
        &places
            .iter()
            .map(|&i| scalars[i as usize])
            .collect::<Vec<_>>(),
    );
    for (sets, copies) in [(32, 1), (16, 2), (1, 26)] {
        let shape = shape(300, 500, sets, copies);
        check(&bases, &scalars, Some((&points, &places)), &shape, expected);
    }
}

/// Checks the sum of the points of the variables in `ones`, with points for those in `mask`.
fn bit_sum(variables: usize, ones: &[bool], mask: Option<&[bool]>, same_points: bool) {
    const FIRST_POINT: usize = 3;
    let pack = |bits: &[bool]| -> Vec<u64> {
        let word = |chunk: &[bool]| {
            chunk
                .iter()
                .rev()
                .fold(0, |word, &bit| word << 1 | u64::from(bit))
        };
        bits.chunks(64).map(word).collect()
    };
    let present = |j: usize| mask.is_none_or(|mask| mask[j]);
    let count = (0..variables).filter(|&j| present(j)).count();
    let points = if same_points {
        vec![bases(5)[4]; count + FIRST_POINT]
    } else {
        bases(count + FIRST_POINT)
    };
    let mut expected = G1Projective::identity();
    let mut ranks = Vec::new();
    let mut point = FIRST_POINT;
    for (j, one) in ones.iter().enumerate().take(variables) {
        if j % 64 == 0 {
            ranks.push((point - FIRST_POINT) as u32);
        }
        if present(j) {
            if *one {
                expected += points[point];
            }
            point += 1;
        }
    }

    let words = variables.div_ceil(64);
    for (device, multiprocessors) in devices() {
        let mut ledger = Ledger::new("a test");
        let base_slot = ledger.reserve::<G1Affine>("bases", points.len(), PHASE);
        let ones_slot = ledger.reserve::<u64>("ones", words, PHASE);
        let mask_slot = ledger.reserve::<u64>("mask", words, PHASE);
        let rank_slot = ledger.reserve::<u32>("ranks", words, PHASE);
        let plan = BitSumPlan::<G1>::new(
            "bits",
            variables,
            count,
            multiprocessors,
            &mut ledger,
            PHASE,
        );
        let bench = Bench::new(&device, &ledger);
        bench.put(base_slot, &points);
        bench.put(ones_slot, &pack(ones));
        if let Some(mask) = mask {
            bench.put(mask_slot, &pack(mask));
            bench.put(rank_slot, &ranks);
        }
        let sum = plan.bind(&bench.device, &bench.arena).unwrap();
        let selection = BitSelection {
            ones: bench.arena.get(ones_slot),
            mask: mask.map(|_| Mask {
                words: bench.arena.get(mask_slot),
                ranks: bench.arena.get(rank_slot),
            }),
            first_point: FIRST_POINT as u32,
        };
        for _ in 0..2 {
            sum.run(&bench.stream, &selection, bench.arena.get(base_slot))
                .unwrap();
            let found = sum.finish(&bench.stream).unwrap();
            assert_eq!(found, expected, "{variables} variables");
        }
    }
}

#[test]
fn bit_sums() {
    for variables in [0, 1, 2, 3, 63, 64, 65, 1000, 4099] {
        let mut rng = rng(variables as u64);
        let mut bits =
            || -> Vec<bool> { (0..variables).map(|_| rng.next_u32() & 1 == 1).collect() };
        let (ones, mask) = (bits(), bits());
        bit_sum(variables, &ones, None, false);
        bit_sum(variables, &ones, Some(&mask), false);
        bit_sum(variables, &vec![true; variables], None, true);
        bit_sum(variables, &vec![false; variables], Some(&mask), false);
    }
}

#[test]
fn bit_sums_with_several_rounds() {
    // Enough for chunks on demand on one multiprocessor: 135 000 pairs are 263 rows for each of 16 warps.
    const VARIABLES: usize = 270_000;
    bit_sum(VARIABLES, &vec![true; VARIABLES], None, false);
}
