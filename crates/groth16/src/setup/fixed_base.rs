//! Multiples of one base point by many scalars: a table for each window of the scalar's bits,
//! and one affine addition per window and scalar, batched over the scalars.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use group::{Curve, Group};
use rayon::prelude::*;

use crate::curve::{AffinePoint, BatchAdder, Pick};

/// Bits of half the group's order: every scalar is ± one of at most (r − 1)/2 < 2^254. One
/// more so that the last window's signed digit never carries.
const BITS: u32 = 255;
/// Widest window: 15 tables of 2^16 points, 94 MB in G1, 189 MB in G2. A wider one saves
/// fewer additions than its larger table costs in cache misses.
const MAX_WIDTH: u32 = 17;

/// Tables of one base: `tables[w][d]` = d · 2^(w·width) · base for d = 0 … 2^(width−1).
pub(crate) struct FixedBase<P> {
    width: u32,
    tables: Vec<Vec<P>>,
}

impl<P: AffinePoint> FixedBase<P> {
    /// Tables suited to `count` multiplications, built on all threads.
    pub fn new(base: P, count: usize) -> Self {
        Self::with_width(base, best_width(count))
    }

    fn with_width(base: P, width: u32) -> Self {
        let mut unit = base.to_curve();
        let units: Vec<P> = (0..windows(width))
            .map(|_| {
                let this = unit.to_affine();
                for _ in 0..width {
                    unit = unit.double();
                }
                this
            })
            .collect();
        let tables = units
            .into_par_iter()
            .map(|unit| multiples_of(unit, 1 << (width - 1)))
            .collect();
        FixedBase { width, tables }
    }
}

/// 0, 1, 2, …, `last` times `unit`; `last` is a power of two.
fn multiples_of<P: AffinePoint>(unit: P, last: usize) -> Vec<P> {
    let mut adder = BatchAdder::new();
    let mut table = Vec::with_capacity(last + 1);
    table.extend([P::identity(), unit]);
    while table.len() <= last {
        // The multiples after the k-th are the first k, each plus the k-th.
        let k = table.len() - 1;
        let shift = vec![table[k]; k];
        table.extend_from_within(1..);
        adder.add_assign(&mut table[k + 1..], &shift);
    }
    table
}

fn windows(width: u32) -> u32 {
    BITS.div_ceil(width)
}

/// The width that needs the fewest additions, those for the tables included.
fn best_width(count: usize) -> u32 {
    let additions = |width: &u32| {
        let tables = 1usize << (width - 1);
        windows(*width) as usize * (count + tables)
    };
    (2..=MAX_WIDTH)
        .min_by_key(additions)
        .expect("invariant: the range is not empty")
}

/// One thread's work space for multiplications with a [`FixedBase`].
pub(crate) struct Multiplier<'t, P> {
    base: &'t FixedBase<P>,
    adder: BatchAdder<P>,
    /// Window after window, the table entry of each scalar.
    picks: Vec<Pick>,
}

impl<'t, P: AffinePoint> Multiplier<'t, P> {
    pub fn new(base: &'t FixedBase<P>) -> Self {
        Multiplier {
            base,
            adder: BatchAdder::new(),
            picks: Vec::new(),
        }
    }

    /// out[i] = scalars[i] · base.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn multiply(&mut self, scalars: &[Scalar], out: &mut [P]) {
        assert_eq!(scalars.len(), out.len(), "one result for each scalar");
        let count = scalars.len();
        self.picks.clear();
        self.picks
            .resize(count * self.base.tables.len(), Pick::new(0, false));
        for (i, scalar) in scalars.iter().enumerate() {
            write_digits(
                scalar,
                self.base.width,
                self.picks[i..].iter_mut().step_by(count),
            );
        }
        out.fill(P::identity());
        for (table, picks) in self.base.tables.iter().zip(self.picks.chunks(count.max(1))) {
            self.adder.add_picks(out, table, picks);
        }
    }
}

