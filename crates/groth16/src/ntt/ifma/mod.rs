//! The levels of a tile on AVX-512 IFMA: eight elements at a time.
//!
//! A tile is converted to vectors of 52-bit limbs, a lane for each of eight neighbouring
//! elements, taken through its levels and converted back. As long as the halves of a
//! block are eight elements or more apart, lanes do not mix and a block's root is the same in
//! all of them. For the last three levels of contiguous data the lanes are eight
//! neighbouring blocks instead, each with its own roots.

mod fr;

use super::roots::Roots;
use crate::avx512;
use crate::fr::Limbs;
use fr::{Fr8, Root8};

/// Lanes of a vector.
const LANES: usize = 8;
/// Levels whose halves are less than [`LANES`] apart.
const INNER: u32 = LANES.ilog2();

/// A tile as vectors; kept between tiles for its memory.
pub type Sliced = Vec<Fr8>;

/// Whether this kernel does such tiles, on this processor.
pub fn fits(columns: usize, levels: u32) -> bool {
    let shape = columns.is_multiple_of(LANES) || (columns == 1 && levels >= 2 * INNER);
    shape && avx512::supported()
}

/// [`super::portable::forward_levels`], for tiles that [`fits`] admits.
pub fn forward_levels(
    sliced: &mut Sliced,
    tile: &mut [Limbs],
    columns: usize,
    levels: u32,
    roots: Roots<'_>,
) {
    assert!(fits(columns, levels) && tile.len() == columns << levels);
    // SAFETY: the processor has the features, as `fits` has asked.
    unsafe {
        if columns > 1 {
            forward_columns(sliced, tile, columns, levels, roots);
        } else {
            forward_columns(sliced, tile, LANES, levels - INNER, roots);
            forward_inner(tile, levels - INNER, roots);
        }
    }
}

/// [`super::portable::backward_levels`], for tiles that [`fits`] admits.
pub fn backward_levels(
    sliced: &mut Sliced,
    tile: &mut [Limbs],
    columns: usize,
    levels: u32,
    roots: Roots<'_>,
) {
    assert!(fits(columns, levels) && tile.len() == columns << levels);
    // SAFETY: the processor has the features, as `fits` has asked.
    unsafe {
        if columns > 1 {
            backward_columns(sliced, tile, columns, levels, roots);
        } else {
            backward_inner(tile, levels - INNER, roots);
            backward_columns(sliced, tile, LANES, levels - INNER, roots);
        }
    }
}

/// Levels of rows of a multiple of eight columns.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_columns(
    sliced: &mut Sliced,
    tile: &mut [Limbs],
    columns: usize,
    levels: u32,
    roots: Roots<'_>,
) {
    slice(sliced, tile);
    let rows = columns / LANES;
    let mut below = 0;
    if levels % 2 == 1 {
        let w = Root8::splat(roots.level(0)[0]);
        let (us, vs) = sliced.split_at_mut(rows << levels >> 1);
        for (u, v) in us.iter_mut().zip(vs) {
            fr::split(u, v, &w);
        }
        below = 1;
    }
    while below < levels {
        let (outer, inner) = (roots.level(below), roots.level(below + 1));
        for (i, block) in sliced
            .chunks_exact_mut((rows << levels) >> below)
            .enumerate()
        {
            let w = Root8::splat(outer[i]);
            let (low, high) = (Root8::splat(inner[2 * i]), Root8::splat(inner[2 * i + 1]));
            let [aa, bb, cc, dd] = quarters(block);
            for (((a, b), c), d) in aa.iter_mut().zip(bb).zip(cc).zip(dd) {
                fr::split_twice([a, b, c, d], &w, &low, &high);
            }
        }
        below += 2;
    }
    unslice(sliced, tile);
}

/// Undoes [`forward_columns`] up to a factor 2 for each level.
#[target_feature(enable = "avx512f,avx512ifma")]
fn backward_columns(
    sliced: &mut Sliced,
    tile: &mut [Limbs],
    columns: usize,
    levels: u32,
    roots: Roots<'_>,
) {
    slice(sliced, tile);
    let rows = columns / LANES;
    let mut below = levels;
    while below >= 2 {
        below -= 2;
        for (i, block) in sliced
            .chunks_exact_mut((rows << levels) >> below)
            .enumerate()
        {
            let w = Root8::splat(roots.negative_inverse(below, i));
            let low = Root8::splat(roots.negative_inverse(below + 1, 2 * i));
            let high = Root8::splat(roots.negative_inverse(below + 1, 2 * i + 1));
            let [aa, bb, cc, dd] = quarters(block);
            for (((a, b), c), d) in aa.iter_mut().zip(bb).zip(cc).zip(dd) {
                fr::join_twice([a, b, c, d], &w, &low, &high);
            }
        }
    }
    if below == 1 {
        let w = Root8::splat(roots.negative_inverse(0, 0));
        let (us, vs) = sliced.split_at_mut(rows << levels >> 1);
        for (u, v) in us.iter_mut().zip(vs) {
            fr::join(u, v, &w);
        }
    }
    unslice(sliced, tile);
}

