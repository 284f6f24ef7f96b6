//! Records bellpepper circuits into their compiled form.
//!
//! [`circuits`] builds the blank Filecoin circuits from the public proof crates; [`Recording`]
//! is the constraint system that streams them into a [`Sink`]: an [`r1cs::Builder`], a
//! [`RowDigest`], or both at once.

#![forbid(unsafe_code)]

pub mod circuits;
mod recording;
mod row_digest;

pub use recording::{Both, Recording, Sink, Terms};
pub use row_digest::{RowDigest, digest_of};

use r1cs::{Builder, CompiledCircuit};

/// Records a circuit: its compiled form and the digest of the rows as they were enforced.
///
/// # Errors
/// A synthesis error of the circuit, or a circuit beyond the limits of `r1cs`.
pub fn record(id: filecoin::CircuitId) -> anyhow::Result<(CompiledCircuit, [u8; 32])> {
    let both = circuits::synthesize(id, Both(Builder::new(), RowDigest::new()))?;
    let Both(builder, digest) = both;
    Ok((builder.finish()?, digest.finish()))
}
