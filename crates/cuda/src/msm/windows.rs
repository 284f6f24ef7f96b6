//! How scalars are cut into signed digits, and which digits share buckets.

/// Bits that a scalar needs once the smaller of s and r − s is taken and halves of all digits'
/// ranges are added: (r − 1)/2 < 0.453·2^255, and the halves are below 0.534·2^255 for windows of
/// four bits and more.
pub const SCALAR_BITS: u32 = 255;

/// Bits that the digit kernel shifts through.
const SHIFTED_BITS: u32 = 288;

/// The narrowest and the widest window.
pub const WIDTHS: std::ops::RangeInclusive<u32> = 4..=26;

/// A cut of scalars into digits.
///
/// Let S be the sum of the widths. The digit of copy k in set s is that of the bits from k·S +
/// (widths before s) on. It counts the k-th copy of the base, 2^(k·S) times the base itself, so
/// all copies' digits of a set go to the same buckets. With one copy every window is a set of its
/// own; with one set all windows share one set of buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    copies: u32,
    widths: Vec<u32>,
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Which copy of the bases its digits count.
    pub copy: u32,
    /// Which buckets its digits go to.
    pub set: usize,
    /// Its lowest bit.
    pub bit: u32,
    /// Its number of bits.
    pub width: u32,
}

impl Windows {
    /// `sets` sets of buckets over `copies` copies of the bases, with widths as equal as can be;
    /// the wider sets come first. `None` if the widths would leave [`WIDTHS`].
    pub fn new(sets: u32, copies: u32) -> Option<Self> {
        if sets == 0 || copies == 0 {
            return None;
        }
        let span = SCALAR_BITS.div_ceil(copies);
        let widths: Vec<u32> = (0..sets)
            .map(|set| span / sets + u32::from(set < span % sets))
            .collect();
        let fits = widths.iter().all(|width| WIDTHS.contains(width));
        (fits && span * copies <= SHIFTED_BITS).then_some(Windows { copies, widths })
    }

    /// Copies of the bases.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Width of each set's windows: two values at most, the larger first.
    pub fn widths(&self) -> &[u32] {
        &self.widths
    }

    /// Digits of a scalar.
    pub fn digits(&self) -> u32 {
        self.copies * self.widths.len() as u32
    }

    /// Bits that one copy covers: copy k of a base is 2^(k·span) times the base.
    pub fn span(&self) -> u32 {
        self.widths.iter().sum()
    }

    /// Lowest bit of a set's first window.
    pub fn offset(&self, set: usize) -> u32 {
        self.widths[..set].iter().sum()
    }

    /// All windows, from the lowest bit up.
    pub fn iter(&self) -> impl Iterator<Item = Window> + '_ {
        (0..self.copies).flat_map(move |copy| {
            self.widths
                .iter()
                .enumerate()
                .map(move |(set, &width)| Window {
                    copy,
                    set,
                    bit: copy * self.span() + self.offset(set),
                    width,
                })
        })
    }

    /// Σ 2^(bit + width − 1) over the windows, in 32-bit limbs: with it added, a window's bits less
    /// 2^(width − 1) are its digit.
    pub fn halves(&self) -> [u32; 9] {
        let mut limbs = [0; 9];
        for window in self.iter() {
            let bit = window.bit + window.width - 1;
            limbs[bit as usize / 32] |= 1 << (bit % 32);
        }
        limbs
    }
}

/// log₂ of the buckets that a window of `width` bits needs: digits −2^(width−1) … 2^(width−1) − 1,
/// of which opposite ones share a bucket and 0 has none.
pub fn bucket_bits(width: u32) -> u32 {
    width - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_scalar_without_gap() {
        for copies in 1..=64 {
            for sets in 1..=64 {
                let Some(windows) = Windows::new(sets, copies) else {
                    continue;
                };
                let mut bit = 0;
                for window in windows.iter() {
                    assert_eq!(window.bit, bit);
                    bit += window.width;
                }
                assert!((SCALAR_BITS..=SHIFTED_BITS).contains(&bit));
                assert_eq!(windows.iter().count() as u32, windows.digits());
                assert!(windows.widths().windows(2).all(|pair| pair[0] >= pair[1]));
                assert!(windows.widths()[0] - windows.widths()[sets as usize - 1] <= 1);
            }
        }
    }

    #[test]
    fn widths_as_measured() {
        let windows = Windows::new(11, 1).unwrap();
        assert_eq!(
            windows.widths(),
            [24, 24, 23, 23, 23, 23, 23, 23, 23, 23, 23]
        );
        let windows = Windows::new(1, 13).unwrap();
        assert_eq!((windows.widths(), windows.span()), (&[20][..], 20));
        assert_eq!(Windows::new(9, 1), None);
        assert_eq!(Windows::new(86, 1), None);
    }

    #[test]
    fn the_largest_scalar_stays_within_its_windows() {
        // (r − 1)/2, in 32-bit limbs.
        let largest: [u64; 9] = [
            0x8000_0000,
            0x7fff_ffff,
            0x7fff_2dff,
            0xa9de_d201,
            0x04d0_ec02,
            0x199c_ec04,
            0x94ce_bea4,
            0x39f6_d3a9,
            0,
        ];
        for copies in 1..=64 {
            for sets in 1..=64 {
                let Some(windows) = Windows::new(sets, copies) else {
                    continue;
                };
                let bits = windows.span() * copies;
                let mut carry = 0;
                let sum = largest.iter().zip(windows.halves()).map(|(&x, y)| {
                    carry += x + u64::from(y);
                    let limb = carry as u32;
                    carry >>= 32;
                    limb
                });
                let sum: Vec<u32> = sum.collect();
                let used = 32 * 9
                    - (0..9)
                        .rev()
                        .map(|i| sum[i])
                        .fold((0, true), |(n, go), limb| {
                            (
                                n + if go { limb.leading_zeros() } else { 0 },
                                go && limb == 0,
                            )
                        })
                        .0;
                assert!(
                    used <= bits,
                    "{copies} copies, {sets} sets: {used} of {bits} bits"
                );
            }
        }
    }
}
