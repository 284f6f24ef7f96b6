//! How a transform's levels are grouped into passes.

/// Most levels of a pass: 2^9 rows and four columns make a tile. With more rows a run of columns
/// would be shorter than 128 bytes.
pub const PASS_LEVELS: u32 = 9;

/// log₂ of the elements of a tile, which one block takes through the levels of a pass.
pub const TILE_BITS: u32 = 11;

/// Neighbouring levels that are done in one pass over the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// log₂ m: the pass works on sub-transforms of m neighbouring elements.
    pub block_bits: u32,
    /// log₂ R: number of levels; the sub-transforms become R times shorter.
    pub levels: u32,
}

impl Pass {
    /// log₂ of the columns of a sub-transform, m/R.
    pub fn column_bits(&self) -> u32 {
        self.block_bits - self.levels
    }

    /// How many of a tile index's column bits stand below its row bits. The window of the first
    /// stage, three bits of which the rows' highest are the highest, must end within the tile.
    pub fn tile_column_bits(&self) -> u32 {
        self.column_bits().min(TILE_BITS - self.levels.max(3))
    }
}

impl Pass {
    /// Products with a factor that it does for an element, without those between passes: seven
    /// of eight elements between two stages of three levels, four in a transform of 8 and one
    /// in a transform of 4.
    pub fn products_per_element(&self) -> f64 {
        let stages = self.levels.div_ceil(3);
        let between = f64::from(stages.saturating_sub(1)) * 7.0 / 8.0;
        let of_eight = f64::from(self.levels / 3) * 4.0 / 8.0;
        let of_four = if self.levels % 3 == 2 { 1.0 / 4.0 } else { 0.0 };
        between + of_eight + of_four
    }
}

/// The passes from natural to bit-reversed order, of nearly equal depth, longest blocks first; the
/// other way goes through them backwards. A transform of one element has one pass without levels.
pub fn plan(log_size: u32) -> Vec<Pass> {
    let count = log_size.div_ceil(PASS_LEVELS).max(1);
    let mut block_bits = log_size;
    (1..=count)
        .rev()
        .map(|left| {
            let pass = Pass {
                block_bits,
                levels: block_bits.div_ceil(left),
            };
            block_bits -= pass.levels;
            pass
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_in_one_pass() {
        for log_size in 0..=31 {
            let passes = plan(log_size);
            let mut block_bits = log_size;
            for pass in &passes {
                assert_eq!(pass.block_bits, block_bits);
                assert!(pass.levels <= PASS_LEVELS);
                assert!(pass.tile_column_bits() + pass.levels.max(3) <= TILE_BITS);
                block_bits -= pass.levels;
            }
            assert_eq!(block_bits, 0);
        }
    }

    #[test]
    fn the_largest_circuits_take_three_passes() {
        let levels: Vec<u32> = plan(27).iter().map(|pass| pass.levels).collect();
        assert_eq!(levels, [9, 9, 9]);
        assert_eq!(plan(20).len(), 3);
        assert_eq!(plan(18).len(), 2);
        assert_eq!(plan(28).len(), 4);
    }

    /// Fewer than three levels have no room beside other passes: their window would reach
    /// into columns of several matrices.
    #[test]
    fn short_passes_are_alone() {
        for log_size in 0..=31 {
            let passes = plan(log_size);
            assert!(passes.len() == 1 || passes.iter().all(|pass| pass.levels >= 3));
        }
    }
}