/// Writes the signed digits of `scalar`, least significant first: scalar = Σ d_w · 2^(w·width)
/// mod r with |d_w| ≤ 2^(width−1), to as many places as there are windows.
fn write_digits<'p>(scalar: &Scalar, width: u32, places: impl Iterator<Item = &'p mut Pick>) {
    let mut limbs = limbs(scalar);
    let negated = limbs_of_negative(scalar);
    // The smaller of s and r − s has at most 254 bits.
    let flip = is_less(&negated, &limbs);
    if flip {
        limbs = negated;
    }
    let half = 1u64 << (width - 1);
    let mask = (1u64 << width) - 1;
    let mut carry = 0;
    for (w, place) in places.enumerate() {
        let raw = bits_at(&limbs, w as u32 * width) & mask;
        let digit = raw + carry;
        // Digits above half become negative: digit − 2^width, and the next one is one larger.
        carry = u64::from(digit > half);
        let magnitude = if carry == 1 {
            (mask + 1) - digit
        } else {
            digit
        };
        *place = Pick::new(magnitude as usize, (carry == 1) != flip);
    }
    debug_assert_eq!(carry, 0, "254 bits and a signed digit fit the windows");
}

/// The scalar in canonical form, little-endian.
fn limbs(scalar: &Scalar) -> [u64; 4] {
    let bytes = scalar.to_repr();
    let mut limbs = [0; 4];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(bytes.try_into().expect("invariant: chunks of eight bytes"));
    }
    limbs
}

fn limbs_of_negative(scalar: &Scalar) -> [u64; 4] {
    if scalar.is_zero().into() {
        [0; 4]
    } else {
        limbs(&-scalar)
    }
}

fn is_less(left: &[u64; 4], right: &[u64; 4]) -> bool {
    left.iter().rev().lt(right.iter().rev())
}

/// The 64 bits from `start` on; zeros beyond the end.
fn bits_at(limbs: &[u64; 4], start: u32) -> u64 {
    let (index, shift) = ((start / 64) as usize, start % 64);
    let low = limbs.get(index).map_or(0, |limb| limb >> shift);
    let high = limbs
        .get(index + 1)
        .map_or(0, |limb| limb << 1 << (63 - shift));
    low | high
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::{G1Affine, G2Affine};
    use group::prime::PrimeCurveAffine;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// Random scalars, and those at the edges of digits, limbs and the sign.
    fn scalars() -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let half = (-Scalar::ONE) * Scalar::from(2).invert().unwrap();
        let mut scalars = vec![
            Scalar::ZERO,
            Scalar::ONE,
            -Scalar::ONE,
            half,
            half + Scalar::ONE,
            half - Scalar::ONE,
        ];
        for bit in 0..255 {
            let power = Scalar::from(2).pow_vartime([bit]);
            scalars.extend([power, power - Scalar::ONE, -power]);
        }
        scalars.extend((0..500).map(|_| Scalar::random(&mut rng)));
        scalars
    }

    fn multiplies_as_blst<P: AffinePoint>(width: u32) {
        let scalars = scalars();
        let base = (P::generator() * Scalar::from(77)).to_affine();
        let table = FixedBase::with_width(base, width);
        let mut out = vec![P::identity(); scalars.len()];
        Multiplier::new(&table).multiply(&scalars, &mut out);
        for (scalar, point) in scalars.iter().zip(&out) {
            assert_eq!(
                *point,
                (base * scalar).to_affine(),
                "{scalar:?}, width {width}"
            );
        }
    }

    #[test]
    fn g1_multiples_agree_with_blst_for_every_width() {
        for width in 2..=MAX_WIDTH {
            multiplies_as_blst::<G1Affine>(width);
        }
    }

    #[test]
    fn g2_multiples_agree_with_blst() {
        for width in [2, 5, 8, 17] {
            multiplies_as_blst::<G2Affine>(width);
        }
    }

    #[test]
    fn widths_grow_with_the_count() {
        assert_eq!(best_width(0), 2);
        assert!(best_width(100) < best_width(10_000));
        assert_eq!(best_width(10_000_000), 17);
    }

    #[test]
    fn nothing_is_multiplied_for_no_scalars() {
        let table = FixedBase::new(G1Affine::generator(), 0);
        Multiplier::new(&table).multiply(&[], &mut []);
    }
}
