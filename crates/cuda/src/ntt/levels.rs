//! The roots of the stages within a tile, laid out so that neighbouring threads read neighbouring
//! pieces.

use blstrs::Scalar;

use crate::ntt::factor::{Factor, powers};

/// A quarter of a [`Factor`].
pub type Quarter = [u64; 2];

/// log₂ of the block sizes M that have a table: the smallest with two stages, the largest of a
/// tile.
const BLOCK_BITS: std::ops::RangeInclusive<u32> = 4..=9;
/// Places l < M/8 that a table has room for.
const PLACES: usize = 64;
/// Digits k.
const DIGITS: usize = 8;
/// Quarters of all tables of one direction.
pub const LEVEL_QUARTERS: usize = 6 * 4 * DIGITS * PLACES;

/// The tables that `LevelRoots` of `kernels/ntt/passes.cu` reads: for each M the factors ω_M^(lk),
/// quarter by quarter, in each digit by digit and in each place by place.
pub fn level_roots(root_of_order: impl Fn(u32) -> Scalar) -> Vec<Quarter> {
    let mut table = Vec::with_capacity(LEVEL_QUARTERS);
    for block_bits in BLOCK_BITS {
        let root = powers(Scalar::from(1), root_of_order(block_bits), 1 << block_bits);
        let places = 1 << (block_bits - 3);
        let factors: Vec<[Quarter; 4]> = (0..DIGITS * PLACES)
            .map(|i| (i / PLACES, i % PLACES))
            .map(|(digit, place)| {
                if place < places {
                    root[digit * place]
                } else {
                    root[0]
                }
            })
            .map(|root| Factor::from(root).quarters())
            .collect();
        for quarter in 0..4 {
            table.extend(factors.iter().map(|factor| factor[quarter]));
        }
    }
    table
}
