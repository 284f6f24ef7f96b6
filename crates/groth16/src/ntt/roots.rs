//! The part of a domain's table that a tile uses.

use crate::fr::Limbs;

/// The roots that a block and its descendants use: block i of the s-th level below has
/// W_{(start << s) + i}.
#[derive(Clone, Copy)]
pub struct Roots<'a> {
    table: &'a [Limbs],
    start: usize,
}

impl<'a> Roots<'a> {
    pub fn new(table: &'a [Limbs], start: usize) -> Self {
        Roots { table, start }
    }

    /// The roots of the 2^`below` blocks of the `below`-th level.
    #[inline]
    pub fn level(&self, below: u32) -> &'a [Limbs] {
        &self.table[self.start << below..][..1 << below]
    }

    /// −1/W for block `i` of the `below`-th level.
    ///
    /// For 2^L ≤ k < 2^{L+1}, W_k has the exponent (1 + 2·rev_L(k − 2^L))/2^{L+2} of a full
    /// turn. Complementing the low L bits of k gives the exponent 1/2 less that one, so
    /// W_{k'} = −1/W_k: the table holds its own inverses.
    #[inline]
    pub fn negative_inverse(&self, below: u32, i: usize) -> Limbs {
        let k = (self.start << below) + i;
        match k.checked_ilog2() {
            None => Limbs::MINUS_ONE,
            Some(level) => self.table[k ^ ((1 << level) - 1)],
        }
    }
}
