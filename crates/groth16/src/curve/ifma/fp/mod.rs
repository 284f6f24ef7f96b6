//! Eight elements of Fp, and what Fp2 is built from.

mod inverse;
mod multiply;
#[cfg(test)]
mod tests;

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_cmpge_epu64_mask,
    _mm512_cmplt_epi64_mask, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_mask_blend_epi64,
    _mm512_or_si512, _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_testn_epi64_mask,
};

use blst::blst_fp;
use blstrs::G1Affine;

use super::{LANES, Lanes};
use crate::avx512::{load_words, store_words};
use inverse::invert_scaled;
use multiply::{multiply, multiply_both};

/// Bits of a limb.
const LIMB: u32 = 52;
/// The largest limb.
const MASK: i64 = (1 << LIMB) - 1;
/// 64-bit words of a G1 point.
const G1_WORDS: usize = 12;

/// p in limbs.
const P: [i64; 8] = [
    0xe_ffff_ffff_aaab,
    0xf_eb15_3fff_fb9f,
    0x6_b0f6_241e_abff,
    0x1_2bf6_730d_2a0f,
    0x7_6477_4b84_f385,
    0x1_ba7b_6434_bacd,
    0x1_ea39_7fe6_9a4b,
    0x1_a011,
];
/// 2p in limbs.
const P2: [i64; 8] = [
    0xd_ffff_ffff_5556,
    0xf_d62a_7fff_f73f,
    0xd_61ec_483d_57ff,
    0x2_57ec_e61a_541e,
    0xe_c8ee_9709_e70a,
    0x3_74f6_c869_759a,
    0x3_d472_ffcd_3496,
    0x3_4022,
];
/// floor(2^52/(p_7 + 1)): the high half of a last limb times this is how often p fits, at most.
const RECIPROCAL: i64 = (1 << LIMB) / (P[7] + 1);
/// Row j: limb j of 0, p, 2p, … 7p.
const MULTIPLES: [[i64; 8]; 8] = multiples();

const fn multiples() -> [[i64; 8]; 8] {
    let mut table = [[0; 8]; 8];
    let mut q = 0;
    while q < 8 {
        let mut carry = 0;
        let mut j = 0;
        while j < 8 {
            let limb = P[j] * q as i64 + carry;
            table[j][q] = limb & MASK;
            carry = limb >> LIMB;
            j += 1;
        }
        q += 1;
    }
    table
}
/// 2^416 mod p in limbs.
const ONE: [i64; 8] = [
    0x6_480e_a8e9_b9af,
    0x6_5766_c8fe_444f,
    0x8_b540_fea9_6f7d,
    0x3_b2ee_82ef_d422,
    0xa_6723_e5f0_ade5,
    0xf_f6eb_6fdd_4230,
    0xe_06ef_23c2_4a25,
    0x1_4c8e,
];

/// Eight elements of Fp: vector k holds limb k of each, 0 … 2^52 − 1.
#[derive(Clone, Copy)]
pub struct Fp8([__m512i; 8]);

/// A constant limb in every lane.
#[inline(always)]
unsafe fn splat(limb: i64) -> __m512i {
    // SAFETY: the caller has avx512f.
    unsafe { _mm512_set1_epi64(limb) }
}

/// A constant element in every lane. (A loop: closures do not inherit target features.)
#[inline(always)]
unsafe fn constant(limbs: &[i64; 8]) -> [__m512i; 8] {
    // SAFETY: the caller has avx512f.
    unsafe {
        let mut t = [_mm512_setzero_si512(); 8];
        for (t, &limb) in t.iter_mut().zip(limbs) {
            *t = splat(limb);
        }
        t
    }
}

/// Brings limbs of any sign and up to 63 bits into 0 … 2^52 − 1, for a total that is not
/// negative; only the last limb shows the sign of one that is.
#[inline(always)]
unsafe fn carry(mut t: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: the caller has avx512f.
    unsafe {
        let mask = splat(MASK);
        for i in 0..7 {
            let high = _mm512_srai_epi64::<LIMB>(t[i]);
            t[i] = _mm512_and_si512(t[i], mask);
            t[i + 1] = _mm512_add_epi64(t[i + 1], high);
        }
        t
    }
}

