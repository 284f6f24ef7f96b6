//! Sizes of the rounds of additions, which the plan must bound before the scalars are known.

/// Rounds that the pair lists have room for: buckets of up to 2^32 points.
pub const MAX_ROUNDS: usize = 32;

/// Threads of a block of the fold kernels, `FOLD_THREADS`.
pub const FOLD_THREADS: u32 = 128;

const WARP: u64 = 32;

/// The most pairs that round `round` can have over buckets of `entries` points in all. A bucket
/// needs 2^round + 1 points to have a pair left then, and has at most one pair for so many.
pub fn pairs_bound(entries: u64, round: u32) -> u64 {
    entries / ((1 << round) + 1)
}

/// Rounds until every bucket is a single point, however the entries are spread.
pub fn rounds(entries: u64) -> u32 {
    (0..MAX_ROUNDS as u32)
        .take_while(|&round| pairs_bound(entries, round) > 0)
        .count() as u32
}

/// Where the lists of the rounds from 1 on begin, and their length in all.
pub fn list_starts(entries: u64) -> ([u32; MAX_ROUNDS], usize) {
    let mut starts = [0; MAX_ROUNDS];
    let mut end = 0;
    for round in 1..rounds(entries) {
        starts[round as usize] = end as u32;
        end += pairs_bound(entries, round);
    }
    (starts, end as usize)
}

/// How the fold kernels are launched, and what they need to remember between their two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldGrid {
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// Blocks of [`FOLD_THREADS`] threads on each.
    pub blocks_each: u32,
    /// Rows of a chunk: pairs that a thread inverts for at once.
    pub batch: u32,
}

/// Pairs that share an inversion at most. An inversion costs about as much as 32 products; shared by
/// 512 pairs it is 1 % of their additions.
const BATCH: u32 = 512;

impl FoldGrid {
    /// For rounds of up to `pairs` pairs.
    pub fn new(pairs: u64, multiprocessors: u32, blocks_each: u32) -> Self {
        // Short rounds use one block a multiprocessor.
        let warps = u64::from(multiprocessors * FOLD_THREADS) / WARP;
        let rows_per_warp = pairs.div_ceil(WARP).div_ceil(warps).max(1);
        FoldGrid {
            multiprocessors,
            blocks_each,
            batch: u64::from(BATCH).min(rows_per_warp) as u32,
        }
    }

    /// Blocks of a launch.
    pub fn blocks(&self) -> u32 {
        self.multiprocessors * self.blocks_each
    }

    /// Pairs that are in work at one time, all threads together.
    pub fn remembered(&self) -> usize {
        self.blocks() as usize * FOLD_THREADS as usize * self.batch as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of a round over buckets of the given sizes.
    fn pairs(buckets: &[u64], round: u32) -> u64 {
        buckets
            .iter()
            .map(|size| size.div_ceil(1 << round) / 2)
            .sum()
    }

    #[test]
    fn bounds_hold_for_whatever_buckets() {
        for entries in 0..200u64 {
            let even = |size: u64| {
                let mut buckets = vec![size; (entries / size) as usize];
                buckets.push(entries % size);
                buckets
            };
            for buckets in (1..=entries.max(1)).map(even) {
                for round in 0..12 {
                    assert!(pairs(&buckets, round) <= pairs_bound(entries, round));
                }
                assert_eq!(pairs(&buckets, rounds(entries)), 0);
            }
        }
        assert_eq!(rounds(1 << 27), 27);
        assert_eq!(rounds((1 << 27) + 1), 28);
        assert_eq!((rounds(0), rounds(1), rounds(2), rounds(3)), (0, 0, 1, 2));
    }

    #[test]
    fn short_rounds_have_small_chunks() {
        assert_eq!(FoldGrid::new(1000, 132, 4).batch, 1);
        assert_eq!(FoldGrid::new(1 << 26, 132, 4).batch, 512);
    }

    #[test]
    fn lists_take_less_than_their_entries() {
        for entries in [2, 3, 1000, 1 << 27, (1 << 31) - 1] {
            let (starts, len) = list_starts(entries);
            assert!(len as u64 <= entries * 77 / 100);
            let last = rounds(entries) - 1;
            assert!(starts[last as usize] as usize <= len);
        }
    }
}
