//! Batch addition on AVX-512 IFMA: eight pairs at a time.
//!
//! # Numbers
//!
//! A vector holds one 52-bit limb of eight field elements, a lane each; eight vectors hold eight
//! elements. `vpmadd52luq` and `vpmadd52huq` multiply 52-bit limbs and add the low or high
//! half of the product to a 64-bit accumulator: a product needs no carries until its end.
//!
//! Montgomery multiplication by limbs of 52 bits divides by 2^416; write M(u, v) = u·v/2^416 mod p.
//! Points in memory are `blst`'s: x stands as the integer x·2^384. Converting them would cost
//! as much as the addition saves. Instead the factors are arranged so that all of it works on
//! `blst`'s integers as they are. Let d_i = (x₂ − x₁)_i·2^384 be the denominators of a block.
//!
//! 1. Prefix products: P_0 = d_0, P_i = M(P_{i−1}, d_i).
//! 2. One inversion: T = 2^800/P_last, eight of them, one for each lane ([`Lanes::inverse_scaled`]).
//! 3. Backwards: u_i = M(T, P_{i−1}), then T becomes M(T, d_i). By induction T = 2^800/P_i before
//!    pair i, therefore u_i = 2^800/d_i = 2^416/(x₂ − x₁).
//! 4. M((y₂ − y₁)·2^384, u_i) = λ·2^384: the slope, in `blst`'s form.
//! 5. A product of two elements in that form wants 2^384 divided out, not 2^416. So one of the
//!    factors is shifted left by 32 bits, and p < 2^381 leaves the room: λ' = λ·2^416 as an
//!    unreduced integer below 2^414 serves for both λ² and λ·(x₁ − x₃).
//!
//! # Bounds
//!
//! Every element has limbs in 0 … 2^52 − 1. M(u, v) < p + u·v/2^416, and p/2^384 < 0.102:
//! below 1.0001·p for u, v < 8p, and below p + 0.102·(u/p)·(v/p)·p when u is shifted. In Fp2 two
//! products share a reduction and the negative of a coordinate is its difference from 2p, so
//! with slopes below 1.0001·p: λ² < 1.31p, λ·(x₁ − x₃ + p) < 1.41p, 3x² < 3.93p. Sums and
//! differences stay below 4p by adding p or 2p where a difference could be negative; only results
//! that go to memory are brought below p.

mod fp;
mod fp2;

use blstrs::{G1Affine, G2Affine};

use super::AffinePoint;
use super::batch_add::{BLOCK, BlockAdd};
use crate::avx512;
use fp::Fp8;
use fp2::Fp2x8;

/// Lanes of a vector.
const LANES: usize = 8;

/// Eight elements of a coordinate field.
///
/// # Safety
/// Every method must only be called, and is only compiled to sensible code, inside a function
/// with the target features avx512f and avx512ifma on a processor that has them.
trait Lanes: Copy {
    /// The points with such coordinates.
    type Point: AffinePoint;

    /// The x coordinates of eight points from `points` on, canonical.
    unsafe fn load_x(points: *const Self::Point) -> Self;
    /// The y coordinates of eight points from `points` on, canonical.
    unsafe fn load_y(points: *const Self::Point) -> Self;
    /// Writes eight points; the coordinates must be canonical.
    unsafe fn store(x: &Self, y: &Self, points: *mut Self::Point);

    /// 2^416 mod p: what M leaves alone.
    unsafe fn one() -> Self;
    /// M(self, other), for other ≤ 2p (each coordinate).
    unsafe fn mul(&self, other: &Self) -> Self;
    /// [`Self::mul`] whose limbs are left as they add up: for the two methods that take it.
    unsafe fn mul_uncarried(&self, other: &Self) -> Self;
    /// self·2^32 as an integer, for self < 4p.
    unsafe fn shifted(&self) -> Self;
    /// self + other, which must stay below 4p.
    unsafe fn add(&self, other: &Self) -> Self;
    /// self − other + p, for other ≤ p.
    unsafe fn sub(&self, other: &Self) -> Self;
    /// self − other + p, canonical, for self < 3p, carried or not, and other ≤ p.
    unsafe fn sub_canonical(&self, other: &Self) -> Self;
    /// self − other − another + 2p, canonical, for self < 2p, carried or not, and the others ≤ p.
    unsafe fn sub_both_canonical(&self, other: &Self, another: &Self) -> Self;
    /// 2^800/self in each lane that is not zero mod p, and 0 in the others.
    unsafe fn inverse_scaled(&self) -> Self;

