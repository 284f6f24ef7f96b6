//! blst's arithmetic, as the laws want it.

use std::fmt::Debug;

use blst::*;
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use cuda::Pod;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group as _};
use rand_chacha::ChaCha20Rng;
use rand_core::RngCore;

/// A binary operation by name; unary ones leave the second operand.
pub type Operation<T> = (&'static str, fn(&T, &T) -> T);

/// A field by its bytes: Montgomery form, reduced.
pub trait Field: Pod + Default + PartialEq + Debug + std::fmt::LowerHex {
    /// In the order of the kernel's results.
    const OPERATIONS: &'static [Operation<Self>];
    fn zero() -> Self {
        Self::default()
    }
    fn one() -> Self;
    fn random(rng: &mut ChaCha20Rng) -> Self;
    /// Values at which carries, borrows and reductions change.
    fn edges() -> Vec<Self>;
}

/// A group by its affine points.
pub trait Group: Pod + Default + PartialEq + Debug {
    type Base: Field;
    const OPERATIONS: &'static [Operation<Self>];
    fn infinity() -> Self;
    fn random(rng: &mut ChaCha20Rng) -> Self;
    /// Infinity, points and their multiples and opposites.
    fn edges(rng: &mut ChaCha20Rng) -> Vec<Self>;
}

pub type G1 = G1Affine;
pub type G2 = G2Affine;

/// A type over blst's struct of 64-bit words; Fp and Fr.
macro_rules! prime_field {
    ($name:ident, $words:literal, $raw:ident, $prefix:literal, $modulus:expr,
     add: $add:ident, sub: $sub:ident, mul: $mul:ident, sqr: $sqr:ident, neg: $neg:ident,
     inverse: $inverse:ident, from: $from:ident, to: $to:ident) => {
        #[derive(Clone, Copy, Default, PartialEq)]
        #[repr(C)]
        pub struct $name(pub [u64; $words]);

        // SAFETY: an array of words.
        unsafe impl Pod for $name {}

        impl $name {
            pub const MODULUS: [u64; $words] = $modulus;

            fn raw(&self) -> $raw {
                $raw { l: self.0 }
            }

            /// One of blst's functions of one value.
            fn unary(&self, f: unsafe extern "C" fn(*mut $raw, *const $raw)) -> Self {
                let mut out = $raw::default();
                // SAFETY: both pointers are to live values.
                unsafe { f(&mut out, &self.raw()) };
                $name(out.l)
            }

            /// One of blst's functions of two values.
            fn binary(
                &self,
                other: &Self,
                f: unsafe extern "C" fn(*mut $raw, *const $raw, *const $raw),
            ) -> Self {
                let mut out = $raw::default();
                // SAFETY: all pointers are to live values.
                unsafe { f(&mut out, &self.raw(), &other.raw()) };
                $name(out.l)
            }

            fn is_reduced(&self) -> bool {
                self.0.iter().rev().lt(Self::MODULUS.iter().rev())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{self:x}")
            }
        }

        impl std::fmt::LowerHex for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("0x")?;
                self.0.iter().rev().try_for_each(|w| write!(f, "{w:016x}"))
            }
        }

        impl Field for $name {
            const OPERATIONS: &'static [Operation<Self>] = &[
                ("add", |x, y| x.binary(y, $add)),
                ("subtract", |x, y| x.binary(y, $sub)),
                ("multiply", |x, y| x.binary(y, $mul)),
                ("square", |x, _| x.unary($sqr)),
                ("negate", |x, _| {
                    let mut out = $raw::default();
                    // SAFETY: both pointers are to live values.
                    unsafe { $neg(&mut out, &x.raw(), true) };
                    $name(out.l)
                }),
                ("double", |x, _| x.binary(x, $add)),
                ("invert", |x, _| x.unary($inverse)),
                ("to canonical", |x, _| {
                    let mut out = [0; $words];
                    // SAFETY: the output has as many words.
                    unsafe { $to(out.as_mut_ptr(), &x.raw()) };
                    $name(out)
                }),
                ("to Montgomery", |x, _| {
                    let mut out = $raw::default();
                    // SAFETY: the input has as many words.
                    unsafe { $from(&mut out, x.0.as_ptr()) };
                    $name(out.l)
                }),
                ("multiply, then reduce", |x, y| x.binary(y, $mul)),
            ];

            fn one() -> Self {
                let mut one = [0; $words];
                one[0] = 1;
                let mut out = $raw::default();
                // SAFETY: the input has as many words.
                unsafe { $from(&mut out, one.as_ptr()) };
                $name(out.l)
            }

            fn random(rng: &mut ChaCha20Rng) -> Self {
                loop {
                    let mut words = [0; $words].map(|_: u64| rng.next_u64());
                    // As many bits as the modulus has.
                    words[$words - 1] >>= Self::MODULUS[$words - 1].leading_zeros();
                    let value = $name(words);
                    if value.is_reduced() {
                        return value;
                    }
                }
            }

            fn edges() -> Vec<Self> {
                let mut values = vec![$name::default(), Self::one()];
                // Small numbers and powers of two as Montgomery limbs, and as values.
                for limb in 0..2 * $words {
                    let mut words = [0; $words];
                    words[limb / 2] = 1 << (32 * (limb % 2));
                    values.push($name(words));
                    let ones: [u64; $words] = std::array::from_fn(|i| match (2 * i).cmp(&limb) {
                        std::cmp::Ordering::Less => u64::MAX,
                        std::cmp::Ordering::Equal => u64::from(u32::MAX),
                        std::cmp::Ordering::Greater => 0,
                    });
                    values.push($name(ones));
                }
                values.push($name([0; $words]).binary(&Self::one(), $sub)); // -1
                values.push(Self::one().binary(&Self::one(), $add).unary($inverse)); // 1/2
                let opposites: Vec<Self> = values
                    .iter()
                    .map(|x| $name::default().binary(x, $sub))
                    .collect();
                values.extend(opposites);
                values.retain(Self::is_reduced);
                values
            }
        }
    };
}

