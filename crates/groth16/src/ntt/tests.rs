//! Transforms against the definition of the polynomial's values.

use blstrs::Scalar;
use ff::Field;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::*;
use crate::{BackendError, Kernel};

const SETS: [EvaluationSet; 2] = [EvaluationSet::Subgroup, EvaluationSet::Coset];

fn random(size: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..size).map(|_| Scalar::random(&mut rng)).collect()
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

/// The domain of 2^`log` elements on every kernel of this processor.
fn domains(log: u32) -> impl Iterator<Item = Domain> {
    Kernel::available()
        .into_iter()
        .map(move |kernel| Domain::with_kernel(1 << log, kernel).unwrap())
}

/// Values in natural order.
fn values(domain: &Domain, coefficients: &[Scalar], set: EvaluationSet) -> Vec<Scalar> {
    let mut reversed = coefficients.to_vec();
    domain.forward(&mut reversed, set);
    let mut values = vec![Scalar::ZERO; reversed.len()];
    bit_reverse(&reversed, &mut values);
    values
}

#[test]
fn roots_have_their_orders() {
    for log in 0..=12 {
        for domain in domains(log) {
            let n = domain.size() as u64;
            assert_eq!(domain.root().pow_vartime([n]), Scalar::ONE);
            assert_eq!(domain.coset_shift().square(), domain.root());
            assert_eq!(domain.coset_shift().pow_vartime([n]), -Scalar::ONE);
            assert_eq!(domain.size_inverse() * Scalar::from(n), Scalar::ONE);
        }
    }
}

#[test]
fn sizes_that_have_no_domain_are_errors() {
    for size in [0, 3, 6, 1000, usize::MAX, 1 << 32] {
        let error = Domain::new(size).unwrap_err();
        assert!(matches!(error, BackendError::DomainSize { size: named } if named == size));
    }
}

/// Every size up to 2^10, every point: Horner is O(n²), hence the limit.
#[test]
fn small_sizes_agree_with_the_definition() {
    for log in 0..=10_u32 {
        for domain in domains(log) {
            let coefficients = random(domain.size(), u64::from(log));
            for set in SETS {
                for (i, value) in values(&domain, &coefficients, set).iter().enumerate() {
                    let expected = evaluate(&coefficients, point(&domain, set, i));
                    assert_eq!(
                        *value,
                        expected,
                        "2^{log}, {set:?}, value {i}, {:?}",
                        domain.kernel()
                    );
                }
            }
        }
    }
}

fn agrees_at_random_points(domain: &Domain, set: EvaluationSet, count: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    let coefficients = random(domain.size(), 100 + u64::from(domain.log_size()));
    let values = values(domain, &coefficients, set);
    for _ in 0..count {
        let i = rng.next_u64() as usize % domain.size();
        let expected = evaluate(&coefficients, point(domain, set, i));
        assert_eq!(values[i], expected, "{:?}", domain.kernel());
    }
}

/// Sizes with one and two passes, odd and even numbers of levels.
#[test]
fn large_sizes_agree_at_random_points() {
    for log in [13_u32, 14, 15, 18, 19] {
        for domain in domains(log) {
            for set in SETS {
                agrees_at_random_points(&domain, set, 3);
            }
        }
    }
}

/// The smallest size with three passes.
#[test]
fn three_passes_agree_at_a_random_point() {
    let domain = Domain::new(1 << 23).unwrap();
    agrees_at_random_points(&domain, EvaluationSet::Coset, 1);
}

#[test]
fn the_inverse_gives_back_the_coefficients() {
    for log in [0_u32, 1, 2, 3, 4, 5, 9, 12, 13, 14, 16, 17, 20] {
        for domain in domains(log) {
            let coefficients = random(domain.size(), 200 + u64::from(log));
            for set in SETS {
                let mut vector = coefficients.clone();
                domain.forward(&mut vector, set);
                domain.inverse(&mut vector, set);
                let scale = domain.size_inverse();
                assert!(
                    vector
                        .iter()
                        .zip(&coefficients)
                        .all(|(x, c)| x * scale == *c),
                    "2^{log}, {set:?}, {:?}",
                    domain.kernel()
                );
            }
        }
    }
}

#[test]
fn edge_vectors() {
    for log in [0, 1, 2, 5, 11] {
        for domain in domains(log) {
            let n = domain.size();
            for set in SETS {
                let zero = vec![Scalar::ZERO; n];
                assert_eq!(values(&domain, &zero, set), zero);
                for value in [Scalar::ONE, -Scalar::ONE] {
                    // A constant polynomial has one value everywhere.
                    let mut constant = zero.clone();
                    constant[0] = value;
                    assert_eq!(values(&domain, &constant, set), vec![value; n]);
                }
                let ones = vec![-Scalar::ONE; n];
                let expected: Vec<Scalar> = (0..n)
                    .map(|i| evaluate(&ones, point(&domain, set, i)))
                    .collect();
                assert_eq!(values(&domain, &ones, set), expected);
            }
        }
    }
}

#[test]
fn bit_reversal_moves_every_index() {
    for log in [0_u32, 1, 2, 5, 9, 10, 11, 13] {
        let source: Vec<u32> = (0..1 << log).collect();
        let mut target = vec![u32::MAX; source.len()];
        bit_reverse(&source, &mut target);
        for i in source {
            let expected = if log == 0 {
                0
            } else {
                i.reverse_bits() >> (32 - log)
            };
            assert_eq!(target[expected as usize], i);
        }
    }
}
