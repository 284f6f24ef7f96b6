//! In how many passes a sum is computed, and where each set's buckets are.

use std::ops::Range;

use super::params::{BucketSet, DigitWindow, Grid, NO_SLOT};
use super::windows::{Windows, bucket_bits};

/// Pairs of a round of the two-dimensional reduction below which the rest is summed in XYZZ
/// coordinates. On the H200 rounds of 2^17 and 2^16 pairs take 0.18 ms together, and summing the points
/// of 2^18 instead took 0.25 ms longer.
const GRID_ROUND_PAIRS: u64 = 1 << 16;

/// Threads that the sums of rows and columns use at least.
const LINE_THREADS: u32 = 1 << 15;

/// Some sets of buckets that are sorted and folded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Which sets.
    pub sets: Range<usize>,
    /// Digits.
    pub entries: u64,
    /// The buckets of all its sets, in blocks of equal size: a set has one or two.
    pub grid: Grid,
    /// Its first block among those of all passes.
    pub first_block: u32,
}

impl Pass {
    /// Buckets of all its sets.
    pub fn buckets(&self) -> u32 {
        self.grid.buckets()
    }

    /// Bits of its keys: the buckets, and one more for zero digits.
    pub fn key_bits(&self) -> u32 {
        u32::BITS - self.buckets().leading_zeros()
    }

    /// Rounds that uniform digits need: buckets are Poisson distributed, and none is larger than the
    /// mean and six standard deviations, in effect.
    pub fn expected_rounds(&self) -> u32 {
        let mean = self.entries as f64 / f64::from(self.buckets());
        (mean + 6.0 * mean.sqrt() + 6.0).log2().ceil() as u32
    }

    /// Additions that fold its buckets to a point each, for uniform digits.
    pub fn expected_additions(&self) -> f64 {
        let (entries, buckets) = (self.entries as f64, f64::from(self.buckets()));
        let used_buckets = buckets * (1.0 - (-entries / buckets).exp());
        entries - used_buckets
    }

    /// Places for points that the fold of the buckets needs, that of infinity not included.
    pub fn slots(&self) -> u64 {
        (self.entries + u64::from(self.buckets())) / 2 + 1
    }
}

/// Some passes whose digits are computed at once, and whose buckets are reduced together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which passes.
    pub passes: Range<usize>,
    /// Digits of all its passes.
    pub entries: u64,
    /// The blocks of all its passes.
    pub grid: Grid,
    /// Its first block among those of all groups.
    pub first_block: u32,
    /// Rounds of the reduction by folds, the first included.
    pub grid_rounds: u32,
    /// Lanes that sum a row or a column together in the end.
    pub lanes: u32,
}

impl Group {
    fn new(passes: &[Pass], range: Range<usize>) -> Self {
        let of_group = &passes[range.clone()];
        let first = &of_group[0];
        let grid = Grid {
            blocks: of_group.iter().map(|pass| pass.grid.blocks).sum(),
            ..first.grid
        };
        let pairs = |round| u64::from(grid.buckets()) >> round;
        let grid_rounds = (1..grid.column_bits)
            .take_while(|&round| pairs(round) >= GRID_ROUND_PAIRS)
            .count() as u32
            + 1;
        let left = 1 << (grid.column_bits - grid_rounds);
        let lanes = (LINE_THREADS / (grid.rows() + grid.columns()))
            .max(1)
            .next_power_of_two()
            .min(left)
            .min(32);
        Group {
            entries: of_group.iter().map(|pass| pass.entries).sum(),
            first_block: first.first_block,
            passes: range,
            grid,
            grid_rounds,
            lanes,
        }
    }

    /// Where the first row of `pass`, and its first block's columns, are among the group's halves of
    /// rows and columns.
    pub fn places(&self, pass: &Pass) -> (u32, u32) {
        let rows = (pass.first_block - self.first_block)
            << (self.grid.row_bits + self.grid.column_bits - 1);
        (rows, self.grid.buckets() / 2 + rows)
    }

    /// Its first row among those of all groups.
    pub fn first_row(&self) -> u32 {
        self.first_block << self.grid.row_bits
    }

    /// Its first column among those of all groups.
    pub fn first_column(&self) -> u32 {
        self.first_block << self.grid.column_bits
    }
}

