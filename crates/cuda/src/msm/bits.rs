//! Sums of the points that a bitmap selects: a query's part over the variables that are bits.

use group::Group;

use super::curve::SumCurve;
use super::fold::{Fold, FoldSlots};
use super::params;
use super::profile::Profile;
use super::rounds::MAX_ROUNDS;
use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Slot, Stream};
use crate::error::Result;
use crate::topic::Topic;

const SELECT_THREADS: u32 = 256;
/// Threads of a block of the last sum, `SUM_THREADS`, and its blocks.
const SUM_THREADS: u32 = 128;
const SUM_BLOCKS: u32 = 64;

/// Points that the last sum takes over from the folds. Eight for each of its threads take as long as
/// one more round of folds, and replace three.
const LAST_POINTS: u64 = 8 * (SUM_THREADS * SUM_BLOCKS) as u64;

/// Which points are added.
#[derive(Clone, Copy, Debug)]
pub struct BitSelection {
    /// Bit j: variable j is a bit and has the value 1. Some words of a larger bitmap select among
    /// the points of their own variables.
    pub ones: DeviceSlice<u64>,
    /// Which variables the query has points for; `None`: all.
    pub mask: Option<Mask>,
    /// The point of the query's first aux variable; added to the ranks modulo 2^32, so that those of
    /// a larger bitmap can be taken from there.
    pub first_point: u32,
}

/// A bitmap with ranks.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// Bit j: the query has a point for variable j.
    pub words: DeviceSlice<u64>,
    /// For each word the number of bits set before it.
    pub ranks: DeviceSlice<u32>,
}

/// A sum of selected points, planned.
#[derive(Clone, Debug)]
pub struct BitSumPlan<C: SumCurve> {
    words: usize,
    /// Rounds of folds; more would have nothing to do even if all points were selected.
    rounds: u32,
    indices: Slot<u32>,
    counters: Slot<u32>,
    points: Slot<C::Affine>,
    sums: Slot<[C::Affine; 2]>,
    fold: FoldSlots,
    _curve: std::marker::PhantomData<C>,
}

/// How many points were selected, then the chunks handed out in each round.
const COUNTERS: usize = 1 + MAX_ROUNDS;

impl<C: SumCurve> BitSumPlan<C> {
    /// Names the buffers of the sum `name` over bitmaps of up to `variables` bits of which at most
    /// `selected` are ever chosen (the variables that are bits and have a point), for a device of
    /// so many multiprocessors. Those of its work live for `work`; the result is resident.
    pub fn new(
        name: &str,
        variables: usize,
        selected: usize,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: impl Into<Lifetime>,
    ) -> Self {
        let work = work.into();
        let selected = selected.min(variables);
        let sums = if selected == 0 {
            0
        } else {
            SUM_BLOCKS as usize
        };
        BitSumPlan {
            words: variables.div_ceil(64),
            rounds: rounds(selected as u64),
            indices: ledger.reserve(format!("{name}: selected"), selected, work),
            counters: ledger.reserve(format!("{name}: counters"), COUNTERS, work),
            points: ledger.reserve(format!("{name}: points"), selected.div_ceil(2), work),
            sums: ledger.reserve(format!("{name}: partial sums"), sums, Lifetime::RESIDENT),
            fold: FoldSlots::reserve::<C>(name, selected as u64 / 2, multiprocessors, ledger, work),
            _curve: std::marker::PhantomData,
        }
    }

    /// Loads the kernels.
    ///
    /// # Errors
    /// A kernel that is missing.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<BitSum<C>> {
        let load = |name| device.kernel(Topic::Msm, name);
        Ok(BitSum {
            words: self.words,
            rounds: self.rounds,
            indices: arena.get(self.indices),
            counters: arena.get(self.counters),
            points: arena.get(self.points),
            sums: arena.get(self.sums),
            fold: self.fold.in_arena::<C>(arena),
            select: load("msm_select_kernel")?,
            fold_selected: load(C::KERNELS.fold_selected)?,
            fold_halves: load(C::KERNELS.fold_halves)?,
            sum_points: load(C::KERNELS.sum_points)?,
        })
    }

    /// Number of partial sums of a run.
    pub fn sums_len(&self) -> usize {
        self.sums.len()
    }

    /// The sum, from what [`BitSum::sums`] holds after a run.
    pub fn combine(sums: &[[C::Affine; 2]]) -> C::Projective {
        let points = sums.iter().map(|sum| C::from_xyzz(*sum));
        points.fold(C::Projective::identity(), |sum, point| sum + point)
    }
}

