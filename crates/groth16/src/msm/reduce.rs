//! From the buckets of all threads to one point.

use group::Group;
use rayon::prelude::*;

use super::buckets::BucketSets;
use super::windows::Windows;
use crate::curve::{AffinePoint, BatchAdder, Kernel};

/// Buckets that a thread merges at a time.
const MERGE: usize = 4096;

/// Buckets of a window from which on rows and columns pay; below, plain running sums.
const SMALL: usize = 64;

/// Σ_w 2^offset_w · Σ_i (i + 1)·bucket_{w,i}, where the buckets of all `sets` are added up.
pub fn sum_of_windows<P: AffinePoint>(
    windows: &Windows,
    sets: Vec<BucketSets<'_, P>>,
    kernel: Kernel,
) -> P::Curve {
    let mut sets = sets.into_iter().map(BucketSets::into_sets);
    let Some(mut merged) = sets.next() else {
        return P::Curve::identity();
    };
    for other in sets {
        let mut pieces: Vec<(&mut [P], &[P])> = merged
            .iter_mut()
            .zip(&other)
            .flat_map(|(into, from)| into.chunks_mut(MERGE).zip(from.chunks(MERGE)))
            .collect();
        pieces.par_iter_mut().for_each_init(
            || BatchAdder::with_kernel(kernel),
            |adder, (into, from)| adder.add_assign(into, from),
        );
    }
    let sums: Vec<P::Curve> = merged
        .into_par_iter()
        .with_max_len(1)
        .map(|buckets| weighted_sum(buckets, kernel))
        .collect();
    sums.iter()
        .zip(windows.iter())
        .rev()
        .fold(P::Curve::identity(), |total, (sum, window)| {
            (0..window.width).fold(total, |point, _| point.double()) + sum
        })
}

/// Σ (i + 1)·buckets_i for a power of two of buckets.
///
/// Bucket i lies in row r and column q of a matrix with C columns, i = r·C + q, so the sum is
/// C·Σ r·(sum of row r) + Σ (q + 1)·(sum of column q). Rows and columns are summed with batched
/// affine additions, two per bucket; only the √n row and column sums go through
/// running sums.
fn weighted_sum<P: AffinePoint>(mut buckets: Vec<P>, kernel: Kernel) -> P::Curve {
    if buckets.len() < SMALL {
        return running_sum(&buckets);
    }
    let mut adder = BatchAdder::with_kernel(kernel);
    let log_columns = buckets.len().ilog2() / 2;
    let columns = 1 << log_columns;
    let rows = row_sums(&mut adder, &buckets, columns);
    // Row 0 has the weight 0.
    let by_row = (0..log_columns).fold(running_sum(&rows[1..]), |sum, _| sum.double());
    by_row + running_sum(column_sums(&mut adder, &mut buckets, columns))
}

/// Σ (i + 1)·points_i, from the last to the first: each point is in every later total.
fn running_sum<P: AffinePoint>(points: &[P]) -> P::Curve {
    let mut running = P::Curve::identity();
    let mut total = P::Curve::identity();
    for point in points.iter().rev() {
        running += *point;
        total += running;
    }
    total
}

/// The sum of each row of `columns` points.
fn row_sums<P: AffinePoint>(adder: &mut BatchAdder<P>, points: &[P], columns: usize) -> Vec<P> {
    let mut sums = points.to_vec();
    let mut width = columns;
    while width > 1 {
        let half = width / 2;
        let side = |from: usize| -> Vec<P> {
            sums.chunks_exact(width)
                .flat_map(|row| &row[from..from + half])
                .copied()
                .collect()
        };
        let (mut left, right) = (side(0), side(half));
        adder.add_assign(&mut left, &right);
        sums = left;
        width = half;
    }
    sums
}

/// The sum of each column, in the first row's place.
fn column_sums<'p, P: AffinePoint>(
    adder: &mut BatchAdder<P>,
    points: &'p mut [P],
    columns: usize,
) -> &'p [P] {
    let mut len = points.len();
    while len > columns {
        let (low, high) = points[..len].split_at_mut(len / 2);
        adder.add_assign(low, high);
        len /= 2;
    }
    &points[..columns]
}