/// Six words of eight elements as limbs.
///
/// # Safety
/// Needs avx512f.
#[inline(always)]
pub unsafe fn limbs_of_words(w: [__m512i; 6]) -> Fp8 {
    // SAFETY: the caller's.
    unsafe {
        let mask = splat(MASK);
        // Bits `LOW` and up of one word, then the next word's from below, cut to a limb.
        macro_rules! limb {
            ($low:expr, $right:literal, $high:expr, $left:literal) => {
                _mm512_and_si512(
                    _mm512_or_si512(
                        _mm512_srli_epi64::<$right>($low),
                        _mm512_slli_epi64::<$left>($high),
                    ),
                    mask,
                )
            };
        }
        Fp8([
            _mm512_and_si512(w[0], mask),
            limb!(w[0], 52, w[1], 12),
            limb!(w[1], 40, w[2], 24),
            limb!(w[2], 28, w[3], 36),
            limb!(w[3], 16, w[4], 48),
            _mm512_and_si512(_mm512_srli_epi64::<4>(w[4]), mask),
            limb!(w[4], 56, w[5], 8),
            _mm512_srli_epi64::<44>(w[5]),
        ])
    }
}

impl Fp8 {
    /// The words of canonical elements.
    ///
    /// # Safety
    /// Needs avx512f.
    #[inline(always)]
    pub unsafe fn words(&self) -> [__m512i; 6] {
        let t = &self.0;
        macro_rules! word {
            ($low:expr, $right:literal, $high:expr, $left:literal) => {
                _mm512_or_si512(
                    _mm512_srli_epi64::<$right>($low),
                    _mm512_slli_epi64::<$left>($high),
                )
            };
        }
        // SAFETY: the caller's.
        unsafe {
            [
                word!(t[0], 0, t[1], 52),
                word!(t[1], 12, t[2], 40),
                word!(t[2], 24, t[3], 28),
                word!(t[3], 36, t[4], 16),
                _mm512_or_si512(word!(t[4], 48, t[5], 4), _mm512_slli_epi64::<56>(t[6])),
                word!(t[6], 8, t[7], 44),
            ]
        }
    }

    /// self − k where that is not negative, self elsewhere.
    #[inline(always)]
    unsafe fn reduced_by(&self, k: &[i64; 8]) -> Self {
        // SAFETY: the caller has avx512f.
        unsafe {
            let mut t = self.0;
            for (limb, &k) in t.iter_mut().zip(k) {
                *limb = _mm512_sub_epi64(*limb, splat(k));
            }
            let t = carry(t);
            let negative = _mm512_cmplt_epi64_mask(t[7], _mm512_setzero_si512());
            Fp8(t).replaced(negative, self)
        }
    }

