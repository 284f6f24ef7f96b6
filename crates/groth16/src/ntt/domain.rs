//! The roots of unity of a transform.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::passes;
use crate::backend::BackendError;
use crate::fr::{Limbs, as_limbs_mut};
use crate::kernel::Kernel;

/// Where polynomials are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationSet {
    /// The n-th roots of unity, the zeros of x^n − 1.
    Subgroup,
    /// g times the n-th roots of unity with g² = ω: the zeros of x^n + 1.
    Coset,
}

/// A transform's size and its table of roots (32 bytes per element).
#[derive(Debug)]
pub struct Domain {
    log_size: u32,
    kernel: Kernel,
    /// W_i = ω_{2n}^{rev(i)} for i < n; `rev` reverses log₂(n) bits.
    roots: Vec<Limbs>,
}

impl Domain {
    /// Largest log₂ of a size: Fr has roots of unity of order 2^32, and the coset needs 2n.
    pub const MAX_LOG_SIZE: u32 = Scalar::S - 1;

    /// A domain of `size` elements on the fastest kernel of this processor.
    ///
    /// # Errors
    /// As [`Self::with_kernel`].
    pub fn new(size: usize) -> Result<Self, BackendError> {
        Self::with_kernel(size, Kernel::detect())
    }

    /// A domain of `size` elements whose transforms run on `kernel`, or on the portable one
    /// where the processor lacks it.
    ///
    /// Computes the table with n multiplications, in parallel.
    ///
    /// # Errors
    /// [`BackendError::DomainSize`] unless `size` is a power of two up to 2^31.
    pub fn with_kernel(size: usize, kernel: Kernel) -> Result<Self, BackendError> {
        if !size.is_power_of_two() || size.ilog2() > Self::MAX_LOG_SIZE {
            return Err(BackendError::DomainSize { size });
        }
        let log_size = size.ilog2();
        let mut roots = vec![Limbs::from(Scalar::ONE); size];
        for level in 0..log_size {
            // W_{2^L + i} = W_i · ω_{2n}^{rev(2^L)}, and ω_{2n}^{rev(2^L)} has order 2^{L + 2}.
            let step = Limbs::from(root_of_order(level + 2));
            let (known, rest) = roots.split_at_mut(1 << level);
            rest[..known.len()]
                .par_iter_mut()
                .zip(known)
                .with_min_len(1 << 12)
                .for_each(|(root, known)| *root = *known * step);
        }
        Ok(Domain {
            log_size,
            kernel,
            roots,
        })
    }

    /// Number of elements n.
    pub fn size(&self) -> usize {
        1 << self.log_size
    }

    /// log₂(n).
    pub fn log_size(&self) -> u32 {
        self.log_size
    }

    /// ω, of order n.
    pub fn root(&self) -> Scalar {
        root_of_order(self.log_size)
    }

    /// g, of order 2n, with g² = ω and g^n = −1.
    pub fn coset_shift(&self) -> Scalar {
        root_of_order(self.log_size + 1)
    }

    /// What the transforms run on.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The roots table.
    pub(super) fn roots(&self) -> &[Limbs] {
        &self.roots
    }

    /// 1/n, which [`Self::inverse`] leaves to the caller.
    pub fn size_inverse(&self) -> Scalar {
        let half = Scalar::from(2)
            .invert()
            .expect("invariant: 2 is not 0 in Fr");
        half.pow_vartime([u64::from(self.log_size)])
    }

    /// Evaluates a polynomial: coefficients in natural order become values in bit-reversed
    /// order.
    ///
    /// # Panics
    /// If `vector` does not have n elements.
    pub fn forward(&self, vector: &mut [Scalar], points: EvaluationSet) {
        assert_eq!(vector.len(), self.size(), "a vector of the domain's size");
        passes::forward(self, as_limbs_mut(vector), points);
    }

    /// Interpolates: values in bit-reversed order become **n times** the coefficients, in
    /// natural order. The factor is left for the caller to merge with others of his
    /// ([`Self::size_inverse`]).
    ///
    /// # Panics
    /// If `vector` does not have n elements.
    pub fn inverse(&self, vector: &mut [Scalar], points: EvaluationSet) {
        assert_eq!(vector.len(), self.size(), "a vector of the domain's size");
        passes::inverse(self, as_limbs_mut(vector), points);
    }
}

/// The root of unity of order 2^log, the same for every domain: ω_{2n}² = ω_n.
fn root_of_order(log: u32) -> Scalar {
    let mut root = Scalar::ROOT_OF_UNITY;
    for _ in log..Scalar::S {
        root = root.square();
    }
    root
}
