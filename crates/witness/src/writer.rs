//! The packed witness under construction.

use blstrs::Scalar as Fr;
use ff::Field;
use rayon::prelude::*;

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

impl Size {
    /// The size of `count` equal parts.
    pub const fn times(self, count: usize) -> Self {
        Self {
            inputs: self.inputs * count,
            bits: self.bits * count,
            dense: self.dense * count,
        }
    }

    /// The size of two parts together.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            inputs: self.inputs + other.inputs,
            bits: self.bits + other.bits,
            dense: self.dense + other.dense,
        }
    }

    fn expect(self, expected: Self) -> Result<(), Error> {
        if self == expected {
            return Ok(());
        }
        Err(Error::Size {
            expected,
            written: self,
        })
    }
}

/// Public inputs and bitmap of a finished writer.
type Streams = (Vec<Fr>, Vec<u64>);

/// A packed witness: what [`Parts::fill`] writes. Its memory is reused by the next fill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Public inputs; the first is the constant one.
    pub inputs: Vec<Fr>,
    /// Bitmap of the boolean auxiliary variables: the `k`-th is bit `k % 64` of word `k / 64`; bits
    /// past the last are zero.
    pub bits: Vec<u64>,
    /// The other auxiliary variables.
    pub dense: Vec<Fr>,
}

impl Parts {
    /// Replaces the contents by what `generate` writes. All memory is taken before it runs, and
    /// none if the parts have been as large before.
    ///
    /// # Errors
    /// What `generate` returns, or [`Error::Size`] if it did not write exactly `size`: generator
    /// and circuit disagree. The contents are unspecified then, but the memory is kept.
    pub fn fill<E: From<Error>>(
        &mut self,
        size: Size,
        generate: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.dense.resize(size.dense, Fr::ZERO);
        let mut writer = Writer::new(&mut self.dense);
        writer.take_memory(
            std::mem::take(&mut self.inputs),
            std::mem::take(&mut self.bits),
            size,
        );
        writer.input(Fr::ONE);
        let generated = generate(&mut writer);
        let written = writer.size();
        (self.inputs, self.bits) = writer.into_streams();
        generated?;
        let one = Size {
            inputs: 1,
            ..Size::default()
        };
        Ok(written.expect(size.plus(one))?)
    }

    /// [`Parts::fill`] for a witness of equal parts of size `part`: `count` parts, generated in
    /// parallel, and after them `repeats` copies of the last. `generate` is given the number of
    /// the part. The result does not depend on the threads. Without parts there is no last one to
    /// repeat, and `repeats` must be 0.
    ///
    /// # Errors
    /// As [`Parts::fill`]; of several parts' errors that of the first part.
    pub fn fill_equal_parts<E: From<Error> + Send>(
        &mut self,
        part: Size,
        count: usize,
        repeats: usize,
        generate: impl Fn(usize, &mut Writer<'_>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        debug_assert!(count > 0 || repeats == 0);
        let repeats = if count == 0 { 0 } else { repeats };
        let size = part.times(count + repeats);
        self.dense.resize(size.dense, Fr::ZERO);
        let streams = generate_parts(&mut self.dense, part, count, generate);

        let mut writer = Writer::new(&mut []);
        writer.take_memory(
            std::mem::take(&mut self.inputs),
            std::mem::take(&mut self.bits),
            size,
        );
        writer.input(Fr::ONE);
        let mut last = Streams::default();
        for stream in streams {
            last = stream?;
            writer.append(&last, part.bits);
        }
        let filled = part.dense * count;
        for copy in 0..repeats {
            writer.append(&last, part.bits);
            let target = filled + copy * part.dense;
            self.dense.copy_within(filled - part.dense..filled, target);
        }
        (self.inputs, self.bits) = writer.into_streams();
        Ok(())
    }
}

/// Generates `count` parts into consecutive ranges of `dense`, and hands out what else they have.
fn generate_parts<E: From<Error> + Send>(
    dense: &mut [Fr],
    part: Size,
    count: usize,
    generate: impl Fn(usize, &mut Writer<'_>) -> Result<(), E> + Sync,
) -> Vec<Result<Streams, E>> {
    // Not `chunks`: a part may have no field elements at all.
    let mut rest = dense;
    let slices: Vec<&mut [Fr]> = (0..count)
        .map(|_| {
            let (slice, after) = std::mem::take(&mut rest).split_at_mut(part.dense);
            rest = after;
            slice
        })
        .collect();
    slices
        .into_par_iter()
        .enumerate()
        .map(|(number, slice)| {
            let mut writer = Writer::new(slice);
            writer.take_memory(Vec::new(), Vec::new(), part);
            generate(number, &mut writer)?;
            writer.size().expect(part)?;
            Ok(writer.into_streams())
        })
        .collect()
}

/// Appends variables in the order in which the circuit allocates them.
///
/// Three streams grow independently: the bitmap of the boolean auxiliary variables, the array of
/// the other auxiliary variables, and the public inputs. Which variable belongs to which stream is
/// a property of the circuit, so a generator knows it at every step and no tag is stored.
#[derive(Debug)]
pub struct Writer<'a> {
    /// Finished words of the bitmap.
    words: Vec<u64>,
    /// The unfinished last word.
    tail: u64,
    /// Bits in `tail`, below 64.
    tail_bits: u32,
    dense: &'a mut [Fr],
    /// Field elements written, also those for which there was no room.
    dense_written: usize,
    inputs: Vec<Fr>,
}

impl<'a> Writer<'a> {
    /// A writer of field elements into `dense`.
    pub fn new(dense: &'a mut [Fr]) -> Self {
        Self {
            words: Vec::new(),
            tail: 0,
            tail_bits: 0,
            dense,
            dense_written: 0,
            inputs: Vec::new(),
        }
    }