    /// The canonical form of an element below 4p.
    ///
    /// # Safety
    /// Needs avx512f.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub unsafe fn canonical(&self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.reduced_by(&P2).reduced_by(&P) }
    }

    /// The canonical form of an element in 0 … 4p, carried or not.
    ///
    /// The last limb tells how many times p fits, but for carries that it still misses (below 2^6,
    /// where p's last limb is 2^16.7) and for values next to a multiple of p. Whether the guess was
    /// right shows in the last limb of the result: it must be below p's. Otherwise (about one vector in
    /// a thousand) the exact way is taken.
    #[inline(always)]
    unsafe fn canonical_from_estimate(t: [__m512i; 8]) -> Self {
        // SAFETY: the caller has avx512f and avx512ifma.
        unsafe {
            let zero = _mm512_setzero_si512();
            let q = _mm512_madd52hi_epu64(zero, t[7], splat(RECIPROCAL));
            let mut u = t;
            for (limb, multiples) in u.iter_mut().zip(&MULTIPLES) {
                // A row of the table is 64 bytes; only the three lowest bits of q count.
                let multiples = _mm512_loadu_si512(multiples.as_ptr().cast());
                *limb = _mm512_sub_epi64(*limb, _mm512_permutexvar_epi64(q, multiples));
            }
            let u = carry(u);
            if _mm512_cmpge_epu64_mask(u[7], splat(P[7])) != 0 {
                return Fp8(carry(t)).canonical();
            }
            Fp8(u)
        }
    }

    /// self − other + k limb by limb, for other ≤ k.
    #[inline(always)]
    unsafe fn sub_plus(&self, other: &Self, k: &[i64; 8]) -> [__m512i; 8] {
        // SAFETY: the caller has avx512f.
        unsafe {
            let mut t = self.0;
            for ((limb, other), &k) in t.iter_mut().zip(other.0).zip(k) {
                *limb = _mm512_add_epi64(_mm512_sub_epi64(*limb, other), splat(k));
            }
            t
        }
    }

    /// self − other + 2p, for other ≤ 2p.
    ///
    /// # Safety
    /// Needs avx512f.
    #[inline(always)]
    pub unsafe fn sub_twice(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(carry(self.sub_plus(other, &P2))) }
    }

    /// M(self, other) + M(a, b) with a single reduction, below p plus (self·other + a·b)/2^416;
    /// the limbs are left as they add up.
    ///
    /// # Safety
    /// Needs avx512f and avx512ifma.
    #[inline(always)]
    pub unsafe fn mul_both(&self, other: &Self, a: &Self, b: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(multiply_both(self, other, a, b)) }
    }

    /// Proper limbs for an element that is not negative.
    ///
    /// # Safety
    /// Needs avx512f.
    #[inline(always)]
    pub unsafe fn carried(self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(carry(self.0)) }
    }

    /// The elements as `blst` has them, for a canonical vector.
    ///
    /// # Safety
    /// Needs avx512f.
    pub unsafe fn to_blst(self) -> [blst_fp; LANES] {
        let mut out = [blst_fp::default(); LANES];
        // SAFETY: the caller's; each store writes 64 bytes to an array of 64 bytes.
        unsafe {
            for (k, word) in self.words().into_iter().enumerate() {
                let mut lanes = [0_u64; LANES];
                _mm512_storeu_si512(lanes.as_mut_ptr().cast(), word);
                for (element, lane) in out.iter_mut().zip(lanes) {
                    element.l[k] = lane;
                }
            }
        }
        out
    }

    /// The inverse of [`Self::to_blst`].
    ///
    /// # Safety
    /// Needs avx512f.
    pub unsafe fn from_blst(elements: &[blst_fp; LANES]) -> Self {
        // SAFETY: the caller's; `set_epi64` takes lane 7 first.
        unsafe {
            let word = |k: usize| {
                let lane = |i: usize| elements[i].l[k] as i64;
                std::arch::x86_64::_mm512_set_epi64(
                    lane(7),
                    lane(6),
                    lane(5),
                    lane(4),
                    lane(3),
                    lane(2),
                    lane(1),
                    lane(0),
                )
            };
            limbs_of_words([word(0), word(1), word(2), word(3), word(4), word(5)])
        }
    }
}

impl Lanes for Fp8 {
    type Point = G1Affine;

    #[inline(always)]
    unsafe fn load_x(points: *const G1Affine) -> Self {
        let words: *const u64 = points.cast();
        // SAFETY: the caller's; a G1 point is 12 words, x the first six.
        unsafe {
            let [w0, w1, w2, w3] = load_words(words, G1_WORDS);
            let [w4, w5, ..] = load_words(words.add(4), G1_WORDS);
            limbs_of_words([w0, w1, w2, w3, w4, w5])
        }
    }

    #[inline(always)]
    unsafe fn load_y(points: *const G1Affine) -> Self {
        let words: *const u64 = points.cast();
        // SAFETY: the caller's; a G1 point is 12 words, y the last six.
        unsafe {
            let [.., w0, w1] = load_words(words.add(4), G1_WORDS);
            let [w2, w3, w4, w5] = load_words(words.add(8), G1_WORDS);
            limbs_of_words([w0, w1, w2, w3, w4, w5])
        }
    }

