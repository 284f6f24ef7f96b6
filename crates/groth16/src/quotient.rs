//! The quotient H = (A·B − C)/(x^n − 1) in six transforms, or what a prepared key needs of it
//! in four.
//!
//! A, B, C are the polynomials of degree below n whose values at ω^i are the products of row i
//! with the witness. A satisfied witness has c_i = a_i·b_i, so the matrix C is not needed.
//!
//! On the coset where x^n = −1, A·B = C + H·(x^n − 1) = C − 2H. So Q = (A·B) mod (x^n + 1),
//! which has degree below n and those values, equals C − 2H, and H = (C − Q)/2. Three inverse
//! transforms give the coefficients of A, B and C, two forward ones the values of A and B
//! on the coset, and one inverse transform of their products gives Q.

use blstrs::Scalar;
use ff::PrimeField;
use rayon::prelude::*;

use crate::fr::{Limbs, as_limbs, as_limbs_mut};
use crate::ntt::{Domain, EvaluationSet, bit_reverse};

/// Elements that a thread takes at a time in the pointwise steps: 128 KiB.
const PIECE: usize = 1 << 12;

/// The coefficients of H, lowest first: n of them, of which the last is zero.
///
/// `a` and `b` hold the values a_i and b_i in natural order, n of each. Takes one more vector of
/// n elements for the time of the call.
///
/// # Panics
/// If `a` or `b` does not have n elements.
pub fn quotient(domain: &Domain, a: Vec<Scalar>, b: Vec<Scalar>) -> Vec<Scalar> {
    let (mut a_values, mut free) = (vec![Scalar::default(); domain.size()], a);
    bit_reverse(&free, &mut a_values);
    let mut b_values = {
        // The memory of a takes b's values, that of b those of c.
        bit_reverse(&b, &mut free);
        free
    };
    let mut c = b;
    multiply_into(&mut c, &a_values, &b_values);

    // From here on everything is n times what its name says.
    for vector in [&mut a_values, &mut b_values, &mut c] {
        domain.inverse(vector, EvaluationSet::Subgroup);
    }
    domain.forward(&mut a_values, EvaluationSet::Coset);
    domain.forward(&mut b_values, EvaluationSet::Coset);
    // n·a · n·b / n² are the values of Q itself, and their inverse transform is n·Q.
    let per_size = domain.size_inverse();
    let mut q = a_values;
    scaled_product(&mut q, &b_values, per_size * per_size);
    drop(b_values);
    domain.inverse(&mut q, EvaluationSet::Coset);
    scaled_difference(&mut c, &q, per_size * Scalar::TWO_INV);
    c
}

/// The values of A·B on the coset in four transforms, in bit-reversed order: what the vector h
/// of a prepared key is summed with.
///
/// `a` and `b` hold the values a_i and b_i in natural order, n of each. Takes one more vector of
/// n elements for the time of the call.
///
/// # Panics
/// If `a` or `b` does not have n elements.
pub fn coset_product(domain: &Domain, a: Vec<Scalar>, b: Vec<Scalar>) -> Vec<Scalar> {
    let (mut a_values, mut b_values) = (vec![Scalar::default(); domain.size()], a);
    bit_reverse(&b_values, &mut a_values);
    bit_reverse(&b, &mut b_values);
    drop(b);
    for vector in [&mut a_values, &mut b_values] {
        domain.inverse(vector, EvaluationSet::Subgroup);
        domain.forward(vector, EvaluationSet::Coset);
    }
    // Either is n times what its name says.
    let per_size = domain.size_inverse();
    scaled_product(&mut a_values, &b_values, per_size * per_size);
    a_values
}

/// out[i] = x[i]·y[i].
fn multiply_into(out: &mut [Scalar], x: &[Scalar], y: &[Scalar]) {
    pieces(out, x, y, |out, x, y| *out = x * y);
}

/// x[i] = x[i]·y[i]·scale.
fn scaled_product(x: &mut [Scalar], y: &[Scalar], scale: Scalar) {
    let scale = Limbs::from(scale);
    pieces(x, y, y, |x, y, _| *x = *x * y * scale);
}

/// x[i] = (x[i] − y[i])·scale.
fn scaled_difference(x: &mut [Scalar], y: &[Scalar], scale: Scalar) {
    let scale = Limbs::from(scale);
    pieces(x, y, y, |x, y, _| *x = (*x - y) * scale);
}

