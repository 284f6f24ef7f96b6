//! A fixed-length set of small integers as 64-bit words.

/// Bit i is bit i mod 64 of word i / 64; bits at and beyond the length are 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// Number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bits at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`.
    ///
    /// # Panics
    /// Where `i` is not below the length.
    #[must_use]
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "bit {i} of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Sets bit `i` to one.
    ///
    /// # Panics
    /// Where `i` is not below the length.
    #[inline]
    pub fn set(&mut self, i: usize) {
        assert!(i < self.len, "bit {i} of {}", self.len);
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if bit {
            self.set(self.len - 1);
        }
    }

    /// Appends all bits of `other`.
    pub fn append(&mut self, other: &Self) {
        let start = self.len;
        self.len += other.len;
        self.words.resize(self.len.div_ceil(64), 0);
        self.or_at(start, other);
    }

    /// Sets bit `start + i` for every one-bit i of `other`.
    ///
    /// # Panics
    /// Where `other` reaches beyond the end.
    pub fn or_at(&mut self, start: usize, other: &Self) {
        assert!(start + other.len <= self.len, "range beyond the bitmap");
        let (first, shift) = (start / 64, start % 64);
        let words = &mut self.words[first..];
        if shift == 0 {
            for (word, &other) in words.iter_mut().zip(&other.words) {
                *word |= other;
            }
            return;
        }
        let mut carry = 0;
        for (word, &other) in words.iter_mut().zip(&other.words) {
            *word |= other << shift | carry;
            carry = other >> (64 - shift);
        }
        // Bits beyond `other.len` are zero: where no word is left for the carry it is zero.
        if let Some(word) = words.get_mut(other.words.len()) {
            *word |= carry;
        }
    }

    /// Number of ones.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Positions of the ones, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(k, &word)| {
            std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)))
                .take_while(|&w| w != 0)
                .map(move |w| k * 64 + w.trailing_zeros() as usize)
        })
    }

    /// The words; bits beyond the length are zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// From words; `None` when their number does not fit `len` or a bit beyond it is set.
    #[must_use]
    pub fn from_words(words: Vec<u64>, len: usize) -> Option<Self> {
        let tail = len % 64;
        let clean = tail == 0 || words.last().is_none_or(|w| w >> tail == 0);
        (words.len() == len.div_ceil(64) && clean).then_some(Self { words, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bitmap(bits: &[bool]) -> Bitmap {
        let mut map = Bitmap::default();
        bits.iter().for_each(|&b| map.push(b));
        map
    }

    proptest! {
        // Lengths around word boundaries, every alignment of the second piece.
        #[test]
        fn append_is_concatenation(
            a in prop::collection::vec(any::<bool>(), 0..200),
            b in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let mut joined = bitmap(&a);
            joined.append(&bitmap(&b));
            let expected: Vec<bool> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&joined, &bitmap(&expected));
            let ones: Vec<usize> = (0..expected.len()).filter(|&i| expected[i]).collect();
            prop_assert_eq!(joined.ones().collect::<Vec<_>>(), ones.clone());
            prop_assert_eq!(joined.count_ones(), ones.len());
        }
    }

    #[test]
    fn from_words_refuses_stray_bits() {
        assert!(Bitmap::from_words(vec![0b100], 2).is_none());
        assert!(Bitmap::from_words(vec![0b10], 2).is_some());
        assert!(Bitmap::from_words(vec![0, 0], 64).is_none());
        assert!(Bitmap::from_words(vec![], 0).is_some());
    }
}
