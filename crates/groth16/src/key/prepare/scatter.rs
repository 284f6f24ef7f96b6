//! Additions to accumulators that may occur more than once.

use blstrs::{G1Affine, G1Projective};
use group::Curve;
use group::prime::PrimeCurveAffine;

use crate::curve::{BatchAdder, Pick};

/// Fewer additions than this are not worth the inversion of a batch.
const TAIL: usize = 32;

/// Waiting additions acc[target] += ±points[pick], done in batches in which no target occurs
/// twice.
#[derive(Default)]
pub(super) struct Scatter {
    waiting: Vec<(u32, Pick)>,
    targets: Vec<u32>,
    picks: Vec<Pick>,
    /// For each accumulator, the last batch that added to it.
    last: Vec<u32>,
    batch: u32,
}

impl Scatter {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, target: u32, pick: Pick) {
        self.waiting.push((target, pick));
    }

    /// Does all that waits.
    ///
    /// # Panics
    /// If a target reaches past `acc`, or a pick past `points`.
    pub fn add(
        &mut self,
        adder: &mut BatchAdder<G1Affine>,
        acc: &mut [G1Affine],
        points: &[G1Affine],
    ) {
        while !self.waiting.is_empty() {
            self.choose(acc.len());
            if self.targets.len() < TAIL {
                self.restore();
                break;
            }
            adder.scatter_picks(acc, &self.targets, points, &self.picks);
        }
        self.add_rest(acc, points);
    }

    /// Moves one addition of each waiting target to the batch.
    fn choose(&mut self, len: usize) {
        if self.last.len() < len {
            self.last.resize(len, self.batch);
        }
        self.batch = match self.batch.checked_add(1) {
            Some(batch) => batch,
            None => {
                self.last.fill(0);
                1
            }
        };
        self.targets.clear();
        self.picks.clear();
        let Scatter {
            waiting,
            targets,
            picks,
            last,
            batch,
        } = self;
        waiting.retain(|&(target, pick)| {
            let taken = last[target as usize] == *batch;
            if !taken {
                last[target as usize] = *batch;
                targets.push(target);
                picks.push(pick);
            }
            taken
        });
    }

    /// Puts a batch that was not done back.
    fn restore(&mut self) {
        self.waiting
            .extend(self.targets.drain(..).zip(self.picks.drain(..)));
    }

    /// Few targets, which may wait often: their sums in projective coordinates.
    fn add_rest(&mut self, acc: &mut [G1Affine], points: &[G1Affine]) {
        self.waiting.sort_unstable_by_key(|(target, _)| *target);
        for group in self.waiting.chunk_by(|left, right| left.0 == right.0) {
            let place = &mut acc[group[0].0 as usize];
            let sum = group.iter().fold(place.to_curve(), |sum, (_, pick)| {
                let point = &points[pick.index()];
                match pick.is_negative() {
                    true => sum - point,
                    false => sum + point,
                }
            });
            *place = G1Projective::to_affine(&sum);
        }
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_core::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn every_addition_is_done_once() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let points: Vec<G1Affine> = (1..40u64)
            .map(|k| (G1Affine::generator() * blstrs::Scalar::from(k)).to_affine())
            .collect();
        let mut scatter = Scatter::new();
        // Many targets, few, one; again with the same scatter, as a worker does.
        for (targets, additions) in [(2000, 5000), (7, 300), (1, 100), (300, 0), (3000, 3000)] {
            let mut acc = vec![G1Affine::identity(); targets];
            let mut expected = vec![G1Projective::from(acc[0]); targets];
            for _ in 0..additions {
                let target = rng.next_u32() % targets as u32;
                let index = rng.next_u32() as usize % points.len();
                let negative = rng.next_u32() % 2 == 1;
                scatter.push(target, Pick::new(index, negative));
                let point = G1Projective::from(points[index]);
                expected[target as usize] += if negative { -point } else { point };
            }
            scatter.add(&mut BatchAdder::new(), &mut acc, &points);
            let expected: Vec<G1Affine> = expected.iter().map(Curve::to_affine).collect();
            assert_eq!(acc, expected, "{targets} targets");
        }
    }
}
