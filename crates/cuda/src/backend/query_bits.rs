//! Which points of a query belong to bits, and runs of them that fit in a chunk.

use std::ops::Range;

use r1cs::{Bitmap, CompiledCircuit};

use crate::evaluate::{Query, ranks};

/// The aux variables that a query has a point for, those of them that are bits, and the inputs
/// that it has a point for.
#[derive(Clone, Debug)]
pub struct QueryBits {
    inputs: usize,
    /// Bit j: the query has a point for aux variable j.
    present: Vec<u64>,
    /// Bit j: it has, and the variable is a bit.
    bits: Vec<u64>,
    /// Ones of `bits` before each word; their number at the end.
    ranks: Vec<u32>,
}

/// Bits whose points are one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitChunk {
    /// Words of the bitmap.
    pub words: Range<usize>,
    /// Points, of those that belong to bits.
    pub points: Range<usize>,
}

impl QueryBits {
    pub fn new(query: Query, circuit: &CompiledCircuit) -> Self {
        let (shape, density) = (circuit.shape(), circuit.density());
        let (inputs, present): (usize, Option<&Bitmap>) = match query {
            Query::L => (0, None),
            Query::PreparedL => (shape.inputs, None),
            Query::A => (shape.inputs, Some(&density.a_aux)),
            Query::B => (density.b_inputs.count_ones(), Some(&density.b_aux)),
        };
        let is_bit = circuit.layout().bitmap().words();
        let present = match present {
            Some(present) => present.words().to_vec(),
            None => (0..is_bit.len())
                .map(|word| match shape.aux - 64 * word {
                    left @ 0..64 => (1 << left) - 1,
                    _ => u64::MAX,
                })
                .collect(),
        };
        Self::of_words(inputs, present, is_bit)
    }

    fn of_words(inputs: usize, present: Vec<u64>, is_bit: &[u64]) -> Self {
        let both = present.iter().zip(is_bit);
        let bits: Vec<u64> = both.map(|(present, is_bit)| present & is_bit).collect();
        // One more word, so that the last rank is the number of all.
        let ranks = ranks(bits.iter().copied().chain([0]));
        QueryBits {
            inputs,
            present,
            bits,
            ranks,
        }
    }

    /// Inputs with a point, which come first in the section and are no bits.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bit j: the query has a point for aux variable j.
    pub fn present(&self) -> &[u64] {
        &self.present
    }

    /// Bit j: aux variable j is a bit, and the query has a point for it.
    pub fn words(&self) -> &[u64] {
        &self.bits
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ranks.last().map_or(0, |count| *count as usize)
    }

    /// Cuts the bits' points into chunks of at most `most` points, at least 64, between words.
    pub fn chunks(&self, most: usize) -> Vec<BitChunk> {
        assert!(most >= 64, "a chunk holds the points of a word");
        let mut chunks = Vec::new();
        let mut first = 0;
        while first < self.bits.len() {
            let start = self.ranks[first] as usize;
            let fits = |rank: &u32| *rank as usize - start <= most;
            // The word after the last one that fits; its rank is the end of the chunk's points.
            let end = first + self.ranks[first..].partition_point(fits) - 1;
            let points = start..self.ranks[end] as usize;
            if !points.is_empty() {
                chunks.push(BitChunk {
                    words: first..end,
                    points,
                });
            }
            first = end;
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_hold_every_bit_once_and_in_order(
            words in prop::collection::vec(
                (prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], any::<u64>()),
                0..40,
            ),
            most in 64usize..400,
        ) {
            let (present, is_bit): (Vec<u64>, Vec<u64>) = words.into_iter().unzip();
            let bits = QueryBits::of_words(3, present.clone(), &is_bit);
            let count = |words: &[u64]| -> usize {
                words.iter().map(|word| word.count_ones() as usize).sum()
            };
            prop_assert_eq!(bits.count(), count(bits.words()));
            let (mut points, mut word) = (0, 0);
            for chunk in bits.chunks(most) {
                prop_assert_eq!(chunk.points.start, points);
                prop_assert!((1..=most).contains(&chunk.points.len()));
                prop_assert_eq!(count(&bits.words()[word..chunk.words.start]), 0);
                prop_assert_eq!(count(&bits.words()[chunk.words.clone()]), chunk.points.len());
                points = chunk.points.end;
                word = chunk.words.end;
            }
            prop_assert_eq!(points, bits.count());
        }
    }
}
