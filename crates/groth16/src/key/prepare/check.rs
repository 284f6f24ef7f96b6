//! Whether a prepared key says the same as the published one that it was made from.
//!
//! What is compared, on the bytes that were written:
//!
//! 1. The verifying keys, and a, b in both groups: every point, exactly.
//! 2. Every point of h and l is on its curve and in the subgroup of prime order, by bucket sums
//!    ([`Weights`]): a bad key passes with a probability of at most 2^−48.
//! 3. h and l together, by a random linear combination over the same bucket sums. For weights q_i of the
//!    coset's points and w_j of the variables,
//!
//!    Σ q_i·e_i + Σ w_j·l'_j = Σ_aux w_j·l_j + Σ_k ½·(c_k − p_k)·h_k,   k = 0 … n − 2,
//!
//!    where p_k are the coefficients of the polynomial with the values q_i on the coset, and c_k
//!    those of the polynomial with the values (C·w)_i on the domain: by the definitions of e
//!    and l', −½·Σ q_i·φ(L_i) drops the top coefficient of −½·p, and ½·Σ_j w_j·Σ_i C_ij·φ(L_i)
//!    that of ½·c. Points of prime order that are wrong in any place satisfy this for at most one
//!    choice of the three buckets of that place: a wrong key passes with a probability of at most 2^−48.
//!
//! The weights are drawn when the work begins, so that the right side can be computed while the transforms run.
//! That does not weaken anything: they are this check's alone, and what makes the points never sees them.

use blstrs::{G1Projective, Scalar};
use ff::PrimeField;
use r1cs::{CompiledCircuit, Matrix};
use rayon::prelude::*;

use super::super::check::Weights;
use super::super::prepared::unusable;
use super::super::{KeyError, KeyPoint, ProvingKey, Section};
use crate::fr::{Limbs, as_limbs, as_limbs_mut};
use crate::msm;
use crate::ntt::{Domain, EvaluationSet, bit_reverse};
use crate::points::Points;
use crate::progress::Progress;

/// Points that a thread takes at a time.
const CHUNK: usize = 4096;

/// The comparison of a key that is being prepared with its source, part by part.
pub(super) struct Check<'a> {
    circuit: &'a CompiledCircuit,
    published: &'a ProvingKey,
    /// q_i.
    of_h: Weights,
    /// w_j.
    of_l: Weights,
}

impl<'a> Check<'a> {
    /// Draws the weights.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn new(circuit: &'a CompiledCircuit, published: &'a ProvingKey) -> Result<Self, KeyError> {
        Ok(Check {
            circuit,
            published,
            of_h: Weights::random()?,
            of_l: Weights::random()?,
        })
    }

    /// Compares what stays as it is: the verifying key, a and b.
    ///
    /// # Errors
    /// [`KeyError::Prepared`] says which vector is wrong; whatever reading the keys fails with.
    pub fn compare_kept(
        &self,
        prepared: &ProvingKey,
        progress: &dyn Progress,
    ) -> Result<(), KeyError> {
        let published = self.published;
        if prepared.vk() != published.vk() {
            return Err(wrong(prepared, "verifying key"));
        }
        let (a, b) = (published.a().len(), published.b_g1().len());
        progress.begin("compare", (a + 2 * b) as u64);
        same_points(prepared, prepared.a(), published.a(), progress)?;
        same_points(prepared, prepared.b_g1(), published.b_g1(), progress)?;
        same_points(prepared, prepared.b_g2(), published.b_g2(), progress)
    }

    /// The right side: Σ_aux w_j·l_j + Σ_k ½·(c_k − p_k)·h_k.
    ///
    /// Takes about 130 bytes for each point of the domain.
    ///
    /// # Errors
    /// Whatever reading the key fails with.
    pub fn expected(&self, progress: &dyn Progress) -> Result<G1Projective, KeyError> {
        let shape = self.circuit.shape();
        let n = shape.domain();
        progress.begin("combine", 2);
        let w = self.of_l.of(shape.inputs + shape.aux);
        let from_l = msm::sum(self.published.l(), &w[shape.inputs..])?;
        progress.advance(1);
        let mut scalars = {
            let mut c = self.circuit.rows_at(Matrix::C, &w);
            drop(w);
            c.resize(n, Scalar::default());
            let mut values = vec![Scalar::default(); n];
            bit_reverse(&c, &mut values);
            values
        };
        let domain = Domain::new(n).map_err(KeyError::device)?;
        domain.inverse(&mut scalars, EvaluationSet::Subgroup);
        // q is in the order of e, which is the transforms' own.
        let mut p = self.of_h.of(n);
        domain.inverse(&mut p, EvaluationSet::Coset);
        half_difference(&mut scalars, &p, domain.size_inverse() * Scalar::TWO_INV);
        drop((p, domain));
        let from_h = msm::sum(self.published.h(), &scalars[..n - 1])?;
        progress.advance(1);
        Ok(from_l + from_h)
    }

    /// Checks the points of h; Σ q_i·e_i.
    ///
    /// # Errors
    /// [`KeyError::Point`] names a point off its curve or outside the subgroup; whatever reading fails with.
    pub fn sum_h(
        &self,
        prepared: &ProvingKey,
        progress: &dyn Progress,
    ) -> Result<G1Projective, KeyError> {
        self.of_h.check_and_sum(prepared.h(), progress)
    }

    /// Checks the points of l; Σ w_j·l'_j.
    ///
    /// # Errors
    /// As [`Self::sum_h`].
    pub fn sum_l(
        &self,
        prepared: &ProvingKey,
        progress: &dyn Progress,
    ) -> Result<G1Projective, KeyError> {
        self.of_l.check_and_sum(prepared.l(), progress)
    }

    /// Compares the two sides.
    ///
    /// # Errors
    /// [`KeyError::Prepared`].
    pub fn compare(
        &self,
        prepared: &ProvingKey,
        found: G1Projective,
        expected: G1Projective,
    ) -> Result<(), KeyError> {
        match found == expected {
            true => Ok(()),
            false => Err(wrong(prepared, "section h or l")),
        }
    }
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
