//! Transforms of points: the inverse transforms in the group that a prepared key is made by.
//!
//! A transform of n = 2^k points is n·k/2 butterflies, each with a multiplication of a point by a
//! power of ω: of 255 bits, the same for nobody else nearby. Radix 4 leaves ¾ n of them for two
//! levels, since the fourth roots of unity are ±1 and ±|X|³ with the curve's parameter X of 64 bits,
//! six of them ones. The endomorphism halves the doublings of the others (`kernels/group_ntt`,
//! `kernels/curve/endomorphism.cuh`).
//!
//! Costs of one point, in products of the base field (a square counts 0.8): table of the multiples 2 … 8,
//! 56; 128 doublings, 770; 62 additions and 31 products by β, 670; its affine form, 7. At 2^27
//! points 13 passes of radix 4 and one of radix 2 multiply 1.3·10^9 points: 74 s at the 2.7·10^10 products a
//! second of an H200; the rotations, which are not in this count, would be 8 s more. Measured there with 2^20
//! points: 68 to 70 % of that rate with products as calls, 53 to 55 % with all of them inlined (a loop of
//! 130 KB, against 38).

mod pass;
mod transform;

pub use transform::GpuGroupTransform;
