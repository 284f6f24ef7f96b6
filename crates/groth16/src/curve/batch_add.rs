//! Many independent additions of affine points for the price of one inversion.
//!
//! An affine addition is λ = (y₂ − y₁)/(x₂ − x₁), x₃ = λ² − x₁ − x₂, y₃ = λ·(x₁ − x₃) − y₁.
//! Montgomery's trick turns the divisions of a whole block into three multiplications each and
//! one inversion, so that an addition costs five multiplications and a squaring: half of a
//! mixed Jacobian addition, and the result is affine again.
//!
//! Every case is exact: identity + P, P + identity, P + P and P + (−P) included.

use super::AffinePoint;
use crate::kernel::Kernel;

/// Pairs that share an inversion. An inversion costs some 60 multiplications, so at this size
/// it adds about one per cent; both operands of a block (192 KiB in G1) stay in the L2 cache.
pub(crate) const BLOCK: usize = 1024;

/// A reference to a point in a slice, or to its negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick(u32);

impl Pick {
    const SIGN: u32 = 1 << 31;

    /// Largest index that a pick can hold.
    pub const MAX_INDEX: usize = (Self::SIGN - 1) as usize;

    /// The point at `index`, negated if `negative`.
    ///
    /// `index` must not exceed [`Self::MAX_INDEX`].
    #[inline]
    pub fn new(index: usize, negative: bool) -> Self {
        debug_assert!(index <= Self::MAX_INDEX);
        Pick(index as u32 | if negative { Self::SIGN } else { 0 })
    }

    /// Position in the slice.
    #[inline]
    pub fn index(self) -> usize {
        (self.0 & !Self::SIGN) as usize
    }

    /// Whether the point is taken negatively.
    #[inline]
    pub fn is_negative(self) -> bool {
        self.0 & Self::SIGN != 0
    }

    /// The point this picks from `points`.
    #[inline]
    fn of<P: AffinePoint>(self, points: &[P]) -> P {
        let point = points[self.index()];
        if self.is_negative() { -point } else { point }
    }
}

/// Adds blocks of pairs; one implementation for each kernel and group.
pub trait BlockAdd<P> {
    /// left[i] += right[i]. Both slices have the same length, at most [`BLOCK`].
    fn add_block(&mut self, left: &mut [P], right: &[P]);
}

/// Adds affine points of G1 or G2 in batches, each batch with one inversion.
///
/// Holds scratch memory of a few hundred kilobytes; make one per thread and keep it. Calls
/// with few additions (below about 50) cost more than additions in projective coordinates.
pub struct BatchAdder<P> {
    kernel: Box<dyn BlockAdd<P> + Send>,
    left: Vec<P>,
    right: Vec<P>,
}

impl<P: AffinePoint> BatchAdder<P> {
    /// An adder on the fastest kernel of this processor.
    pub fn new() -> Self {
        Self::with_kernel(Kernel::detect())
    }

    /// An adder on a given kernel, or on the portable one where the processor lacks it.
    pub fn with_kernel(kernel: Kernel) -> Self {
        BatchAdder {
            kernel: P::block_adder(kernel),
            left: Vec::with_capacity(BLOCK),
            right: Vec::with_capacity(BLOCK),
        }
    }

    /// acc[i] += other[i].
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn add_assign(&mut self, acc: &mut [P], other: &[P]) {
        assert_eq!(acc.len(), other.len(), "one addend for each accumulator");
        for (acc, other) in acc.chunks_mut(BLOCK).zip(other.chunks(BLOCK)) {
            self.kernel.add_block(acc, other);
        }
    }

    /// acc[i] += ±points[picks[i]].
    ///
    /// # Panics
    /// If the lengths of `acc` and `picks` differ, or a pick reaches past `points`.
    pub fn add_picks(&mut self, acc: &mut [P], points: &[P], picks: &[Pick]) {
        assert_eq!(acc.len(), picks.len(), "one pick for each accumulator");
        for (acc, picks) in acc.chunks_mut(BLOCK).zip(picks.chunks(BLOCK)) {
            self.right.clear();
            self.right.extend(picks.iter().map(|pick| pick.of(points)));
            self.kernel.add_block(acc, &self.right);
        }
    }

    /// acc[targets[i]] += ±points[picks[i]]; no target may occur twice.
    ///
    /// A repeated target is a caller's error: one of its additions would be lost.
    ///
    /// # Panics
    /// If the lengths of `targets` and `picks` differ, or an index reaches past its slice.
    pub fn scatter_picks(&mut self, acc: &mut [P], targets: &[u32], points: &[P], picks: &[Pick]) {
        assert_eq!(targets.len(), picks.len(), "one pick for each target");
        for (targets, picks) in targets.chunks(BLOCK).zip(picks.chunks(BLOCK)) {
            self.left.clear();
            self.left
                .extend(targets.iter().map(|&target| acc[target as usize]));
            self.right.clear();
            self.right.extend(picks.iter().map(|pick| pick.of(points)));
            self.kernel.add_block(&mut self.left, &self.right);
            for (&target, sum) in targets.iter().zip(&self.left) {
                acc[target as usize] = *sum;
            }
        }
    }

    /// out[i] = ±points[pairs[i].0] + ±points[pairs[i].1].
    ///
    /// # Panics
    /// If the lengths of `out` and `pairs` differ, or a pick reaches past `points`.
    pub fn pair_up(&mut self, out: &mut [P], points: &[P], pairs: &[(Pick, Pick)]) {
        assert_eq!(out.len(), pairs.len(), "one result for each pair");
        for (out, pairs) in out.chunks_mut(BLOCK).zip(pairs.chunks(BLOCK)) {
            self.right.clear();
            for (sum, (left, right)) in out.iter_mut().zip(pairs) {
                *sum = left.of(points);
                self.right.push(right.of(points));
            }
            self.kernel.add_block(out, &self.right);
        }
    }

    /// points[i] += points[j] for every (i, j) of `pairs`; no index may occur twice in the list.
    ///
    /// A repeated index is a caller's error: the sums would depend on the block's borders.
    ///
    /// # Panics
    /// If an index reaches past `points`.
    pub fn fold_pairs(&mut self, points: &mut [P], pairs: &[(u32, u32)]) {
        for pairs in pairs.chunks(BLOCK) {
            self.left.clear();
            self.right.clear();
            for &(into, from) in pairs {
                self.left.push(points[into as usize]);
                self.right.push(points[from as usize]);
            }
            self.kernel.add_block(&mut self.left, &self.right);
            for (&(into, _), sum) in pairs.iter().zip(&self.left) {
                points[into as usize] = *sum;
            }
        }
    }

    /// The sum of all `points`, which are overwritten with partial sums.
    pub fn sum(&mut self, points: &mut [P]) -> P::Curve {
        /// Rounds of fewer additions are not worth their inversion.
        const TAIL: usize = 32;
        let mut len = points.len();
        while len > TAIL {
            // The upper half onto the lower; an odd one in the middle stays where it is.
            let half = len.div_ceil(2);
            let (low, high) = points[..len].split_at_mut(half);
            self.add_assign(&mut low[..high.len()], high);
            len = half;
        }
        points[..len]
            .iter()
            .fold(group::Group::identity(), |sum: P::Curve, point| {
                sum + *point
            })
    }
}

impl<P: AffinePoint> Default for BatchAdder<P> {
    fn default() -> Self {
        Self::new()
    }
}
