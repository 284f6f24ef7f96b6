//! The two coordinate fields, on `blst`.

use blst::{
    blst_fp, blst_fp_add, blst_fp_inverse, blst_fp_mul, blst_fp_sqr, blst_fp_sub, blst_fp2,
    blst_fp2_add, blst_fp2_inverse, blst_fp2_mul, blst_fp2_sqr, blst_fp2_sub,
};

/// Fp or Fp2 = Fp[i]/(i² + 1), elements in Montgomery form (R = 2^384), canonical.
pub trait Field: Copy + PartialEq + Send + Sync + 'static {
    /// 1.
    fn one() -> Self;
    /// self + other.
    fn add(&self, other: &Self) -> Self;
    /// self − other.
    fn sub(&self, other: &Self) -> Self;
    /// self · other.
    fn mul(&self, other: &Self) -> Self;
    /// self².
    fn square(&self) -> Self;
    /// 1/self, and 0 for 0.
    fn inverse(&self) -> Self;
}

/// 2^384 mod p, the Montgomery form of 1, least significant limb first.
const ONE: blst_fp = blst_fp {
    l: [
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ],
};

macro_rules! field {
    ($type:ty, $one:expr, $add:ident, $sub:ident, $mul:ident, $square:ident, $inverse:ident) => {
        impl Field for $type {
            #[inline]
            fn one() -> Self {
                $one
            }

            #[inline]
            fn add(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: three valid pointers to field elements; the function reads two of
                // them and writes the third.
                unsafe { $add(&raw mut out, self, other) };
                out
            }

            #[inline]
            fn sub(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: as in `add`.
                unsafe { $sub(&raw mut out, self, other) };
                out
            }

            #[inline]
            fn mul(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: as in `add`.
                unsafe { $mul(&raw mut out, self, other) };
                out
            }

            #[inline]
            fn square(&self) -> Self {
                let mut out = Self::default();
                // SAFETY: two valid pointers to field elements, one read, one written.
                unsafe { $square(&raw mut out, self) };
                out
            }

            #[inline]
            fn inverse(&self) -> Self {
                let mut out = Self::default();
                // SAFETY: as in `square`.
                unsafe { $inverse(&raw mut out, self) };
                out
            }
        }
    };
}

field!(
    blst_fp,
    ONE,
    blst_fp_add,
    blst_fp_sub,
    blst_fp_mul,
    blst_fp_sqr,
    blst_fp_inverse
);
field!(
    blst_fp2,
    blst_fp2 {
        fp: [ONE, blst_fp { l: [0; 6] }]
    },
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_inverse
);
