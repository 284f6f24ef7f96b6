//! What the stages do for a Filecoin circuit.

use std::sync::Arc;
use std::time::Instant;

use filecoin::native::NativeWitness;
use filecoin::{Request, WitnessError, WitnessGenerator, public_inputs};
use groth16::key::ProvingKey;
use groth16::{Backend, Blinding, GroupSums, PreparedVerifyingKey, Proof};
use r1cs::{CompiledCircuit, Fr, PackedWitness};

use crate::spans::{Lane, Spans};

/// Why a unit has no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The vanilla proof is wrong, or its witness cannot be made.
    #[error(transparent)]
    Witness(#[from] WitnessError),
    /// The witness shows another statement than the request's.
    #[error(
        "the witness of unit {index} is for other public inputs than the request's; this is a defect: \
         please report it with the request"
    )]
    OtherInputs {
        /// Which unit.
        index: usize,
    },
    /// The device, the key or the proof.
    #[error(transparent)]
    Proof(#[from] groth16::Error),
}

/// A decoded request with what its proofs show.
pub struct Statement {
    /// The request.
    pub request: Request,
    /// Public inputs of each unit, derived from the request's public values.
    pub inputs: Vec<Vec<Fr>>,
}

impl Statement {
    /// Derives the public inputs.
    ///
    /// # Errors
    /// Public values that are out of range.
    pub fn new(request: Request) -> Result<Self, filecoin::Error> {
        let inputs = public_inputs(&request)?;
        Ok(Self { request, inputs })
    }

    /// Checks the vanilla proof of unit `index` and makes its witness, on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Witness`], [`Error::OtherInputs`].
    pub fn witness(
        &self,
        index: usize,
        circuit: &CompiledCircuit,
        spans: &mut Spans,
    ) -> Result<PackedWitness, Error> {
        let witness = spans.run("check and witness", Lane::Witness, || {
            NativeWitness.witness(&self.request, index, circuit)
        })?;
        self.accept(index, &witness)?;
        Ok(witness)
    }

    /// The prover verifies against the witness's own inputs; that these are the statement's, which the
    /// chain will verify against, is checked here.
    ///
    /// # Errors
    /// [`Error::OtherInputs`].
    pub fn accept(&self, index: usize, witness: &PackedWitness) -> Result<(), Error> {
        match self.inputs.get(index) {
            Some(inputs) if witness.inputs().get(1..) == Some(&inputs[..]) => Ok(()),
            _ => Err(Error::OtherInputs { index }),
        }
    }
}

/// A circuit, its key and what its proofs are verified against.
pub struct CircuitKey {
    /// The circuit.
    pub circuit: Arc<CompiledCircuit>,
    /// Its key.
    pub key: ProvingKey,
    /// The part that verifies, prepared.
    pub verifying_key: PreparedVerifyingKey,
}

impl CircuitKey {
    /// Of a key that may be used.
    pub fn new(circuit: Arc<CompiledCircuit>, key: ProvingKey) -> Self {
        let verifying_key = PreparedVerifyingKey::from(key.vk());
        Self {
            circuit,
            key,
            verifying_key,
        }
    }
}

/// The device's part of a proof. `epoch` is the instant from which the backend counts its spans, if it
/// does.
///
/// # Errors
/// A key that does not fit, a device that fails.
pub fn sums(
    backend: &dyn Backend,
    epoch: Option<Instant>,
    key: &CircuitKey,
    witness: &PackedWitness,
    spans: &mut Spans,
) -> Result<GroupSums, Error> {
    let began = Instant::now();
    let (sums, times) = groth16::sums(backend, &key.circuit, &key.key, witness)?;
    spans.add_sums(&times, epoch, (began, Instant::now()));
    Ok(sums)
}

/// Makes the proof from its sums, with fresh blinding, and verifies it.
///
/// # Errors
/// No randomness; a proof that does not verify.
pub fn finish(
    key: &CircuitKey,
    witness: &PackedWitness,
    sums: &GroupSums,
    spans: &mut Spans,
) -> Result<Proof, Error> {
    let blinding = Blinding::random()?;
    let began = Instant::now();
    let (proof, times) = groth16::finish(
        &key.circuit,
        &key.key,
        &key.verifying_key,
        witness,
        sums,
        blinding,
    )?;
    spans.add_from(Lane::Finish, began, times.iter());
    Ok(proof)
}
