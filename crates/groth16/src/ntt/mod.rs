//! Number-theoretic transforms over Fr, for any power of two up to 2^31.
//!
//! # The transform as a tree of remainders
//!
//! A polynomial modulo x^{2m} − w² splits into its remainders modulo x^m − w and x^m + w:
//! u + w·v and u − w·v for the lower half u and the upper half v of its coefficients. Starting
//! at x^n − 1 and halving until the moduli are linear leaves the polynomial's values at the
//! n-th roots of unity, in bit-reversed order; starting at x^n + 1 leaves its values on the
//! coset g·⟨ω⟩ with g² = ω. Every block of a level has one constant w, and both trees are
//! subtrees of that of x^{2n} − 1. With W_i = ω_{2n}^{rev(i)} (rev reverses log₂(n) bits), block i of
//! level L (2^L blocks) takes w = W_i in the plain tree and W_{2^L + i} in that of the coset.
//! So one table serves all levels of both; small levels use its beginning, and a block of a
//! large level, with all levels below it, uses contiguous pieces.
//!
//! The inverse runs the tree backwards: u' = u + v, v' = (u − v)/w. Neither direction permutes
//! anything: coefficients are in natural order, values in bit-reversed order.
//!
//! # Passes
//!
//! Levels are grouped into passes that each read and write the vector once. The last levels
//! work on contiguous blocks. The earlier ones work on columns of a matrix
//! whose rows are far apart: neighbouring columns are copied into a tile,
//! taken through all levels of the pass, and copied back. Blocks and tiles stay in the
//! second-level cache and are what threads share out.

mod domain;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod passes;
mod portable;
mod reverse;
mod roots;
#[cfg(test)]
mod tests;

pub use domain::{Domain, EvaluationSet};
pub use reverse::bit_reverse;