prime_field!(
    Fp, 6, blst_fp, "fp",
    [
        0xb9fe_ffff_ffff_aaab, 0x1eab_fffe_b153_ffff, 0x6730_d2a0_f6b0_f624,
        0x6477_4b84_f385_12bf, 0x4b1b_a7b6_434b_acd7, 0x1a01_11ea_397f_e69a,
    ],
    add: blst_fp_add, sub: blst_fp_sub, mul: blst_fp_mul, sqr: blst_fp_sqr, neg: blst_fp_cneg,
    inverse: blst_fp_inverse, from: blst_fp_from_uint64, to: blst_uint64_from_fp
);
prime_field!(
    Fr, 4, blst_fr, "fr",
    [
        0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe,
        0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48,
    ],
    add: blst_fr_add, sub: blst_fr_sub, mul: blst_fr_mul, sqr: blst_fr_sqr, neg: blst_fr_cneg,
    inverse: blst_fr_inverse, from: blst_fr_from_uint64, to: blst_uint64_from_fr
);

/// c0 + c1 u.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
#[repr(C)]
pub struct Fp2(pub [Fp; 2]);

// SAFETY: an array of words.
unsafe impl Pod for Fp2 {}

impl Fp2 {
    fn raw(&self) -> blst_fp2 {
        blst_fp2 {
            fp: self.0.map(|c| c.raw()),
        }
    }

    fn of(raw: blst_fp2) -> Self {
        Fp2(raw.fp.map(|c| Fp(c.l)))
    }

    fn unary(&self, f: unsafe extern "C" fn(*mut blst_fp2, *const blst_fp2)) -> Self {
        let mut out = blst_fp2::default();
        // SAFETY: both pointers are to live values.
        unsafe { f(&mut out, &self.raw()) };
        Self::of(out)
    }

    fn binary(
        &self,
        other: &Self,
        f: unsafe extern "C" fn(*mut blst_fp2, *const blst_fp2, *const blst_fp2),
    ) -> Self {
        let mut out = blst_fp2::default();
        // SAFETY: all pointers are to live values.
        unsafe { f(&mut out, &self.raw(), &other.raw()) };
        Self::of(out)
    }
}

impl std::fmt::LowerHex for Fp2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x} + {:x} u", self.0[0], self.0[1])
    }
}

impl Field for Fp2 {
    const OPERATIONS: &'static [Operation<Self>] = &[
        ("add", |x, y| x.binary(y, blst_fp2_add)),
        ("subtract", |x, y| x.binary(y, blst_fp2_sub)),
        ("multiply", |x, y| x.binary(y, blst_fp2_mul)),
        ("square", |x, _| x.unary(blst_fp2_sqr)),
        ("negate", |x, _| Fp2::default().binary(x, blst_fp2_sub)),
        ("double", |x, _| x.binary(x, blst_fp2_add)),
        ("invert", |x, _| x.unary(blst_fp2_inverse)),
    ];

    fn one() -> Self {
        Fp2([Fp::one(), Fp::zero()])
    }

    fn random(rng: &mut ChaCha20Rng) -> Self {
        Fp2([Fp::random(rng), Fp::random(rng)])
    }

    fn edges() -> Vec<Self> {
        let minus_one = Fp::zero().binary(&Fp::one(), blst_fp_sub);
        let two = Fp::one().binary(&Fp::one(), blst_fp_add);
        let parts = [
            Fp::zero(),
            Fp::one(),
            two,
            minus_one,
            Fp([1, 0, 0, 0, 0, 0]),
        ];
        let mut values = Vec::new();
        for c0 in parts {
            values.extend(parts.map(|c1| Fp2([c0, c1])));
        }
        values
    }
}

macro_rules! affine_group {
    ($affine:ident, $projective:ident, $base:ident) => {
        impl Group for $affine {
            type Base = $base;

            const OPERATIONS: &'static [Operation<Self>] = &[
                ("add an affine point", |p, q| {
                    ($projective::from(p) + $projective::from(q)).to_affine()
                }),
                ("add", |p, q| {
                    ($projective::from(p) + $projective::from(q)).to_affine()
                }),
                ("double", |p, _| $projective::from(p).double().to_affine()),
                ("double an affine point", |p, _| {
                    $projective::from(p).double().to_affine()
                }),
                ("negate", |p, _| -*p),
                ("to affine", |p, _| *p),
            ];

            fn infinity() -> Self {
                Self::identity()
            }

            fn random(rng: &mut ChaCha20Rng) -> Self {
                $projective::random(rng).to_affine()
            }

            fn edges(rng: &mut ChaCha20Rng) -> Vec<Self> {
                let g = $projective::generator();
                let r = $projective::random(rng);
                let multiples = [g, g.double(), g.double() + g, r, r.double(), r + g];
                let mut points = vec![Self::identity()];
                points.extend(multiples.iter().map(Curve::to_affine));
                points.extend(multiples.iter().map(|p| (-*p).to_affine()));
                points
            }
        }
    };
}

affine_group!(G1Affine, G1Projective, Fp);
affine_group!(G2Affine, G2Projective, Fp2);
