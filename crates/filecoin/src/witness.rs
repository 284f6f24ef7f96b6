//! The interface of whatever makes witnesses.

use r1cs::{CompiledCircuit, PackedWitness};

use crate::check::Failure;
use crate::request::Request;

/// Makes the witness of one partition: the public inputs and every auxiliary
/// value, in the circuit's allocation order, packed.
pub trait WitnessGenerator: Send + Sync {
    /// The witness of partition `partition` of `request` for `circuit`, which is the
    /// compiled circuit of [`Request::circuit_id`].
    ///
    /// # Errors
    /// [`WitnessError`]; a request whose vanilla check passed never causes one.
    fn witness(
        &self,
        request: &Request,
        partition: usize,
        circuit: &CompiledCircuit,
    ) -> Result<PackedWitness, WitnessError>;
}

/// Why there is no witness.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The request does not have this partition.
    #[error(
        "partition {partition} does not exist: the request has {partitions}; ask for a lower one"
    )]
    NoSuchPartition {
        /// The partition asked for.
        partition: usize,
        /// How many there are.
        partitions: usize,
    },
    /// The values do not fit the compiled circuit: a bit that is not 0 or 1, or
    /// another number of variables.
    #[error(
        "the witness does not fit the compiled circuit: {0}; check the vanilla proof, or report \
         this if the check passed"
    )]
    Circuit(#[from] r1cs::Error),
    /// The vanilla proof does not hold: generators that recompute it find that out.
    #[error(transparent)]
    Vanilla(#[from] Box<Failure>),
    /// A native generator wrote another number of variables than the circuit has.
    #[error(transparent)]
    Size(#[from] ::witness::Error),
    /// The generator's own failure.
    #[error("the witness cannot be made: {0}")]
    Generator(#[source] Box<dyn std::error::Error + Send + Sync>),
}
