//! Batch addition on `blst`'s field arithmetic, one pair at a time.

mod field;

pub use field::Field;

use super::AffinePoint;
use super::batch_add::{BLOCK, BlockAdd};

/// What becomes of a pair.
#[derive(Clone, Copy)]
enum Case {
    /// Neither operand is the identity, and the x differ: the general formula.
    Chord,
    /// The same point twice: the slope is 3x²/2y.
    Tangent,
    /// The left operand is the identity.
    TakeRight,
    /// The right operand is the identity.
    KeepLeft,
    /// A point and its negative.
    Cancel,
}

/// Adds blocks of pairs on any processor.
pub struct PortableAdder<P: AffinePoint> {
    /// For every pair: its case, and the product of the denominators before it.
    prefixes: Vec<(Case, P::Base)>,
}

impl<P: AffinePoint> PortableAdder<P> {
    pub fn new() -> Self {
        PortableAdder {
            prefixes: Vec::with_capacity(BLOCK),
        }
    }
}

impl<P: AffinePoint> BlockAdd<P> for PortableAdder<P> {
    fn add_block(&mut self, left: &mut [P], right: &[P]) {
        debug_assert_eq!(left.len(), right.len());
        self.prefixes.clear();
        let mut product = P::Base::one();
        for (left, right) in left.iter().zip(right) {
            let (case, denominator) = classify(left, right);
            self.prefixes.push((case, product));
            if let Some(denominator) = denominator {
                product = product.mul(&denominator);
            }
        }

        // Backwards: `inverse` is that of the product of all denominators up to this pair.
        let mut inverse = product.inverse();
        for ((left, right), (case, prefix)) in left.iter_mut().zip(right).zip(&self.prefixes).rev()
        {
            let (x1, y1) = left.coordinates();
            let (x2, y2) = right.coordinates();
            let (numerator, denominator) = match case {
                Case::Chord => (y2.sub(&y1), x2.sub(&x1)),
                Case::Tangent => {
                    let square = x1.square();
                    (square.add(&square).add(&square), y1.add(&y1))
                }
                Case::TakeRight => {
                    *left = *right;
                    continue;
                }
                Case::KeepLeft => continue,
                Case::Cancel => {
                    *left = P::identity();
                    continue;
                }
            };
            let slope = numerator.mul(&inverse.mul(prefix));
            inverse = inverse.mul(&denominator);
            let x3 = slope.square().sub(&x1).sub(&x2);
            let y3 = slope.mul(&x1.sub(&x3)).sub(&y1);
            *left = P::from_coordinates(x3, y3);
        }
    }
}

/// The case of a pair, and what its slope has to be divided by.
fn classify<P: AffinePoint>(left: &P, right: &P) -> (Case, Option<P::Base>) {
    if bool::from(left.is_identity()) {
        return (Case::TakeRight, None);
    }
    if bool::from(right.is_identity()) {
        return (Case::KeepLeft, None);
    }
    let (x1, y1) = left.coordinates();
    let (x2, y2) = right.coordinates();
    if x1 != x2 {
        return (Case::Chord, Some(x2.sub(&x1)));
    }
    // Neither curve has points with y = 0 (both orders are odd), so 2y is invertible.
    if y1 == y2 {
        (Case::Tangent, Some(y1.add(&y1)))
    } else {
        (Case::Cancel, None)
    }
}
