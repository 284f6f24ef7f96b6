//! The verifier: one product of pairings.

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Prepared, Gt, Scalar};
use group::Curve;
use pairing::{MillerLoopResult, MultiMillerLoop};

use crate::backend::BackendError;
use crate::error::Error;
use crate::key::VerifyingKey;
use crate::msm;
use crate::proof::Proof;

/// Public inputs from which on they are summed by buckets. One product after the other takes 84 µs each, the
/// buckets 1.3 ms for 67 inputs and 28 ms for a WindowPoSt's 25 839 (core time, two cores with AVX-512 IFMA).
const BUCKET_INPUTS: usize = 32;

/// A verifying key in the form in which proofs are checked against it.
#[derive(Clone, Debug)]
pub struct PreparedVerifyingKey {
    /// e(α, β).
    alpha_beta: Gt,
    /// −γ and −δ with their line coefficients.
    neg_gamma: G2Prepared,
    neg_delta: G2Prepared,
    /// One point per public input, the constant one first.
    ic: Vec<G1Affine>,
}

impl PreparedVerifyingKey {
    /// Public inputs that proofs under this key have, without the constant one.
    pub fn inputs(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }
}

impl From<&VerifyingKey> for PreparedVerifyingKey {
    fn from(vk: &VerifyingKey) -> Self {
        let beta = G2Prepared::from(vk.beta_g2);
        PreparedVerifyingKey {
            alpha_beta: Bls12::multi_miller_loop(&[(&vk.alpha_g1, &beta)]).final_exponentiation(),
            neg_gamma: G2Prepared::from(-vk.gamma_g2),
            neg_delta: G2Prepared::from(-vk.delta_g2),
            ic: vk.ic.clone(),
        }
    }
}

/// Whether `proof` shows the statement with these public inputs (without the constant one):
/// e(A, B) · e(Σ x_i·ic_i, −γ) · e(C, −δ) = e(α, β).
///
/// Runs on the current rayon pool.
///
/// # Errors
/// [`Error::InputCount`] when the key takes another number of inputs. [`Error::Backend`] does not come from points in
/// memory, which these are.
pub fn verify(key: &PreparedVerifyingKey, inputs: &[Scalar], proof: &Proof) -> Result<bool, Error> {
    let Some((one, rest)) = key
        .ic
        .split_first()
        .filter(|(_, rest)| rest.len() == inputs.len())
    else {
        return Err(Error::InputCount {
            found: inputs.len(),
            expected: key.inputs(),
        });
    };
    let statement = (input_sum(rest, inputs)? + one).to_affine();
    let b: G2Affine = proof.b;
    let product = Bls12::multi_miller_loop(&[
        (&proof.a, &G2Prepared::from(b)),
        (&statement, &key.neg_gamma),
        (&proof.c, &key.neg_delta),
    ]);
    Ok(product.final_exponentiation() == key.alpha_beta)
}

/// Σ inputs_i·points_i, of as many points.
fn input_sum(points: &[G1Affine], inputs: &[Scalar]) -> Result<G1Projective, Error> {
    if inputs.len() < BUCKET_INPUTS {
        let products = points
            .iter()
            .zip(inputs)
            .map(|(point, input)| point * input);
        return Ok(products.sum());
    }
    Ok(msm::sum(points, inputs).map_err(BackendError::from)?)
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use group::Group;
    use group::prime::PrimeCurveAffine;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;

    /// A key and a proof built from known discrete logarithms: A·B = α·β + x·γ + C·δ.
    fn statement(inputs: &[Scalar]) -> (VerifyingKey, Proof) {
        let g1 = |k: Scalar| (G1Affine::generator() * k).to_affine();
        let g2 = |k: Scalar| (G2Affine::generator() * k).to_affine();
        let [alpha, beta, gamma, delta, a, b] = [3, 5, 7, 11, 13, 17].map(Scalar::from);
        let ic: Vec<Scalar> = (0..=inputs.len() as u64)
            .map(|i| Scalar::from(100 + i * i))
            .collect();
        let x = ic[0]
            + inputs
                .iter()
                .zip(&ic[1..])
                .map(|(x, k)| x * k)
                .sum::<Scalar>();
        let c = (a * b - alpha * beta - x * gamma) * delta.invert().unwrap();
        let vk = VerifyingKey {
            alpha_g1: g1(alpha),
            beta_g1: g1(beta),
            beta_g2: g2(beta),
            gamma_g2: g2(gamma),
            delta_g1: g1(delta),
            delta_g2: g2(delta),
            ic: ic.into_iter().map(g1).collect(),
        };
        let proof = Proof {
            a: g1(a),
            b: g2(b),
            c: g1(c),
        };
        (vk, proof)
    }

    #[test]
    fn a_true_statement_verifies_and_every_change_is_noticed() {
        for count in [0, 1, 3, 31, 32, 200] {
            let inputs: Vec<Scalar> = (0..count).map(|i| Scalar::from(i * 977 + 1)).collect();
            let (vk, proof) = statement(&inputs);
            let key = PreparedVerifyingKey::from(&vk);
            assert_eq!(key.inputs(), inputs.len());
            assert!(verify(&key, &inputs, &proof).unwrap());

            let other = |change: fn(&mut Proof)| {
                let mut proof = proof;
                change(&mut proof);
                verify(&key, &inputs, &proof).unwrap()
            };
            assert!(!other(|p| p.a = -p.a));
            assert!(!other(|p| p.b = -p.b));
            assert!(!other(|p| p.c = -p.c));
            for i in 0..inputs.len().min(4) {
                let mut inputs = inputs.clone();
                inputs[i] += Scalar::ONE;
                assert!(!verify(&key, &inputs, &proof).unwrap());
            }
        }
    }

    #[test]
    fn inputs_are_summed_alike_below_and_above_the_bound_of_buckets() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for count in [0, 1, 31, 32, 33, 67, 1_000, 1_025] {
            // As public inputs are: most of them positions in a tree; and the values at the edges.
            let input = |i: usize| match i % 8 {
                0 => Scalar::random(&mut rng),
                1 => Scalar::ZERO,
                2 => Scalar::ONE,
                3 => -Scalar::ONE,
                4 => Scalar::from(u64::MAX),
                _ => Scalar::from(i as u64 * 999_999_937),
            };
            let inputs: Vec<Scalar> = (0..count).map(input).collect();
            let generator = G1Projective::generator();
            // The same point several times, its negative, and the identity among them.
            let point = |i: usize| generator * (Scalar::from(i as u64 % 7) - Scalar::from(3));
            let points: Vec<G1Affine> = (0..count).map(|i| point(i).to_affine()).collect();
            let mut expected = G1Projective::identity();
            for (point, input) in points.iter().zip(&inputs) {
                expected += point * input;
            }
            assert_eq!(input_sum(&points, &inputs).unwrap(), expected, "{count}");
        }
    }

    #[test]
    fn a_wrong_number_of_inputs_is_an_error() {
        let inputs = [Scalar::ONE, Scalar::ZERO];
        let (vk, proof) = statement(&inputs);
        let key = PreparedVerifyingKey::from(&vk);
        for wrong in [&inputs[..1], &[Scalar::ONE; 3]] {
            let error = verify(&key, wrong, &proof).unwrap_err();
            assert!(matches!(error, Error::InputCount { expected: 2, .. }));
        }
    }
}
