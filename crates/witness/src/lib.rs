//! Native generators of circuit witnesses in packed form.
//!
//! A Groth16 circuit of Filecoin allocates its variables in a fixed order; running the circuit's
//! own code to obtain their values costs tens of core-seconds and gigabytes, although the values
//! follow from a few thousand hash computations. The generators here compute the same values
//! directly and append them in the same order: boolean variables to a bitmap, whole words at a
//! time, all others to an array of field elements ([`Writer`]).
//!
//! There is one generator per gadget, named after what it computes: [`sha256`], [`poseidon`],
//! [`merkle`], [`field`]. Each is tested alone against the public gadget. Which circuit calls which
//! generator in which order is the knowledge of the crates above.

#![forbid(unsafe_code)]

pub mod field;
pub mod merkle;
pub mod poseidon;
pub mod sha256;
pub mod word;
mod writer;

pub use writer::{Parts, Size, Writer};

/// Why a witness could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Generator and circuit disagree about the number of variables.
    #[error(
        "witness generator wrote {written:?} but the compiled circuit has {expected:?}; the \
         circuit file and this build do not belong together"
    )]
    Size {
        /// What the circuit has.
        expected: Size,
        /// What was written.
        written: Size,
    },
}
