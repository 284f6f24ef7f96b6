//! Transforms and the quotient against the CPU's and against the definition.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use blstrs::Scalar;
use cuda::ntt::{Direction, NttPlan, Quotient, QuotientForm, QuotientPlan, Scale, Transform};
use cuda::{Arena, Device, DeviceSlice, Ledger, Phase, Stream};
use ff::{Field, PrimeField};
use groth16::ntt::{Domain, EvaluationSet, bit_reverse};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

const SETS: [EvaluationSet; 2] = [EvaluationSet::Subgroup, EvaluationSet::Coset];

fn random(size: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..size).map(|_| Scalar::random(&mut rng)).collect()
}

fn reversed(vector: &[Scalar]) -> Vec<Scalar> {
    let mut reversed = vec![Scalar::ZERO; vector.len()];
    bit_reverse(vector, &mut reversed);
    reversed
}

/// Transforms of one size on one device, and the memory of one vector.
struct Bench {
    ntt: cuda::ntt::Ntt,
    stream: Stream,
    values: DeviceSlice<Scalar>,
    _arena: Arena,
}

impl Bench {
    fn new(device: &Device, log_size: u32, scales: &[Scalar], coarse_bits: u32) -> Self {
        let mut ledger = Ledger::new("a test");
        let plan = NttPlan::with_coarse_bits(log_size, scales, coarse_bits, &mut ledger);
        let slot = ledger.reserve("values", 1 << log_size, Phase::Transform);
        let arena = device.arena(&ledger).unwrap();
        Bench {
            ntt: plan.bind(device, &arena).unwrap(),
            stream: device.stream().unwrap(),
            values: arena.get(slot),
            _arena: arena,
        }
    }

    fn run(&self, vector: &[Scalar], transforms: &[Transform]) -> Vec<Scalar> {
        let mut vector = vector.to_vec();
        self.run_on(&mut vector, transforms);
        vector
    }

    fn run_on(&self, vector: &mut [Scalar], transforms: &[Transform]) {
        self.stream.upload(self.values, vector).unwrap();
        for transform in transforms {
            self.ntt.run(&self.stream, self.values, *transform).unwrap();
        }
        self.stream.download(self.values, vector).unwrap();
    }
}

#[track_caller]
fn assert_same(found: &[Scalar], expected: &[Scalar], what: &str) {
    let bad = found.iter().zip(expected).position(|(x, y)| x != y);
    if let Some(i) = bad {
        let count = found.iter().zip(expected).filter(|(x, y)| x != y).count();
        panic!(
            "{what}: {count} of {} elements wrong, the first is {i}: {:?}, not {:?}",
            found.len(),
            found[i],
            expected[i]
        );
    }
}

/// Σ c_i·x^i.
fn evaluate(coefficients: &[Scalar], x: Scalar) -> Scalar {
    coefficients
        .iter()
        .rev()
        .fold(Scalar::ZERO, |sum, c| sum * x + c)
}

/// The i-th point in natural order.
fn point(domain: &Domain, set: EvaluationSet, i: usize) -> Scalar {
    let power = domain.root().pow_vartime([i as u64]);
    match set {
        EvaluationSet::Subgroup => power,
        EvaluationSet::Coset => power * domain.coset_shift(),
    }
}

/// Values in natural order, by the CPU.
fn values(domain: &Domain, coefficients: &[Scalar], set: EvaluationSet) -> Vec<Scalar> {
    let mut vector = coefficients.to_vec();
    domain.forward(&mut vector, set);
    reversed(&vector)
}

/// Both directions, both sets of points, with tables that are split in every way.
fn agrees_with_the_cpu(device: &Device, log: u32, coarse_bits: u32) {
    let what = format!(
        "2^{log}, coarse table of 2^{coarse_bits}, {}",
        device.info().name
    );
    let domain = Domain::new(1 << log).unwrap();
    let scale = Scalar::from(77) * domain.size_inverse();
    let bench = Bench::new(device, log, &[scale], coarse_bits);
    let coefficients = random(1 << log, u64::from(log));
    for set in SETS {
        let expected = values(&domain, &coefficients, set);
        let found = bench.run(&reversed(&coefficients), &[Transform::evaluate(set)]);
        assert_same(&found, &expected, &format!("values, {set:?}, {what}"));

        let found = bench.run(&expected, &[Transform::interpolate(set, Scale(1))]);
        let expected: Vec<_> = coefficients.iter().map(|c| c * Scalar::from(77)).collect();
        assert_same(
            &reversed(&found),
            &expected,
            &format!("coefficients, {set:?}, {what}"),
        );
    }
}

