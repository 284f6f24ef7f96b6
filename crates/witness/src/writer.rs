//! The packed witness under construction.

use blstrs::Scalar as Fr;
use ff::Field;

use crate::Error;

/// How many variables of each class a circuit (or a part of one) allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Public inputs, without the constant one.
    pub inputs: usize,
    /// Auxiliary variables that the circuit constrains to 0 or 1.
    pub bits: usize,
    /// All other auxiliary variables.
    pub dense: usize,
}

/// Appends variables in the order in which the circuit allocates them.
///
/// Three streams grow independently: the bitmap of the boolean auxiliary variables, the array of
/// the other auxiliary variables, and the public inputs. Which variable belongs to which stream is
/// a property of the circuit, so a generator knows it at every step and no tag is stored.
///
/// All memory is taken in [`Writer::new`]; [`Writer::reset`] keeps it for the next witness.
#[derive(Debug)]
pub struct Writer {
    expected: Size,
    /// Finished words of the bitmap; bit `k % 64` of word `k / 64` is the `k`-th boolean variable.
    words: Vec<u64>,
    /// The unfinished last word.
    tail: u64,
    /// Bits in `tail`, below 64.
    tail_bits: u32,
    dense: Vec<Fr>,
    inputs: Vec<Fr>,
}

/// What [`Writer::finish`] hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Public inputs; the first is the constant one.
    pub inputs: Vec<Fr>,
    /// Bitmap of the boolean auxiliary variables; bits past the last are zero.
    pub bits: Vec<u64>,
    /// The other auxiliary variables.
    pub dense: Vec<Fr>,
}

impl Writer {
    /// A writer for exactly `size` variables.
    pub fn new(size: Size) -> Self {
        let mut inputs = Vec::with_capacity(size.inputs + 1);
        inputs.push(Fr::ONE);
        Self {
            expected: size,
            words: Vec::with_capacity(size.bits.div_ceil(64)),
            tail: 0,
            tail_bits: 0,
            dense: Vec::with_capacity(size.dense),
            inputs,
        }
    }

    /// A writer for exactly `size` variables that writes into the memory of an old witness.
    pub fn reuse(size: Size, parts: Parts) -> Self {
        let Parts {
            mut inputs,
            bits: mut words,
            mut dense,
        } = parts;
        inputs.clear();
        inputs.push(Fr::ONE);
        inputs.reserve_exact(size.inputs);
        words.clear();
        words.reserve_exact(size.bits.div_ceil(64));
        dense.clear();
        dense.reserve_exact(size.dense);
        Self {
            expected: size,
            words,
            tail: 0,
            tail_bits: 0,
            dense,
            inputs,
        }
    }

