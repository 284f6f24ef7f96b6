//! The launches of a sum.

use crate::device::{Arena, Device, DeviceSlice, Kernel, PairBuffers, SortedPairs, Stream};
use crate::error::Result;
use crate::msm::curve::SumCurve;
use crate::msm::full::buffers::{Buffers, COUNTERS};
use crate::msm::full::{FullSumPlan, FullSumTerms, SUM_THREADS};
use crate::msm::layout::{Group, Pass};
use crate::msm::params;
use crate::msm::profile::Profile;
use crate::msm::rounds::{FOLD_THREADS, MAX_ROUNDS, list_starts, pairs_bound, rounds};
use crate::topic::Topic;

/// Threads of a block of the kernels that work on scalars and on keys.
const SCALAR_THREADS: u32 = 256;
/// Keys of a thread of the range kernel, `RANGE_KEYS`.
const RANGE_KEYS: u32 = 4;
/// Entries of a block of the list kernel, `LIST_THREADS * LIST_ENTRIES`.
const LIST_BLOCK_ENTRIES: u64 = 2048;
const LIST_THREADS: u32 = 256;

/// A sum, ready to run. Runs of one sum follow each other; different ones may overlap if their
/// buffers do not.
#[derive(Clone, Debug)]
pub struct FullSum<C: SumCurve> {
    plan: FullSumPlan<C>,
    buffers: Buffers<C>,
    kernels: Kernels,
}

#[derive(Clone, Debug)]
struct Kernels {
    digits: Kernel,
    ranges: Kernel,
    pair_lists: Kernel,
    copy_singles: Kernel,
    fold_bases: Kernel,
    fold_slots: Kernel,
    fold_buckets: Kernel,
    fold_grid: Kernel,
    sum_lines: Kernel,
    sum_bits: Kernel,
}

impl Kernels {
    fn load<C: SumCurve>(device: &Device) -> Result<Self> {
        let load = |name| device.kernel(Topic::Msm, name);
        Ok(Kernels {
            digits: load("msm_digits_kernel")?,
            ranges: load("msm_bucket_ranges_kernel")?,
            pair_lists: load("msm_pair_lists_kernel")?,
            copy_singles: load(C::KERNELS.copy_singles)?,
            fold_bases: load(C::KERNELS.fold_bases)?,
            fold_slots: load(C::KERNELS.fold_slots)?,
            fold_buckets: load(C::KERNELS.fold_buckets)?,
            fold_grid: load(C::KERNELS.fold_grid)?,
            sum_lines: load(C::KERNELS.sum_lines)?,
            sum_bits: load(C::KERNELS.sum_bits)?,
        })
    }
}

