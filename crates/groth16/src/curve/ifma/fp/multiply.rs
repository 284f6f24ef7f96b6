//! Products of eight elements, a limb at a time.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_setzero_si512,
    _mm512_srli_epi64,
};

use super::{Fp8, LIMB, MASK, P, constant, splat};

/// −p^(−1) mod 2^52.
const NEG_INVERSE: i64 = 0x3_fffc_fffc_fffd;

/// Adds low(x·y) of every limb of `y` to the accumulators.
#[inline(always)]
unsafe fn add_low(t: &mut [__m512i; 8], x: __m512i, y: &[__m512i; 8]) {
    // SAFETY: the caller has avx512ifma.
    unsafe {
        for (t, y) in t.iter_mut().zip(y) {
            *t = _mm512_madd52lo_epu64(*t, x, *y);
        }
    }
}

/// Adds high(x·y) of every limb of `y`; it belongs one limb higher, so the accumulators must have
/// been moved down by one.
#[inline(always)]
unsafe fn add_high(t: &mut [__m512i; 8], x: __m512i, y: &[__m512i; 8]) {
    // SAFETY: the caller has avx512ifma.
    unsafe {
        for (t, y) in t.iter_mut().zip(y) {
            *t = _mm512_madd52hi_epu64(*t, x, *y);
        }
    }
}

/// Adds the low halves of q·p for the q that makes t_0 a multiple of 2^52, and moves everything
/// down by one limb. Returns q; its high halves are still to be added.
///
/// t_0 comes with 2^52 − 1 too much ([`biased`]). t_0 + low(q·p_0) is the true t_0 rounded up to a
/// multiple of 2^52, so t_0 >> 52 is what it carries, without that product; and the true t_0 is
/// t_0 + 1 mod 2^52, so q = t_0·(−1/p) + (−1/p). Where q exceeds 52 bits, the
/// instructions take its low 52.
#[inline(always)]
unsafe fn reduce_low(t: &mut [__m512i; 8]) -> __m512i {
    // SAFETY: the caller has avx512f and avx512ifma.
    unsafe {
        let negative_inverse = splat(NEG_INVERSE);
        let q = _mm512_madd52lo_epu64(negative_inverse, t[0], negative_inverse);
        let carry = _mm512_srli_epi64::<LIMB>(t[0]);
        for j in 1..8 {
            t[j - 1] = _mm512_madd52lo_epu64(t[j], q, splat(P[j]));
        }
        t[7] = _mm512_setzero_si512();
        t[0] = _mm512_add_epi64(t[0], carry);
        q
    }
}

/// Accumulators of a product: 2^52 − 1 in each of the eight limbs that will be dropped.
#[inline(always)]
unsafe fn biased() -> [__m512i; 8] {
    // SAFETY: the caller has avx512f.
    unsafe { [splat(MASK); 8] }
}

/// One limb of a product: its low halves, the reduction, its high halves.
#[inline(always)]
unsafe fn step(t: &mut [__m512i; 8], a: __m512i, b: &Fp8) {
    // SAFETY: the caller has avx512f and avx512ifma.
    unsafe {
        add_low(t, a, &b.0);
        let q = reduce_low(t);
        add_high(t, a, &b.0);
        add_high(t, q, &constant(&P));
    }
}

/// [`step`] for the sum of two products.
#[inline(always)]
unsafe fn step_both(t: &mut [__m512i; 8], a: __m512i, b: &Fp8, c: __m512i, d: &Fp8) {
    // SAFETY: the caller has avx512f and avx512ifma.
    unsafe {
        add_low(t, a, &b.0);
        add_low(t, c, &d.0);
        let q = reduce_low(t);
        add_high(t, a, &b.0);
        add_high(t, c, &d.0);
        add_high(t, q, &constant(&P));
    }
}

/// M(a, b) = a·b/2^416 mod p, not carried.
///
/// An accumulator receives at most 4 halves below 2^52 in each of 8 steps, its bias and a carry:
/// it stays below 2^58.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub fn multiply(a: &Fp8, b: &Fp8) -> [__m512i; 8] {
    // SAFETY: the features are those of this function.
    unsafe {
        let a = &a.0;
        let mut t = biased();
        step(&mut t, a[0], b);
        step(&mut t, a[1], b);
        step(&mut t, a[2], b);
        step(&mut t, a[3], b);
        step(&mut t, a[4], b);
        step(&mut t, a[5], b);
        step(&mut t, a[6], b);
        step(&mut t, a[7], b);
        t
    }
}

/// (a·b + c·d)/2^416 mod p, not carried. The bound of [`multiply`] with 6 halves: below 2^58 as
/// well. Not inlined: a product in Fp2 has two of them, an addition in G2 twelve.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub fn multiply_both(a: &Fp8, b: &Fp8, c: &Fp8, d: &Fp8) -> [__m512i; 8] {
    // SAFETY: the features are those of this function.
    unsafe {
        let (a, c) = (&a.0, &c.0);
        let mut t = biased();
        step_both(&mut t, a[0], b, c[0], d);
        step_both(&mut t, a[1], b, c[1], d);
        step_both(&mut t, a[2], b, c[2], d);
        step_both(&mut t, a[3], b, c[3], d);
        step_both(&mut t, a[4], b, c[4], d);
        step_both(&mut t, a[5], b, c[5], d);
        step_both(&mut t, a[6], b, c[6], d);
        step_both(&mut t, a[7], b, c[7], d);
        t
    }
}