    /// False only if in no lane x₁ = x₂, x₁ = 0 or x₂ = 0; `difference` is x₂ − x₁ + p. Looks at
    /// the lowest limbs alone, so a true answer is wrong with probability 2^−47.
    unsafe fn maybe_exceptional(x1: &Self, x2: &Self, difference: &Self) -> bool;
    /// The lanes in which canonical elements are equal, as bits.
    unsafe fn equal(&self, other: &Self) -> u8;
    /// The lanes in which canonical elements are zero, as bits.
    unsafe fn zero(&self) -> u8;
    /// `other` in the lanes of `mask`, self in the rest.
    unsafe fn replaced(&self, mask: u8, other: &Self) -> Self;
    /// Zero in every lane.
    unsafe fn zeros() -> Self;
}

/// The lanes that the general formula does not fit, as bits; none is in two sets.
#[derive(Clone, Copy, Default)]
struct Exceptions {
    /// Equal points: the slope is 3x²/2y.
    tangent: u8,
    /// The left operand is the identity.
    take_right: u8,
    /// The right operand is the identity.
    keep_left: u8,
    /// Opposite points.
    cancel: u8,
}

impl Exceptions {
    fn any(&self) -> bool {
        (self.tangent | self.take_right | self.keep_left | self.cancel) != 0
    }
}

/// One group of eight pairs between the two passes.
#[derive(Clone, Copy)]
struct Pending<L> {
    /// P_{i−1}.
    prefix: L,
    /// d_i.
    denominator: L,
    x1: L,
    x2: L,
    exceptions: Exceptions,
}

/// Adds blocks of pairs with AVX-512 IFMA.
pub struct IfmaAdder<L> {
    pending: Vec<Pending<L>>,
}

/// The adder for G1.
pub type G1Adder = IfmaAdder<Fp8>;
/// The adder for G2.
pub type G2Adder = IfmaAdder<Fp2x8>;

impl<L> IfmaAdder<L> {
    /// `None` where the processor lacks the instructions.
    pub fn new() -> Option<Self> {
        avx512::supported().then(|| IfmaAdder {
            pending: Vec::with_capacity(BLOCK / LANES),
        })
    }
}

impl BlockAdd<G1Affine> for G1Adder {
    fn add_block(&mut self, left: &mut [G1Affine], right: &[G1Affine]) {
        // SAFETY: an adder exists only where the features do (`new`).
        unsafe { add_block(&mut self.pending, left, right) }
    }
}

impl BlockAdd<G2Affine> for G2Adder {
    fn add_block(&mut self, left: &mut [G2Affine], right: &[G2Affine]) {
        // SAFETY: an adder exists only where the features do (`new`).
        unsafe { add_block(&mut self.pending, left, right) }
    }
}

