//! A vector of points on its way to the file: scalars, multiplication and writing overlap.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::multiplier::{CHUNK, FixedBaseMultiplier, SetupPoint};
use super::sink::Sink;
use crate::key::{KeyError, PointEncoding};
use crate::progress::Progress;

/// Writes the generator's multiples by `count` scalars.
///
/// `scalars(i, out)` fills `out` with the scalars from index i on; it is called for pieces, by
/// several threads. In every step a batch of scalars is computed, the batch before it is
/// multiplied, and the one before that is written.
pub(super) fn write_multiples<P: SetupPoint>(
    multiplier: &dyn FixedBaseMultiplier,
    count: usize,
    scalars: impl Fn(usize, &mut [Scalar]) + Sync,
    encoding: PointEncoding,
    out: &mut impl Sink,
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let batch = multiplier.batch().clamp(1, count.max(1));
    let batches = count.div_ceil(batch);
    let len = |index: usize| batch.min(count - index * batch);
    let [mut filled, mut taken] = [(); 2].map(|()| vec![Scalar::ZERO; batch]);
    let [mut made, mut written] = [(); 2].map(|()| vec![P::identity(); batch]);
    for step in 0..batches + 2 {
        let stage = |lag: usize| step.checked_sub(lag).filter(|index| *index < batches);
        let fill = || {
            if let Some(index) = stage(0) {
                fill_scalars(&scalars, index * batch, &mut filled[..len(index)]);
            }
        };
        let multiply = || match stage(1) {
            Some(index) => P::multiply(multiplier, &taken[..len(index)], &mut made[..len(index)]),
            None => Ok(()),
        };
        let write = || match stage(2) {
            Some(index) => {
                out.points(&written[..len(index)], encoding)?;
                progress.advance(len(index) as u64);
                Ok(())
            }
            None => Ok(()),
        };
        // The multiplication, which may wait for a device, stays on this thread; others come
        // for the rest.
        let (multiplied, ((), wrote)) = rayon::join(multiply, || rayon::join(fill, write));
        multiplied?;
        wrote?;
        std::mem::swap(&mut filled, &mut taken);
        std::mem::swap(&mut made, &mut written);
    }
    Ok(())
}

fn fill_scalars(
    scalars: &(impl Fn(usize, &mut [Scalar]) + Sync),
    start: usize,
    out: &mut [Scalar],
) {
    out.par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(index, out)| scalars(start + index * CHUNK, out));
}
