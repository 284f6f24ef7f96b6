//! Arithmetic on the limbs of Fr, for the inner loops of Poseidon.
//!
//! A Poseidon hash is some two thousand multiplications, most of them inside dot
//! products. Through `blst`'s functions each product is reduced on its own; here a
//! dot product sums the double-width products first and is reduced once, which about
//! halves the work, and everything is inlined into the round function.
//!
//! The representation is `blstrs::Scalar`'s own, so conversion is a copy.

use std::ops::{Add, Mul};

use blst::blst_fr;
use blstrs::Scalar as Fr;

/// The modulus r of BLS12-381's scalar field, least significant limb first. r < 0.453 · 2^256.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// -1 / r mod 2^64.
const NEGATIVE_INVERSE: u64 = 0xffff_fffe_ffff_ffff;

/// An element x of Fr in Montgomery form: x · 2^256 mod r as four little-endian limbs, below r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element([u64; 4]);

impl From<Fr> for Element {
    fn from(value: Fr) -> Self {
        Element(blst_fr::from(value).l)
    }
}

impl From<Element> for Fr {
    fn from(value: Element) -> Self {
        Fr::from(blst_fr { l: value.0 })
    }
}

/// a + b · c + carry as (low limb, carry). Never overflows: (2^64-1)^2 + 2(2^64-1) = 2^128-1.
#[inline(always)]
const fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// a + b + carry as (low limb, carry).
#[inline(always)]
const fn add_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// a - b - borrow as (low limb, borrow 0 or 1).
#[inline(always)]
const fn subtract_borrow(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let difference = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (difference as u64, (difference >> 64) as u64 & 1)
}

/// `value` - `subtrahend` when that is not negative, else `value`. N limbs.
#[inline(always)]
fn reduce_once<const N: usize>(value: [u64; N], subtrahend: [u64; N]) -> [u64; N] {
    let mut difference = [0; N];
    let mut borrow = 0;
    for i in 0..N {
        (difference[i], borrow) = subtract_borrow(value[i], subtrahend[i], borrow);
    }
    if borrow == 0 { difference } else { value }
}

impl Add for Element {
    type Output = Element;

    #[inline(always)]
    fn add(self, other: Element) -> Element {
        // Both are below r < 2^255, so the sum fits four limbs.
        let mut sum = self.0;
        let mut carry = 0;
        for (limb, addend) in sum.iter_mut().zip(other.0) {
            (*limb, carry) = add_carry(*limb, addend, carry);
        }
        debug_assert_eq!(carry, 0);
        Element(reduce_once(sum, MODULUS))
    }
}

impl Mul for Element {
    type Output = Element;

    /// Montgomery multiplication, one limb of `other` at a time. The running value stays
    /// below 2r < 2^256 after each step, so no fifth limb is kept between steps.
    #[inline(always)]
    fn mul(self, other: Element) -> Element {
        let mut t = [0u64; 4];
        for multiplier in other.0 {
            let (low, mut product_carry) = multiply_add(t[0], self.0[0], multiplier, 0);
            let m = low.wrapping_mul(NEGATIVE_INVERSE);
            let (_, mut reduction_carry) = multiply_add(low, m, MODULUS[0], 0);
            for j in 1..4 {
                let limb;
                (limb, product_carry) = multiply_add(t[j], self.0[j], multiplier, product_carry);
                (t[j - 1], reduction_carry) = multiply_add(limb, m, MODULUS[j], reduction_carry);
            }
            t[3] = product_carry + reduction_carry;
        }
        Element(reduce_once(t, MODULUS))
    }
}

impl Element {
    /// x · x.
    #[inline(always)]
    pub fn square(self) -> Element {
        self * self
    }

    /// Σ aᵢ · bᵢ over N ≤ 12 pairs, reduced once.
    #[inline(always)]
    pub fn dot<const N: usize>(a: &[Element; N], b: &[Element; N]) -> Element {
        // Each product is below r², so the sum is below 12 r² < 2^514: nine limbs.
        const { assert!(N <= 12) };
        let mut sum = [0u64; 9];
        for (a, b) in a.iter().zip(b) {
            add_product(&mut sum, a, b);
        }
        reduce_wide(sum)
    }
}