    #[inline(always)]
    unsafe fn store(x: &Self, y: &Self, points: *mut G1Affine) {
        let words: *mut u64 = points.cast();
        // SAFETY: the caller's; three times four words are a G1 point.
        unsafe {
            let (x, y) = (x.words(), y.words());
            store_words([x[0], x[1], x[2], x[3]], words, G1_WORDS);
            store_words([x[4], x[5], y[0], y[1]], words.add(4), G1_WORDS);
            store_words([y[2], y[3], y[4], y[5]], words.add(8), G1_WORDS);
        }
    }

    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: the caller's.
        Fp8(unsafe { constant(&ONE) })
    }

    #[inline(always)]
    unsafe fn mul(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(carry(multiply(self, other))) }
    }

    #[inline(always)]
    unsafe fn mul_uncarried(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(multiply(self, other)) }
    }

    #[inline(always)]
    unsafe fn shifted(&self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mask = splat(MASK);
            let mut t = self.0;
            for i in (1..8).rev() {
                t[i] = _mm512_and_si512(
                    _mm512_or_si512(
                        _mm512_slli_epi64::<32>(self.0[i]),
                        _mm512_srli_epi64::<20>(self.0[i - 1]),
                    ),
                    mask,
                );
            }
            t[0] = _mm512_and_si512(_mm512_slli_epi64::<32>(self.0[0]), mask);
            Fp8(t)
        }
    }

    #[inline(always)]
    unsafe fn add(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mut t = self.0;
            for (limb, other) in t.iter_mut().zip(other.0) {
                *limb = _mm512_add_epi64(*limb, other);
            }
            Fp8(carry(t))
        }
    }

    #[inline(always)]
    unsafe fn sub(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8(carry(self.sub_plus(other, &P))) }
    }

    #[inline(always)]
    unsafe fn sub_canonical(&self, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Fp8::canonical_from_estimate(self.sub_plus(other, &P)) }
    }

    #[inline(always)]
    unsafe fn sub_both_canonical(&self, other: &Self, another: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mut t = self.0;
            for (((limb, other), another), &k) in t.iter_mut().zip(other.0).zip(another.0).zip(&P2)
            {
                let difference = _mm512_sub_epi64(_mm512_sub_epi64(*limb, other), another);
                *limb = _mm512_add_epi64(difference, splat(k));
            }
            Fp8::canonical_from_estimate(t)
        }
    }

    unsafe fn inverse_scaled(&self) -> Self {
        // SAFETY: the caller's.
        let mut elements = unsafe { self.canonical().to_blst() };
        invert_scaled(&mut elements);
        // SAFETY: the caller's.
        unsafe { Fp8::from_blst(&elements) }
    }

    #[inline(always)]
    unsafe fn maybe_exceptional(x1: &Self, x2: &Self, difference: &Self) -> bool {
        // SAFETY: the caller's. For x₁ = x₂ the difference is p itself, limb for limb.
        unsafe {
            let equal = _mm512_cmpeq_epi64_mask(difference.0[0], splat(P[0]));
            let zero1 = _mm512_testn_epi64_mask(x1.0[0], x1.0[0]);
            let zero2 = _mm512_testn_epi64_mask(x2.0[0], x2.0[0]);
            (equal | zero1 | zero2) != 0
        }
    }

    #[inline(always)]
    unsafe fn equal(&self, other: &Self) -> u8 {
        // SAFETY: the caller's.
        unsafe {
            let mut equal = 0xff;
            for (a, b) in self.0.iter().zip(&other.0) {
                equal &= _mm512_cmpeq_epi64_mask(*a, *b);
            }
            equal
        }
    }

    #[inline(always)]
    unsafe fn zero(&self) -> u8 {
        // SAFETY: the caller's.
        unsafe {
            let mut any = self.0[0];
            for limb in &self.0[1..] {
                any = _mm512_or_si512(any, *limb);
            }
            _mm512_testn_epi64_mask(any, any)
        }
    }

    #[inline(always)]
    unsafe fn replaced(&self, mask: u8, other: &Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mut t = self.0;
            for (limb, other) in t.iter_mut().zip(other.0) {
                *limb = _mm512_mask_blend_epi64(mask, *limb, other);
            }
            Fp8(t)
        }
    }

    #[inline(always)]
    unsafe fn zeros() -> Self {
        // SAFETY: the caller's.
        Fp8([unsafe { _mm512_setzero_si512() }; 8])
    }
}