/// The passes of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passes {
    /// In the order in which they run.
    pub passes: Vec<Pass>,
    /// The groups that they form.
    pub groups: Vec<Group>,
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
            groups: Vec::new(),
            sets: Vec::new(),
            rows: 0,
            columns: 0,
        }
    }

    /// For `terms` terms, so many sets a pass, or one fewer, and so many passes a group.
    pub fn new(
        windows: &Windows,
        terms: u64,
        sets_per_pass: usize,
        passes_per_group: usize,
    ) -> Self {
        let widths = windows.widths();
        let count = widths.len();
        let entries_of_set = terms * u64::from(windows.copies());
        // The wider sets, by one bit, are two blocks.
        let bits = widths.last().map_or(0, |&width| bucket_bits(width));
        let (row_bits, column_bits) = (bits.div_ceil(2), bits / 2);
        let mut all = Passes::none();
        let mut blocks = 0;
        for &width in widths {
            let block_bits = bucket_bits(width) - bits;
            all.sets.push(BucketSet {
                first_row: blocks << row_bits,
                row_bits: row_bits + block_bits,
                first_column: blocks << column_bits,
                column_bits,
                block_bits,
            });
            blocks += 1 << block_bits;
        }
        all.rows = blocks << row_bits;
        all.columns = blocks << column_bits;

        let passes = count.div_ceil(sets_per_pass.max(1));
        for pass in 0..passes {
            let sets = count * pass / passes..count * (pass + 1) / passes;
            let blocks = all.sets[sets.clone()].iter().map(|set| 1 << set.block_bits);
            all.passes.push(Pass {
                entries: entries_of_set * sets.len() as u64,
                grid: Grid {
                    blocks: blocks.sum(),
                    row_bits,
                    column_bits,
                },
                first_block: all.sets[sets.start].first_row >> row_bits,
                sets,
            });
        }
        let size = passes_per_group.max(1);
        all.groups = (0..passes)
            .step_by(size)
            .map(|start| Group::new(&all.passes, start..(start + size).min(passes)))
            .collect();
        all
    }

    /// The largest of a number over the passes.
    pub fn largest<T: Ord + Default>(&self, of: impl Fn(&Pass) -> T) -> T {
        self.passes.iter().map(of).max().unwrap_or_default()
    }

    /// The largest of a number over the groups.
    pub fn largest_group<T: Ord + Default>(&self, of: impl Fn(&Group) -> T) -> T {
        self.groups.iter().map(of).max().unwrap_or_default()
    }

    /// The digit kernel's windows when the passes of `group` are wanted: keys of a pass count from its
    /// first set on, and the slots of the group's windows go by pass, set and copy.
    pub fn digit_windows(&self, windows: &Windows, group: &Group, points: u32) -> Vec<DigitWindow> {
        let wanted = &self.passes[group.passes.clone()];
        let first_set = wanted.first().map_or(0, |pass| pass.sets.start);
        let describe = |window: super::windows::Window| {
            let pass = wanted.iter().find(|pass| pass.sets.contains(&window.set));
            let first_key = pass.map_or(0, |pass| {
                let block = self.sets[window.set].first_row >> pass.grid.row_bits;
                (block - pass.first_block) << (pass.grid.row_bits + pass.grid.column_bits)
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
        let passes = Passes::new(&windows, 1 << 27, 1, 11);
        assert_eq!(passes.passes.len(), 11);
        assert_eq!(passes.passes[0].buckets(), 1 << 23);
        assert_eq!(passes.passes[2].buckets(), 1 << 22);
        assert_eq!(passes.passes[0].key_bits(), 24);

        let windows = Windows::new(16, 1).unwrap();
        let passes = Passes::new(&windows, 40_000, 16, 16);
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
            for passes_per_group in [1, 2, 64] {
                let passes = Passes::new(&windows, terms, 5, passes_per_group);
                groups_are_apart(&windows, terms, &passes);
            }
        }
    }

    fn groups_are_apart(windows: &Windows, terms: u64, passes: &Passes) {
        for group in &passes.groups {
            let table = passes.digit_windows(windows, group, 1000);
            let wanted = || table.iter().filter(|window| window.slot != NO_SLOT);
            let mut slots: Vec<u32> = wanted().map(|window| window.slot).collect();
            slots.sort_unstable();
            assert_eq!(slots.len() as u64 * terms, group.entries);
            assert!(slots.iter().enumerate().all(|(i, &slot)| slot == i as u32));
            for (window, entry) in windows.iter().zip(&table) {
                if entry.slot != NO_SLOT {
                    assert!(entry.first_key + (1 << (window.width - 1)) <= entry.zero_key);
                }
            }
            // The passes' halves of rows, then of columns, follow each other without a gap.
            let (mut row, mut column) = (0, group.grid.buckets() / 2);
            for pass in &passes.passes[group.passes.clone()] {
                assert_eq!(group.places(pass), (row, column));
                row += pass.buckets() / 2;
                column += pass.buckets() / 2;
            }
            assert_eq!((2 * row, column), (group.grid.buckets(), 2 * row));
        }
        let covered: Vec<usize> = passes
            .groups
            .iter()
            .flat_map(|g| g.passes.clone())
            .collect();
        assert!(covered.into_iter().eq(0..passes.passes.len()));
        let rows: u32 = passes.sets.iter().map(|set| 1 << set.row_bits).sum();
        let columns = passes
            .sets
            .iter()
            .map(|set| 1 << (set.column_bits + set.block_bits));
        assert_eq!((rows, columns.sum()), (passes.rows, passes.columns));
    }
}
