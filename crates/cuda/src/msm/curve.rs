//! What the sums need to know of a group.

use std::fmt;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use ff::Field;
use group::Group;

use crate::device::Pod;

/// A group that sums are taken in.
pub trait SumCurve: Copy + fmt::Debug + Send + Sync + 'static {
    /// A point on the device: (x, y), Montgomery, fully reduced; infinity is zero bytes.
    type Affine: Pod + Default + fmt::Debug;
    /// A point on the host.
    type Projective: Group;

    /// Its name in tables.
    const NAME: &'static str;
    /// The kernels.
    const KERNELS: KernelNames;
    /// Blocks of a fold kernel on a multiprocessor, as in the kernels' launch bounds.
    const FOLD_BLOCKS: u32;
    /// 32-bit multiplications of an affine addition, five products and a square, in the unit of
    /// [`crate::rates`]; the inversion that many of them share is not counted.
    const ADDITION_MULTIPLICATIONS: f64;
    /// Additions a millisecond in long rounds, for the cost model (H200).
    const ADDITIONS_PER_MS: f64;
    /// Milliseconds of a round too short to fill the device: mostly one inversion's latency.
    const ROUND_MS: f64;

    /// The point (X/ZZ, Y/ZZZ), given as (X, Y) and (ZZ, ZZZ); infinity has ZZ = 0.
    fn from_xyzz(xyzz: [Self::Affine; 2]) -> Self::Projective;
}

/// Names of a group's kernels in the topic `msm`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct KernelNames {
    pub copy_singles: &'static str,
    pub fold_bases: &'static str,
    pub fold_slots: &'static str,
    pub fold_buckets: &'static str,
    pub fold_grid: &'static str,
    pub fold_selected: &'static str,
    pub fold_halves: &'static str,
    pub sum_lines: &'static str,
    pub sum_bits: &'static str,
    pub sum_points: &'static str,
    pub multiples: &'static str,
    pub reduce_points: &'static str,
}

macro_rules! kernel_names {
    ($curve:literal) => {
        KernelNames {
            copy_singles: concat!("msm_copy_singles_", $curve, "_kernel"),
            fold_bases: concat!("msm_fold_bases_", $curve, "_kernel"),
            fold_slots: concat!("msm_fold_slots_", $curve, "_kernel"),
            fold_buckets: concat!("msm_fold_buckets_", $curve, "_kernel"),
            fold_grid: concat!("msm_fold_grid_", $curve, "_kernel"),
            fold_selected: concat!("msm_fold_selected_", $curve, "_kernel"),
            fold_halves: concat!("msm_fold_halves_", $curve, "_kernel"),
            sum_lines: concat!("msm_sum_lines_", $curve, "_kernel"),
            sum_bits: concat!("msm_sum_bits_", $curve, "_kernel"),
            sum_points: concat!("msm_sum_points_", $curve, "_kernel"),
            multiples: concat!("msm_multiples_", $curve, "_kernel"),
            reduce_points: concat!("msm_reduce_points_", $curve, "_kernel"),
        }
    };
}

/// The group G1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G1;

/// The group G2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G2;

// X/ZZ = X·ZZ²/ZZZ² and Y/ZZZ = Y·ZZZ²/ZZZ³, since ZZ³ = ZZZ²: Jacobian coordinates with Z = ZZZ.
macro_rules! from_xyzz {
    ($projective:ty, $xyzz:expr) => {{
        let [xy, zz] = $xyzz;
        let (zz, zzz) = (zz.x(), zz.y());
        <$projective>::from_raw_unchecked(xy.x() * zz.square(), xy.y() * zzz.square(), zzz)
    }};
}

impl SumCurve for G1 {
    type Affine = G1Affine;
    type Projective = G1Projective;

    const NAME: &'static str = "G1";
    const KERNELS: KernelNames = kernel_names!("g1");
    const FOLD_BLOCKS: u32 = 4;
    const ADDITION_MULTIPLICATIONS: f64 = 5.0 * 294.0 + 228.5;
    const ADDITIONS_PER_MS: f64 = 3.66e6;
    const ROUND_MS: f64 = 0.05;

    fn from_xyzz(xyzz: [G1Affine; 2]) -> G1Projective {
        from_xyzz!(G1Projective, xyzz)
    }
}

impl SumCurve for G2 {
    type Affine = G2Affine;
    type Projective = G2Projective;

    const NAME: &'static str = "G2";
    const KERNELS: KernelNames = kernel_names!("g2");
    const FOLD_BLOCKS: u32 = 2;
    const ADDITION_MULTIPLICATIONS: f64 = 5.0 * 733.5 + 588.0;
    // Three products of Fp for one of Fp2; not yet measured.
    const ADDITIONS_PER_MS: f64 = 1.2e6;
    const ROUND_MS: f64 = 0.06;

    fn from_xyzz(xyzz: [G2Affine; 2]) -> G2Projective {
        from_xyzz!(G2Projective, xyzz)
    }
}
