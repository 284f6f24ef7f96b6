//! Sums Σ k_i·P_i of points times scalars.
//!
//! Terms come in chunks ([`Terms`]), so that points in a file are decoded a chunk at a time
//! and never held all at once. Threads draw chunks from a common counter until none are left:
//! no thread waits for another before the end, whatever their number. Each keeps its own
//! partial results: a plain sum for the points whose scalar is one, and the buckets of every
//! window for the others (Pippenger's method, [`buckets`]).
//!
//! Cost for n full-size scalars on T threads, W windows of c ≈ 255/W bits: n·W/T affine
//! additions a thread for the buckets, then W·2^(c−1) to merge each thread's buckets into the
//! first one's, and twice as many to reduce them; [`windows::Windows::for_terms`] chooses W by
//! this count.

mod buckets;
mod digits;
mod reduce;
mod terms;
#[cfg(test)]
mod tests;
mod windows;

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::Scalar;
use group::Group;
use rayon::prelude::*;

pub use terms::{Chunk, Dense, Terms, chunk_len};

use crate::curve::{AffinePoint, Kernel, PointSum};
use crate::key::KeyError;
use crate::points::Points;
use crate::progress::Progress;
use buckets::BucketSets;
use windows::Windows;

/// Σ scalars_i·points_i on all threads of the current pool.
///
/// # Errors
/// Whatever reading the points fails with; a missing point is an error too.
pub fn sum<P: AffinePoint, S: Points<P> + ?Sized>(
    points: &S,
    scalars: &[Scalar],
) -> Result<P::Curve, KeyError> {
    sum_terms(&Dense::new(points, scalars), Kernel::detect(), &())
}

/// The sum of all `terms` on all threads of the current pool.
///
/// `progress` advances by one for every chunk; the stage is the caller's to begin.
///
/// # Errors
/// The first error of [`Terms::load`]; the remaining chunks are then left alone.
pub fn sum_terms<P: AffinePoint, T: Terms<P>>(
    terms: &T,
    kernel: Kernel,
    progress: &dyn Progress,
) -> Result<P::Curve, KeyError> {
    let threads = rayon::current_num_threads().min(terms.chunks()).max(1);
    let windows = Windows::for_terms(terms.scalars(), threads);
    let next = AtomicUsize::new(0);
    let partial: Vec<Partial<'_, P>> = (0..threads)
        .into_par_iter()
        .with_max_len(1)
        .map(|_| {
            let mut partial = Partial::new(&windows, kernel);
            let mut chunk = Chunk::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= terms.chunks() {
                    return Ok(partial);
                }
                chunk.clear();
                if let Err(error) = terms.load(index, &mut chunk) {
                    next.store(terms.chunks(), Ordering::Relaxed);
                    return Err(error);
                }
                partial.add(&chunk);
                progress.advance(1);
            }
        })
        .collect::<Result<_, _>>()?;

    let mut total = P::Curve::identity();
    let mut sets = Vec::new();
    for mut part in partial {
        total += part.ones.finish();
        sets.extend(part.buckets);
    }
    Ok(total + reduce::sum_of_windows(&windows, sets, kernel))
}

/// What one thread has added up.
struct Partial<'w, P: AffinePoint> {
    windows: &'w Windows,
    kernel: Kernel,
    ones: PointSum<P>,
    /// Absent until the first scalar comes: sums of ones need no buckets.
    buckets: Option<BucketSets<'w, P>>,
}

impl<'w, P: AffinePoint> Partial<'w, P> {
    fn new(windows: &'w Windows, kernel: Kernel) -> Self {
        Partial {
            windows,
            kernel,
            ones: PointSum::with_kernel(kernel),
            buckets: None,
        }
    }

    fn add(&mut self, chunk: &Chunk<P>) {
        self.ones.extend(&chunk.ones);
        if !chunk.points.is_empty() {
            self.buckets
                .get_or_insert_with(|| BucketSets::new(self.windows, self.kernel))
                .add(&chunk.points, &chunk.scalars);
        }
    }
}