/// Rounds of folds for up to `selected` points. There is always one, which reads the points by
/// their indices.
fn rounds(selected: u64) -> u32 {
    let mut rounds = 1;
    while selected.div_ceil(1 << rounds) > LAST_POINTS {
        rounds += 1;
    }
    rounds
}

/// A sum of selected points, ready to run.
#[derive(Clone, Debug)]
pub struct BitSum<C: SumCurve> {
    words: usize,
    rounds: u32,
    indices: DeviceSlice<u32>,
    counters: DeviceSlice<u32>,
    points: DeviceSlice<C::Affine>,
    sums: DeviceSlice<[C::Affine; 2]>,
    fold: Fold,
    select: Kernel,
    fold_selected: Kernel,
    fold_halves: Kernel,
    sum_points: Kernel,
}

impl<C: SumCurve> BitSum<C> {
    /// Where a run leaves its result: partial sums as (X, Y), (ZZ, ZZZ), for
    /// [`BitSumPlan::combine`].
    pub fn sums(&self) -> DeviceSlice<[C::Affine; 2]> {
        self.sums
    }

    /// Queues the sum over `bases`; nothing waits for the device. More selected points than were
    /// planned for overrun the buffers.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the selection has more words than were planned for, or a mask fewer than the selection.
    pub fn run(
        &self,
        stream: &Stream,
        selection: &BitSelection,
        bases: DeviceSlice<C::Affine>,
    ) -> Result<()> {
        self.run_profiled(stream, selection, bases, &mut Profile::off())
    }

    /// As [`Self::run`], marking the ends of the stages in `profile`.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the selection has more words than were planned for, or a mask fewer than the selection.
    pub fn run_profiled(
        &self,
        stream: &Stream,
        selection: &BitSelection,
        bases: DeviceSlice<C::Affine>,
        profile: &mut Profile,
    ) -> Result<()> {
        if self.sums.is_empty() {
            return Ok(());
        }
        stream.zero(self.counters)?;
        profile.begin(stream)?;
        self.select(stream, selection)?;
        profile.end(stream, "selection")?;
        let counter = |index: usize| self.counters.slice(index..index + 1).ptr();
        for round in 0..self.rounds {
            let params = params::FoldChosen {
                bases: bases.ptr(),
                indices: self.indices.ptr(),
                points: self.points.ptr(),
                scratch: self.fold.scratch(counter(1 + round as usize)),
                count: counter(0),
                round,
                padding: 0,
            };
            let kernel = if round == 0 {
                &self.fold_selected
            } else {
                &self.fold_halves
            };
            self.fold.launch(stream, kernel, &params)?;
            if round == 0 {
                profile.end(stream, "first round")?;
            } else {
                profile.end_part(stream, "round", Some(round))?;
            }
        }
        profile.end(stream, "later rounds")?;
        let params = params::SumPoints {
            points: self.points.ptr(),
            sums: self.sums.ptr(),
            count: counter(0),
            rounds: self.rounds,
            padding: 0,
        };
        stream.launch(&self.sum_points, SUM_BLOCKS, SUM_THREADS, 0, &params)?;
        profile.end(stream, "last sum")
    }

    /// The result of the last run; waits for it.
    ///
    /// # Errors
    /// A driver that fails, and failures of the run.
    pub fn finish(&self, stream: &Stream) -> Result<C::Projective> {
        let mut sums = vec![[C::Affine::default(); 2]; self.sums.len()];
        stream.download(self.sums, &mut sums)?;
        Ok(BitSumPlan::<C>::combine(&sums))
    }

    fn select(&self, stream: &Stream, selection: &BitSelection) -> Result<()> {
        let words = selection.ones.len();
        assert!(words <= self.words, "words of the bitmap");
        if let Some(mask) = selection.mask {
            assert!(
                mask.words.len() >= words && mask.ranks.len() >= words,
                "words of the mask"
            );
        }
        let params = params::Select {
            ones: selection.ones.ptr(),
            mask: selection.mask.map_or(0, |mask| mask.words.ptr()),
            ranks: selection.mask.map_or(0, |mask| mask.ranks.ptr()),
            indices: self.indices.ptr(),
            count: self.counters.slice(0..1).ptr(),
            words: words as u32,
            first_point: selection.first_point,
        };
        let blocks = params.words.div_ceil(SELECT_THREADS);
        stream.launch(&self.select, blocks, SELECT_THREADS, 0, &params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_leave_few_points() {
        assert_eq!((rounds(0), rounds(1), rounds(1 << 17)), (1, 1, 1));
        assert_eq!(rounds((1 << 17) + 1), 2);
        assert_eq!(rounds(1 << 26), 10);
    }
}