/// Applies `step` to every position, in parallel.
fn pieces(
    out: &mut [Scalar],
    x: &[Scalar],
    y: &[Scalar],
    step: impl Fn(&mut Limbs, Limbs, Limbs) + Sync,
) {
    as_limbs_mut(out)
        .par_chunks_mut(PIECE)
        .zip(as_limbs(x).par_chunks(PIECE))
        .zip(as_limbs(y).par_chunks(PIECE))
        .for_each(|((out, x), y)| {
            for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                step(out, *x, *y);
            }
        });
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;

    /// Coefficients of the polynomial with these values at 1, ω, ω², …, by the definition.
    fn interpolate(domain: &Domain, values: &[Scalar]) -> Vec<Scalar> {
        let inverse_root = domain.root().invert().unwrap();
        (0..values.len())
            .map(|i| {
                let x = inverse_root.pow_vartime([i as u64]);
                let sum = values.iter().rev().fold(Scalar::ZERO, |sum, v| sum * x + v);
                sum * domain.size_inverse()
            })
            .collect()
    }

    /// (A·B − C) divided by x^n − 1 with pencil and paper; panics if a remainder is left.
    fn divide(domain: &Domain, a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
        let n = domain.size();
        let c: Vec<Scalar> = a.iter().zip(b).map(|(a, b)| a * b).collect();
        let [a, b, c] = [a, b, &c].map(|values| interpolate(domain, values));
        let mut rest = vec![Scalar::ZERO; 2 * n];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                rest[i + j] += x * y;
            }
        }
        for (rest, c) in rest.iter_mut().zip(c) {
            *rest -= c;
        }
        let quotient = rest.split_off(n);
        for (rest, quotient) in rest.iter().zip(&quotient) {
            assert_eq!(*rest + quotient, Scalar::ZERO);
        }
        quotient
    }

    #[test]
    fn agrees_with_long_division() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for log in 0..=8 {
            let domain = Domain::new(1 << log).unwrap();
            let n = domain.size();
            let mut values =
                || -> Vec<Scalar> { (0..n).map(|_| Scalar::random(&mut rng)).collect() };
            let zeros = vec![Scalar::ZERO; n];
            let ones = vec![Scalar::ONE; n];
            let mut sparse = zeros.clone();
            sparse[n / 2] = -Scalar::ONE;
            for (a, b) in [
                (values(), values()),
                (zeros.clone(), values()),
                (ones, values()),
                (sparse.clone(), sparse),
                (zeros.clone(), zeros),
            ] {
                let expected = divide(&domain, &a, &b);
                let h = quotient(&domain, a, b);
                assert_eq!(h, expected, "n = {n}");
                assert_eq!(h[n - 1], Scalar::ZERO);
            }
        }
    }

    /// Values of A·B on the coset against their definition: A and B evaluated at g·ω^i.
    #[test]
    fn coset_products_are_values_of_the_product() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for log in 0..=7 {
            let domain = Domain::new(1 << log).unwrap();
            let n = domain.size();
            let [a, b] =
                [(); 2].map(|()| (0..n).map(|_| Scalar::random(&mut rng)).collect::<Vec<_>>());
            let [at_a, at_b] = [&a, &b].map(|values| interpolate(&domain, values));
            let evaluate = |k: &[Scalar], x| k.iter().rev().fold(Scalar::ZERO, |s, k| s * x + k);
            let expected: Vec<Scalar> = (0..n as u64)
                .map(|i| domain.coset_shift() * domain.root().pow_vartime([i]))
                .map(|x| evaluate(&at_a, x) * evaluate(&at_b, x))
                .collect();
            let mut natural = vec![Scalar::ZERO; n];
            bit_reverse(&coset_product(&domain, a, b), &mut natural);
            assert_eq!(natural, expected, "n = {n}");
        }
    }

    /// (A·B − C)(x) = H(x)·(x^n − 1) at a random x, for sizes that long division is too slow for.
    #[test]
    fn the_identity_holds_at_a_random_point() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for log in [14, 17] {
            let domain = Domain::new(1 << log).unwrap();
            let n = domain.size();
            let a: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
            let b: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
            let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            let x = Scalar::random(&mut rng);
            // Lagrange: P(x) = (x^n − 1)/n · Σ v_i·ω^i/(x − ω^i).
            let vanishing = x.pow_vartime([n as u64]) - Scalar::ONE;
            let mut weights = Vec::with_capacity(n);
            let mut power = Scalar::ONE;
            for _ in 0..n {
                weights.push(power * (x - power).invert().unwrap());
                power *= domain.root();
            }
            let at_x = |values: &[Scalar]| {
                let sum: Scalar = values.iter().zip(&weights).map(|(v, w)| v * w).sum();
                sum * vanishing * domain.size_inverse()
            };
            let left = at_x(&a) * at_x(&b) - at_x(&c);
            let h = quotient(&domain, a, b);
            let at_h = h.iter().rev().fold(Scalar::ZERO, |sum, h| sum * x + h);
            assert_eq!(left, at_h * vanishing);
        }
    }
}