impl<C: SumCurve> FullSum<C> {
    pub(super) fn new(plan: &FullSumPlan<C>, device: &Device, arena: &Arena) -> Result<Self> {
        let buffers = plan.slots.in_arena(arena);
        let stream = device.stream()?;
        stream.upload(buffers.windows, &plan.window_tables())?;
        stream.upload(buffers.sets, &plan.passes.sets)?;
        Ok(FullSum {
            plan: plan.clone(),
            buffers,
            kernels: Kernels::load::<C>(device)?,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &FullSumPlan<C> {
        &self.plan
    }

    /// Where a run leaves its result: partial sums as (X, Y), (ZZ, ZZZ), for
    /// [`FullSumPlan::combine`].
    pub fn sums(&self) -> DeviceSlice<[C::Affine; 2]> {
        self.buffers.sums
    }

    /// Queues the sum; nothing waits for the device.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the terms are fewer than planned.
    pub fn run(&self, stream: &Stream, terms: &FullSumTerms<C::Affine>) -> Result<()> {
        self.run_profiled(stream, terms, &mut Profile::off())
    }

    /// As [`Self::run`], marking the ends of the stages in `profile`.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the terms are fewer than planned.
    pub fn run_profiled(
        &self,
        stream: &Stream,
        terms: &FullSumTerms<C::Affine>,
        profile: &mut Profile,
    ) -> Result<()> {
        let shape = &self.plan.shape;
        assert!(
            terms.bases.len() >= shape.points * shape.windows.copies() as usize,
            "bases of the copies"
        );
        match terms.indices {
            None => assert!(terms.scalars.len() >= shape.terms, "scalars"),
            Some(indices) => assert!(
                indices.points.len() >= shape.terms && indices.scalars.len() >= shape.terms,
                "indices of the terms"
            ),
        }
        if shape.terms == 0 {
            return Ok(());
        }
        stream.zero(self.buffers.counters)?;
        let points = self.buffers.points;
        stream.zero(points.slice(points.len() - 1..points.len()))?;
        profile.begin(stream)?;
        for (index, group) in self.plan.passes.groups.iter().enumerate() {
            self.digits(stream, index, terms)?;
            profile.end(stream, "digits")?;
            let mut first = 0;
            for pass in group.passes.clone() {
                first = self.pass(stream, group, pass, first, terms.bases, profile)?;
            }
            self.reduce(stream, index, profile)?;
            profile.end(stream, "reduction")?;
        }
        self.sum_bits(stream)?;
        profile.end(stream, "sums by bits")
    }

    /// The result of the last run; waits for it.
    ///
    /// # Errors
    /// A driver that fails, and failures of the run.
    pub fn finish(&self, stream: &Stream) -> Result<C::Projective> {
        let mut sums = vec![[C::Affine::default(); 2]; self.buffers.sums.len()];
        stream.download(self.buffers.sums, &mut sums)?;
        Ok(self.plan.combine(&sums))
    }

    fn digits(&self, stream: &Stream, group: usize, terms: &FullSumTerms<C::Affine>) -> Result<()> {
        let shape = &self.plan.shape;
        let windows = shape.windows.digits() as usize;
        let table = self
            .buffers
            .windows
            .slice(group * windows..(group + 1) * windows);
        let params = params::Digits {
            scalars: terms.scalars.ptr(),
            scalar_indices: terms.indices.map_or(0, |indices| indices.scalars.ptr()),
            point_indices: terms.indices.map_or(0, |indices| indices.points.ptr()),
            windows: table.ptr(),
            keys: self.buffers.keys.ptr(),
            values: self.buffers.values.ptr(),
            terms: shape.terms as u32,
            window_count: windows as u32,
            halves: shape.windows.halves(),
            padding: 0,
        };
        let blocks = params.terms.div_ceil(SCALAR_THREADS);
        stream.launch(&self.kernels.digits, blocks, SCALAR_THREADS, 0, &params)
    }

    /// Pass `index`, one of `group`, whose digits begin at `first`; gives where the next one's do.
    fn pass(
        &self,
        stream: &Stream,
        group: &Group,
        index: usize,
        first: usize,
        bases: DeviceSlice<C::Affine>,
        profile: &mut Profile,
    ) -> Result<usize> {
        let pass = &self.plan.passes.passes[index];
        let entries = pass.entries as usize;
        let end = first + entries;
        let Buffers { keys, values, .. } = self.buffers;
        let pairs = PairBuffers {
            keys: [
                keys.slice(first..end),
                self.buffers.other_keys.slice(0..entries),
            ],
            values: [
                values.slice(first..end),
                self.buffers.other_values.slice(0..entries),
            ],
        };
        let sorted = stream.sort_pairs(self.buffers.sort, &pairs, 0..pass.key_bits())?;
        profile.end(stream, "sort")?;
        let counters = self
            .buffers
            .counters
            .slice(index * COUNTERS..(index + 1) * COUNTERS);
        self.lists(stream, pass, &sorted, counters, bases, profile)?;
        profile.end(stream, "pairs")?;
        self.fold_buckets(stream, pass, counters, bases, profile)?;
        self.fold_rows_and_columns(stream, group, pass, counters)?;
        profile.end(stream, "reduction")?;
        Ok(end)
    }

    /// Where the buckets are among the sorted digits, and the pairs of all rounds.
    fn lists(
        &self,
        stream: &Stream,
        pass: &Pass,
        sorted: &SortedPairs,
        counters: DeviceSlice<u32>,
        bases: DeviceSlice<C::Affine>,
        profile: &mut Profile,
    ) -> Result<()> {
        let buckets = pass.buckets() as usize;
        let ranges = self.buffers.ranges.slice(0..2 * buckets);
        stream.zero(ranges)?;
        let entries = pass.entries as u32;
        let params = params::BucketRanges {
            keys: sorted.keys.ptr(),
            first: ranges.ptr(),
            last: ranges.slice(buckets..2 * buckets).ptr(),
            entries,
            buckets: buckets as u32,
        };
        let blocks = entries.div_ceil(SCALAR_THREADS * RANGE_KEYS);
        stream.launch(&self.kernels.ranges, blocks, SCALAR_THREADS, 0, &params)?;
        profile.end_part(stream, "ranges", None)?;

        let [first_left, first_right, first_out] = self.first_pairs(pass);
        let [left, right] = self.later_pairs(pass);
        let params = params::PairLists {
            keys: params.keys,
            values: sorted.values.ptr(),
            first: params.first,
            last: params.last,
            first_left,
            first_right,
            first_out,
            left,
            right,
            counts: counters.ptr(),
            entries,
            buckets: buckets as u32,
            starts: list_starts(pass.entries).0,
        };
        let blocks = pass.entries.div_ceil(LIST_BLOCK_ENTRIES) as u32;
        stream.launch(&self.kernels.pair_lists, blocks, LIST_THREADS, 0, &params)?;
        profile.end_part(stream, "lists", None)?;

        let params = params::CopySingles {
            bases: bases.ptr(),
            slots: self.buffers.points.ptr(),
            values: params.values,
            first: params.first,
            last: params.last,
            buckets: params.buckets,
            padding: 0,
        };
        let blocks = params.buckets.div_ceil(FOLD_THREADS);
        stream.launch(&self.kernels.copy_singles, blocks, FOLD_THREADS, 0, &params)
    }

    /// Addresses of the three lists of the first round.
    fn first_pairs(&self, pass: &Pass) -> [u64; 3] {
        let len = pairs_bound(pass.entries, 0) as usize;
        let list = |i: usize| self.buffers.first_pairs.slice(i * len..(i + 1) * len).ptr();
        [list(0), list(1), list(2)]
    }

    /// Addresses of the two lists of all other rounds.
    fn later_pairs(&self, pass: &Pass) -> [u64; 2] {
        let len = list_starts(pass.entries).1;
        let list = |i: usize| self.buffers.later_pairs.slice(i * len..(i + 1) * len).ptr();
        [list(0), list(1)]
    }

    /// All rounds, until every bucket is one point.
    fn fold_buckets(
        &self,
        stream: &Stream,
        pass: &Pass,
        counters: DeviceSlice<u32>,
        bases: DeviceSlice<C::Affine>,
        profile: &mut Profile,
    ) -> Result<()> {
        let fold = &self.buffers.fold;
        let counter = |index: usize| counters.slice(index..index + 1).ptr();
        let [left, right, out] = self.first_pairs(pass);
        let points = self.buffers.points.ptr();
        let params = params::FoldBases {
            source: bases.ptr(),
            result: points,
            left,
            right,
            out,
            scratch: fold.scratch(counter(MAX_ROUNDS)),
            pairs: counter(0),
        };
        fold.launch(stream, &self.kernels.fold_bases, &params)?;
        profile.end(stream, "first round")?;
        let starts = list_starts(pass.entries).0;
        let [left, right] = self.later_pairs(pass);
        let rounds = rounds(pass.entries) as usize;
        for (round, &start) in starts.iter().enumerate().take(rounds).skip(1) {
            let start = 4 * u64::from(start);
            let params = params::FoldSlots {
                source: points,
                result: points,
                left: left + start,
                right: right + start,
                scratch: fold.scratch(counter(MAX_ROUNDS + round)),
                pairs: counter(round),
            };
            if round < pass.expected_rounds() as usize {
                fold.launch(stream, &self.kernels.fold_slots, &params)?;
            } else {
                fold.launch_thin(stream, &self.kernels.fold_slots, &params)?;
            }
            profile.end_part(stream, "round", Some(round as u32))?;
        }
        profile.end(stream, "later rounds")
    }

    /// The first round of the reduction: a pass's buckets to halves of their rows and columns.
    fn fold_rows_and_columns(
        &self,
        stream: &Stream,
        group: &Group,
        pass: &Pass,
        counters: DeviceSlice<u32>,
    ) -> Result<()> {
        let fold = &self.buffers.fold;
        let (rows_at, columns_at) = group.places(pass);
        let params = params::FoldBuckets {
            source: self.buffers.points.ptr(),
            result: self.buffers.lines.ptr(),
            first: self.buffers.ranges.ptr(),
            infinity: (self.buffers.points.len() - 1) as u32,
            grid: pass.grid,
            rows_at,
            columns_at,
            scratch: fold.scratch(counters.slice(COUNTERS - 1..COUNTERS).ptr()),
        };
        fold.launch(stream, &self.kernels.fold_buckets, &params)
    }

    /// The other rounds: from halves of the rows and columns of a group to their sums.
    fn reduce(&self, stream: &Stream, group_index: usize, profile: &mut Profile) -> Result<()> {
        let fold = &self.buffers.fold;
        let lines = self.buffers.lines.ptr();
        let group = &self.plan.passes.groups[group_index];
        let first_counter = COUNTERS * self.plan.passes.passes.len() + MAX_ROUNDS * group_index;
        for round in 1..group.grid_rounds {
            let counter = first_counter + round as usize;
            let counter = self.buffers.counters.slice(counter..counter + 1);
            let params = params::FoldGrid {
                source: lines,
                result: lines,
                grid: group.grid,
                round,
                scratch: fold.scratch(counter.ptr()),
            };
            fold.launch(stream, &self.kernels.fold_grid, &params)?;
            profile.end_part(stream, "reduction", Some(round))?;
        }
        let [rows, columns] = self.line_sums();
        let (first_row, first_column) = (group.first_row(), group.first_column());
        let params = params::SumLines {
            points: lines,
            row_sums: rows.slice(first_row as usize..rows.len()).ptr(),
            column_sums: columns.slice(first_column as usize..columns.len()).ptr(),
            grid: group.grid,
            rounds: group.grid_rounds,
            lanes: group.lanes,
            padding: 0,
        };
        let threads = (group.grid.rows() + group.grid.columns()) * group.lanes;
        let blocks = threads.div_ceil(SUM_THREADS);
        stream.launch(&self.kernels.sum_lines, blocks, SUM_THREADS, 0, &params)
    }

    /// Sums of the rows and of the columns of all sets.
    fn line_sums(&self) -> [DeviceSlice<[C::Affine; 2]>; 2] {
        let (sums, rows) = (self.buffers.line_sums, self.plan.passes.rows as usize);
        [sums.slice(0..rows), sums.slice(rows..sums.len())]
    }

    fn sum_bits(&self, stream: &Stream) -> Result<()> {
        let [rows, columns] = self.line_sums();
        let params = params::SumBits {
            row_sums: rows.ptr(),
            column_sums: columns.ptr(),
            sets: self.buffers.sets.ptr(),
            sums: self.buffers.sums.ptr(),
            sums_per_set: self.plan.passes.sums_per_set(),
            parts: self.plan.parts,
        };
        let blocks = self.buffers.sums.len() as u32;
        stream.launch(&self.kernels.sum_bits, blocks, SUM_THREADS, 0, &params)
    }
}