    /// Appends the low `count <= 64` bits of `value`, least significant first. The bits above must
    /// be zero.
    #[inline]
    pub fn bits(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 64 && (count == 64 || value >> count == 0));
        self.tail |= value << self.tail_bits;
        let filled = self.tail_bits + count;
        if filled < 64 {
            self.tail_bits = filled;
            return;
        }
        self.words.push(self.tail);
        // The bits that did not fit; a shift by 64 happens only when the tail was empty.
        self.tail = value.checked_shr(64 - self.tail_bits).unwrap_or(0);
        self.tail_bits = filled - 64;
    }

    /// Appends one boolean variable.
    #[inline]
    pub fn bit(&mut self, value: bool) {
        self.bits(u64::from(value), 1);
    }

    /// Appends one field element.
    #[inline]
    pub fn num(&mut self, value: Fr) {
        self.dense.push(value);
    }

    /// Appends field elements.
    #[inline]
    pub fn nums(&mut self, values: &[Fr]) {
        self.dense.extend_from_slice(values);
    }

    /// Appends a public input.
    #[inline]
    pub fn input(&mut self, value: Fr) {
        self.inputs.push(value);
    }

    /// What has been written so far.
    pub fn size(&self) -> Size {
        Size {
            inputs: self.inputs.len() - 1,
            bits: self.words.len() * 64 + self.tail_bits as usize,
            dense: self.dense.len(),
        }
    }

    /// Appends everything that `part` holds except its constant one: the way in which parts
    /// generated on different threads are joined.
    pub fn append(&mut self, part: &Writer) {
        for &word in &part.words {
            self.bits(word, 64);
        }
        self.bits(part.tail, part.tail_bits);
        self.dense.extend_from_slice(&part.dense);
        self.inputs.extend_from_slice(&part.inputs[1..]);
    }

    /// The finished witness.
    ///
    /// # Errors
    /// [`Error::Size`] if not exactly the announced number of variables was written: the generator
    /// and the compiled circuit disagree.
    pub fn finish(mut self) -> Result<Parts, Error> {
        let written = self.size();
        if written != self.expected {
            return Err(Error::Size {
                expected: self.expected,
                written,
            });
        }
        if self.tail_bits > 0 {
            self.words.push(self.tail);
        }
        Ok(Parts {
            inputs: self.inputs,
            bits: self.words,
            dense: self.dense,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every alignment against a list of single bits.
    #[test]
    fn bits_keep_their_order_at_every_alignment() {
        for lead in 0..64u32 {
            for count in 0..=64u32 {
                let mask = if count == 64 { !0 } else { (1 << count) - 1 };
                let value = 0x9e37_79b9_7f4a_7c15 & mask;
                let mut writer = Writer::new(Size {
                    inputs: 0,
                    bits: (lead + count + 1) as usize,
                    dense: 0,
                });
                let mut expected: Vec<bool> = Vec::new();
                for i in 0..lead {
                    writer.bit(i % 3 == 0);
                    expected.push(i % 3 == 0);
                }
                writer.bits(value, count);
                expected.extend((0..count).map(|i| value >> i & 1 == 1));
                writer.bit(true);
                expected.push(true);
                let parts = writer.finish().unwrap();
                let got: Vec<bool> = (0..expected.len())
                    .map(|i| parts.bits[i / 64] >> (i % 64) & 1 == 1)
                    .collect();
                assert_eq!(got, expected, "lead {lead}, count {count}");
                let unused = parts.bits.len() * 64 - expected.len();
                assert!(unused < 64);
                assert_eq!(parts.bits.last().unwrap().leading_zeros() as usize, unused);
            }
        }
    }

    #[test]
    fn append_joins_at_any_alignment() {
        let fill = |writer: &mut Writer, bits: std::ops::Range<u64>| {
            for i in bits {
                writer.bit(i.count_ones() % 2 == 1);
                if i % 5 == 0 {
                    writer.num(Fr::from(i));
                }
                if i % 11 == 0 {
                    writer.input(Fr::from(i));
                }
            }
        };
        for cut in [0, 1, 63, 64, 65, 127, 128, 200] {
            let mut whole = Writer::new(Size::default());
            fill(&mut whole, 0..200);
            let mut left = Writer::new(whole.size());
            fill(&mut left, 0..cut);
            let mut right = Writer::new(Size::default());
            fill(&mut right, cut..200);
            left.append(&right);
            whole.expected = whole.size();
            assert_eq!(left.finish().unwrap(), whole.finish().unwrap());
        }
    }

    #[test]
    fn a_missing_or_surplus_variable_is_an_error() {
        let size = Size {
            inputs: 0,
            bits: 2,
            dense: 1,
        };
        let mut writer = Writer::new(size);
        writer.bit(true);
        writer.num(Fr::ONE);
        assert!(matches!(writer.finish(), Err(Error::Size { .. })));
        let mut writer = Writer::new(size);
        writer.bits(3, 2);
        writer.nums(&[Fr::ONE, Fr::ONE]);
        assert!(matches!(writer.finish(), Err(Error::Size { .. })));
    }
}