#[test]
fn small_sizes_agree_with_the_cpu() {
    for device in common::devices() {
        for log in 0..=13 {
            agrees_with_the_cpu(&device, log, 19);
        }
    }
}

/// Products of two tables' entries; sizes with two passes and, from 19 on, three.
#[test]
fn split_tables_agree_with_the_cpu() {
    for device in common::devices() {
        for (log, coarse_bits) in [(0, 0), (5, 3), (10, 2), (11, 7), (13, 5), (19, 11)] {
            agrees_with_the_cpu(&device, log, coarse_bits);
        }
    }
}

#[test]
fn the_definition_holds() {
    for device in common::devices() {
        for log in 0..=7 {
            let domain = Domain::new(1 << log).unwrap();
            let bench = Bench::new(&device, log, &[], 19);
            let coefficients = random(1 << log, 50 + u64::from(log));
            for set in SETS {
                let found = bench.run(&reversed(&coefficients), &[Transform::evaluate(set)]);
                let expected: Vec<_> = (0..1 << log)
                    .map(|i| evaluate(&coefficients, point(&domain, set, i)))
                    .collect();
                assert_same(&found, &expected, &format!("2^{log}, {set:?}"));
            }
        }
    }
}

/// Unreduced results in between, the way a quotient uses transforms.
#[test]
fn there_and_back_again() {
    for device in common::devices() {
        for log in [0, 1, 2, 4, 6, 9, 10, 12] {
            let domain = Domain::new(1 << log).unwrap();
            let bench = Bench::new(&device, log, &[domain.size_inverse()], 19);
            for set in SETS {
                let inverse = Transform::interpolate(set, Scale(1));
                let vector = random(1 << log, 60 + u64::from(log));
                let there = [Transform::evaluate(set).unreduced(), inverse];
                assert_same(
                    &bench.run(&vector, &there),
                    &vector,
                    &format!("2^{log}, {set:?}"),
                );
                let back = [inverse.unreduced(), Transform::evaluate(set)];
                assert_same(
                    &bench.run(&vector, &back),
                    &vector,
                    &format!("2^{log}, {set:?}"),
                );
            }
        }
    }
}

/// Values near the modulus, where corrections are decided, and vectors of one value.
#[test]
fn edge_vectors_agree_with_the_cpu() {
    let edges = [
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        // Montgomery limbs 1 and r − 1.
        Scalar::from(2).invert().unwrap().pow_vartime([256]),
        -Scalar::from(2).invert().unwrap().pow_vartime([256]),
    ];
    for device in common::devices() {
        for log in [3, 9, 11] {
            let domain = Domain::new(1 << log).unwrap();
            let bench = Bench::new(&device, log, &[], 19);
            let constant = |value| vec![value; 1 << log];
            let alternating = |x, y| [x, y].repeat(1 << (log - 1));
            let mut vectors: Vec<Vec<Scalar>> = edges.into_iter().map(constant).collect();
            for x in edges {
                vectors.extend(edges.into_iter().map(|y| alternating(x, y)));
            }
            let mut one = constant(Scalar::ZERO);
            one[5] = edges[4];
            vectors.push(one);
            for vector in vectors {
                for set in SETS {
                    let found = bench.run(&reversed(&vector), &[Transform::evaluate(set)]);
                    let expected = values(&domain, &vector, set);
                    assert_same(&found, &expected, &format!("2^{log}, {set:?}"));
                }
            }
        }
    }
}

/// T(x + s·y) = T(x) + s·T(y).
#[test]
fn transforms_are_linear() {
    for device in common::devices() {
        let log = 12;
        let bench = Bench::new(&device, log, &[], 19);
        let (x, y) = (random(1 << log, 70), random(1 << log, 71));
        let s = random(1, 72)[0];
        let combine = |x: &[Scalar], y: &[Scalar]| -> Vec<Scalar> {
            x.iter().zip(y).map(|(x, y)| x + s * y).collect()
        };
        for set in SETS {
            for direction in [Direction::Evaluate, Direction::Interpolate] {
                let transform = Transform {
                    direction,
                    points: set,
                    scale: Scale(0),
                    reduced: true,
                };
                let [tx, ty, both] = [x.clone(), y.clone(), combine(&x, &y)]
                    .map(|vector| bench.run(&vector, &[transform]));
                assert_same(
                    &both,
                    &combine(&tx, &ty),
                    &format!("{direction:?}, {set:?}"),
                );
            }
        }
    }
}