    /// Takes over the memory of an old witness and makes it large enough.
    fn take_memory(&mut self, mut inputs: Vec<Fr>, mut words: Vec<u64>, size: Size) {
        inputs.clear();
        inputs.reserve_exact(size.inputs + 1);
        words.clear();
        words.reserve_exact(size.bits.div_ceil(64));
        (self.inputs, self.words) = (inputs, words);
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

    /// Appends the inputs of a part and its bitmap of `bits` bits, beyond which it is zero.
    fn append(&mut self, (inputs, words): &Streams, bits: usize) {
        self.inputs.extend_from_slice(inputs);
        let (full, rest) = (bits / 64, bits % 64);
        for &word in &words[..full] {
            self.bits(word, 64);
        }
        if rest > 0 {
            self.bits(words[full], rest as u32);
        }
    }

    /// Appends one field element.
    #[inline]
    pub fn num(&mut self, value: Fr) {
        if let Some(place) = self.dense.get_mut(self.dense_written) {
            *place = value;
        }
        self.dense_written += 1;
    }

    /// Appends field elements.
    #[inline]
    pub fn nums(&mut self, values: &[Fr]) {
        for &value in values {
            self.num(value);
        }
    }

    /// Appends a public input.
    #[inline]
    pub fn input(&mut self, value: Fr) {
        self.inputs.push(value);
    }

    /// What has been written so far.
    pub fn size(&self) -> Size {
        Size {
            inputs: self.inputs.len(),
            bits: self.words.len() * 64 + self.tail_bits as usize,
            dense: self.dense_written,
        }
    }

    /// Inputs and bitmap.
    fn into_streams(mut self) -> Streams {
        if self.tail_bits > 0 {
            self.words.push(self.tail);
        }
        (self.inputs, self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit(parts: &Parts, i: usize) -> bool {
        parts.bits[i / 64] >> (i % 64) & 1 == 1
    }

    /// Every alignment against a list of single bits.
    #[test]
    fn bits_keep_their_order_at_every_alignment() {
        let mut parts = Parts::default();
        for lead in 0..64u32 {
            for count in 0..=64u32 {
                let mask = if count == 64 { !0 } else { (1 << count) - 1 };
                let value = 0x9e37_79b9_7f4a_7c15 & mask;
                let mut expected: Vec<bool> = (0..lead).map(|i| i % 3 == 0).collect();
                expected.extend((0..count).map(|i| value >> i & 1 == 1));
                expected.push(true);
                let size = Size {
                    bits: expected.len(),
                    ..Size::default()
                };
                let written: Result<(), Error> = parts.fill(size, |writer| {
                    (0..lead).for_each(|i| writer.bit(i % 3 == 0));
                    writer.bits(value, count);
                    writer.bit(true);
                    Ok(())
                });
                written.unwrap();
                let got: Vec<bool> = (0..expected.len()).map(|i| bit(&parts, i)).collect();
                assert_eq!(got, expected, "lead {lead}, count {count}");
                let unused = parts.bits.len() * 64 - expected.len();
                assert!(unused < 64);
                assert_eq!(parts.bits.last().unwrap().leading_zeros() as usize, unused);
            }
        }
    }

    #[test]
    fn equal_parts_are_the_whole() {
        for bits in [0, 1, 63, 64, 65, 200] {
            for dense in [0, 3] {
                let part = Size {
                    inputs: 2,
                    bits,
                    dense,
                };
                let generate = |number: usize, writer: &mut Writer<'_>| {
                    for i in 0..bits {
                        writer.bit((number * 31 + i * i).count_ones() % 2 == 1);
                    }
                    for i in 0..dense.max(2) {
                        let value = Fr::from((number * 10 + i) as u64);
                        if i < dense {
                            writer.num(value);
                        }
                        if i < 2 {
                            writer.input(value);
                        }
                    }
                    Ok::<(), Error>(())
                };
                for (count, repeats) in [(1, 0), (7, 0), (1, 3), (5, 2)] {
                    let mut parallel = Parts::default();
                    parallel
                        .fill_equal_parts(part, count, repeats, generate)
                        .unwrap();
                    let mut sequential = Parts::default();
                    sequential
                        .fill(part.times(count + repeats), |writer| {
                            (0..count + repeats)
                                .try_for_each(|number| generate(number.min(count - 1), writer))
                        })
                        .unwrap();
                    assert_eq!(parallel, sequential);
                    assert_eq!(parallel.inputs.len(), 1 + 2 * (count + repeats));
                }
            }
        }
    }

    #[test]
    fn a_missing_or_surplus_variable_is_an_error() {
        let size = Size {
            inputs: 1,
            bits: 2,
            dense: 1,
        };
        for (inputs, bits, dense, good) in [
            (1, 2, 1, true),
            (0, 2, 1, false),
            (2, 2, 1, false),
            (1, 1, 1, false),
            (1, 3, 1, false),
            (1, 2, 0, false),
            (1, 2, 2, false),
        ] {
            let generate = |writer: &mut Writer<'_>| {
                writer.bits(0, bits);
                (0..dense).for_each(|_| writer.num(Fr::ONE));
                (0..inputs).for_each(|_| writer.input(Fr::ONE));
                Ok::<(), Error>(())
            };
            let whole = Parts::default().fill(size, generate);
            assert_eq!(whole.is_ok(), good);
            let part = Parts::default().fill_equal_parts(size, 2, 0, |_, writer| generate(writer));
            assert_eq!(part.is_ok(), good);
        }
    }

    #[test]
    fn memory_is_reused() {
        let size = Size {
            inputs: 10,
            bits: 1000,
            dense: 100,
        };
        let generate = |writer: &mut Writer<'_>| {
            (0..1000).for_each(|i| writer.bit(i % 2 == 0));
            (0..100).for_each(|_| writer.num(Fr::ONE));
            (0..10).for_each(|_| writer.input(Fr::ONE));
            Ok::<(), Error>(())
        };
        let mut parts = Parts::default();
        parts.fill(size, generate).unwrap();
        let addresses = |parts: &Parts| {
            (
                parts.inputs.as_ptr(),
                parts.bits.as_ptr(),
                parts.dense.as_ptr(),
            )
        };
        let before = addresses(&parts);
        parts.fill(size, generate).unwrap();
        assert_eq!(addresses(&parts), before);
    }
}
