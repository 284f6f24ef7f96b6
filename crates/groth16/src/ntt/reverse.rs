//! The bit-reversal permutation.

use rayon::prelude::*;

/// log₂ of a tile's side: 32 elements of 32 bytes, 1 KiB, are read or written together.
const TILE_LOG: u32 = 5;
const TILE: usize = 1 << TILE_LOG;

/// target[rev(i)] = source[i], where rev reverses the bits of an index.
///
/// An index is (high, middle, low) with high and low of [`TILE_LOG`] bits, and rev turns it
/// into (rev low, rev middle, rev high). For a fixed middle the elements form a tile that is
/// read along low and written along high, so that whole cache lines are used on both sides.
///
/// # Panics
/// If the lengths differ or are not a power of two.
pub fn bit_reverse<T: Copy + Send + Sync>(source: &[T], target: &mut [T]) {
    assert_eq!(source.len(), target.len(), "a permutation keeps the length");
    assert!(
        source.len().is_power_of_two(),
        "bits of an index are reversed"
    );
    let bits = source.len().ilog2();
    if bits < 2 * TILE_LOG {
        for (i, value) in source.iter().enumerate() {
            target[reverse(i, bits)] = *value;
        }
        return;
    }
    let middle_bits = bits - 2 * TILE_LOG;
    // Row rev(low) of the target, and in it the tile's run of rev(middle).
    let mut tiles: Vec<Vec<&mut [T]>> = (0..1 << middle_bits)
        .map(|_| Vec::with_capacity(TILE))
        .collect();
    for row in target.chunks_exact_mut(TILE << middle_bits) {
        for (tile, run) in tiles.iter_mut().zip(row.chunks_exact_mut(TILE)) {
            tile.push(run);
        }
    }
    tiles
        .into_par_iter()
        .enumerate()
        .for_each(|(middle, mut runs)| {
            let middle = reverse(middle, middle_bits);
            for high in 0..TILE {
                let start = (high << middle_bits | middle) << TILE_LOG;
                let column = reverse(high, TILE_LOG);
                for (low, value) in source[start..start + TILE].iter().enumerate() {
                    runs[reverse(low, TILE_LOG)][column] = *value;
                }
            }
        });
}

/// The lowest `bits` bits of `index` in reverse order; the others must be zero.
#[inline]
fn reverse(index: usize, bits: u32) -> usize {
    if bits == 0 {
        return 0;
    }
    index.reverse_bits() >> (usize::BITS - bits)
}
