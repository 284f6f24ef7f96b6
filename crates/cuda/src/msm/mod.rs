//! Group sums over the key's points, which stay on the device.
//!
//! A [`FullSum`] is Σ s_i P_i for scalars of full size, over all points of a query or over some
//! that are given by their indices. A [`BitSum`] adds the points that a bitmap selects. Both are
//! planned from sizes alone, bound to a device and run without waiting for it: whatever depends on
//! the scalars, such as the sizes of the buckets, is bounded by the plan and read by the kernels
//! from device memory.
//!
//! The full sum is Pippenger's with signed digits: sort the digits of a window, add up the points of
//! equal digits (*buckets*) as a tree of batch-affine additions, and add up the buckets times
//! their digits by rows and columns. The kernels are in `kernels/msm`.

mod bits;
mod cost;
mod curve;
mod fold;
mod full;
mod layout;
mod measure;
mod multiples;
mod params;
mod profile;
mod progression;
mod rounds;
pub mod sample;
#[cfg(test)]
mod tests;
mod windows;

pub use bits::{BitSelection, BitSum, BitSumPlan, Mask};
pub use cost::{Candidate, Choice, FullSumLimits};
pub use curve::{G1, G2, KernelNames, SumCurve};
pub use full::{FullSum, FullSumPlan, FullSumShape, FullSumTerms, TermIndices};
pub use measure::measure;
pub use multiples::{Multiples, MultiplesPlan};
pub use profile::Profile;
pub use progression::{Progression, ProgressionPlan};
pub use windows::{Window, Windows};
