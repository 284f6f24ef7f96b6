//! Coefficients as short sums of signed powers of two.

use ff::PrimeField;
use r1cs::Fr;

/// ±2^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// 0 to 255.
    pub exponent: u32,
    /// Whether it is subtracted.
    pub negative: bool,
}

/// Most digits of a coefficient in a packed row. A packed sum's coefficients are powers of two;
/// a variable that occurs twice in it has the sum of two.
pub const MOST_DIGITS: usize = 4;

/// The non-adjacent form of x, or that of r − x with the signs turned if that is shorter: at
/// most [`MOST_DIGITS`] digits which sum up to x modulo r, or `None`.
pub fn signed_digits(x: &Fr) -> Option<Vec<Digit>> {
    let positive = non_adjacent(x);
    let negative = non_adjacent(&-x).map(|digits| {
        let turned = digits.into_iter().map(|digit| Digit {
            negative: !digit.negative,
            ..digit
        });
        turned.collect::<Vec<_>>()
    });
    match (positive, negative) {
        (Some(p), Some(n)) if n.len() < p.len() => Some(n),
        (Some(digits), _) | (None, Some(digits)) => Some(digits),
        (None, None) => None,
    }
}

/// Digits by the textbook: x odd gives the digit 2 − (x mod 4), which leaves an even rest.
fn non_adjacent(x: &Fr) -> Option<Vec<Digit>> {
    let mut rest = limbs(x);
    let mut digits = Vec::new();
    let mut exponent = 0;
    while rest != [0; 4] {
        if rest[0] & 1 == 1 {
            if digits.len() == MOST_DIGITS {
                return None;
            }
            let negative = rest[0] & 3 == 3;
            digits.push(Digit { exponent, negative });
            if negative {
                // x < 2^255, so x + 1 has no carry out.
                add_power(&mut rest, 0);
            } else {
                rest[0] -= 1;
            }
        }
        for k in 0..4 {
            let above = rest.get(k + 1).map_or(0, |limb| limb << 63);
            rest[k] = rest[k] >> 1 | above;
        }
        exponent += 1;
    }
    Some(digits)
}

/// A sum of powers of two that stays below 2^256.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total([u64; 4]);

impl Total {
    /// Adds 2^exponent; false where the sum would reach 2^256.
    #[must_use]
    pub fn add(&mut self, exponent: u32) -> bool {
        add_power(&mut self.0, exponent)
    }
}

fn add_power(limbs: &mut [u64; 4], exponent: u32) -> bool {
    let mut term = 1u64 << (exponent % 64);
    for limb in &mut limbs[exponent as usize / 64..] {
        let (sum, carry) = limb.overflowing_add(term);
        *limb = sum;
        if !carry {
            return true;
        }
        term = 1;
    }
    false
}

/// The canonical value, lowest limb first.
fn limbs(x: &Fr) -> [u64; 4] {
    let bytes = x.to_repr();
    let mut limbs = [0; 4];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(bytes.try_into().expect("chunks of 8"));
    }
    limbs
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use proptest::prelude::*;

    use super::*;

    fn value(digits: &[Digit]) -> Fr {
        digits.iter().fold(Fr::ZERO, |sum, digit| {
            let power = Fr::from(2).pow_vartime([u64::from(digit.exponent)]);
            if digit.negative {
                sum - power
            } else {
                sum + power
            }
        })
    }

    proptest! {
        #[test]
        fn digits_sum_up(
            terms in prop::collection::vec((0..256u32, any::<bool>()), 0..6),
        ) {
            let terms: Vec<Digit> = terms
                .into_iter()
                .map(|(exponent, negative)| Digit { exponent, negative })
                .collect();
            let x = value(&terms);
            match signed_digits(&x) {
                Some(digits) => prop_assert_eq!(value(&digits), x),
                // The non-adjacent form has the fewest digits; 2^255 is not below r.
                None => prop_assert!(
                    terms.len() > MOST_DIGITS || terms.iter().any(|t| t.exponent > 253)
                ),
            }
        }
    }

    #[test]
    fn edges() {
        assert_eq!(signed_digits(&Fr::ZERO), Some(vec![]));
        for exponent in 0..255 {
            let power = Fr::from(2).pow_vartime([u64::from(exponent)]);
            let digit = |negative| Some(vec![Digit { exponent, negative }]);
            assert_eq!(signed_digits(&power), digit(false));
            assert_eq!(signed_digits(&-power), digit(true));
        }
        assert_eq!(signed_digits(&Fr::from(0x5555_5555)), None);
    }

    #[test]
    fn totals_end_below_2_to_the_256() {
        let mut total = Total::default();
        for exponent in (0..256).rev() {
            assert!(total.add(exponent));
        }
        assert!(!total.add(0));
    }
}