/// Adds in groups of eight; the last group is filled up with identities on the side.
///
/// Every step of an addition waits for the one before. So two groups go side by side, each with
/// its own chain of prefix products, and one fills the other's waiting times.
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_block<L: Lanes>(pending: &mut Vec<Pending<L>>, left: &mut [L::Point], right: &[L::Point]) {
    assert_eq!(left.len(), right.len(), "pairs of points");
    let (whole, rest) = left.as_chunks_mut::<LANES>();
    let (whole_right, rest_right) = right.as_chunks::<LANES>();
    let identity = <L::Point as group::prime::PrimeCurveAffine>::identity();
    let mut last = [identity; LANES];
    let mut last_right = [identity; LANES];
    last[..rest.len()].copy_from_slice(rest);
    last_right[..rest.len()].copy_from_slice(rest_right);
    let (pairs, single) = whole.as_chunks_mut::<2>();
    let (pairs_right, single_right) = whole_right.as_chunks::<2>();

    pending.clear();
    // SAFETY: the features are those of this function.
    unsafe {
        let mut products = [L::one(); 2];
        for (left, right) in pairs.iter().zip(pairs_right) {
            for (product, (left, right)) in products.iter_mut().zip(left.iter().zip(right)) {
                first_pass(pending, product, left, right);
            }
        }
        if let ([left], [right]) = (&*single, single_right) {
            first_pass(pending, &mut products[0], left, right);
        }
        if !rest.is_empty() {
            first_pass(pending, &mut products[1], &last, &last_right);
        }

        // 2^800/(M(P, P')) = 2^1216/(P·P'), and M of that with P' is 2^800/P.
        let [mut even, mut odd] = products;
        let both = even.mul(&odd).inverse_scaled();
        (even, odd) = (both.mul(&odd), both.mul(&even));

        let (paired, others) = pending.split_at(2 * pairs.len());
        if let (false, [.., group]) = (rest.is_empty(), others) {
            second_pass([group], [&mut odd], [&mut last], [&last_right]);
        }
        if let ([left], [right], [group, ..]) = (single, single_right, others) {
            second_pass([group], [&mut even], [left], [right]);
        }
        let paired = paired.as_chunks::<2>().0;
        for ((left, right), group) in pairs.iter_mut().zip(pairs_right).zip(paired).rev() {
            let ([left0, left1], [right0, right1]) = (left, right);
            second_pass(
                [&group[0], &group[1]],
                [&mut even, &mut odd],
                [left0, left1],
                [right0, right1],
            );
        }
    }
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Notes the product so far and the exceptions, and multiplies the product by this group.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn first_pass<L: Lanes>(
    pending: &mut Vec<Pending<L>>,
    product: &mut L,
    left: &[L::Point; LANES],
    right: &[L::Point; LANES],
) {
    // SAFETY: the features are those of this function; both pointers are to eight points.
    unsafe {
        let (x1, x2) = (L::load_x(left.as_ptr()), L::load_x(right.as_ptr()));
        let mut denominator = x2.sub(&x1);
        let mut exceptions = Exceptions::default();
        // The identity has x = 0; so have two points of each curve, which `classify` knows.
        if L::maybe_exceptional(&x1, &x2, &denominator) {
            let (y1, y2) = (L::load_y(left.as_ptr()), L::load_y(right.as_ptr()));
            exceptions = classify(&x1, &y1, &x2, &y2);
            denominator = denominator.replaced(exceptions.tangent, &y1.add(&y1));
            let skipped = exceptions.take_right | exceptions.keep_left | exceptions.cancel;
            denominator = denominator.replaced(skipped, &L::one());
        }
        pending.push(Pending {
            prefix: *product,
            denominator,
            x1,
            x2,
            exceptions,
        });
        *product = product.mul(&denominator);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn classify<L: Lanes>(x1: &L, y1: &L, x2: &L, y2: &L) -> Exceptions {
    // SAFETY: the features are those of this function.
    unsafe {
        let left_identity = x1.zero() & y1.zero();
        let right_identity = x2.zero() & y2.zero();
        let finite = !(left_identity | right_identity);
        let same_x = x1.equal(x2) & finite;
        // y = 0 occurs on neither curve (both orders are odd), so 2y is invertible.
        let tangent = same_x & y1.equal(y2);
        Exceptions {
            tangent,
            take_right: left_identity,
            keep_left: right_identity & !left_identity,
            cancel: same_x & !tangent,
        }
    }
}

/// left += right for N independent groups, given the T of each, which becomes that of the group
/// before in the same chain.
// Clippy wants the arrays of exclusive references by reference, one more indirection.
#[allow(clippy::needless_pass_by_value)]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn second_pass<L: Lanes, const N: usize>(
    groups: [&Pending<L>; N],
    inverses: [&mut L; N],
    left: [&mut [L::Point; LANES]; N],
    right: [&[L::Point; LANES]; N],
) {
    // SAFETY: the features are those of this function; the pointers are to eight points each.
    unsafe {
        let mut slopes = [L::zeros(); N];
        for i in 0..N {
            slopes[i] = inverses[i].mul(&groups[i].prefix);
            *inverses[i] = inverses[i].mul(&groups[i].denominator);
        }
        let mut y1 = [L::zeros(); N];
        for i in 0..N {
            y1[i] = L::load_y(left[i].as_ptr());
            let mut numerator = L::load_y(right[i].as_ptr()).sub(&y1[i]);
            let tangent = groups[i].exceptions.tangent;
            if tangent != 0 {
                let square = groups[i].x1.shifted().mul(&groups[i].x1);
                numerator = numerator.replaced(tangent, &square.add(&square).add(&square));
            }
            slopes[i] = numerator.mul(&slopes[i]);
        }
        let mut x3 = [L::zeros(); N];
        let mut shifted = [L::zeros(); N];
        for i in 0..N {
            shifted[i] = slopes[i].shifted();
            let square = shifted[i].mul_uncarried(&slopes[i]);
            x3[i] = square.sub_both_canonical(&groups[i].x1, &groups[i].x2);
        }
        for i in 0..N {
            let product = shifted[i].mul_uncarried(&groups[i].x1.sub(&x3[i]));
            let mut y3 = product.sub_canonical(&y1[i]);
            if groups[i].exceptions.any() {
                let y2 = L::load_y(right[i].as_ptr());
                replace_exceptions(groups[i], &y1[i], &y2, &mut x3[i], &mut y3);
            }
            L::store(&x3[i], &y3, left[i].as_mut_ptr());
        }
    }
}

/// Puts the results of the lanes that are copies or the identity.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn replace_exceptions<L: Lanes>(group: &Pending<L>, y1: &L, y2: &L, x3: &mut L, y3: &mut L) {
    let exceptions = &group.exceptions;
    // SAFETY: the features are those of this function.
    unsafe {
        *x3 = x3.replaced(exceptions.take_right, &group.x2);
        *y3 = y3.replaced(exceptions.take_right, y2);
        *x3 = x3.replaced(exceptions.keep_left, &group.x1);
        *y3 = y3.replaced(exceptions.keep_left, y1);
        *x3 = x3.replaced(exceptions.cancel, &L::zeros());
        *y3 = y3.replaced(exceptions.cancel, &L::zeros());
    }
}