/// The last three levels of contiguous blocks of eight, `below` levels under the tile's block.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_inner(tile: &mut [Limbs], below: u32, roots: Roots<'_>) {
    let lanes = |level: u32, first: usize, step: usize| -> [Limbs; LANES] {
        std::array::from_fn(|lane| roots.level(level)[first + step * lane])
    };
    for (group, elements) in tile.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let block = group * LANES;
        let mut v = load_blocks(elements);
        let [v0, v1, v2, v3, v4, v5, v6, v7] = &mut v;
        let w = Root8::load(&lanes(below, block, 1));
        fr::split(v0, v4, &w);
        fr::split(v1, v5, &w);
        fr::split(v2, v6, &w);
        fr::split(v3, v7, &w);
        let w = Root8::load(&lanes(below + 1, 2 * block, 2));
        let low = Root8::load(&lanes(below + 2, 4 * block, 4));
        let high = Root8::load(&lanes(below + 2, 4 * block + 1, 4));
        fr::split_twice([v0, v1, v2, v3], &w, &low, &high);
        let w = Root8::load(&lanes(below + 1, 2 * block + 1, 2));
        let low = Root8::load(&lanes(below + 2, 4 * block + 2, 4));
        let high = Root8::load(&lanes(below + 2, 4 * block + 3, 4));
        fr::split_twice([v4, v5, v6, v7], &w, &low, &high);
        store_blocks(&v, elements);
    }
}

/// Undoes [`forward_inner`] up to the factor 8.
#[target_feature(enable = "avx512f,avx512ifma")]
fn backward_inner(tile: &mut [Limbs], below: u32, roots: Roots<'_>) {
    let lanes = |level: u32, first: usize, step: usize| -> [Limbs; LANES] {
        std::array::from_fn(|lane| roots.negative_inverse(level, first + step * lane))
    };
    for (group, elements) in tile.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let block = group * LANES;
        let mut v = load_blocks(elements);
        let [v0, v1, v2, v3, v4, v5, v6, v7] = &mut v;
        let w = Root8::load(&lanes(below + 1, 2 * block, 2));
        let low = Root8::load(&lanes(below + 2, 4 * block, 4));
        let high = Root8::load(&lanes(below + 2, 4 * block + 1, 4));
        fr::join_twice([v0, v1, v2, v3], &w, &low, &high);
        let w = Root8::load(&lanes(below + 1, 2 * block + 1, 2));
        let low = Root8::load(&lanes(below + 2, 4 * block + 2, 4));
        let high = Root8::load(&lanes(below + 2, 4 * block + 3, 4));
        fr::join_twice([v4, v5, v6, v7], &w, &low, &high);
        let w = Root8::load(&lanes(below, block, 1));
        fr::join(v0, v4, &w);
        fr::join(v1, v5, &w);
        fr::join(v2, v6, &w);
        fr::join(v3, v7, &w);
        store_blocks(&v, elements);
    }
}

/// Neighbours in lanes.
#[target_feature(enable = "avx512f,avx512ifma")]
fn slice(sliced: &mut Sliced, tile: &[Limbs]) {
    sliced.clear();
    for elements in tile.as_chunks::<LANES>().0 {
        // SAFETY: eight elements, one after the other.
        sliced.push(unsafe { Fr8::load(elements.as_ptr(), 1) });
    }
}

/// The inverse of [`slice`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn unslice(sliced: &Sliced, tile: &mut [Limbs]) {
    for (elements, vector) in tile.as_chunks_mut::<LANES>().0.iter_mut().zip(sliced) {
        // SAFETY: eight elements, one after the other.
        unsafe { vector.store(elements.as_mut_ptr(), 1) };
    }
}

/// Eight blocks of eight elements: vector k holds element k of each block.
#[target_feature(enable = "avx512f,avx512ifma")]
fn load_blocks(elements: &[Limbs; 64]) -> [Fr8; LANES] {
    let start = elements.as_ptr();
    let mut v = [Fr8::zeros(); LANES];
    for (k, v) in v.iter_mut().enumerate() {
        // SAFETY: elements k, k + 8, … k + 56 of 64.
        *v = unsafe { Fr8::load(start.add(k), LANES) };
    }
    v
}

/// The inverse of [`load_blocks`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn store_blocks(v: &[Fr8; LANES], elements: &mut [Limbs; 64]) {
    let start = elements.as_mut_ptr();
    for (k, v) in v.iter().enumerate() {
        // SAFETY: elements k, k + 8, … k + 56 of 64.
        unsafe { v.store(start.add(k), LANES) };
    }
}

fn quarters(block: &mut [Fr8]) -> [&mut [Fr8]; 4] {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    [a, b, c, d]
}