struct QuotientBench {
    quotient: Quotient,
    stream: Stream,
    a: DeviceSlice<Scalar>,
    b: DeviceSlice<Scalar>,
    _arena: Arena,
}

impl QuotientBench {
    fn new(device: &Device, log_size: u32, form: QuotientForm) -> Self {
        let mut ledger = Ledger::new("a test");
        let plan = QuotientPlan::new(log_size, form, &mut ledger);
        let a = ledger.reserve("a", 1 << log_size, Phase::Evaluate.to(Phase::Transform));
        let b = ledger.reserve("b", 1 << log_size, Phase::Evaluate.to(Phase::SumH));
        let arena = device.arena(&ledger).unwrap();
        QuotientBench {
            quotient: plan.bind(device, &arena).unwrap(),
            stream: device.stream().unwrap(),
            a: arena.get(a),
            b: arena.get(b),
            _arena: arena,
        }
    }

    /// The scalars, from their canonical limbs.
    fn run(&self, a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
        self.stream.upload(self.a, a).unwrap();
        self.stream.upload(self.b, b).unwrap();
        let place = self.quotient.run(&self.stream, self.a, self.b).unwrap();
        let mut limbs = vec![[0u32; 8]; a.len()];
        self.stream.download(place, &mut limbs).unwrap();
        let bytes = |limbs: [u32; 8]| -> [u8; 32] {
            let mut bytes = [0; 32];
            for (bytes, limb) in bytes.chunks_exact_mut(4).zip(limbs) {
                bytes.copy_from_slice(&limb.to_le_bytes());
            }
            bytes
        };
        limbs
            .into_iter()
            .map(|limbs| Scalar::from_repr(bytes(limbs)).expect("below r"))
            .collect()
    }
}

/// Vectors with rows of zeros at the end, as a circuit has, and degenerate ones.
fn quotient_inputs(size: usize, seed: u64) -> Vec<(Vec<Scalar>, Vec<Scalar>)> {
    let (a, b) = (random(size, seed), random(size, seed + 1));
    let zeros = vec![Scalar::ZERO; size];
    let padded = |vector: &[Scalar]| {
        let mut vector = vector.to_vec();
        vector[size * 5 / 8..].fill(Scalar::ZERO);
        vector
    };
    let bits: Vec<Scalar> = (0..size as u64)
        .map(|i| Scalar::from(i * i % 3 % 2))
        .collect();
    vec![
        (padded(&a), padded(&b)),
        (a, b.clone()),
        (zeros.clone(), b.clone()),
        (zeros.clone(), zeros),
        (bits.clone(), bits),
        (vec![-Scalar::ONE; size], b),
    ]
}

#[test]
fn the_quotient_is_the_cpus() {
    for device in common::devices() {
        for log in 0..=12 {
            let domain = Domain::new(1 << log).unwrap();
            let bench = QuotientBench::new(&device, log, QuotientForm::Monomial);
            for (a, b) in quotient_inputs(1 << log, 80 + u64::from(log)) {
                let found = bench.run(&a, &b);
                let expected = groth16::quotient(&domain, a, b);
                assert_same(&found, &expected, &format!("2^{log}"));
            }
        }
    }
}

/// Q_i = A(g·ω^i)·B(g·ω^i) in natural order.
#[test]
fn prepared_values_are_the_products_on_the_coset() {
    for device in common::devices() {
        for log in 0..=12 {
            let domain = Domain::new(1 << log).unwrap();
            let bench = QuotientBench::new(&device, log, QuotientForm::Prepared);
            for (a, b) in quotient_inputs(1 << log, 90 + u64::from(log)) {
                let on_coset = |vector: &[Scalar]| {
                    let mut vector = reversed(vector);
                    domain.inverse(&mut vector, EvaluationSet::Subgroup);
                    let scale = domain.size_inverse();
                    vector.iter_mut().for_each(|x| *x *= scale);
                    values(&domain, &vector, EvaluationSet::Coset)
                };
                let expected: Vec<_> = on_coset(&a)
                    .iter()
                    .zip(&on_coset(&b))
                    .map(|(a, b)| a * b)
                    .collect();
                assert_same(&bench.run(&a, &b), &expected, &format!("2^{log}"));
            }
        }
    }
}

