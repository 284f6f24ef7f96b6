//! Whether a prepared key says the same as the published one that it was made from.
//!
//! What is compared:
//!
//! 1. The verifying keys, and a, b in both groups: every point, exactly.
//! 2. Every point of the prepared key is on its curve and in the subgroup of prime order, by the
//!    bucket sums of [`check_points`]: a bad key passes with a probability of at most 2^−48.
//! 3. h and l together, by one random linear combination. For weights q_i of the coset's points
//!    and w_j of the variables, drawn from 128 secret random bits each after the file is
//!    complete,
//!
//!    Σ q_i·e_i + Σ w_j·l'_j = Σ_aux w_j·l_j + Σ_k ½·(c_k − p_k)·h_k,   k = 0 … n − 2,
//!
//!    where p_k are the coefficients of the polynomial with the values q_i on the coset, and c_k
//!    those of the polynomial with the values (C·w)_i on the domain: by the definitions of e
//!    and l', −½·Σ q_i·φ(L_i) drops the top coefficient of −½·p, and ½·Σ_j w_j·Σ_i C_ij·φ(L_i)
//!    that of ½·c. Points of prime order that are wrong in any place satisfy this for at most
//!    one in 2^128 of the weights there: a wrong key passes with a probability of at most 2^−128.

use blstrs::Scalar;
use ff::PrimeField;
use r1cs::{CompiledCircuit, Matrix};
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

use super::super::check::check_points;
use super::super::prepared::unusable;
use super::super::{KeyError, KeyPoint, ProvingKey, Section};
use crate::fr::{Limbs, as_limbs, as_limbs_mut};
use crate::msm;
use crate::ntt::{Domain, EvaluationSet, bit_reverse};
use crate::points::Points;
use crate::progress::Progress;

/// Points, and weights, that a thread takes at a time.
const CHUNK: usize = 4096;

/// Checks `prepared` against `published`, both of `circuit`, on all threads.
///
/// Needs about 160 bytes for each point of the domain and each variable.
///
/// # Errors
/// [`KeyError::Prepared`] says which vector is wrong; whatever reading the keys fails with.
pub(super) fn check_against(
    circuit: &CompiledCircuit,
    prepared: &ProvingKey,
    published: &ProvingKey,
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    if prepared.vk() != published.vk() {
        return Err(wrong(prepared, "verifying key"));
    }
    let (a, b) = (published.a().len(), published.b_g1().len());
    progress.begin("compare", (a + 2 * b) as u64);
    same_points(prepared, prepared.a(), published.a(), progress)?;
    same_points(prepared, prepared.b_g1(), published.b_g1(), progress)?;
    same_points(prepared, prepared.b_g2(), published.b_g2(), progress)?;
    check_points(prepared, progress)?;
    check_combination(circuit, prepared, published, progress)
}

fn wrong(prepared: &ProvingKey, what: &str) -> KeyError {
    unusable(
        prepared.path(),
        format!("its {what} does not agree with the parameter file"),
    )
}

fn same_points<P: KeyPoint>(
    key: &ProvingKey,
    prepared: &Section<P>,
    published: &Section<P>,
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    (0..published.len().div_ceil(CHUNK))
        .into_par_iter()
        .try_for_each(|index| {
            let start = index * CHUNK;
            let count = CHUNK.min(published.len() - start);
            let [mut left, mut right] = [(); 2].map(|()| vec![P::default(); count]);
            prepared.read(start, &mut left)?;
            published.read(start, &mut right)?;
            if left != right {
                return Err(wrong(key, &format!("section {}", published.name())));
            }
            progress.advance(count as u64);
            Ok(())
        })
}

/// The third comparison.
fn check_combination(
    circuit: &CompiledCircuit,
    prepared: &ProvingKey,
    published: &ProvingKey,
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let shape = circuit.shape();
    let n = shape.domain();
    progress.begin("combine", 4);
    let domain = Domain::new(n).map_err(KeyError::device)?;
    let q = weights(n)?;
    let w = weights(shape.inputs + shape.aux)?;
    let left = msm::sum(prepared.h(), &q)? + {
        progress.advance(1);
        msm::sum(prepared.l(), &w)?
    };
    progress.advance(1);

    let mut scalars = {
        let mut c = circuit.rows_at(Matrix::C, &w);
        c.resize(n, Scalar::default());
        let mut values = vec![Scalar::default(); n];
        bit_reverse(&c, &mut values);
        values
    };
    domain.inverse(&mut scalars, EvaluationSet::Subgroup);
    // q is in the order of e, which is the transforms' own.
    let mut p = q;
    domain.inverse(&mut p, EvaluationSet::Coset);
    half_difference(&mut scalars, &p, domain.size_inverse() * Scalar::TWO_INV);
    drop(p);
    let from_l = msm::sum(published.l(), &w[shape.inputs..])?;
    progress.advance(1);
    let right = from_l + msm::sum(published.h(), &scalars[..n - 1])?;
    progress.advance(1);
    if left == right {
        Ok(())
    } else {
        Err(wrong(prepared, "section h or l"))
    }
}

/// x[i] = (x[i] − y[i])·scale.
fn half_difference(x: &mut [Scalar], y: &[Scalar], scale: Scalar) {
    let scale = Limbs::from(scale);
    as_limbs_mut(x)
        .par_chunks_mut(CHUNK)
        .zip(as_limbs(y).par_chunks(CHUNK))
        .for_each(|(x, y)| {
            for (x, y) in x.iter_mut().zip(y) {
                *x = (*x - *y) * scale;
            }
        });
}

/// Independent scalars of 128 secret random bits.
fn weights(count: usize) -> Result<Vec<Scalar>, KeyError> {
    let mut seed = [0; 32];
    OsRng
        .try_fill_bytes(&mut seed)
        .map_err(|error| KeyError::Random {
            reason: error.to_string(),
        })?;
    let mut weights = vec![Scalar::default(); count];
    weights
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(index, weights)| {
            let mut rng = ChaCha20Rng::from_seed(seed);
            rng.set_stream(index as u64);
            for weight in weights {
                let mut bytes = [0; 32];
                rng.fill_bytes(&mut bytes[..16]);
                *weight = Option::from(Scalar::from_repr(bytes))
                    .expect("invariant: 128 bits are less than r");
            }
        });
    Ok(weights)
}
