//! Scalar field arithmetic that inlines.
//!
//! `blst` multiplies behind a function call, 24 ns each; a transform of 2^22 elements makes 46
//! million of them. [`Limbs`] is the same element in the same form (Montgomery, R = 2^256) with
//! arithmetic that the compiler can see.

mod limbs;
#[cfg(test)]
mod tests;

use blstrs::Scalar;

pub use limbs::Limbs;

/// The same elements as limbs. No copy: both types are four little-endian 64-bit words.
pub fn as_limbs(scalars: &[Scalar]) -> &[Limbs] {
    // SAFETY: `Scalar` is `repr(transparent)` over `blst_fr`, which is `repr(C)` over
    // `[u64; 4]`; `Limbs` is `repr(transparent)` over `[u64; 4]`. Size, alignment and valid
    // values agree, and the lifetime is the argument's.
    unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len()) }
}

/// The same elements as limbs, to be written through. Every `Limbs` that this module's
/// arithmetic makes is canonical, so what is left behind are valid scalars.
pub fn as_limbs_mut(scalars: &mut [Scalar]) -> &mut [Limbs] {
    // SAFETY: as in `as_limbs`; the borrow is exclusive for the whole lifetime.
    unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), scalars.len()) }
}
