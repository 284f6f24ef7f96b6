//! Sizes of the rounds of additions, which the plan must bound before the scalars are known.

/// Rounds that the pair lists have room for: buckets of up to 2^32 points.
pub const MAX_ROUNDS: usize = 32;

/// Threads of a block of the fold kernels, `FOLD_THREADS`.
pub const FOLD_THREADS: u32 = 128;

/// Blocks of the fold kernels on a multiprocessor.
pub const FOLD_BLOCKS: u32 = 4;

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
    /// Blocks of [`FOLD_THREADS`] threads.
    pub blocks: u32,
    /// Rows of a chunk: pairs that a thread inverts for at once.
    pub batch: u32,
}

/// Pairs that share an inversion at most. On the H200 an inversion costs about as much as 32
/// products (73 with 30 division steps a round), so that 256 pairs make it 2 % of the work.
const BATCH: u32 = 256;

impl FoldGrid {
    /// For rounds of up to `pairs` pairs on a device of so many multiprocessors.
    pub fn new(pairs: u64, multiprocessors: u32) -> Self {
        let blocks = multiprocessors * FOLD_BLOCKS;
        let warps = u64::from(blocks * FOLD_THREADS) / WARP;
        // Short rounds use a quarter of the warps.
        let rows_per_warp = pairs.div_ceil(WARP).div_ceil(warps / 4).max(1);
        FoldGrid {
            blocks,
            batch: u64::from(BATCH).min(rows_per_warp) as u32,
        }
    }

    /// Pairs that are in work at one time, all threads together.
    pub fn remembered(&self) -> usize {
        self.blocks as usize * FOLD_THREADS as usize * self.batch as usize
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
        assert_eq!(FoldGrid::new(1000, 132).batch, 1);
        assert_eq!(FoldGrid::new(1 << 26, 132).batch, 256);
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
