//! Eight elements of Fr and their butterflies.
//!
//! Elements in memory are integers x·2^256, canonical. Five limbs of 52 bits hold up to 35·r.
//! Montgomery multiplication by such limbs divides by 2^260; a root therefore is kept shifted
//! left by four bits (as an integer below 16r), and the product of an element x·2^256 and a
//! root w·2^260 over 2^260 is x·w·2^256 again.
//!
//! # Bounds
//!
//! M(x, w) = (x·w + q·r)/2^260 < (1 + 0.4527·k)·r for x < k·r, because 16·r/2^260 < 0.4527.
//! Elements between butterflies are *reduced*: below 1.06r, limbs in 0 … 2^52 − 1. Within one,
//! limbs may be larger or negative, but the last one never is negative: every difference adds
//! more multiples of r than it can lose. Factors of a product are carried into proper limbs first.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmplt_epi64_mask, _mm512_loadu_si512,
    _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_blend_epi64, _mm512_or_si512,
    _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
    _mm512_srai_epi64, _mm512_srli_epi64, _mm512_sub_epi64,
};

use super::LANES;
use crate::avx512::{load_words, store_words};
use crate::fr::Limbs;

/// Bits of a limb.
const LIMB: u32 = 52;
/// The largest limb.
const MASK: i64 = (1 << LIMB) - 1;
/// 64-bit words of an element.
const WORDS: usize = 4;
/// −r^(−1) mod 2^52.
const NEG_INVERSE: i64 = 0xf_fffe_ffff_ffff;

/// Row j: limb j of 0, r, 2r, … 7r.
const MULTIPLES: [[i64; 8]; 5] = multiples();
/// r in limbs.
const R: [i64; 5] = multiple(1);

/// floor(2^52/(r_4 + 1)) for r's last limb r_4: the high half of t_4 times this is at most t/r,
/// and less by at most one and 1 % of it.
const RECIPROCAL: i64 = (1 << LIMB) / (R[4] + 1);

const fn multiple(q: usize) -> [i64; 5] {
    let mut limbs = [0; 5];
    let mut j = 0;
    while j < 5 {
        limbs[j] = MULTIPLES[j][q];
        j += 1;
    }
    limbs
}

const fn multiples() -> [[i64; 8]; 5] {
    let r = [
        0xf_ffff_0000_0001_u64,
        0x2fff_e5bf_efff,
        0x9_a1d8_0553_bda4,
        0x7_d483_339d_8080,
        0x73ed_a753_299d,
    ];
    let mut table = [[0; 8]; 5];
    let mut q = 0;
    while q < 8 {
        let mut carry = 0;
        let mut j = 0;
        while j < 5 {
            let limb = r[j] * q as u64 + carry;
            table[j][q] = (limb & MASK as u64) as i64;
            carry = limb >> LIMB;
            j += 1;
        }
        q += 1;
    }
    table
}

/// Eight elements: vector j holds limb j of each.
#[derive(Clone, Copy)]
pub struct Fr8([__m512i; 5]);

/// Eight roots, shifted left by four bits.
#[derive(Clone, Copy)]
pub struct Root8([__m512i; 5]);

/// Bits from `$right` up of one vector, then the other's from below, cut to a limb.
macro_rules! limb {
    ($low:expr, $right:literal, $high:expr, $left:literal, $mask:expr) => {
        _mm512_and_si512(
            _mm512_or_si512(
                _mm512_srli_epi64::<$right>($low),
                _mm512_slli_epi64::<$left>($high),
            ),
            $mask,
        )
    };
}

impl Root8 {
    /// The same root in every lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub fn splat(root: Limbs) -> Self {
        let w = root.words();
        let mut words = [_mm512_setzero_si512(); WORDS];
        for (vector, &word) in words.iter_mut().zip(w) {
            *vector = _mm512_set1_epi64(word as i64);
        }
        Self::shifted(words)
    }

    /// A root for each lane.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub fn load(roots: &[Limbs; LANES]) -> Self {
        // SAFETY: eight elements of four words, one after the other.
        Self::shifted(unsafe { load_words(roots.as_ptr().cast(), WORDS) })
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn shifted(w: [__m512i; 4]) -> Self {
        let mask = _mm512_set1_epi64(MASK);
        Root8([
            _mm512_and_si512(_mm512_slli_epi64::<4>(w[0]), mask),
            limb!(w[0], 48, w[1], 16, mask),
            limb!(w[1], 36, w[2], 28, mask),
            limb!(w[2], 24, w[3], 40, mask),
            _mm512_srli_epi64::<12>(w[3]),
        ])
    }
}

