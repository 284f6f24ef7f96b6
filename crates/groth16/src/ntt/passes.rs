//! How the levels of a transform are grouped into passes and spread over threads.

use rayon::prelude::*;

use super::butterflies::{Roots, backward_levels, forward_levels};
use super::domain::{Domain, EvaluationSet};
use crate::fr::Limbs;

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
        run(domain, vector, points, pass, forward_levels);
    }
}

/// Values to n times the coefficients.
pub fn inverse(domain: &Domain, vector: &mut [Limbs], points: EvaluationSet) {
    for pass in plan(domain.log_size()).into_iter().rev() {
        run(domain, vector, points, pass, backward_levels);
    }
}

/// Takes a tile (rows of `columns` elements) through `levels` levels.
type Levels = fn(tile: &mut [Limbs], columns: usize, levels: u32, roots: Roots<'_>);

fn run(domain: &Domain, vector: &mut [Limbs], points: EvaluationSet, pass: Pass, levels: Levels) {
    let block_len = domain.size() >> pass.first;
    let columns = block_len >> pass.levels;
    if columns == 1 {
        vector
            .par_chunks_mut(block_len)
            .enumerate()
            .for_each(|(block, elements)| {
                let roots = roots_of(domain, points, pass.first, block);
                levels(elements, 1, pass.levels, roots);
            });
        return;
    }
    tiles(vector, block_len, columns)
        .into_par_iter()
        .for_each_init(Vec::new, |tile: &mut Vec<Limbs>, (block, mut rows)| {
            tile.clear();
            for row in &rows {
                tile.extend_from_slice(row);
            }
            let width = rows[0].len();
            let roots = roots_of(domain, points, pass.first, block);
            levels(tile, width, pass.levels, roots);
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