/// Makes `vector` zero but for the sum of `entries`, each at its place.
fn fill_sparse(vector: &mut [Scalar], entries: impl Iterator<Item = (usize, Scalar)>) {
    vector
        .par_iter_mut()
        .for_each(|value| *value = Scalar::ZERO);
    for (i, value) in entries {
        vector[i] += value;
    }
}

fn root_of_order(log: u32) -> Scalar {
    (log..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}

/// Element i of a vector that is dense and cheap to make.
fn dense(i: u64) -> Scalar {
    let word = |k: u64| (i * 4 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i.rotate_left(23);
    Scalar::from_u64s_le(&[word(0), word(1), word(2), word(3) >> 2]).unwrap()
}

/// Sparse polynomials and sparse values at a few places, and dense vectors there and back.
fn a_large_size_is_right(device: &Device, log: u32) {
    let n = 1usize << log;
    let half = Scalar::from(2).invert().unwrap();
    let per_size = half.pow_vartime([u64::from(log)]);
    let bench = Bench::new(device, log, &[per_size], 19);
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(log));
    let mut index = || (rng.next_u64() >> 16) as usize & (n - 1);
    let places: Vec<usize> = (0..12).map(|_| index()).chain([0, n - 1, n / 2]).collect();
    let entries: Vec<_> = places.iter().copied().zip(random(15, 7)).collect();
    let chosen: Vec<usize> = (0..40)
        .map(|_| index())
        .chain([0, 1, n / 2, n - 1])
        .collect();
    let reverse = |i: usize| i.reverse_bits() >> (usize::BITS - log);
    let root = root_of_order(log);
    let mut vector = vec![Scalar::ZERO; n];
    for set in SETS {
        let shift = match set {
            EvaluationSet::Subgroup => Scalar::ONE,
            EvaluationSet::Coset => root_of_order(log + 1),
        };
        let what = format!("2^{log}, {set:?}");
        fill_sparse(&mut vector, entries.iter().map(|(i, c)| (reverse(*i), *c)));
        bench.run_on(&mut vector, &[Transform::evaluate(set)]);
        for i in &chosen {
            let x = root.pow_vartime([*i as u64]) * shift;
            let expected: Scalar = entries
                .iter()
                .map(|(k, c)| *c * x.pow_vartime([*k as u64]))
                .sum();
            assert_eq!(vector[*i], expected, "value {i}, {what}");
        }
        let inverse = Transform::interpolate(set, Scale(1));
        fill_sparse(&mut vector, entries.iter().copied());
        bench.run_on(&mut vector, &[inverse]);
        for k in &chosen {
            let value =
                |(i, v): &(usize, Scalar)| *v * root.pow_vartime([((n - i) % n * k % n) as u64]);
            let expected = entries.iter().map(value).sum::<Scalar>()
                * shift.invert().unwrap().pow_vartime([*k as u64])
                * per_size;
            assert_eq!(vector[reverse(*k)], expected, "coefficient {k}, {what}");
        }
        vector
            .par_iter_mut()
            .enumerate()
            .for_each(|(i, x)| *x = dense(i as u64));
        bench.run_on(
            &mut vector,
            &[Transform::evaluate(set).unreduced(), inverse],
        );
        let bad = (0..n)
            .into_par_iter()
            .find_first(|i| vector[*i] != dense(*i as u64));
        assert_eq!(
            bad, None,
            "the first element that does not come back, {what}"
        );
    }
}

#[test]
#[ignore = "takes hours on the emulated device; for a GPU"]
fn large_sizes_are_right() {
    for device in common::devices() {
        if !device.info().emulated {
            agrees_with_the_cpu(&device, 20, 19);
            for log in [14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28] {
                let start = std::time::Instant::now();
                a_large_size_is_right(&device, log);
                println!("2^{log} is right, {:.1?}", start.elapsed());
            }
        }
    }
}

/// Two passes and partial tiles in the same way as the large sizes are checked.
#[test]
fn checks_of_large_sizes_hold_for_small_ones() {
    for device in common::devices() {
        for log in [6, 12] {
            a_large_size_is_right(&device, log);
        }
    }
}