impl Fr8 {
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub fn zeros() -> Self {
        Fr8([_mm512_setzero_si512(); 5])
    }

    /// Eight elements that are `stride` elements apart.
    ///
    /// # Safety
    /// They must be readable.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub unsafe fn load(elements: *const Limbs, stride: usize) -> Self {
        // SAFETY: the caller's; an element is four words.
        let w = unsafe { load_words(elements.cast(), WORDS * stride) };
        let mask = _mm512_set1_epi64(MASK);
        Fr8([
            _mm512_and_si512(w[0], mask),
            limb!(w[0], 52, w[1], 12, mask),
            limb!(w[1], 40, w[2], 24, mask),
            limb!(w[2], 28, w[3], 36, mask),
            _mm512_srli_epi64::<16>(w[3]),
        ])
    }

    /// Writes eight reduced elements in canonical form, `stride` elements apart.
    ///
    /// # Safety
    /// They must be writable.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub unsafe fn store(&self, elements: *mut Limbs, stride: usize) {
        let Fr8(t) = self.canonical();
        let words = [
            _mm512_or_si512(t[0], _mm512_slli_epi64::<52>(t[1])),
            _mm512_or_si512(_mm512_srli_epi64::<12>(t[1]), _mm512_slli_epi64::<40>(t[2])),
            _mm512_or_si512(_mm512_srli_epi64::<24>(t[2]), _mm512_slli_epi64::<28>(t[3])),
            _mm512_or_si512(_mm512_srli_epi64::<36>(t[3]), _mm512_slli_epi64::<16>(t[4])),
        ];
        // SAFETY: the caller's; an element is four words.
        unsafe { store_words(words, elements.cast(), WORDS * stride) };
    }

    /// self − r where that is not negative: canonical for a reduced element.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn canonical(&self) -> Self {
        let mut t = self.0;
        for (limb, r) in t.iter_mut().zip(R) {
            *limb = _mm512_sub_epi64(*limb, _mm512_set1_epi64(r));
        }
        let Fr8(mut t) = Fr8(t).carried();
        let negative = _mm512_cmplt_epi64_mask(t[4], _mm512_setzero_si512());
        for (limb, before) in t.iter_mut().zip(self.0) {
            *limb = _mm512_mask_blend_epi64(negative, *limb, before);
        }
        Fr8(t)
    }

    /// Proper limbs, whatever the sign and size of the given ones.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn carried(self) -> Self {
        let Fr8(mut t) = self;
        let mask = _mm512_set1_epi64(MASK);
        for i in 0..4 {
            let high = _mm512_srai_epi64::<LIMB>(t[i]);
            t[i] = _mm512_and_si512(t[i], mask);
            t[i + 1] = _mm512_add_epi64(t[i + 1], high);
        }
        Fr8(t)
    }

    /// A reduced element from any of 0 … 8r whose last limb is not negative.
    ///
    /// The carries that the last limb still misses are below 2^6, nothing beside r_4 ≈ 2^46.9; the
    /// 1 % by which [`RECIPROCAL`] is short covers them.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn reduced(self) -> Self {
        let Fr8(mut t) = self;
        let zero = _mm512_setzero_si512();
        let q = _mm512_madd52hi_epu64(zero, t[4], _mm512_set1_epi64(RECIPROCAL));
        for (limb, multiples) in t.iter_mut().zip(&MULTIPLES) {
            // SAFETY: a row of the table is 64 bytes.
            let multiples = unsafe { _mm512_loadu_si512(multiples.as_ptr().cast()) };
            *limb = _mm512_sub_epi64(*limb, _mm512_permutexvar_epi64(q, multiples));
        }
        Fr8(t).carried()
    }

    /// Limb by limb.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn plus(&self, other: &Self) -> Self {
        let mut t = self.0;
        for (limb, other) in t.iter_mut().zip(other.0) {
            *limb = _mm512_add_epi64(*limb, other);
        }
        Fr8(t)
    }

    /// self − other + q·r, limb by limb.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn minus(&self, other: &Self, q: usize) -> Self {
        let mut t = self.0;
        for ((limb, other), multiples) in t.iter_mut().zip(other.0).zip(&MULTIPLES) {
            let padded = _mm512_add_epi64(*limb, _mm512_set1_epi64(multiples[q]));
            *limb = _mm512_sub_epi64(padded, other);
        }
        Fr8(t)
    }

    /// M(self, root), not carried. self has proper limbs.
    ///
    /// An accumulator receives at most 4 halves below 2^52 in each of five steps, and a carry: it
    /// stays below 2^57.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn times(&self, root: &Root8) -> Self {
        let zero = _mm512_setzero_si512();
        let mask = _mm512_set1_epi64(MASK);
        let negative_inverse = _mm512_set1_epi64(NEG_INVERSE);
        let mut t = [zero; 5];
        for x in self.0 {
            for (t, w) in t.iter_mut().zip(root.0) {
                *t = _mm512_madd52lo_epu64(*t, x, w);
            }
            // The instruction itself takes the low 52 bits of t_0.
            let q = _mm512_madd52lo_epu64(zero, t[0], negative_inverse);
            // t_0 + low(q·r_0) is t_0 rounded up to a multiple of 2^52.
            let carry = _mm512_srli_epi64::<LIMB>(_mm512_add_epi64(t[0], mask));
            for j in 1..5 {
                t[j - 1] = _mm512_madd52lo_epu64(t[j], q, _mm512_set1_epi64(R[j]));
            }
            t[4] = zero;
            t[0] = _mm512_add_epi64(t[0], carry);
            // High halves belong one limb higher: to the same index after the move.
            for ((t, w), r) in t.iter_mut().zip(root.0).zip(R) {
                *t = _mm512_madd52hi_epu64(*t, x, w);
                *t = _mm512_madd52hi_epu64(*t, q, _mm512_set1_epi64(r));
            }
        }
        Fr8(t)
    }
}

