//! Signed digits of scalars.
//!
//! Writing a scalar with digits in −2^(c−1) … 2^(c−1) − 1 halves the buckets, because the
//! negative of a point is free. Two steps make the digits independent of each other:
//!
//! 1. k above (r − 1)/2 is replaced by r − k and the point by its negative, so k < r/2 <
//!    0.906·2^254.
//! 2. Let K be the sum of 2^(offset + width − 1) over all windows. Window w's digit is the plain
//!    bits of k + K in w, less 2^(width − 1): the subtracted parts add up to K. With windows of
//!    four bits or more K < 2^254·16/15, so k + K < 1.973·2^254 fits the 255 bits of the windows.

use blstrs::Scalar;

use super::windows::{Window, Windows};
use crate::fr::Limbs;

/// A scalar with the constant K added, and the sign of its point.
#[derive(Clone, Copy, Debug)]
pub struct Shifted {
    words: [u64; 4],
    negative: bool,
}

/// Turns scalars into [`Shifted`] ones for certain windows.
#[derive(Clone, Debug)]
pub struct Shift {
    constant: [u64; 4],
}

impl Shift {
    /// The constant K for these windows.
    pub fn new(windows: &Windows) -> Self {
        let mut constant = [0; 4];
        for window in windows.iter() {
            let bit = window.offset + window.width - 1;
            constant[bit as usize / 64] |= 1 << (bit % 64);
        }
        Shift { constant }
    }

    /// The scalar in the form from which digits are read.
    pub fn apply(&self, scalar: &Scalar) -> Shifted {
        let (magnitude, negative) = Limbs::from(*scalar).magnitude_and_sign();
        let mut words = [0; 4];
        let mut carry = 0;
        for ((word, a), b) in words.iter_mut().zip(magnitude).zip(self.constant) {
            let sum = u128::from(a) + u128::from(b) + carry;
            *word = sum as u64;
            carry = sum >> 64;
        }
        debug_assert!(carry == 0 && words[3] >> 63 == 0);
        Shifted { words, negative }
    }
}

impl Shifted {
    /// The digit in `window`: (absolute value, whether the point is taken negatively).
    #[inline]
    pub fn digit(&self, window: &Window) -> (u32, bool) {
        let (word, shift) = (window.offset as usize / 64, window.offset % 64);
        let low = self.words[word] >> shift;
        // The next word's bits, without a shift by 64.
        let high = match self.words.get(word + 1) {
            Some(next) => next << 1 << (63 - shift),
            None => 0,
        };
        let bits = ((low | high) & ((1 << window.width) - 1)) as i64;
        let digit = bits - (1 << (window.width - 1));
        (digit.unsigned_abs() as u32, (digit < 0) != self.negative)
    }
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn digits_add_up_to_the_scalar() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let half = Scalar::from(2).invert().unwrap();
        let mut scalars = vec![
            Scalar::ZERO,
            Scalar::ONE,
            Scalar::from(2),
            -Scalar::ONE,
            half,
            half - Scalar::ONE,
            Scalar::from(u64::MAX),
        ];
        scalars.extend((0..20).map(|_| Scalar::random(&mut rng)));
        for count in [13, 15, 16, 17, 22, 51, 62, 63] {
            let windows = Windows::with_count(count);
            let shift = Shift::new(&windows);
            for scalar in &scalars {
                let shifted = shift.apply(scalar);
                let mut sum = Scalar::ZERO;
                for window in windows.iter() {
                    let (digit, negative) = shifted.digit(window);
                    assert!(digit as usize <= window.buckets());
                    let term = Scalar::from(u64::from(digit))
                        * Scalar::from(2).pow_vartime([u64::from(window.offset)]);
                    sum += if negative { -term } else { term };
                }
                assert_eq!(sum, *scalar, "{count} windows");
            }
        }
    }
}
