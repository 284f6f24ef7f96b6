//! In how many passes a sum is computed, and where each set's buckets are.

use std::ops::Range;

use super::params::{BucketSet, DigitWindow, Grid, NO_SLOT};
use super::windows::{Windows, bucket_bits};

/// Pairs of a round of the two-dimensional reduction below which the rest is summed in XYZZ
/// coordinates: a round costs at least the latency of an inversion (50 us on the H200), in which
/// 2^16 such additions are done.
const GRID_ROUND_PAIRS: u64 = 1 << 15;

/// Threads that the sums of rows and columns use at least.
const LINE_THREADS: u32 = 1 << 15;

/// Some sets of buckets that are sorted, folded and reduced together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Which sets.
    pub sets: Range<usize>,
    /// Digits.
    pub entries: u64,
    /// The buckets of all its sets, in blocks of equal size: a set has one or two.
    pub grid: Grid,
    /// Rounds of the reduction by folds, the first included.
    pub grid_rounds: u32,
    /// Lanes that sum a row or a column together in the end.
    pub lanes: u32,
    /// Its first row, and its first column, among those of all passes.
    pub first_row: u32,
    /// See `first_row`.
    pub first_column: u32,
}

impl Pass {
    /// Buckets of all its sets.
    pub fn buckets(&self) -> u32 {
        self.grid.blocks << (self.grid.row_bits + self.grid.column_bits)
    }

    /// Bits of its keys: the buckets, and one more for zero digits.
    pub fn key_bits(&self) -> u32 {
        u32::BITS - self.buckets().leading_zeros()
    }

    /// Rows of all blocks.
    pub fn rows(&self) -> u32 {
        self.grid.blocks << self.grid.row_bits
    }

    /// Columns, each block's counted.
    pub fn columns(&self) -> u32 {
        self.grid.blocks << self.grid.column_bits
    }

    /// Rounds that uniform digits need: buckets are Poisson distributed, and none is larger than the
    /// mean and six standard deviations, in effect.
    pub fn expected_rounds(&self) -> u32 {
        let mean = self.entries as f64 / f64::from(self.buckets());
        (mean + 6.0 * mean.sqrt() + 6.0).log2().ceil() as u32
    }

    /// Places for points that the fold of the buckets needs, that of infinity not included.
    pub fn slots(&self) -> u64 {
        (self.entries + u64::from(self.buckets())) / 2 + 1
    }
}

/// The passes of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// In the order in which they run.
    pub passes: Vec<Pass>,
    /// Each set's rows and columns.
    pub sets: Vec<BucketSet>,
    /// Rows and columns of all passes.
    pub rows: u32,
    /// See `rows`.
    pub columns: u32,
}

impl Passes {
    /// For no terms.
    pub fn none() -> Self {
        Passes {
            passes: Vec::new(),
            sets: Vec::new(),
            rows: 0,
            columns: 0,
        }
    }

    /// For `terms` terms and so many sets a pass, or one fewer.
    pub fn new(windows: &Windows, terms: u64, sets_per_pass: usize) -> Self {
        let count = windows.widths().len();
        let entries_of_set = terms * u64::from(windows.copies());
        let passes = count.div_ceil(sets_per_pass.max(1));
        let mut all = Passes::none();
        for pass in 0..passes {
            let sets = count * pass / passes..count * (pass + 1) / passes;
            all.push(windows, sets, entries_of_set);
        }
        all
    }

    fn push(&mut self, windows: &Windows, sets: Range<usize>, entries_of_set: u64) {
        let widths = &windows.widths()[sets.clone()];
        // The wider sets, by one bit, are two blocks.
        let bits = bucket_bits(widths[widths.len() - 1]);
        let (row_bits, column_bits) = (bits.div_ceil(2), bits / 2);
        let mut blocks = 0;
        for &width in widths {
            let block_bits = bucket_bits(width) - bits;
            self.sets.push(BucketSet {
                first_row: self.rows + (blocks << row_bits),
                row_bits: row_bits + block_bits,
                first_column: self.columns + (blocks << column_bits),
                column_bits,
                block_bits,
            });
            blocks += 1 << block_bits;
        }
        let grid = Grid {
            blocks,
            row_bits,
            column_bits,
        };
        let pairs = |round| (u64::from(blocks) << bits) >> round;
        let grid_rounds = (1..column_bits)
            .take_while(|&round| pairs(round) >= GRID_ROUND_PAIRS)
            .count() as u32
            + 1;
        let lines = (blocks << row_bits) + (blocks << column_bits);
        let left = 1 << (column_bits - grid_rounds);
        let lanes = (LINE_THREADS / lines)
            .max(1)
            .next_power_of_two()
            .min(left)
            .min(32);
        self.passes.push(Pass {
            entries: entries_of_set * sets.len() as u64,
            sets,
            grid,
            grid_rounds,
            lanes,
            first_row: self.rows,
            first_column: self.columns,
        });
        self.rows += blocks << row_bits;
        self.columns += blocks << column_bits;
    }

