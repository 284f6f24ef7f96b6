//! What multiplies the generators: all threads, or a device.

use std::sync::OnceLock;

use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::fixed_base::{FixedBase, Multiplier};
use crate::backend::BackendError;
use crate::curve::AffinePoint;
use crate::key::{KeyCounts, KeyError, KeyPoint};

/// Multiplies the standard generators by many scalars.
pub trait FixedBaseMultiplier: Send + Sync {
    /// out\[i\] = scalars\[i\]·G₁, affine; a zero gives the identity. Both have the same length.
    ///
    /// # Errors
    /// A device that fails.
    fn g1(&self, scalars: &[Scalar], out: &mut [G1Affine]) -> Result<(), BackendError>;

    /// out\[i\] = scalars\[i\]·G₂, likewise.
    ///
    /// # Errors
    /// A device that fails.
    fn g2(&self, scalars: &[Scalar], out: &mut [G2Affine]) -> Result<(), BackendError>;

    /// Points that a call should have, where there are as many. Memory for six times as many
    /// scalars or points is held.
    fn batch(&self) -> usize {
        1 << 21
    }
}

/// Scalars that one thread multiplies at a time.
pub(super) const CHUNK: usize = 4096;

/// All threads of the caller's rayon pool, with tables of both generators: at most 94 MB for
/// G1 and 189 MB for G2, each made when it is first needed.
pub struct CpuFixedBase {
    g1_count: usize,
    g2_count: usize,
    g1: OnceLock<FixedBase<G1Affine>>,
    g2: OnceLock<FixedBase<G2Affine>>,
}

impl CpuFixedBase {
    /// Chunks for each thread in a call.
    pub(super) const CHUNKS_PER_THREAD: usize = 4;

    /// With tables whose size suits a key of these counts.
    pub fn new(counts: &KeyCounts) -> Self {
        CpuFixedBase {
            g1_count: (counts.inputs + counts.h + counts.l + counts.a + counts.b) as usize,
            g2_count: counts.b as usize,
            g1: OnceLock::new(),
            g2: OnceLock::new(),
        }
    }
}

impl FixedBaseMultiplier for CpuFixedBase {
    fn g1(&self, scalars: &[Scalar], out: &mut [G1Affine]) -> Result<(), BackendError> {
        let table = || FixedBase::new(G1Affine::generator(), self.g1_count);
        multiply(self.g1.get_or_init(table), scalars, out);
        Ok(())
    }

    fn g2(&self, scalars: &[Scalar], out: &mut [G2Affine]) -> Result<(), BackendError> {
        let table = || FixedBase::new(G2Affine::generator(), self.g2_count);
        multiply(self.g2.get_or_init(table), scalars, out);
        Ok(())
    }

    fn batch(&self) -> usize {
        rayon::current_num_threads() * Self::CHUNKS_PER_THREAD * CHUNK
    }
}

fn multiply<P: AffinePoint>(base: &FixedBase<P>, scalars: &[Scalar], out: &mut [P]) {
    out.par_chunks_mut(CHUNK)
        .zip(scalars.par_chunks(CHUNK))
        .for_each_init(
            || Multiplier::new(base),
            |multiplier, (out, scalars)| multiplier.multiply(scalars, out),
        );
}

/// A point of the group whose generator is multiplied.
pub(super) trait SetupPoint: AffinePoint + KeyPoint {
    /// out[i] = scalars[i] times the generator.
    fn multiply(
        multiplier: &dyn FixedBaseMultiplier,
        scalars: &[Scalar],
        out: &mut [Self],
    ) -> Result<(), KeyError>;
}

impl SetupPoint for G1Affine {
    fn multiply(
        multiplier: &dyn FixedBaseMultiplier,
        scalars: &[Scalar],
        out: &mut [Self],
    ) -> Result<(), KeyError> {
        multiplier.g1(scalars, out).map_err(KeyError::device)
    }
}

impl SetupPoint for G2Affine {
    fn multiply(
        multiplier: &dyn FixedBaseMultiplier,
        scalars: &[Scalar],
        out: &mut [Self],
    ) -> Result<(), KeyError> {
        multiplier.g2(scalars, out).map_err(KeyError::device)
    }
}
