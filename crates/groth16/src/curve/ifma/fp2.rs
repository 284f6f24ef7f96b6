//! Eight elements of Fp2 = Fp[i]/(i² + 1).

use blstrs::G2Affine;

use super::Lanes;
use super::fp::{Fp8, limbs_of_words};
use crate::avx512::{load_words, store_words};

/// 64-bit words of a G2 point: x.c0, x.c1, y.c0, y.c1 of six words each.
const G2_WORDS: usize = 24;

/// Eight elements c0 + c1·i.
#[derive(Clone, Copy)]
pub struct Fp2x8 {
    c0: Fp8,
    c1: Fp8,
}

/// Twelve words of each point from word `start` on, as an element.
///
/// # Safety
/// Needs avx512f; `points` must be eight points.
#[inline(always)]
unsafe fn load(points: *const G2Affine, start: usize) -> Fp2x8 {
    let words: *const u64 = points.cast();
    // SAFETY: the caller's; `start` is 0 or 12 of the point's 24 words.
    unsafe {
        let words = words.add(start);
        let a = load_words(words, G2_WORDS);
        let b = load_words(words.add(4), G2_WORDS);
        let c = load_words(words.add(8), G2_WORDS);
        Fp2x8 {
            c0: limbs_of_words([a[0], a[1], a[2], a[3], b[0], b[1]]),
            c1: limbs_of_words([b[2], b[3], c[0], c[1], c[2], c[3]]),
        }
    }
}

/// The inverse of [`load`].
///
/// # Safety
/// Needs avx512f; `points` must be eight points; the element must be canonical.
#[inline(always)]
unsafe fn store(element: &Fp2x8, points: *mut G2Affine, start: usize) {
    let words: *mut u64 = points.cast();
    // SAFETY: the caller's; `start` is 0 or 12 of the point's 24 words.
    unsafe {
        let words = words.add(start);
        let (c0, c1) = (element.c0.words(), element.c1.words());
        store_words([c0[0], c0[1], c0[2], c0[3]], words, G2_WORDS);
        store_words([c0[4], c0[5], c1[0], c1[1]], words.add(4), G2_WORDS);
        store_words([c1[2], c1[3], c1[4], c1[5]], words.add(8), G2_WORDS);
    }
}

impl Lanes for Fp2x8 {
    type Point = G2Affine;

    #[inline(always)]
    unsafe fn load_x(points: *const G2Affine) -> Self {
        // SAFETY: the caller's.
        unsafe { load(points, 0) }
    }

    #[inline(always)]
    unsafe fn load_y(points: *const G2Affine) -> Self {
        // SAFETY: the caller's.
        unsafe { load(points, G2_WORDS / 2) }
    }

    #[inline(always)]
    unsafe fn store(x: &Self, y: &Self, points: *mut G2Affine) {
        // SAFETY: the caller's.
        unsafe {
            store(x, points, 0);
            store(y, points, G2_WORDS / 2);
        }
    }

    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: Fp8::one(),
                c1: Fp8::zeros(),
            }
        }
    }

    #[inline(always)]
    unsafe fn mul(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let Fp2x8 { c0, c1 } = self.mul_uncarried(other);
            Fp2x8 {
                c0: c0.carried(),
                c1: c1.carried(),
            }
        }
    }

    /// (a0·b0 − a1·b1, a0·b1 + a1·b0), each as two products with one reduction: as many
    /// multiplications as Karatsuba's three products with three, and smaller results.
    #[inline(always)]
    unsafe fn mul_uncarried(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let negative = Fp8::zeros().sub_twice(&other.c1);
            Fp2x8 {
                c0: self.c0.mul_both(&other.c0, &self.c1, &negative),
                c1: self.c0.mul_both(&other.c1, &self.c1, &other.c0),
            }
        }
    }

    #[inline(always)]
    unsafe fn shifted(&self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.shifted(),
                c1: self.c1.shifted(),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.add(&other.c0),
                c1: self.c1.add(&other.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.sub(&other.c0),
                c1: self.c1.sub(&other.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub_canonical(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.sub_canonical(&other.c0),
                c1: self.c1.sub_canonical(&other.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub_both_canonical(&self, other: &Self, another: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.sub_both_canonical(&other.c0, &another.c0),
                c1: self.c1.sub_both_canonical(&other.c1, &another.c1),
            }
        }
    }

    /// The conjugate over the norm. With N = (c0² + c1²)/2^416 and t = 2^800/N, M(c0, t) is
    /// 2^800·c0/(c0² + c1²).
    unsafe fn inverse_scaled(&self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let norm = self.c0.mul_both(&self.c0, &self.c1, &self.c1).carried();
            let scaled = norm.inverse_scaled();
            Fp2x8 {
                c0: self.c0.mul(&scaled),
                c1: Fp8::zeros().sub_twice(&self.c1.mul(&scaled)),
            }
        }
    }

    #[inline(always)]
    unsafe fn maybe_exceptional(x1: &Self, x2: &Self, difference: &Self) -> bool {
        // SAFETY: the caller's.
        unsafe { Fp8::maybe_exceptional(&x1.c0, &x2.c0, &difference.c0) }
    }

    #[inline(always)]
    unsafe fn equal(&self, other: &Self) -> u8 {
        // SAFETY: the caller's.
        unsafe { self.c0.equal(&other.c0) & self.c1.equal(&other.c1) }
    }

    #[inline(always)]
    unsafe fn zero(&self) -> u8 {
        // SAFETY: the caller's.
        unsafe { self.c0.zero() & self.c1.zero() }
    }

    #[inline(always)]
    unsafe fn replaced(&self, mask: u8, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: self.c0.replaced(mask, &other.c0),
                c1: self.c1.replaced(mask, &other.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn zeros() -> Self {
        // SAFETY: the caller's.
        unsafe {
            Fp2x8 {
                c0: Fp8::zeros(),
                c1: Fp8::zeros(),
            }
        }
    }
}