    /// The largest of a number over the passes.
    pub fn largest<T: Ord + Default>(&self, of: impl Fn(&Pass) -> T) -> T {
        self.passes.iter().map(of).max().unwrap_or_default()
    }

    /// The digit kernel's windows when the passes `group` are wanted: keys of a pass count from its
    /// first set on, and the slots of the group's windows go by pass, set and copy.
    pub fn digit_windows(
        &self,
        windows: &Windows,
        group: Range<usize>,
        points: u32,
    ) -> Vec<DigitWindow> {
        let wanted = &self.passes[group];
        let first_set = wanted.first().map_or(0, |pass| pass.sets.start);
        let describe = |window: super::windows::Window| {
            let pass = wanted.iter().find(|pass| pass.sets.contains(&window.set));
            let first_key = pass.map_or(0, |pass| {
                let row = self.sets[window.set].first_row - pass.first_row;
                row << pass.grid.column_bits
            });
            let slot =
                (window.set - first_set.min(window.set)) as u32 * windows.copies() + window.copy;
            DigitWindow {
                bit: window.bit,
                width: window.width,
                first_key,
                zero_key: pass.map_or(0, Pass::buckets),
                first_point: window.copy * points,
                slot: if pass.is_some() { slot } else { NO_SLOT },
            }
        };
        windows.iter().map(describe).collect()
    }

    /// Sums by bits that a set needs at most: its bits, and the sum of all its buckets.
    pub fn sums_per_set(&self) -> u32 {
        let sums = self
            .sets
            .iter()
            .map(|set| set.row_bits + set.column_bits + 1);
        sums.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_the_buckets_of_its_sets() {
        let windows = Windows::new(11, 1).unwrap();
        let passes = Passes::new(&windows, 1 << 27, 1);
        assert_eq!(passes.passes.len(), 11);
        assert_eq!(passes.passes[0].buckets(), 1 << 23);
        assert_eq!(passes.passes[2].buckets(), 1 << 22);
        assert_eq!(passes.passes[0].key_bits(), 24);

        let windows = Windows::new(16, 1).unwrap();
        let passes = Passes::new(&windows, 40_000, 16);
        assert_eq!(passes.passes.len(), 1);
        let widths = windows.widths();
        let buckets: u32 = widths.iter().map(|width| 1 << (width - 1)).sum();
        assert_eq!(passes.passes[0].buckets(), buckets);
        assert_eq!(passes.passes[0].entries, 640_000);
    }

    #[test]
    fn keys_and_slots_do_not_overlap() {
        for (sets, copies, terms) in [
            (11, 1, 1 << 27),
            (12, 2, 1 << 22),
            (1, 13, 1 << 20),
            (7, 3, 100),
        ] {
            let windows = Windows::new(sets, copies).unwrap();
            let passes = Passes::new(&windows, terms, 5);
            let count = passes.passes.len();
            for group in [0..count, count - 1..count] {
                let table = passes.digit_windows(&windows, group.clone(), 1000);
                let mut slots: Vec<u32> = table
                    .iter()
                    .map(|w| w.slot)
                    .filter(|&slot| slot != NO_SLOT)
                    .collect();
                slots.sort_unstable();
                let entries: u64 = passes.passes[group].iter().map(|pass| pass.entries).sum();
                assert_eq!(slots.len() as u64 * terms, entries);
                assert!(slots.iter().enumerate().all(|(i, &slot)| slot == i as u32));
            }
            let table = passes.digit_windows(&windows, 0..count, 1000);
            for (window, entry) in windows.iter().zip(&table) {
                assert!(entry.first_key + (1 << (window.width - 1)) <= entry.zero_key);
            }
            let rows: u32 = passes.sets.iter().map(|set| 1 << set.row_bits).sum();
            let columns: u32 = passes
                .sets
                .iter()
                .map(|set| 1 << (set.column_bits + set.block_bits))
                .sum();
            assert_eq!((rows, columns), (passes.rows, passes.columns));
        }
    }
}
