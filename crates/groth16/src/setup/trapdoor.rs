//! The secrets of a set-up, and the Lagrange basis at one of them.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// The five secrets of a test key, none of them zero. Whoever knows them can forge proofs;
/// here they follow from a seed that everybody may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trapdoor {
    /// Where the circuit's polynomials are evaluated.
    pub tau: Scalar,
    /// Factor of the right polynomials in `ic` and `l`.
    pub alpha: Scalar,
    /// Factor of the left polynomials in `ic` and `l`.
    pub beta: Scalar,
    /// Divisor of `ic`.
    pub gamma: Scalar,
    /// Divisor of `h` and `l`.
    pub delta: Scalar,
}

impl Trapdoor {
    /// Draws the secrets for a domain of `n` = 2^k points.
    ///
    /// The stream is ChaCha20 (64-bit counter and nonce 0) with the key
    /// `"cuzk test key v1" (16 bytes) | seed (8 bytes, little-endian) | eight zeros`. A scalar
    /// is 64 bytes of it as a little-endian number mod r. Drawn in the order τ, α, β, γ, δ;
    /// zeros, and a τ in the domain, are drawn again.
    pub fn from_seed(seed: u64, n: usize) -> Self {
        let mut rng = stream(b"cuzk test key v1", seed);
        let mut draw = |usable: &dyn Fn(&Scalar) -> bool| loop {
            let scalar = wide_scalar(&mut rng);
            if usable(&scalar) {
                break scalar;
            }
        };
        let nonzero = |scalar: &Scalar| !bool::from(scalar.is_zero());
        Trapdoor {
            tau: draw(&|tau| nonzero(tau) && nonzero(&vanishing(tau, n))),
            alpha: draw(&nonzero),
            beta: draw(&nonzero),
            gamma: draw(&nonzero),
            delta: draw(&nonzero),
        }
    }
}

/// ChaCha20 (64-bit counter and nonce 0) with the key
/// `purpose (16 bytes) | seed (8 bytes, little-endian) | eight zeros`.
pub(super) fn stream(purpose: &[u8; 16], seed: u64) -> ChaCha20Rng {
    let mut key = [0; 32];
    key[..16].copy_from_slice(purpose);
    key[16..24].copy_from_slice(&seed.to_le_bytes());
    ChaCha20Rng::from_seed(key)
}

/// 64 bytes of the stream, little-endian, mod r.
pub(super) fn wide_scalar(rng: &mut ChaCha20Rng) -> Scalar {
    let mut bytes = [0; 64];
    rng.fill_bytes(&mut bytes);
    let shift = Scalar::from(u64::MAX) + Scalar::ONE;
    bytes.rchunks_exact(8).fold(Scalar::ZERO, |sum, word| {
        let word = word.try_into().expect("invariant: chunks of eight bytes");
        sum * shift + Scalar::from(u64::from_le_bytes(word))
    })
}

/// Z(x) = x^n − 1, which vanishes on the domain of `n` points.
pub(crate) fn vanishing(x: &Scalar, n: usize) -> Scalar {
    x.pow_vartime([n as u64]) - Scalar::ONE
}

/// A generator ω of the domain of `n` = 2^k points, the one that the proof system uses.
pub(crate) fn domain_generator(n: usize) -> Scalar {
    let mut omega = Scalar::ROOT_OF_UNITY;
    for _ in n.trailing_zeros()..Scalar::S {
        omega = omega.square();
    }
    omega
}

/// Zeros, written by all threads: the first write to fresh memory is what costs.
pub(crate) fn zeros(count: usize) -> Vec<Scalar> {
    rayon::iter::repeat_n(Scalar::ZERO, count).collect()
}

/// L_i(τ) for every i of the domain of `n` = 2^k points, where L_i is 1 at ω^i and 0 at the
/// other points: L_i(τ) = ω^i·(τ^n − 1) / (n·(τ − ω^i)). τ must not be in the domain.
pub(crate) fn lagrange_at(tau: &Scalar, n: usize) -> Vec<Scalar> {
    /// Values that share an inversion.
    const BLOCK: usize = 1 << 12;
    let omega = domain_generator(n);
    let scale = vanishing(tau, n)
        * Scalar::from(n as u64)
            .invert()
            .expect("invariant: a power of two is not 0 mod r");
    let mut values = zeros(n);
    values
        .par_chunks_mut(BLOCK)
        .enumerate()
        .for_each(|(block, values)| {
            let first = omega.pow_vartime([(block * BLOCK) as u64]);
            // values[i] = product of the differences before i; then backwards with the
            // inverse of the whole product.
            let mut product = Scalar::ONE;
            let mut power = first;
            for value in values.iter_mut() {
                *value = product;
                product *= tau - power;
                power *= omega;
            }
            let mut inverse = product
                .invert()
                .expect("invariant: no difference is zero, as tau is not in the domain");
            let omega_inverse = omega.invert().expect("invariant: roots of unity are not 0");
            for value in values.iter_mut().rev() {
                power *= omega_inverse;
                *value *= inverse * power * scale;
                inverse *= tau - power;
            }
        });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_fixed_and_distinct_secrets() {
        let first = Trapdoor::from_seed(1, 8);
        assert_eq!(first, Trapdoor::from_seed(1, 8));
        assert_ne!(first, Trapdoor::from_seed(2, 8));
        let all = [first.tau, first.alpha, first.beta, first.gamma, first.delta];
        for (i, left) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|right| left != right));
        }
    }

    #[test]
    fn wide_scalars_are_the_number_mod_r() {
        // The first 64 bytes of the stream, put together by doubling bit by bit.
        let mut key = [0; 32];
        key[..16].copy_from_slice(b"cuzk test key v1");
        key[16] = 5;
        let mut bytes = [0; 64];
        ChaCha20Rng::from_seed(key).fill_bytes(&mut bytes);
        let mut expected = Scalar::ZERO;
        for bit in (0..512).rev() {
            expected = expected.double() + Scalar::from(u64::from(bytes[bit / 8] >> (bit % 8) & 1));
        }
        assert_eq!(Trapdoor::from_seed(5, 8).tau, expected);
    }

    #[test]
    fn lagrange_values_interpolate_polynomials() {
        let tau = Trapdoor::from_seed(3, 1 << 13).tau;
        for n in [1, 2, 4, 32, 1 << 13] {
            let omega = domain_generator(n);
            assert_eq!(omega.pow_vartime([n as u64]), Scalar::ONE);
            assert!(n == 1 || omega.pow_vartime([n as u64 / 2]) != Scalar::ONE);
            let lagrange = lagrange_at(&tau, n);
            // Σ L_i(τ)·(ω^i)^k = τ^k for every k below n.
            for k in [0, 1, 2, n / 2, n - 1] {
                if k < n {
                    let sum: Scalar = lagrange
                        .iter()
                        .enumerate()
                        .map(|(i, value)| *value * omega.pow_vartime([(i * k) as u64]))
                        .sum();
                    assert_eq!(sum, tau.pow_vartime([k as u64]), "n = {n}, k = {k}");
                }
            }
        }
    }
}
