//! Poseidon hashes as the legacy gadget allocates them (`neptune::circuit::poseidon_hash`).
//!
//! The gadget allocates every S-box: its input x if that is a linear combination (from the second
//! round on), then x², x⁴ and x⁵ + key. In the first round the inputs are the preimage, allocated
//! already, and the tag, a constant whose S-box allocates nothing. At the end comes the digest.

use blstrs::Scalar as Fr;

use super::{
    Element, Observer, Permutation, RANDOMNESS_TAG, permutation_3, permutation_9, permutation_12,
    tree_tag,
};
use crate::Writer;

/// Writes S-boxes down.
struct Recorder<'w, 'd> {
    writer: &'w mut Writer<'d>,
    /// S-boxes of the first round still to come.
    first_round: usize,
}

impl Observer for Recorder<'_, '_> {
    #[inline(always)]
    fn s_box(
        &mut self,
        position: usize,
        input: Element,
        square: Element,
        fourth: Element,
        output: Element,
    ) {
        if self.first_round == 0 {
            self.writer.num(input.into());
        } else {
            self.first_round -= 1;
            if position == 0 {
                return;
            }
        }
        self.writer
            .nums(&[square.into(), fourth.into(), output.into()]);
    }
}

fn hash<const T: usize>(
    permutation: &Permutation<T>,
    tag: u64,
    inputs: &[Fr],
    writer: &mut Writer<'_>,
) -> Fr {
    debug_assert_eq!(inputs.len() + 1, T);
    let mut state = [Element::default(); T];
    state[0] = Fr::from(tag).into();
    for (element, input) in state[1..].iter_mut().zip(inputs) {
        *element = (*input).into();
    }
    let mut recorder = Recorder {
        writer,
        first_round: T,
    };
    permutation.permute(&mut state, &mut recorder);
    let digest = state[1].into();
    writer.num(digest);
    digest
}

/// Hash of two elements; 311 variables.
pub fn hash_2(a: Fr, b: Fr, writer: &mut Writer<'_>) -> Fr {
    hash(permutation_3(), tree_tag(2), &[a, b], writer)
}

/// Hash of eight elements: one node of a replica or column tree; 505 variables.
pub fn hash_8(inputs: &[Fr; 8], writer: &mut Writer<'_>) -> Fr {
    hash(permutation_9(), tree_tag(8), inputs, writer)
}

/// Hash of eleven elements: one column of labels; 598 variables.
pub fn hash_11(inputs: &[Fr; 11], writer: &mut Writer<'_>) -> Fr {
    hash(permutation_12(), tree_tag(11), inputs, writer)
}

/// Hash of two elements with the randomness tag; 311 variables.
pub fn hash_randomness(a: Fr, b: Fr, writer: &mut Writer<'_>) -> Fr {
    hash(permutation_3(), RANDOMNESS_TAG, &[a, b], writer)
}