/// Adds a · b to a nine-limb sum.
#[inline(always)]
fn add_product(sum: &mut [u64; 9], a: &Element, b: &Element) {
    let mut overflow = 0;
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (sum[i + j], carry) = multiply_add(sum[i + j], a.0[j], b.0[i], carry);
        }
        (sum[i + 4], overflow) = add_carry(sum[i + 4], carry, overflow);
    }
    sum[8] += overflow;
}

/// Montgomery reduction of a sum below 12 r²: sum / 2^256 mod r.
#[inline(always)]
fn reduce_wide(mut sum: [u64; 9]) -> Element {
    let mut overflow = 0;
    for i in 0..4 {
        let m = sum[i].wrapping_mul(NEGATIVE_INVERSE);
        let mut carry = 0;
        for j in 0..4 {
            (sum[i + j], carry) = multiply_add(sum[i + j], m, MODULUS[j], carry);
        }
        (sum[i + 4], overflow) = add_carry(sum[i + 4], carry, overflow);
    }
    sum[8] += overflow;
    // Now (sum + m·r) / 2^256 < 12 · 0.453 · r + r < 6.5 r, which 4r, 2r and r bring below r.
    let mut value = [sum[4], sum[5], sum[6], sum[7], sum[8]];
    value = reduce_once(value, multiple_of_modulus(2));
    value = reduce_once(value, multiple_of_modulus(1));
    value = reduce_once(value, multiple_of_modulus(0));
    Element([value[0], value[1], value[2], value[3]])
}

/// r · 2^shift in five limbs, shift < 64.
const fn multiple_of_modulus(shift: u32) -> [u64; 5] {
    let mut out = [0; 5];
    let mut i = 0;
    let mut carry = 0u64;
    while i < 4 {
        let wide = (MODULUS[i] as u128) << shift;
        out[i] = wide as u64 | carry;
        carry = (wide >> 64) as u64;
        i += 1;
    }
    out[4] = carry;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::{Field, PrimeField};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    fn samples() -> Vec<Fr> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut values = vec![
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            -Fr::from(2),
            Fr::TWO_INV,
            Fr::from(u64::MAX),
        ];
        values.extend((0..50).map(|_| Fr::random(&mut rng)));
        values
    }

    #[test]
    fn agrees_with_blst() {
        for &a in &samples() {
            assert_eq!(Fr::from(Element::from(a)), a);
            assert_eq!(Fr::from(Element::from(a).square()), a.square());
            for &b in &samples() {
                let (x, y) = (Element::from(a), Element::from(b));
                assert_eq!(Fr::from(x + y), a + b);
                assert_eq!(Fr::from(x * y), a * b);
            }
        }
    }

    #[test]
    fn dot_products_agree_with_blst() {
        fn check<const N: usize>(values: &[Fr]) {
            for start in 0..values.len() - N {
                let a: [Fr; N] = std::array::from_fn(|i| values[start + i]);
                let b: [Fr; N] = std::array::from_fn(|i| values[values.len() - 1 - start - i]);
                let expected: Fr = a.iter().zip(&b).map(|(a, b)| *a * b).sum();
                assert_eq!(
                    Fr::from(Element::dot(&a.map(Element::from), &b.map(Element::from))),
                    expected
                );
            }
        }
        check::<1>(&samples());
        check::<3>(&samples());
        check::<9>(&samples());
        check::<12>(&samples());
    }

    /// The largest sum of all: limbs of r - 1 everywhere, not only Montgomery forms that look random.
    #[test]
    fn dot_product_of_the_largest_limbs() {
        let largest = Element([MODULUS[0] - 1, MODULUS[1], MODULUS[2], MODULUS[3]]);
        let value = Fr::from(largest);
        let expected = value * value * Fr::from(12);
        assert_eq!(
            Fr::from(Element::dot(&[largest; 12], &[largest; 12])),
            expected
        );
        assert_eq!(Fr::from(largest * largest), value.square());
        assert_eq!(Fr::from(largest + largest), value.double());
    }

    #[test]
    fn constants_are_the_modulus() {
        assert_eq!(MODULUS[0].wrapping_mul(NEGATIVE_INVERSE), u64::MAX);
        let hex: String = MODULUS
            .iter()
            .rev()
            .map(|limb| format!("{limb:016x}"))
            .collect();
        assert_eq!(format!("0x{hex}"), Fr::MODULUS);
    }
}
