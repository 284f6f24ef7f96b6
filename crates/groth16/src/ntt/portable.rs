//! The levels of a tile, one element at a time.

use super::roots::Roots;
use crate::fr::Limbs;

/// Splits a tile through `levels` levels: 2^levels rows of `columns` elements each, one block.
///
/// Two levels at a time (radix 4), a single one first if their number is odd: half the loads
/// and stores of one level at a time, the same multiplications.
pub fn forward_levels(tile: &mut [Limbs], columns: usize, levels: u32, roots: Roots<'_>) {
    let mut below = 0;
    if levels % 2 == 1 {
        split(tile, roots.level(0)[0]);
        below = 1;
    }
    while below < levels {
        let outer = roots.level(below);
        let inner = roots.level(below + 1);
        let block_len = (columns << levels) >> below;
        for ((block, &w), w_next) in tile
            .chunks_exact_mut(block_len)
            .zip(outer)
            .zip(inner.chunks_exact(2))
        {
            split_twice(block, w, w_next[0], w_next[1]);
        }
        below += 2;
    }
}

/// Undoes [`forward_levels`] up to a factor 2 for each level.
pub fn backward_levels(tile: &mut [Limbs], columns: usize, levels: u32, roots: Roots<'_>) {
    let mut below = levels;
    while below >= 2 {
        below -= 2;
        let block_len = (columns << levels) >> below;
        for (i, block) in tile.chunks_exact_mut(block_len).enumerate() {
            join_twice(
                block,
                roots.negative_inverse(below, i),
                roots.negative_inverse(below + 1, 2 * i),
                roots.negative_inverse(below + 1, 2 * i + 1),
            );
        }
    }
    if below == 1 {
        join(tile, roots.negative_inverse(0, 0));
    }
}

/// (u, v) becomes (u + w·v, u − w·v) for the halves u and v of `block`.
fn split(block: &mut [Limbs], w: Limbs) {
    let (us, vs) = block.split_at_mut(block.len() / 2);
    for (u, v) in us.iter_mut().zip(vs) {
        (*u, *v) = u.sum_and_difference(*v * w);
    }
}

/// (u, v) becomes (u + v, (v − u)·w), which is 2·(u, v) before [`split`] for w = −1/w there.
fn join(block: &mut [Limbs], w: Limbs) {
    let (us, vs) = block.split_at_mut(block.len() / 2);
    for (u, v) in us.iter_mut().zip(vs) {
        (*u, *v) = (*u + *v, (*v - *u) * w);
    }
}

/// [`split`] of the whole block by `w`, then of its halves by `low` and `high`.
fn split_twice(block: &mut [Limbs], w: Limbs, low: Limbs, high: Limbs) {
    let [aa, bb, cc, dd] = quarters(block);
    for (((a, b), c), d) in aa.iter_mut().zip(bb).zip(cc).zip(dd) {
        let (a1, c1) = a.sum_and_difference(*c * w);
        let (b1, d1) = b.sum_and_difference(*d * w);
        (*a, *b) = a1.sum_and_difference(b1 * low);
        (*c, *d) = c1.sum_and_difference(d1 * high);
    }
}

/// [`join`] of the halves by `low` and `high`, then of the whole block by `w`.
fn join_twice(block: &mut [Limbs], w: Limbs, low: Limbs, high: Limbs) {
    let [aa, bb, cc, dd] = quarters(block);
    for (((a, b), c), d) in aa.iter_mut().zip(bb).zip(cc).zip(dd) {
        let (a1, b1) = (*a + *b, (*b - *a) * low);
        let (c1, d1) = (*c + *d, (*d - *c) * high);
        (*a, *c) = (a1 + c1, (c1 - a1) * w);
        (*b, *d) = (b1 + d1, (d1 - b1) * w);
    }
}

fn quarters(block: &mut [Limbs]) -> [&mut [Limbs]; 4] {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    [a, b, c, d]
}
