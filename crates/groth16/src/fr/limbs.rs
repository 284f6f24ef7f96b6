//! One element of Fr as four 64-bit limbs.

use std::hint::select_unpredictable;
use std::ops::{Add, Mul, Sub};

use blst::blst_fr;
use blstrs::Scalar;

/// r, least significant limb first. r < 2^255.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// −r^(−1) mod 2^64.
const NEG_INVERSE: u64 = 0xffff_fffe_ffff_ffff;

/// An element of Fr in Montgomery form (R = 2^256), canonical: below r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Limbs([u64; 4]);

impl Limbs {
    /// r − 1 in Montgomery form: r − (2^256 mod r).
    pub const MINUS_ONE: Self = Limbs([
        0xffff_fffd_0000_0003,
        0xfb38_ec08_fffb_13fc,
        0x99ad_8818_1ce5_880f,
        0x5bc8_f5f9_7cd8_77d8,
    ]);

    /// The Montgomery form's words, least significant first.
    #[inline(always)]
    pub fn words(&self) -> &[u64; 4] {
        &self.0
    }

    /// The integer k in 0 … r − 1 that this element stands for, or r − k if that is smaller;
    /// whether it is r − k.
    #[inline]
    pub fn magnitude_and_sign(self) -> ([u64; 4], bool) {
        // Multiplying by the integer 1 divides by R: the way out of Montgomery form.
        let Limbs(k) = self * Limbs([1, 0, 0, 0]);
        let (n0, borrow) = MODULUS[0].borrowing_sub(k[0], false);
        let (n1, borrow) = MODULUS[1].borrowing_sub(k[1], borrow);
        let (n2, borrow) = MODULUS[2].borrowing_sub(k[2], borrow);
        let (n3, _) = MODULUS[3].borrowing_sub(k[3], borrow);
        let negative = [n0, n1, n2, n3];
        if negative.iter().rev().lt(k.iter().rev()) {
            (negative, true)
        } else {
            (k, false)
        }
    }

    /// (self + other, self − other): the arithmetic of a butterfly.
    #[inline(always)]
    pub fn sum_and_difference(self, other: Self) -> (Self, Self) {
        (self + other, self - other)
    }
}

impl From<Scalar> for Limbs {
    #[inline(always)]
    fn from(scalar: Scalar) -> Self {
        Limbs(blst_fr::from(scalar).l)
    }
}

impl From<Limbs> for Scalar {
    #[inline(always)]
    fn from(limbs: Limbs) -> Self {
        Scalar::from(blst_fr { l: limbs.0 })
    }
}

/// a + b·c + carry as (low, high): at most (2^64 − 1)² + 2·(2^64 − 1) = 2^128 − 1.
#[inline(always)]
fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(b) * u128::from(c) + u128::from(a) + u128::from(carry);
    (wide as u64, (wide >> 64) as u64)
}

/// `a` less r if that is not negative. For a < 2r the result is canonical.
#[inline(always)]
fn reduce_once(a: [u64; 4]) -> [u64; 4] {
    let (d0, borrow) = a[0].borrowing_sub(MODULUS[0], false);
    let (d1, borrow) = a[1].borrowing_sub(MODULUS[1], borrow);
    let (d2, borrow) = a[2].borrowing_sub(MODULUS[2], borrow);
    let (d3, borrow) = a[3].borrowing_sub(MODULUS[3], borrow);
    // The outcome is as good as random: a branch would be mispredicted half the time.
    select_unpredictable(borrow, a, [d0, d1, d2, d3])
}

impl Add for Limbs {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        // a + b < 2r < 2^256: the last carry is zero.
        let (s0, carry) = a[0].carrying_add(b[0], false);
        let (s1, carry) = a[1].carrying_add(b[1], carry);
        let (s2, carry) = a[2].carrying_add(b[2], carry);
        let (s3, _) = a[3].carrying_add(b[3], carry);
        Limbs(reduce_once([s0, s1, s2, s3]))
    }
}

impl Sub for Limbs {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let (d0, borrow) = a[0].borrowing_sub(b[0], false);
        let (d1, borrow) = a[1].borrowing_sub(b[1], borrow);
        let (d2, borrow) = a[2].borrowing_sub(b[2], borrow);
        let (d3, borrow) = a[3].borrowing_sub(b[3], borrow);
        // A negative difference wrapped by 2^256; adding r wraps it back into 0 … r − 1.
        let mask = u64::from(borrow).wrapping_neg();
        let (s0, carry) = d0.carrying_add(MODULUS[0] & mask, false);
        let (s1, carry) = d1.carrying_add(MODULUS[1] & mask, carry);
        let (s2, carry) = d2.carrying_add(MODULUS[2] & mask, carry);
        let (s3, _) = d3.carrying_add(MODULUS[3] & mask, carry);
        Limbs([s0, s1, s2, s3])
    }
}

impl Mul for Limbs {
    type Output = Self;

    /// a·b/R: multiplication and reduction interleaved, one limb of `b` at a time.
    ///
    /// t < 2r before and after each step: the step makes t' = (t + a·b_i + m·r)/2^64 with
    /// b_i, m ≤ 2^64 − 1, so t' < (2r + 2·(2^64 − 1)·r)/2^64 = 2r < 2^256. Its top word is
    /// `carry + carry_r`, which therefore does not overflow.
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let mut t = [0_u64; 4];
        for limb in b {
            let (low, mut carry) = multiply_add(t[0], a[0], limb, 0);
            let m = low.wrapping_mul(NEG_INVERSE);
            let (_, mut carry_r) = multiply_add(low, m, MODULUS[0], 0);
            for j in 1..4 {
                let (low, high) = multiply_add(t[j], a[j], limb, carry);
                carry = high;
                let (low, high) = multiply_add(low, m, MODULUS[j], carry_r);
                carry_r = high;
                t[j - 1] = low;
            }
            t[3] = carry + carry_r;
        }
        // t < 2r: one subtraction is enough.
        Limbs(reduce_once(t))
    }
}
