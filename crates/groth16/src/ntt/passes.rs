//! How the levels of a transform are grouped into passes and spread over threads.

use rayon::prelude::*;

use super::domain::{Domain, EvaluationSet};
#[cfg(target_arch = "x86_64")]
use super::ifma;
use super::portable;
use super::roots::Roots;
use crate::fr::Limbs;
use crate::kernel::Kernel;

#[cfg(target_arch = "x86_64")]
type Sliced = ifma::Sliced;
/// Other processors' kernels need no memory beside the tile.
#[cfg(not(target_arch = "x86_64"))]
type Sliced = ();

/// log₂ of the contiguous blocks that the last pass works on: 2^13 elements, 256 KiB.
const BLOCK_LOG: u32 = 13;
/// Neighbouring columns that a tile takes: 1 KiB of every row, whole cache lines and few pages.
const TILE_COLUMNS: usize = 32;
/// Most levels of a tile: 2^9 rows of 1 KiB, 512 KiB.
const TILE_LEVELS: u32 = 9;

/// A run of levels that are done in one pass over the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    /// First level: there are 2^first blocks.
    first: u32,
    /// Number of levels.
    levels: u32,
}

/// Levels 0 … log_size − 1 as passes: strided ones of nearly equal depth, then the contiguous.
fn plan(log_size: u32) -> Vec<Pass> {
    let contiguous = log_size.min(BLOCK_LOG);
    let strided = log_size - contiguous;
    let count = strided.div_ceil(TILE_LEVELS);
    let mut passes = Vec::with_capacity(count as usize + 1);
    let mut first = 0;
    for left in (1..=count).rev() {
        let levels = (strided - first).div_ceil(left);
        passes.push(Pass { first, levels });
        first += levels;
    }
    passes.push(Pass {
        first,
        levels: contiguous,
    });
    passes
}

/// Where the roots of block `block` at level `first`, and of all its descendants, begin.
fn roots_of(domain: &Domain, points: EvaluationSet, first: u32, block: usize) -> Roots<'_> {
    let offset = match points {
        EvaluationSet::Subgroup => 0,
        EvaluationSet::Coset => 1 << first,
    };
    Roots::new(domain.roots(), offset + block)
}

/// Coefficients to values.
pub fn forward(domain: &Domain, vector: &mut [Limbs], points: EvaluationSet) {
    for pass in plan(domain.log_size()) {
        run(domain, vector, points, pass, Direction::Forward);
    }
}

/// Values to n times the coefficients.
pub fn inverse(domain: &Domain, vector: &mut [Limbs], points: EvaluationSet) {
    for pass in plan(domain.log_size()).into_iter().rev() {
        run(domain, vector, points, pass, Direction::Inverse);
    }
}

/// Which way a transform goes.
#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Inverse,
}

/// A thread's memory: one tile, and what its kernel needs.
#[derive(Default)]
struct Scratch {
    tile: Vec<Limbs>,
    sliced: Sliced,
}

/// Takes a tile (2^levels rows of `columns` elements) through its levels.
fn levels(
    direction: Direction,
    kernel: Kernel,
    sliced: &mut Sliced,
    tile: &mut [Limbs],
    columns: usize,
    levels: u32,
    roots: Roots<'_>,
) {
    #[cfg(target_arch = "x86_64")]
    if kernel == Kernel::Avx512Ifma && ifma::fits(columns, levels) {
        return match direction {
            Direction::Forward => ifma::forward_levels(sliced, tile, columns, levels, roots),
            Direction::Inverse => ifma::backward_levels(sliced, tile, columns, levels, roots),
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (kernel, sliced);
    match direction {
        Direction::Forward => portable::forward_levels(tile, columns, levels, roots),
        Direction::Inverse => portable::backward_levels(tile, columns, levels, roots),
    }
}

fn run(
    domain: &Domain,
    vector: &mut [Limbs],
    points: EvaluationSet,
    pass: Pass,
    direction: Direction,
) {
    let block_len = domain.size() >> pass.first;
    let columns = block_len >> pass.levels;
    let apply = |sliced: &mut Sliced, tile: &mut [Limbs], width: usize, block: usize| {
        let roots = roots_of(domain, points, pass.first, block);
        levels(
            direction,
            domain.kernel(),
            sliced,
            tile,
            width,
            pass.levels,
            roots,
        );
    };
    if columns == 1 {
        vector.par_chunks_mut(block_len).enumerate().for_each_init(
            Scratch::default,
            |scratch, (block, elements)| {
                apply(&mut scratch.sliced, elements, 1, block);
            },
        );
        return;
    }
    tiles(vector, block_len, columns)
        .into_par_iter()
        .for_each_init(Scratch::default, |scratch, (block, mut rows)| {
            let tile = &mut scratch.tile;
            tile.clear();
            for row in &rows {
                tile.extend_from_slice(row);
            }
            let width = rows[0].len();
            apply(&mut scratch.sliced, tile, width, block);
            for (row, done) in rows.iter_mut().zip(tile.chunks_exact(width)) {
                row.copy_from_slice(done);
            }
        });
}

/// Cuts every block into tiles: (block, the rows of neighbouring columns).
fn tiles(
    vector: &mut [Limbs],
    block_len: usize,
    columns: usize,
) -> Vec<(usize, Vec<&mut [Limbs]>)> {
    let width = TILE_COLUMNS.min(columns);
    let per_block = columns / width;
    let mut tiles = Vec::with_capacity(vector.len() / block_len * per_block);
    for (block, elements) in vector.chunks_exact_mut(block_len).enumerate() {
        let base = tiles.len();
        tiles.extend((0..per_block).map(|_| (block, Vec::with_capacity(block_len / columns))));
        for row in elements.chunks_exact_mut(columns) {
            for (tile, piece) in tiles[base..].iter_mut().zip(row.chunks_exact_mut(width)) {
                tile.1.push(piece);
            }
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_cover_every_level_once_within_the_limits() {
        for log_size in 0..=Domain::MAX_LOG_SIZE {
            let passes = plan(log_size);
            let mut level = 0;
            for (i, pass) in passes.iter().enumerate() {
                assert_eq!(pass.first, level);
                level += pass.levels;
                let last = i + 1 == passes.len();
                assert!(pass.levels <= if last { BLOCK_LOG } else { TILE_LEVELS });
            }
            assert_eq!(level, log_size);
        }
    }
}
