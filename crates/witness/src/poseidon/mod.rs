//! The Poseidon hash over BLS12-381's scalar field with the instances Filecoin uses.
//!
//! A hash of n elements permutes the state (tag, x₁ … xₙ) and returns its second element.
//! The tag tells uses apart: 2ⁿ - 1 for Merkle trees and everything built like them, 2⁴⁰ for
//! the randomness of sector updates.
//!
//! | use | elements |
//! | --- | --- |
//! | node of the replica and column trees | 8; the top level of a 64 GiB tree has 2 |
//! | column of labels | 11, or 2 for the sizes with two layers |
//! | comm_r = H(comm_c, root of the replica tree) | 2 |
//! | SnapDeals challenges, φ, ρ | 2, randomness tag |
//!
//! [`Permutation`] is the part to build on: a witness generator runs it with an [`Observer`].

mod field;
pub mod gadget;
mod grain;
mod matrix;
mod parameters;
mod permutation;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use blstrs::Scalar as Fr;
pub use field::Element;
pub use permutation::{Observer, Permutation};

/// The permutation behind hashes of 2 elements.
pub fn permutation_3() -> &'static Permutation<3> {
    static CONSTANTS: OnceLock<Permutation<3>> = OnceLock::new();
    CONSTANTS.get_or_init(Permutation::derive)
}

/// The permutation behind hashes of 8 elements.
pub fn permutation_9() -> &'static Permutation<9> {
    static CONSTANTS: OnceLock<Permutation<9>> = OnceLock::new();
    CONSTANTS.get_or_init(Permutation::derive)
}

/// The permutation behind hashes of 11 elements.
pub fn permutation_12() -> &'static Permutation<12> {
    static CONSTANTS: OnceLock<Permutation<12>> = OnceLock::new();
    CONSTANTS.get_or_init(Permutation::derive)
}

/// The tag of a Merkle-tree hash of `arity` elements: one bit per element, all set.
pub const fn tree_tag(arity: u32) -> u64 {
    (1 << arity) - 1
}

/// The tag of the hash that derives the randomness of sector updates: use number 1, shifted by 40 bits.
pub const RANDOMNESS_TAG: u64 = 1 << 40;

fn hash<const T: usize>(permutation: &Permutation<T>, tag: u64, inputs: &[Fr]) -> Fr {
    debug_assert_eq!(inputs.len() + 1, T);
    let mut state = [Element::default(); T];
    state[0] = Fr::from(tag).into();
    for (element, input) in state[1..].iter_mut().zip(inputs) {
        *element = (*input).into();
    }
    permutation.permute(&mut state, &mut ());
    state[1].into()
}

/// Hash of two elements.
pub fn hash_2(a: Fr, b: Fr) -> Fr {
    hash(permutation_3(), tree_tag(2), &[a, b])
}

/// Hash of eight elements: one node of a replica or column tree.
pub fn hash_8(inputs: &[Fr; 8]) -> Fr {
    hash(permutation_9(), tree_tag(8), inputs)
}

/// Hash of eleven elements: one column of labels.
pub fn hash_11(inputs: &[Fr; 11]) -> Fr {
    hash(permutation_12(), tree_tag(11), inputs)
}

/// Hash of two elements with the randomness tag.
pub fn hash_randomness(a: Fr, b: Fr) -> Fr {
    hash(permutation_3(), RANDOMNESS_TAG, &[a, b])
}
