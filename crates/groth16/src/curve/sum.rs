//! The plain sum of a stream of points.

use super::batch_add::{BLOCK, BatchAdder};
use super::{AffinePoint, Kernel};

/// Adds up points as they come, in blocks that share an inversion.
///
/// Keeps one block of partial sums and one of waiting points; each full block of waiting
/// points goes onto the partial sums in one batch.
pub struct PointSum<P> {
    adder: BatchAdder<P>,
    partial: Vec<P>,
    waiting: Vec<P>,
}

impl<P: AffinePoint> PointSum<P> {
    /// An empty sum on the fastest kernel of this processor.
    pub fn new() -> Self {
        Self::with_kernel(Kernel::detect())
    }

    /// An empty sum on a given kernel, which must come from [`Kernel::available`].
    pub fn with_kernel(kernel: Kernel) -> Self {
        PointSum {
            adder: BatchAdder::with_kernel(kernel),
            partial: Vec::new(),
            waiting: Vec::with_capacity(BLOCK),
        }
    }

    /// Adds one point.
    #[inline]
    pub fn push(&mut self, point: P) {
        self.waiting.push(point);
        if self.waiting.len() == BLOCK {
            self.settle();
        }
    }

    /// Adds all of `points`.
    pub fn extend(&mut self, mut points: &[P]) {
        while !points.is_empty() {
            let room = (BLOCK - self.waiting.len()).min(points.len());
            let (now, later) = points.split_at(room);
            self.waiting.extend_from_slice(now);
            if self.waiting.len() == BLOCK {
                self.settle();
            }
            points = later;
        }
    }

    /// The sum of everything added so far; starts again at the identity.
    pub fn finish(&mut self) -> P::Curve {
        self.settle();
        let sum = self.adder.sum(&mut self.partial);
        self.partial.clear();
        sum
    }

    /// Moves the waiting points into the partial sums.
    fn settle(&mut self) {
        if self.partial.len() < self.waiting.len() {
            self.partial.resize(self.waiting.len(), P::identity());
        }
        self.adder
            .add_assign(&mut self.partial[..self.waiting.len()], &self.waiting);
        self.waiting.clear();
    }
}

impl<P: AffinePoint> Default for PointSum<P> {
    fn default() -> Self {
        Self::new()
    }
}
