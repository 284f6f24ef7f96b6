//! Compiled rank-1 constraint systems over the scalar field of BLS12-381.
//!
//! A circuit is three sparse matrices A, B, C with one row a constraint and one column a
//! variable: `inputs` public ones first (input 0 is the constant one), then `aux` private
//! ones. It is satisfied by w when (A·w)∘(B·w) = C·w. The rows here are the circuit's own:
//! the rows `input_i · 0 = 0` that Groth16 appends are left to the prover.
//!
//! Filecoin's circuits have up to 130 million rows made of a few repeated pieces. A
//! [`CompiledCircuit`] is that structure: [`Template`]s (a run of rows with columns
//! relative to the run) and [`Call`]s which place them one after another. Calls partition
//! the rows, the inputs and the aux variables into consecutive ranges; what a run
//! takes from before itself are its arguments. Evaluation, transposed products and
//! checks all work call by call, in parallel, straight from the templates.
//!
//! The same structure says which variables are *bits*: forced to be 0 or 1 by a row of the
//! run that allocates them ([`Rule`]). A [`PackedWitness`] holds those as
//! a bitmap and only the rest as field elements.
//!
//! Build a circuit with [`Builder`], store it with [`CompiledCircuit::to_bytes`].
#![forbid(unsafe_code)]

mod bitmap;
mod builder;
mod circuit;
mod codec;
mod columns;
mod compiler;
mod dictionary;
mod error;
mod evaluate;
mod format;
mod placement;
mod rows;
mod rules;
mod statistics;
mod template;
#[cfg(any(test, feature = "test-support"))]
pub mod test_circuits;
mod witness;

pub use bitmap::Bitmap;
pub use blstrs::Scalar as Fr;
pub use builder::{Builder, MIN_ROWS, ROW_LIMIT};
pub use circuit::{CompiledCircuit, Density, Layout, Place};
pub use dictionary::Dictionary;
pub use error::Error;
pub use rows::{Csr, Row};
pub use rules::Rule;
pub use statistics::Statistics;
pub use template::{Call, Slot, Template, TermMatrix};
pub use witness::{PackedWitness, Packer};

use std::fmt;

/// Most rows, inputs or aux variables of a circuit (2^28; Groth16 over BLS12-381 ends at 2^32).
pub const MAX_COUNT: u64 = 1 << 28;

/// One of the three matrices of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// Left factor.
    A,
    /// Right factor.
    B,
    /// Product.
    C,
}

impl Matrix {
    /// A, B, C in this order.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];
}

/// A column: inputs and aux variables are numbered apart, each from 0 in allocation order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variable {
    /// Public input; 0 is the constant one.
    Input(u32),
    /// Private variable.
    Aux(u32),
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(i) => write!(f, "input {i}"),
            Self::Aux(i) => write!(f, "aux {i}"),
        }
    }
}

/// Top bit of a packed variable: set for aux. Inputs therefore sort first.
const AUX_TAG: u32 = 1 << 31;

impl Variable {
    /// The constant one.
    pub const ONE: Self = Self::Input(0);

    /// One word for both kinds: indices are below 2^28, bit 31 is set for aux.
    pub(crate) fn pack(self) -> u32 {
        match self {
            Self::Input(i) => i,
            Self::Aux(i) => i | AUX_TAG,
        }
    }

    pub(crate) fn unpack(word: u32) -> Self {
        if word & AUX_TAG == 0 {
            Self::Input(word)
        } else {
            Self::Aux(word & !AUX_TAG)
        }
    }
}

/// Sizes of a circuit: its own rows, its inputs (the one included), its aux variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Shape {
    /// Rows, without those that Groth16 appends.
    pub constraints: usize,
    /// Public inputs with the constant one.
    pub inputs: usize,
    /// Private variables.
    pub aux: usize,
}

impl Shape {
    /// Size of the Groth16 domain: the smallest power of two that holds the circuit's rows
    /// and one row per input.
    #[must_use]
    pub fn domain(&self) -> usize {
        (self.constraints + self.inputs).next_power_of_two()
    }
}