/// (u, v) becomes (u + w·v, u − w·v): w·v < 1.48r, so the results are below 3.1r.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub fn split(u: &mut Fr8, v: &mut Fr8, w: &Root8) {
    let product = v.times(w);
    *v = u.minus(&product, 2).reduced();
    *u = u.plus(&product).reduced();
}

/// (u, v) becomes (u + v, (v − u)·w): v − u + 2r < 3.1r, its product below 2.4r.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub fn join(u: &mut Fr8, v: &mut Fr8, w: &Root8) {
    let difference = v.minus(u, 2).carried();
    *u = u.plus(v).reduced();
    *v = difference.times(w).reduced();
}

/// [`split`] of (a, c) and (b, d) by `w`, then of (a, b) by `low` and (c, d) by `high`.
///
/// The first products are below 1.48r, so b₁, d₁ < 3.1r, the second products below 2.41r and the
/// results below 6.1r.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub fn split_twice([a, b, c, d]: [&mut Fr8; 4], w: &Root8, low: &Root8, high: &Root8) {
    let (cw, dw) = (c.times(w), d.times(w));
    let (a1, c1) = (a.plus(&cw), a.minus(&cw, 2));
    let (b1, d1) = (b.plus(&dw).carried(), b.minus(&dw, 2).carried());
    let (bw, dw) = (b1.times(low), d1.times(high));
    *a = a1.plus(&bw).reduced();
    *b = a1.minus(&bw, 3).reduced();
    *c = c1.plus(&dw).reduced();
    *d = c1.minus(&dw, 3).reduced();
}

/// [`join`] of (a, b) by `low` and (c, d) by `high`, then of (a, c) and (b, d) by `w`.
///
/// b₁, d₁ < 2.4r and a₁, c₁ < 2.2r, so the second differences plus 3r are above 0.6r and below
/// 5.4r, and their products below 3.5r.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub fn join_twice([a, b, c, d]: [&mut Fr8; 4], w: &Root8, low: &Root8, high: &Root8) {
    let (a1, c1) = (a.plus(b), c.plus(d));
    let b1 = b.minus(a, 2).carried().times(low);
    let d1 = d.minus(c, 2).carried().times(high);
    *a = a1.plus(&c1).reduced();
    *b = b1.plus(&d1).reduced();
    *c = c1.minus(&a1, 3).carried().times(w).reduced();
    *d = d1.minus(&b1, 3).carried().times(w).reduced();
}
