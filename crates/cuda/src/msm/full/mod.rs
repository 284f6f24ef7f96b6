//! Sums Σ s_i P_i of full-size scalars times fixed bases.

mod buffers;
mod run;

use group::Group;

use super::curve::SumCurve;
use super::layout::{Pass, Passes};
use super::params;
use super::windows::Windows;
use crate::device::{Arena, Device, DeviceSlice, Ledger, Lifetime};
use crate::error::Result;
use buffers::Slots;

pub use run::FullSum;

/// Threads of a block of the last sums, `SUM_THREADS`.
const SUM_THREADS: u32 = 128;
/// Blocks of the sums over bits whose results are worth adding up on the host.
const BIT_BLOCKS: u32 = 264;

/// What a sum is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullSumShape {
    /// Terms.
    pub terms: usize,
    /// Points of one copy of the bases: as many as terms, or, when the terms have indices, as many
    /// as those reach to.
    pub points: usize,
    /// The cut into digits; as many copies of the bases as it names must be on the device.
    pub windows: Windows,
    /// Sets of buckets that are sorted, folded and reduced together: more take fewer launches and
    /// short rounds, and more memory.
    pub sets_per_pass: usize,
    /// Passes whose digits are computed at once, and whose buckets are reduced together: more of them
    /// read the scalars less often and have fewer short rounds, and take 8 bytes a digit and a point a
    /// bucket.
    pub passes_per_group: usize,
}

/// Entries of a pass that are enough to make launches and the latency of short rounds negligible.
const PASS_ENTRIES: usize = 1 << 25;

impl FullSumShape {
    /// The fastest shape for a cut into digits, whatever memory it takes.
    pub fn new(terms: usize, points: usize, windows: Windows) -> Self {
        let sets = windows.widths().len();
        let entries_of_set = terms * windows.copies() as usize;
        FullSumShape {
            terms,
            points,
            sets_per_pass: (PASS_ENTRIES / entries_of_set.max(1)).clamp(1, sets),
            passes_per_group: sets,
            windows,
        }
    }

    /// The sum's passes.
    pub(super) fn passes(&self) -> Passes {
        if self.terms == 0 {
            return Passes::none();
        }
        Passes::new(
            &self.windows,
            self.terms as u64,
            self.sets_per_pass,
            self.passes_per_group,
        )
    }
}

/// The terms of a sum on the device.
#[derive(Clone, Copy, Debug)]
pub struct FullSumTerms<A> {
    /// The bases, copy after copy.
    pub bases: DeviceSlice<A>,
    /// Canonical scalars.
    pub scalars: DeviceSlice<[u32; 8]>,
    /// Each term's base and scalar; `None`: term i is scalar i times base i.
    pub indices: Option<TermIndices>,
}

/// Which base and which scalar each term has.
#[derive(Clone, Copy, Debug)]
pub struct TermIndices {
    /// Indices of bases.
    pub points: DeviceSlice<u32>,
    /// Indices of scalars.
    pub scalars: DeviceSlice<u32>,
}

/// A sum, planned.
#[derive(Clone, Debug)]
pub struct FullSumPlan<C: SumCurve> {
    shape: FullSumShape,
    passes: Passes,
    /// Blocks that share a sum over bits.
    parts: u32,
    slots: Slots<C>,
}

impl<C: SumCurve> FullSumPlan<C> {
    /// Names the buffers of the sum `name` for a device of so many multiprocessors: those of its
    /// work live for `work`, its tables and its result are resident.
    ///
    /// # Panics
    /// If an index of a base and a sign do not fit in 32 bits: 2^31 points in all copies.
    pub fn new(
        name: &str,
        shape: FullSumShape,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: impl Into<Lifetime>,
    ) -> Self {
        let copies = shape.windows.copies() as usize;
        assert!(
            shape.points * copies < 1 << 31,
            "{name}: {copies} copies of {} points",
            shape.points
        );
        let passes = shape.passes();
        let sums = passes.sets.len() as u32 * passes.sums_per_set();
        let of_set =
            |set: &params::BucketSet| 1 << set.row_bits.max(set.column_bits + set.block_bits);
        let lines = passes.sets.iter().map(of_set).max().unwrap_or(0);
        let parts = (BIT_BLOCKS / sums.max(1))
            .min(lines / (4 * SUM_THREADS))
            .max(1);
        let sums = sums as usize * parts as usize;
        let slots = Slots::reserve(
            name,
            &shape,
            &passes,
            sums,
            multiprocessors,
            ledger,
            work.into(),
        );
        FullSumPlan {
            shape,
            passes,
            parts,
            slots,
        }
    }

    /// What it was planned for.
    pub fn shape(&self) -> &FullSumShape {
        &self.shape
    }

    /// Affine additions of a run, for uniform scalars: those of the buckets, and two a bucket in the
    /// reduction.
    pub fn expected_additions(&self) -> f64 {
        let of_pass = |pass: &Pass| pass.expected_additions() + 2.0 * f64::from(pass.buckets());
        self.passes.passes.iter().map(of_pass).sum()
    }

    /// Number of partial sums of a run.
    pub fn sums_len(&self) -> usize {
        self.slots.sums.len()
    }

    /// Loads the kernels and uploads the tables.
    ///
    /// # Errors
    /// A driver that fails, a kernel that is missing.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<FullSum<C>> {
        FullSum::new(self, device, arena)
    }

    /// The digit kernel's windows, a table for each group of passes.
    fn window_tables(&self) -> Vec<params::DigitWindow> {
        let points = self.shape.points as u32;
        let table = |group| {
            self.passes
                .digit_windows(&self.shape.windows, group, points)
        };
        self.passes.groups.iter().flat_map(table).collect()
    }

    /// The sum, from what [`FullSum::sums`] holds after a run.
    ///
    /// # Panics
    /// If `sums` is not as long.
    pub fn combine(&self, sums: &[[C::Affine; 2]]) -> C::Projective {
        let per_set = self.passes.sums_per_set() as usize;
        let parts = self.parts as usize;
        let mut total = C::Projective::identity();
        for (set, shape) in self.passes.sets.iter().enumerate().rev() {
            for _ in 0..self.shape.windows.widths()[set] {
                total = total.double();
            }
            let bits = (shape.row_bits + shape.column_bits) as usize;
            let sum = |index: usize| {
                let first = (set * per_set + index) * parts;
                let parts = &sums[first..first + parts];
                let points = parts.iter().map(|part| C::from_xyzz(*part));
                points.fold(C::Projective::identity(), |sum, point| sum + point)
            };
            // Bucket b of the set counts b + 1 times.
            let mut of_set = C::Projective::identity();
            for bit in (0..bits).rev() {
                of_set = of_set.double() + sum(bit);
            }
            total += of_set + sum(bits);
        }
        total
    }
}
