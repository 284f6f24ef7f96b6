//! The table of a base's multiples, and the kernel's parameters.

use std::ops::RangeInclusive;

use blstrs::Scalar;
use ff::Field;
use group::{Curve, Group};
use rayon::prelude::*;

use crate::device::Params;
use crate::msm::{G1, G2, SumCurve};

/// Bits that a scalar needs once the smaller of s and r − s is taken and half of every digit's range
/// is added: (r − 1)/2 < 0.453·2^255, and the halves are below 0.517·2^255 for windows of five bits
/// and more.
const SCALAR_BITS: u32 = 255;

/// Windows that are allowed.
pub const WIDTHS: RangeInclusive<u32> = 5..=24;

/// Windows of the table that the host makes: 4096 points.
pub const HOST_WIDTH: u32 = 8;

/// A group whose generator is multiplied.
pub trait BaseCurve:
    SumCurve<Projective: Curve<AffineRepr = <Self as SumCurve>::Affine> + Group<Scalar = Scalar>>
{
    /// The kernel.
    const KERNEL: &'static str;
    /// Blocks on a multiprocessor, as in its launch bounds.
    const BLOCKS: u32;
    /// Windows of the table on a GPU: 604 MB for G1, 378 MB for G2.
    const WIDTH: u32;
}

impl BaseCurve for G1 {
    const KERNEL: &'static str = "fixed_base_g1_kernel";
    const BLOCKS: u32 = 3;
    const WIDTH: u32 = 20;
}

impl BaseCurve for G2 {
    const KERNEL: &'static str = "fixed_base_g2_kernel";
    const BLOCKS: u32 = 2;
    const WIDTH: u32 = 18;
}

/// A cut of scalars into signed digits of equal width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseWindows {
    width: u32,
}

impl BaseWindows {
    pub fn new(width: u32) -> Self {
        assert!(WIDTHS.contains(&width), "windows of {width} bits");
        BaseWindows { width }
    }

    pub fn width(self) -> u32 {
        self.width
    }

    pub fn count(self) -> u32 {
        SCALAR_BITS.div_ceil(self.width)
    }

    /// Multiples of a window in the table.
    fn multiples(self) -> usize {
        1 << (self.width - 1)
    }

    /// Points of the table: all multiples of every window but the last, whose digits are at most
    /// 2^(254 − its lowest bit).
    pub fn points(self) -> usize {
        let last = SCALAR_BITS - 1 - self.width * (self.count() - 1);
        (self.count() as usize - 1) * self.multiples() + (1 << last)
    }

    /// What multiplies the base at place `index` of the table.
    fn factor(self, index: usize) -> Scalar {
        let window = index / self.multiples();
        let digit = (index % self.multiples() + 1) as u64;
        Scalar::from(digit) * power_of_two(window as u32 * self.width)
    }

    /// The factors of the places from `first` on.
    pub fn factors(self, first: usize, factors: &mut [Scalar]) {
        let factors = factors.par_iter_mut().enumerate().with_min_len(1 << 10);
        factors.for_each(|(i, factor)| *factor = self.factor(first + i));
    }

    /// Σ 2^(width·w + width − 1) over the windows, in 32-bit limbs.
    pub fn halves(self) -> [u32; 9] {
        let mut limbs = [0; 9];
        for window in 0..self.count() {
            let bit = window * self.width + self.width - 1;
            limbs[bit as usize / 32] |= 1 << (bit % 32);
        }
        limbs
    }

    /// The table, on the host.
    pub fn table<C: BaseCurve>(self) -> Vec<C::Affine> {
        let windows = 0..self.count() as usize;
        let windows = windows.into_par_iter().flat_map_iter(|window| {
            let first = window * self.multiples();
            let count = self.multiples().min(self.points() - first);
            let unit = C::Projective::generator() * self.factor(first);
            let mut multiple = unit;
            let multiples: Vec<_> = (0..count)
                .map(|_| {
                    let this = multiple;
                    multiple += unit;
                    this
                })
                .collect();
            let mut affine = vec![C::Affine::default(); count];
            C::Projective::batch_normalize(&multiples, &mut affine);
            affine
        });
        windows.collect()
    }
}

fn power_of_two(exponent: u32) -> Scalar {
    Scalar::from(2).pow_vartime([u64::from(exponent)])
}

/// `FixedBaseParams` of `kernels/fixed_base/multiply.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FixedBaseParams {
    pub scalars: u64,
    pub table: u64,
    pub points: u64,
    pub kept: u64,
    pub len: u32,
    pub windows: u32,
    pub width: u32,
    pub halves: [u32; 9],
}

// SAFETY: laid out as the C++ struct.
unsafe impl Params for FixedBaseParams {}

#[cfg(test)]
mod tests {
    use ff::PrimeField;
    use group::prime::PrimeCurveAffine;

    use super::*;

    #[test]
    fn tables_hold_every_digit() {
        for width in WIDTHS {
            let windows = BaseWindows::new(width);
            assert!(windows.count() * width >= SCALAR_BITS);
            // The largest scalar's digits: ((r − 1)/2 + halves), cut.
            let half = -(Scalar::ONE + Scalar::ONE).invert().unwrap();
            let mut digits = half.to_repr().to_vec();
            digits.extend([0; 4]);
            let mut carry = 0u64;
            for (limb, half) in digits.chunks_exact_mut(4).zip(windows.halves()) {
                let value = u64::from(u32::from_le_bytes(limb.try_into().unwrap()));
                let sum = value + u64::from(half) + carry;
                limb.copy_from_slice(&(sum as u32).to_le_bytes());
                carry = sum >> 32;
            }
            let bit = |bit: u32| u64::from(digits[bit as usize / 8] >> (bit % 8) & 1);
            let last = width * (windows.count() - 1);
            let top: u64 = (last..288).map(|i| bit(i) << (i - last)).sum();
            let digit = top as i64 - (1 << (width - 1));
            let places = windows.points() - (windows.count() as usize - 1) * windows.multiples();
            assert!(digit >= 0, "width {width}");
            assert!(
                digit as usize <= places,
                "width {width}: {digit} of {places}"
            );
            assert!(places <= windows.multiples());
        }
    }

    #[test]
    fn tables_are_in_the_order_of_their_factors() {
        let windows = BaseWindows::new(5);
        let table = windows.table::<G1>();
        assert_eq!(table.len(), windows.points());
        let mut factors = vec![Scalar::ZERO; table.len()];
        windows.factors(0, &mut factors);
        for (place, (point, factor)) in table.iter().zip(&factors).enumerate() {
            let expected = blstrs::G1Affine::generator() * factor;
            assert_eq!(*point, expected.to_affine(), "place {place}");
        }
    }
}
