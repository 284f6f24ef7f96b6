//! Numbers of launches.

/// A count of things of a circuit: 2^28 at most of each kind, so it fits.
pub(super) fn word(count: usize) -> u32 {
    u32::try_from(count).expect("a circuit has at most 2^28 of anything")
}

/// Blocks of `threads` threads with one for each of `count` things.
pub(super) fn blocks(count: usize, threads: usize) -> u32 {
    word(count.div_ceil(threads))
}
