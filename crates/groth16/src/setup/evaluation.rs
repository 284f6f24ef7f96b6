//! The scalars of a prepared key, in closed form.
//!
//! φ drops the coefficient of x^(n−1). With x the point where a Lagrange polynomial is 1:
//!
//! * on the domain, L_x(τ) = x·(τ^n − 1)/(n·(τ − x)) has the top coefficient x/n, so that
//!   φ(L_x)(τ) = L_x(τ) − x·τ^(n−1)/n;
//! * on the coset, where x^n = −1, L_x(τ) = −x·(τ^n + 1)/(n·(τ − x)) has the top coefficient
//!   −x/n, so that φ(L_x)(τ) = −x·(x·τ^(n−1) + 1)/(n·(τ − x)).

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::trapdoor::{Trapdoor, domain_generator, vanishing};

/// Values that share an inversion, or a power of ω.
const BLOCK: usize = 1 << 12;

/// Discrete logarithms of a prepared key's h: e_i = −½·φ(L_i)(τ)·Z(τ)/δ for the points of the
/// coset in bit-reversed order.
pub(super) struct CosetQuery {
    log_size: u32,
    tau: Scalar,
    /// τ^(n−1).
    power: Scalar,
    /// Z(τ)/(2·n·δ).
    scale: Scalar,
    omega: Scalar,
    /// g·ω^rev(j) for the first positions j.
    first: Vec<Scalar>,
}

impl CosetQuery {
    /// For a domain of `n` = 2^k points; `None` if τ lies on the coset, where this form divides
    /// by zero.
    pub fn new(secrets: &Trapdoor, n: usize) -> Option<Self> {
        let tau = secrets.tau;
        let on_coset = tau.pow_vartime([n as u64]) == -Scalar::ONE;
        let divisor = Scalar::from(2 * n as u64) * secrets.delta;
        let scale = vanishing(&tau, n) * Option::<Scalar>::from(divisor.invert())?;
        let (log_size, omega) = (n.ilog2(), domain_generator(n));
        let shift = domain_generator(2 * n);
        let first = (0..n.min(BLOCK))
            .map(|j| shift * omega.pow_vartime([reverse(j, log_size)]))
            .collect();
        (!on_coset).then_some(CosetQuery {
            log_size,
            tau,
            power: tau.pow_vartime([n as u64 - 1]),
            scale,
            omega,
            first,
        })
    }

    /// Fills `out` with the values from position `start` on.
    pub fn fill(&self, mut start: usize, mut out: &mut [Scalar]) {
        while !out.is_empty() {
            let within = start % self.first.len();
            let count = out.len().min(self.first.len() - within);
            let (now, later) = out.split_at_mut(count);
            // The bits of a position's block and those within it do not meet, reversed either.
            let block = self
                .omega
                .pow_vartime([reverse(start - within, self.log_size)]);
            self.fill_block(block, &self.first[within..within + count], now);
            (start, out) = (start + count, later);
        }
    }

    /// The values at the points `block` times each of `first`.
    fn fill_block(&self, block: Scalar, first: &[Scalar], out: &mut [Scalar]) {
        // Products of the divisors before each; then backwards with the inverse of all.
        let mut product = Scalar::ONE;
        for (value, first) in out.iter_mut().zip(first) {
            *value = product;
            product *= self.tau - block * first;
        }
        let mut inverse = product
            .invert()
            .expect("invariant: no divisor is zero, as tau is not on the coset");
        for (value, first) in out.iter_mut().zip(first).rev() {
            let x = block * first;
            *value *= inverse * x * (x * self.power + Scalar::ONE) * self.scale;
            inverse *= self.tau - x;
        }
    }
}

/// From L_i(τ) of the domain's first points to ½·φ(L_i)(τ)·Z(τ), in place: what C's entries in
/// row i are multiplied with for a prepared key's l, times δ.
pub(super) fn fold_weights(lagrange: &mut [Scalar], tau: &Scalar, n: usize) {
    let omega = domain_generator(n);
    let per_size = Scalar::from(n as u64)
        .invert()
        .expect("invariant: a power of two is not 0 mod r");
    let top = tau.pow_vartime([n as u64 - 1]) * per_size;
    let scale = vanishing(tau, n) * Scalar::TWO_INV;
    lagrange
        .par_chunks_mut(BLOCK)
        .enumerate()
        .for_each(|(block, values)| {
            let mut x = omega.pow_vartime([(block * BLOCK) as u64]);
            for value in values {
                *value = (*value - x * top) * scale;
                x *= omega;
            }
        });
}

/// The lowest `bits` bits of `index` in reverse order; the others are zero.
fn reverse(index: usize, bits: u32) -> u64 {
    match bits {
        0 => 0,
        bits => (index as u64).reverse_bits() >> (u64::BITS - bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt::{Domain, EvaluationSet};
    use crate::setup::trapdoor::lagrange_at;

    /// Σ_i v_i·φ(L_i)(τ) is the polynomial with the values v_i at τ, without its top coefficient:
    /// for both sets and every size, against transforms.
    #[test]
    fn closed_forms_agree_with_interpolation() {
        for log in [0, 1, 2, 3, 8, 13] {
            let domain = Domain::new(1 << log).unwrap();
            let n = domain.size();
            let secrets = Trapdoor::from_seed(9, n);
            let half_z = vanishing(&secrets.tau, n) * Scalar::TWO_INV;
            let values: Vec<Scalar> = (0..n as u64).map(|i| Scalar::from(3 * i * i + 7)).collect();
            // `values` in bit-reversed order, as the transforms take them.
            let without_top = |set| {
                let mut coefficients = values.clone();
                domain.inverse(&mut coefficients, set);
                coefficients[n - 1] = Scalar::ZERO;
                let at_tau = |sum: Scalar, k: &Scalar| sum * secrets.tau + k;
                coefficients.iter().rev().fold(Scalar::ZERO, at_tau) * domain.size_inverse()
            };
            let sum = |weights: &[Scalar]| -> Scalar {
                values.iter().zip(weights).map(|(v, w)| *v * w).sum()
            };

            let query = CosetQuery::new(&secrets, n).unwrap();
            let mut e = vec![Scalar::ZERO; n];
            query.fill(0, &mut e);
            let expected = -without_top(EvaluationSet::Coset) * half_z;
            assert_eq!(sum(&e) * secrets.delta, expected, "n = {n}");
            // Pieces that begin and end anywhere.
            let mut part = vec![Scalar::ZERO; n / 2];
            query.fill(n / 3, &mut part);
            assert_eq!(part, e[n / 3..n / 3 + n / 2]);

            let mut natural = lagrange_at(&secrets.tau, n);
            fold_weights(&mut natural, &secrets.tau, n);
            let mut reversed = natural.clone();
            crate::ntt::bit_reverse(&natural, &mut reversed);
            let expected = without_top(EvaluationSet::Subgroup) * half_z;
            assert_eq!(sum(&reversed), expected, "n = {n}");
        }
    }

    #[test]
    fn a_secret_on_the_coset_is_noticed() {
        let mut secrets = Trapdoor::from_seed(1, 8);
        secrets.tau = domain_generator(16).pow_vartime([5]);
        assert!(CosetQuery::new(&secrets, 8).is_none());
    }
}
