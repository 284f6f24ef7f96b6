//! The buffers of a sum.

use crate::device::{Arena, DeviceSlice, Ledger, Lifetime, Slot, sort_temp_bytes};
use crate::msm::curve::SumCurve;
use crate::msm::fold::{Fold, FoldSlots};
use crate::msm::full::FullSumShape;
use crate::msm::layout::{Pass, Passes};
use crate::msm::params;
use crate::msm::rounds::{MAX_ROUNDS, list_starts, pairs_bound};

/// Counters of a pass: pairs of each round; then chunks handed out in each round of the buckets and
/// in the first one of the reduction, in the last place.
pub const COUNTERS: usize = 2 * MAX_ROUNDS;

/// Declares the buffers once for the plan and once for the arena.
macro_rules! buffers {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The buffers in a ledger.
        #[derive(Clone, Debug)]
        pub struct Slots<C: SumCurve> {
            $($(#[$doc])* pub $field: Slot<$type>,)*
            pub fold: FoldSlots,
        }

        /// The buffers in memory.
        #[derive(Clone, Debug)]
        pub struct Buffers<C: SumCurve> {
            $($(#[$doc])* pub $field: DeviceSlice<$type>,)*
            pub fold: Fold,
        }

        impl<C: SumCurve> Slots<C> {
            /// Where the buffers are.
            pub fn in_arena(&self, arena: &Arena) -> Buffers<C> {
                Buffers {
                    $($field: arena.get(self.$field),)*
                    fold: self.fold.in_arena::<C>(arena),
                }
            }
        }
    };
}

buffers! {
    /// The digit kernel's windows, for each group of passes.
    windows: params::DigitWindow,
    /// Rows and columns of each set.
    sets: params::BucketSet,
    /// Digits as they come, of a group of passes.
    keys: u32,
    /// Their bases, with signs.
    values: u32,
    /// Room to sort the digits of a pass.
    other_keys: u32,
    /// Room to sort their bases.
    other_values: u32,
    /// What the sort needs besides.
    sort: u8,
    /// First, then last entries of the buckets.
    ranges: u32,
    /// [`COUNTERS`] for each pass, then [`MAX_ROUNDS`] for each group: chunks handed out in each round
    /// of its reduction.
    counters: u32,
    /// Left, right and sum of the first round's pairs.
    first_pairs: u32,
    /// Left and right of the other rounds' pairs.
    later_pairs: u32,
    /// The buckets' points; the last place holds infinity.
    points: C::Affine,
    /// Halves of the rows, then halves of the columns, of a group of passes.
    lines: C::Affine,
    /// Sums of the rows, then of the columns, of all sets.
    line_sums: [C::Affine; 2],
    /// Sums over the bits of the bucket index, of all sets.
    sums: [C::Affine; 2],
}

impl<C: SumCurve> Slots<C> {
    /// Names them all. `sums`: sums over bits, those of all parts.
    pub fn reserve(
        name: &str,
        shape: &FullSumShape,
        passes: &Passes,
        sums: usize,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: Lifetime,
    ) -> Self {
        let entries = passes.largest(|pass| pass.entries);
        let first_pairs = pairs_bound(entries, 0);
        let buckets = passes.largest(Pass::buckets) as usize;
        let digits = passes.largest_group(|group| group.entries) as usize;
        let tables = passes.groups.len() * shape.windows.digits() as usize;
        let counters = COUNTERS * passes.passes.len() + MAX_ROUNDS * passes.groups.len();
        let halves = passes.largest_group(|group| group.grid.buckets()) as usize;
        let points = match passes.largest(Pass::slots) {
            0 => 0,
            slots => slots as usize + 1,
        };
        let lines = (passes.rows + passes.columns) as usize;
        let pairs = first_pairs.max(buckets as u64).max(halves as u64 / 2);

        let list = |what: &str| format!("{name}: {what}");
        let resident = Lifetime::RESIDENT;
        Slots {
            windows: ledger.reserve(list("windows"), tables, resident),
            sets: ledger.reserve(list("sets"), passes.sets.len(), resident),
            keys: ledger.reserve(list("digits"), digits, work),
            values: ledger.reserve(list("bases of digits"), digits, work),
            other_keys: ledger.reserve(list("digits, sorted"), entries as usize, work),
            other_values: ledger.reserve(list("bases, sorted"), entries as usize, work),
            sort: ledger.reserve(list("sort"), sort_temp_bytes(entries as usize), work),
            ranges: ledger.reserve(list("bucket ranges"), 2 * buckets, work),
            counters: ledger.reserve(list("counters"), counters, work),
            first_pairs: ledger.reserve(list("pairs"), 3 * first_pairs as usize, work),
            later_pairs: ledger.reserve(list("later pairs"), 2 * list_starts(entries).1, work),
            points: ledger.reserve(list("bucket points"), points, work),
            lines: ledger.reserve(list("rows and columns"), halves, work),
            line_sums: ledger.reserve(list("sums of rows and columns"), lines, work),
            sums: ledger.reserve(list("sums by bits"), sums, resident),
            fold: FoldSlots::reserve::<C>(name, pairs, multiprocessors, ledger, work),
        }
    }
}
