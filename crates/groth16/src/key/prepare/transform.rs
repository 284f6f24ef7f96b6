//! The inverse transform of points.

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use group::Curve;
use rayon::prelude::*;

use crate::backend::{BackendError, PhaseTimes};
use crate::ntt::EvaluationSet;
use crate::setup::domain_generator;

/// What interpolates in the group: all threads, for small domains, or a device.
pub trait GroupTransform: Send + Sync {
    /// In place, for n = 2^k points: points\[i\] becomes scale/n · Σ_j ω^(−ij)·points\[j\] for the
    /// subgroup, and scale/n · Σ_j ω^(−ij)·g^(−j)·points\[j\] for the coset, with g² = ω.
    /// Natural order in and out. All points are in the subgroup of prime order; some may be the
    /// identity. How long its phases took.
    ///
    /// # Errors
    /// A device that fails, or a size that it cannot do.
    fn inverse(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> Result<PhaseTimes, BackendError>;
}

/// All threads of the caller's rayon pool.
///
/// A multiplication takes some 70 µs, and there are about n·(log₂ n)/2 of them: 3 minutes of one
/// thread for the 2^18 points of winning-8m, the largest that is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuGroupTransform;

impl CpuGroupTransform {
    /// log₂ of the most points.
    pub const MAX_LOG_SIZE: u32 = 18;
}

/// Points that a thread takes at a time.
const CHUNK: usize = 64;

impl GroupTransform for CpuGroupTransform {
    fn inverse(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> Result<PhaseTimes, BackendError> {
        let n = points.len();
        if !n.is_power_of_two() {
            return Err(BackendError::DomainSize { size: n });
        }
        let log = n.ilog2();
        if log > Self::MAX_LOG_SIZE {
            return Err(BackendError::NeedsGpu {
                work: "the transform of a key's points",
                log_size: log,
                limit: Self::MAX_LOG_SIZE,
            });
        }
        let mut times = PhaseTimes::default();
        times.measure("transform", || transform(points, set, scale));
        Ok(times)
    }
}

fn transform(points: &mut [G1Affine], set: EvaluationSet, scale: Scalar) {
    let n = points.len();
    let mut work = scaled_and_reversed(points, set, scale);
    let powers = inverse_powers(n);
    for level in 0..n.ilog2() {
        butterflies(&mut work, 1 << level, &powers);
    }
    points
        .par_chunks_mut(CHUNK)
        .zip(work.par_chunks(CHUNK))
        .for_each(|(points, work)| G1Projective::batch_normalize(work, points));
}

/// points[j]·scale/n, for the coset times g^(−j) too, in bit-reversed order.
fn scaled_and_reversed(
    points: &[G1Affine],
    set: EvaluationSet,
    scale: Scalar,
) -> Vec<G1Projective> {
    let n = points.len();
    let bits = n.ilog2();
    let per_size = Scalar::from(n as u64)
        .invert()
        .expect("invariant: a power of two is not 0 mod r");
    let twist = match set {
        EvaluationSet::Subgroup => Scalar::ONE,
        EvaluationSet::Coset => domain_generator(2 * n)
            .invert()
            .expect("invariant: roots of unity are not 0"),
    };
    (0..n)
        .into_par_iter()
        .with_min_len(CHUNK)
        .map(|position| {
            let j = match bits {
                0 => 0,
                bits => position.reverse_bits() >> (usize::BITS - bits),
            };
            points[j] * (scale * per_size * twist.pow_vartime([j as u64]))
        })
        .collect()
}

/// ω^(−i) for i < n/2.
fn inverse_powers(n: usize) -> Vec<Scalar> {
    let root = domain_generator(n)
        .invert()
        .expect("invariant: roots of unity are not 0");
    std::iter::successors(Some(Scalar::ONE), |power| Some(power * root))
        .take(n / 2)
        .collect()
}

/// One level: in every block of 2·`half` points, u and v become u + w·v and u − w·v.
fn butterflies(points: &mut [G1Projective], half: usize, powers: &[Scalar]) {
    let stride = points.len() / (2 * half);
    let pair = |k: usize, u: &mut G1Projective, v: &mut G1Projective| {
        let product = match k {
            0 => *v,
            k => *v * powers[k * stride],
        };
        (*u, *v) = (*u + product, *u - product);
    };
    points.par_chunks_mut(2 * half).for_each(|block| {
        let (low, high) = block.split_at_mut(half);
        low.par_iter_mut()
            .zip(high)
            .with_min_len(CHUNK)
            .enumerate()
            .for_each(|(k, (u, v))| pair(k, u, v));
    });
}

#[cfg(test)]
mod tests {
    use group::Group;
    use group::prime::PrimeCurveAffine;

    use super::*;

    /// Against the definition, with the identity among the points.
    #[test]
    fn transforms_agree_with_the_definition() {
        for log in 0..7 {
            let n = 1usize << log;
            let points: Vec<G1Affine> = (0..n as u64)
                .map(|i| (G1Affine::generator() * Scalar::from(i * i * 7)).to_affine())
                .collect();
            let omega = domain_generator(n).invert().unwrap();
            let shift = domain_generator(2 * n).invert().unwrap();
            let scale = Scalar::from(5);
            for (set, twist) in [
                (EvaluationSet::Subgroup, Scalar::ONE),
                (EvaluationSet::Coset, shift),
            ] {
                let per_size = scale * Scalar::from(n as u64).invert().unwrap();
                let expected: Vec<G1Affine> = (0..n as u64)
                    .map(|i| {
                        let terms = points.iter().zip(0..).map(|(point, j)| {
                            point * (omega.pow_vartime([i * j]) * twist.pow_vartime([j]) * per_size)
                        });
                        terms.fold(G1Projective::identity(), |sum, term| sum + term)
                    })
                    .map(|point| point.to_affine())
                    .collect();
                let mut found = points.clone();
                CpuGroupTransform.inverse(&mut found, set, scale).unwrap();
                assert_eq!(found, expected, "n = {n}, {set:?}");
            }
        }
    }

    #[test]
    fn sizes_beyond_the_cpu_are_refused_with_the_way_out() {
        let mut points = vec![G1Affine::identity(); 1 << 19];
        let set = EvaluationSet::Subgroup;
        let error = CpuGroupTransform.inverse(&mut points, set, Scalar::ONE);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("2^19") && text.contains("GPU"), "{text}");
        let error = CpuGroupTransform.inverse(&mut points[..3], set, Scalar::ONE);
        assert!(matches!(error, Err(BackendError::DomainSize { size: 3 })));
    }
}
