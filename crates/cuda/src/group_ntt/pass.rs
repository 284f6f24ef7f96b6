//! The passes of a transform, and the kernels' parameters.

use crate::device::Params;

/// `Butterflies` of `kernels/group_ntt/pass.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Butterflies {
    pub first: u32,
    pub count: u32,
    pub log_m: u32,
    pub log_radix: u32,
}

/// A pass: joins blocks of 2^`log_m` points to blocks of 2^(`log_m` + `log_radix`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub log_m: u32,
    pub log_radix: u32,
    /// Whether it is the last one, which multiplies by the scale.
    pub last: bool,
}

impl Pass {
    /// Those of a transform of 2^`log_size` points.
    pub fn all(log_size: u32) -> impl Iterator<Item = Pass> {
        let first = log_size % 2;
        let two = (first == 1).then_some((0, 1));
        let fours = (first..log_size).step_by(2).map(|log_m| (log_m, 2));
        two.into_iter()
            .chain(fours)
            .map(move |(log_m, log_radix)| Pass {
                log_m,
                log_radix,
                last: log_m + log_radix == log_size,
            })
    }

    /// The first point of each butterfly that has a twiddle other than 1 on some coset or with some
    /// scale; `None` if none has.
    pub fn first_multiplied(self, coset: bool) -> Option<u32> {
        match (self.last, self.log_m == 0 && !coset) {
            (true, _) => Some(0),
            (false, true) => None,
            (false, false) => Some(1),
        }
    }

    /// Points of a butterfly.
    pub fn radix(self) -> u32 {
        1 << self.log_radix
    }
}

/// `PermuteParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PermuteParams {
    pub source: u64,
    pub result: u64,
    pub bits: u32,
    pub _end: u32,
}

/// `TableParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TableParams {
    pub points: u64,
    pub table: u64,
    pub kept: u64,
    pub butterflies: Butterflies,
    pub first_quarter: u32,
    pub len: u32,
}

/// `TwiddleParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TwiddleParams {
    pub points: u64,
    pub table: u64,
    pub kept: u64,
    pub low: u64,
    pub high: u64,
    pub butterflies: Butterflies,
    pub first_quarter: u32,
    pub len: u32,
    pub low_bits: u32,
    pub step: u32,
    pub coset: u32,
    pub scaled: u32,
    pub scale: [u32; 8],
}

/// `RotateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RotateParams {
    pub points: u64,
    pub rotated: u64,
    pub kept: u64,
    pub butterflies: Butterflies,
    pub negative: u32,
    pub _end: u32,
}

/// `CombineParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CombineParams {
    pub points: u64,
    pub rotated: u64,
    pub result: u64,
    pub kept: u64,
    pub butterflies: Butterflies,
}

// SAFETY: laid out as the C++ structs.
unsafe impl Params for PermuteParams {}
// SAFETY: as above.
unsafe impl Params for TableParams {}
// SAFETY: as above.
unsafe impl Params for TwiddleParams {}
// SAFETY: as above.
unsafe impl Params for RotateParams {}
// SAFETY: as above.
unsafe impl Params for CombineParams {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_join_all_blocks() {
        assert_eq!(Pass::all(0).count(), 0);
        for log_size in 1..=28 {
            let mut log_m = 0;
            for pass in Pass::all(log_size) {
                assert_eq!(pass.log_m, log_m);
                log_m += pass.log_radix;
                assert_eq!(pass.last, log_m == log_size);
            }
            assert_eq!(log_m, log_size);
        }
    }
}
