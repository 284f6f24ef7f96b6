//! Witnesses by synthesis through the reference proof crates.
//!
//! [`Oracle`] makes a partition's witness the way the reference prover does: it converts the
//! request into the reference types, builds their circuit and runs its `synthesize` with a
//! constraint system that keeps only the values. Slow, but right by definition: the circuits here
//! are the ones our compiled circuits were recorded from.
//!
//! [`compare`] holds a witness against the public circuit's values as they are made, without keeping
//! them, so that it serves the largest circuits too.
//!
//! [`with_circuit`] and [`with_blank_circuit`] hand the same circuits to anything else that needs
//! them, such as the reference prover itself.

#![forbid(unsafe_code)]

mod assignment;
mod circuits;
mod compare;
mod error;
mod packing;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bellpepper_core::Circuit;
use filecoin::{ProofKind, Request, WitnessError, WitnessGenerator};
use packing::Packing;
use r1cs::{CompiledCircuit, Fr, PackedWitness};
use values::Values;

pub use assignment::Assignment;
pub use circuits::{Visitor, with_blank_circuit, with_circuit};
pub use compare::{Difference, compare, compare_assignment};
pub use error::Error;

/// Makes witnesses by synthesis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oracle;

impl Oracle {
    /// The values of all variables of one partition's circuit, in order of allocation.
    ///
    /// `inputs` and `aux` are the numbers of values to make room for; any number is right.
    /// Memory: 32 bytes a variable, twice that for a moment in a window partition, whose parts are
    /// synthesised on all threads and then joined.
    ///
    /// # Errors
    /// Those of [`with_circuit`]; [`Error::Synthesis`] and [`Error::Panicked`] where the circuit
    /// does not take the values.
    pub fn assignment(
        request: &Request,
        partition: usize,
        inputs: usize,
        aux: usize,
    ) -> Result<Assignment, Error> {
        guarded(|| with_circuit(request, partition, Synthesis { inputs, aux })?)
    }
}

impl WitnessGenerator for Oracle {
    fn witness(
        &self,
        request: &Request,
        partition: usize,
        circuit: &CompiledCircuit,
    ) -> Result<PackedWitness, WitnessError> {
        let packed = match request.kind() {
            // One thread and no field elements for the bits.
            ProofKind::Porep | ProofKind::Snap => {
                guarded(|| with_circuit(request, partition, Pack { circuit })?)
                    .map_err(generator_error)?
            }
            // All threads; nearly every value is a full-size field element anyway.
            ProofKind::Window | ProofKind::Winning => {
                let shape = circuit.shape();
                let assignment = Self::assignment(request, partition, shape.inputs, shape.aux)
                    .map_err(generator_error)?;
                PackedWitness::from_assignment(circuit, &assignment.inputs, &assignment.aux)
            }
        };
        Ok(packed?)
    }
}

fn generator_error(error: Error) -> WitnessError {
    WitnessError::Generator(Box::new(error))
}

/// The reference circuits assert what they expect. A request that passed the vanilla check meets
/// it, but a panic must not take a prover down.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(Error::panicked(&*payload)))
}

/// Synthesises a circuit for its values.
struct Synthesis {
    inputs: usize,
    aux: usize,
}

impl Visitor for Synthesis {
    type Output = Result<Assignment, Error>;

    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output {
        let mut assignment = Assignment::with_capacity(self.inputs, self.aux);
        circuit.synthesize(&mut assignment)?;
        Ok(assignment)
    }
}

/// Synthesises a circuit for its packed values.
struct Pack<'c> {
    circuit: &'c CompiledCircuit,
}

impl Visitor for Pack<'_> {
    type Output = Result<Result<PackedWitness, r1cs::Error>, Error>;

    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output {
        let mut values = Values::new(Packing::new(self.circuit));
        let synthesis = circuit.synthesize(&mut values);
        Ok(values.sink.finish(synthesis)?)
    }
}
