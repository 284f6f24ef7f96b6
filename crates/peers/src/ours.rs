//! Our prover, called as the command line calls it.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::{Result, ensure};
use filecoin::{CircuitId, Request, WitnessGenerator, native::NativeWitness};
use groth16::{
    Blinding, CpuBackend, PreparedVerifyingKey,
    key::{KeyCounts, ProvingKey},
};
use r1cs::CompiledCircuit;

/// A circuit with its key, ready to prove.
pub struct Prover {
    circuit: Arc<CompiledCircuit>,
    key: ProvingKey,
    verifying_key: PreparedVerifyingKey,
    backend: CpuBackend,
}

/// One proof and where its time went.
#[derive(Debug)]
pub struct Proven {
    /// The 192 bytes.
    pub bytes: [u8; 192],
    /// Named parts of the wall time in seconds.
    pub phases: Vec<(String, f64)>,
}

impl Prover {
    /// Loads the compiled circuit and maps the parameter file.
    ///
    /// # Errors
    /// Either is missing or the file is not for the circuit.
    pub fn open(id: CircuitId, params: &Path) -> Result<Self> {
        let circuit = id.compiled()?;
        let key = ProvingKey::open(params, &KeyCounts::of(&circuit))?;
        let verifying_key = PreparedVerifyingKey::from(key.vk());
        Ok(Self {
            circuit,
            key,
            verifying_key,
            backend: CpuBackend::new(),
        })
    }

    /// The compiled circuit.
    #[must_use]
    pub fn circuit(&self) -> &CompiledCircuit {
        &self.circuit
    }

    /// Makes the witness of one partition, proves and verifies it.
    ///
    /// # Errors
    /// The request does not fit the circuit, or the proof does not verify.
    pub fn prove(&self, request: &Request, partition: usize, blinding: Blinding) -> Result<Proven> {
        let start = Instant::now();
        let witness = NativeWitness.witness(request, partition, &self.circuit)?;
        let mut phases = vec![("witness".to_owned(), start.elapsed().as_secs_f64())];
        let (proof, times) = groth16::prove(
            &self.backend,
            &self.circuit,
            &self.key,
            &self.verifying_key,
            &witness,
            blinding,
        )?;
        phases.extend(
            times
                .iter()
                .map(|(name, time)| (name.to_owned(), time.as_secs_f64())),
        );
        Ok(Proven {
            bytes: proof.to_bytes(),
            phases,
        })
    }

    /// Proves all partitions of requests that follow each other, with fresh randomness, and
    /// checks that each proof is for the public inputs that the request prescribes.
    ///
    /// # Errors
    /// Those of [`Prover::prove`].
    pub fn prove_all(&self, requests: &[Request]) -> Result<Vec<[u8; 192]>> {
        let mut proofs = Vec::new();
        for request in requests {
            for (partition, inputs) in filecoin::public_inputs(request)?.iter().enumerate() {
                let bytes = self.prove(request, partition, Blinding::random()?)?.bytes;
                let proof = groth16::Proof::from_bytes(&bytes)?;
                ensure!(
                    groth16::verify(&self.verifying_key, inputs, &proof)?,
                    "partition {partition} does not prove what the request prescribes"
                );
                proofs.push(bytes);
            }
        }
        ensure!(!proofs.is_empty(), "no partitions");
        Ok(proofs)
    }
}
