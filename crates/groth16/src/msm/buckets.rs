//! Filling the buckets of all windows with affine additions.

use blstrs::Scalar;

use super::digits::{Shift, Shifted};
use super::windows::{Window, Windows};
use crate::curve::{AffinePoint, BatchAdder, Kernel, Pick};

/// The buckets of every window: bucket i of a window holds the sum of the points whose digit
/// there is ±(i + 1).
pub struct BucketSets<'w, P: AffinePoint> {
    windows: &'w Windows,
    shift: Shift,
    sets: Vec<Vec<P>>,
    shifted: Vec<Shifted>,
    filler: Filler<P>,
}

impl<'w, P: AffinePoint> BucketSets<'w, P> {
    pub fn new(windows: &'w Windows, kernel: Kernel) -> Self {
        BucketSets {
            windows,
            shift: Shift::new(windows),
            sets: windows
                .iter()
                .map(|window| vec![P::identity(); window.buckets()])
                .collect(),
            shifted: Vec::new(),
            filler: Filler::new(kernel),
        }
    }

    /// Adds scalars_i·points_i for all i of a chunk.
    pub fn add(&mut self, points: &[P], scalars: &[Scalar]) {
        debug_assert_eq!(points.len(), scalars.len());
        self.shifted.clear();
        self.shifted
            .extend(scalars.iter().map(|scalar| self.shift.apply(scalar)));
        for (window, buckets) in self.windows.iter().zip(&mut self.sets) {
            self.filler.fill(buckets, window, points, &self.shifted);
        }
    }

    /// The buckets, lowest window first.
    pub fn into_sets(self) -> Vec<Vec<P>> {
        self.sets
    }
}

/// Adds a chunk of points to the buckets of one window.
///
/// The points are first sorted by bucket. A bucket's points are then added up pairwise, all
/// buckets in the same rounds, so that every addition of a round is independent of the others
/// and shares their inversion, however few buckets the points go to. At last each
/// bucket gets its total, and the one point that an odd number leaves over.
struct Filler<P: AffinePoint> {
    adder: BatchAdder<P>,
    /// Every point's bucket and pick, the zero digits left out.
    entries: Vec<(u32, Pick)>,
    /// Where each bucket's picks end in `sorted`.
    ends: Vec<u32>,
    sorted: Vec<Pick>,
    pairs: Vec<(Pick, Pick)>,
    sums: Vec<P>,
    /// A bucket's unfinished sums: `sums[start .. start + len]`.
    runs: Vec<Run>,
    folds: Vec<(u32, u32)>,
    targets: Vec<u32>,
    picks: Vec<Pick>,
}

#[derive(Clone, Copy)]
struct Run {
    bucket: u32,
    start: u32,
    len: u32,
}

impl<P: AffinePoint> Filler<P> {
    fn new(kernel: Kernel) -> Self {
        Filler {
            adder: BatchAdder::with_kernel(kernel),
            entries: Vec::new(),
            ends: Vec::new(),
            sorted: Vec::new(),
            pairs: Vec::new(),
            sums: Vec::new(),
            runs: Vec::new(),
            folds: Vec::new(),
            targets: Vec::new(),
            picks: Vec::new(),
        }
    }

    fn fill(&mut self, buckets: &mut [P], window: &Window, points: &[P], scalars: &[Shifted]) {
        self.sort(buckets.len(), window, scalars);
        self.pair_up(points);
        // The points without a partner go to their buckets at once.
        self.adder
            .scatter_picks(buckets, &self.targets, points, &self.picks);
        self.fold_runs();
        self.targets.clear();
        self.picks.clear();
        for run in &self.runs {
            self.targets.push(run.bucket);
            self.picks.push(Pick::new(run.start as usize, false));
        }
        self.adder
            .scatter_picks(buckets, &self.targets, &self.sums, &self.picks);
    }

    /// Counting sort of the chunk's picks by bucket.
    fn sort(&mut self, buckets: usize, window: &Window, scalars: &[Shifted]) {
        self.entries.clear();
        self.ends.clear();
        self.ends.resize(buckets + 1, 0);
        for (i, scalar) in scalars.iter().enumerate() {
            let (digit, negative) = scalar.digit(window);
            if digit != 0 {
                self.entries.push((digit - 1, Pick::new(i, negative)));
                self.ends[digit as usize] += 1;
            }
        }
        // ends[b] = where bucket b starts; writing moves it to where it ends.
        let mut total = 0;
        for end in &mut self.ends {
            total += *end;
            *end = total;
        }
        self.sorted.clear();
        self.sorted.resize(self.entries.len(), Pick::new(0, false));
        for &(bucket, pick) in &self.entries {
            let slot = &mut self.ends[bucket as usize];
            self.sorted[*slot as usize] = pick;
            *slot += 1;
        }
    }

    /// Adds each bucket's sorted points in pairs; an odd one becomes a target and a pick.
    fn pair_up(&mut self, points: &[P]) {
        self.pairs.clear();
        self.runs.clear();
        self.targets.clear();
        self.picks.clear();
        let mut start = 0;
        for (bucket, &end) in self.ends[..self.ends.len() - 1].iter().enumerate() {
            let run = &self.sorted[start as usize..end as usize];
            start = end;
            let (pairs, odd) = run.as_chunks::<2>();
            if let [pick] = odd {
                self.targets.push(bucket as u32);
                self.picks.push(*pick);
            }
            if !pairs.is_empty() {
                self.runs.push(Run {
                    bucket: bucket as u32,
                    start: self.pairs.len() as u32,
                    len: pairs.len() as u32,
                });
                self.pairs
                    .extend(pairs.iter().map(|[left, right]| (*left, *right)));
            }
        }
        self.sums.clear();
        self.sums.resize(self.pairs.len(), P::identity());
        self.adder.pair_up(&mut self.sums, points, &self.pairs);
    }

    /// Halves every run until each is one sum at its start.
    fn fold_runs(&mut self) {
        let mut longest = self.runs.iter().map(|run| run.len).max().unwrap_or(0);
        while longest > 1 {
            self.folds.clear();
            let mut shrunk = 1;
            // The runs keep their order and their starts; those that are done cost a look.
            for run in self.runs.iter().filter(|run| run.len > 1) {
                let half = run.len.div_ceil(2);
                self.folds.extend(
                    (run.start..run.start + run.len - half).map(|into| (into, into + half)),
                );
                shrunk = shrunk.max(half);
            }
            self.adder.fold_pairs(&mut self.sums, &self.folds);
            for run in &mut self.runs {
                run.len = run.len.div_ceil(2);
            }
            longest = shrunk;
        }
    }
}
