//! Scalars and selections whose sums are known in advance, for tests and measurements: over the
//! bases (i + 1)·P of a [`Progression`](super::Progression) a sum is (Σ s_i (i + 1))·P.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::device::{DeviceSlice, Stream};
use crate::error::Result;

/// What the scalars of a sum are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// Below r, all alike.
    Uniform,
    /// All the same one.
    AllEqual,
    /// Half zeros, half ones.
    Bits,
    /// Nine of ten are 0 or 1, the others uniform.
    MostlyBits,
    /// Fifteen of sixteen are 0, the others uniform.
    MostlyZero,
    /// All r − 1.
    MinusOne,
    /// Below 2^32.
    Short,
}

impl ScalarKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Uniform,
        Self::AllEqual,
        Self::Bits,
        Self::MostlyBits,
        Self::MostlyZero,
        Self::MinusOne,
        Self::Short,
    ];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::AllEqual => "all equal",
            Self::Bits => "0 or 1",
            Self::MostlyBits => "9/10 bits",
            Self::MostlyZero => "15/16 zero",
            Self::MinusOne => "all -1",
            Self::Short => "32-bit",
        }
    }

    /// Scalar `index`, canonical, in limbs from the lowest.
    pub fn scalar(self, index: u64) -> [u64; 4] {
        match self {
            Self::AllEqual => uniform(0),
            Self::Bits => [word(index, 0) & 1, 0, 0, 0],
            Self::MostlyBits if !index.is_multiple_of(10) => [word(index, 0) & 1, 0, 0, 0],
            Self::MostlyZero if !index.is_multiple_of(16) => [0; 4],
            Self::Uniform | Self::MostlyBits | Self::MostlyZero => uniform(index),
            Self::MinusOne => [ORDER[0] - 1, ORDER[1], ORDER[2], ORDER[3]],
            Self::Short => [word(index, 0) >> 32, 0, 0, 0],
        }
    }

    /// Fills `scalars` with the scalars 0, 1, 2 … and gives Σ s_i (i + 1).
    ///
    /// # Errors
    /// A driver that fails.
    pub fn upload(self, stream: &Stream, scalars: DeviceSlice<[u64; 4]>) -> Result<Scalar> {
        // 128 MiB at a time.
        const PIECE: usize = 1 << 22;
        let mut logarithm = Scalar::ZERO;
        for start in (0..scalars.len()).step_by(PIECE) {
            let end = (start + PIECE).min(scalars.len());
            let values: Vec<[u64; 4]> = (start as u64..end as u64)
                .into_par_iter()
                .map(|i| self.scalar(i))
                .collect();
            stream.upload(scalars.slice(start..end), &values)?;
            logarithm += weighted_sum(start as u64 + 1, &values);
        }
        Ok(logarithm)
    }
}

/// A pseudo-random word for each index and place (below 64).
pub fn word(index: u64, place: u64) -> u64 {
    let mut z = (index * 64 + place)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x1234_5678);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Limbs of r, from the lowest.
const ORDER: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// The first of a few candidates that is below r.
fn uniform(index: u64) -> [u64; 4] {
    let candidate = |attempt: u64| {
        let limb = |i| word(index, 4 * attempt + i);
        [limb(0), limb(1), limb(2), limb(3) >> 1]
    };
    let below_order = |limbs: &[u64; 4]| limbs.iter().rev().lt(ORDER.iter().rev());
    (0..16).map(candidate).find(below_order).unwrap_or_default()
}

/// Σ s_i (first + i), in the scalar field. Sums of limbs times factors below 2^32 fit in 128 bits for
/// fewer than 2^32 scalars.
fn weighted_sum(first: u64, scalars: &[[u64; 4]]) -> Scalar {
    let sums = scalars
        .par_iter()
        .enumerate()
        .fold(
            || [0u128; 4],
            |mut sums, (i, scalar)| {
                let factor = u128::from(first) + i as u128;
                for (sum, &limb) in sums.iter_mut().zip(scalar) {
                    *sum += factor * u128::from(limb);
                }
                sums
            },
        )
        .reduce(|| [0; 4], |x, y| std::array::from_fn(|i| x[i] + y[i]));
    let shift = Scalar::from(1 << 32).square();
    sums.iter()
        .rev()
        .fold(Scalar::ZERO, |value, &sum| value * shift + wide(sum))
}

/// `value` in the scalar field.
fn wide(value: u128) -> Scalar {
    let shift = Scalar::from(1 << 32).square();
    Scalar::from((value >> 64) as u64) * shift + Scalar::from(value as u64)
}

/// Σ (point + 1) over the points that `ones` selects, where the variables of `mask` have points, in
/// order; without a mask all have.
pub fn selected_sum(ones: &[u64], mask: Option<&[u64]>) -> Scalar {
    let (mut sum, mut points_before) = (0u128, 0u128);
    for (w, &ones) in ones.iter().enumerate() {
        let present = mask.map_or(u64::MAX, |mask| mask[w]);
        let mut selected = ones & present;
        while selected != 0 {
            let below = (1u64 << selected.trailing_zeros()) - 1;
            sum += points_before + u128::from((present & below).count_ones()) + 1;
            selected &= selected - 1;
        }
        points_before += u128::from(present.count_ones());
    }
    wide(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From limbs, by the field's own arithmetic.
    fn value(limbs: [u64; 4]) -> Scalar {
        let shift = Scalar::from(1 << 32).square();
        let add = |value, &limb: &u64| value * shift + Scalar::from(limb);
        limbs.iter().rev().fold(Scalar::ZERO, add)
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        for kind in ScalarKind::ALL {
            let scalars: Vec<[u64; 4]> = (0..1000).map(|i| kind.scalar(i)).collect();
            let factors = (7u64..).map(Scalar::from);
            let expected: Scalar = scalars
                .iter()
                .zip(factors)
                .map(|(s, f)| value(*s) * f)
                .sum();
            assert_eq!(weighted_sum(7, &scalars), expected, "{}", kind.name());
        }
        assert_eq!(value(ScalarKind::MinusOne.scalar(3)), -Scalar::ONE);
        assert_eq!(wide(u128::MAX), Scalar::from(2).pow([128]) - Scalar::ONE);
    }

    #[test]
    fn selections_count_present_points() {
        assert_eq!(
            selected_sum(&[0b1011, 1], None),
            Scalar::from(1 + 2 + 4 + 65)
        );
        // Variables 1, 3 and 64 have the points 0, 1 and 2.
        let mask = [0b1010, 1];
        assert_eq!(selected_sum(&[0b1001, 1], Some(&mask)), Scalar::from(2 + 3));
    }
}
