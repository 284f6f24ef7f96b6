//! The real prover: vanilla check and witness on the CPU, the sums on a [`Backend`].

use std::sync::Arc;

use engine::scheduler::Fault;
use filecoin::{CircuitId, Request, WitnessError, WitnessGenerator, check, native, public_inputs};
use groth16::progress::Progress;
use groth16::{Backend, BackendError, Blinding};
use r1cs::{Fr, PackedWitness};

use crate::keys::{KeyRing, key_fault};
use crate::message::{Hello, Part, Unit};
use crate::pulse::Pulse;
use crate::serve::{Phases, Prover, UnitError};

/// Seconds between heartbeats.
const HEARTBEAT_S: u64 = 2;

/// Proves units on a backend with keys from a ring.
pub struct CircuitProver {
    backend: Arc<dyn Backend>,
    keys: KeyRing,
    pulse: Arc<Pulse>,
    circuits: Vec<CircuitId>,
    memory_bytes: Option<u64>,
    self_test: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// A request and the public inputs of its units, derived from its public values.
pub struct CircuitRequest {
    request: Request,
    inputs: Vec<Vec<Fr>>,
}

impl CircuitProver {
    /// `pulse` is the progress that `backend` reports to.
    pub fn new(
        backend: Arc<dyn Backend>,
        keys: KeyRing,
        pulse: Arc<Pulse>,
        circuits: Vec<CircuitId>,
    ) -> Self {
        Self {
            backend,
            keys,
            pulse,
            circuits,
            memory_bytes: None,
            self_test: Box::new(|| Ok(())),
        }
    }

    /// Says how much memory the device has.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Self {
            memory_bytes: Some(bytes),
            ..self
        }
    }

    /// Runs `test` before the first unit; a device that fails it takes none.
    #[must_use]
    pub fn with_self_test(
        self,
        test: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            self_test: Box::new(test),
            ..self
        }
    }
}

impl Prover for CircuitProver {
    type Request = CircuitRequest;
    type Prepared = PackedWitness;

    fn hello(&self) -> Hello {
        let device = self.backend.device();
        Hello {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.to_string(),
            uuid: device.uuid,
            memory_bytes: self.memory_bytes,
            circuits: self.circuits.clone(),
            look_ahead: 1,
            heartbeat_s: HEARTBEAT_S,
        }
    }

    fn self_test(&self) -> Result<(), String> {
        (self.self_test)()
    }

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<CircuitRequest, UnitError> {
        let wrong = |error: &dyn std::error::Error| UnitError::new(Fault::Request, error);
        let request = Request::from_payload(&payload).map_err(|e| wrong(&e))?;
        drop(payload);
        if request.circuit_id() != unit.circuit || request.partitions() != unit.units as usize {
            let cause = format!(
                "the request has {} units of {}, its job {} of {}; submit it again",
                request.partitions(),
                request.circuit_id(),
                unit.units,
                unit.circuit
            );
            return Err(UnitError {
                fault: Fault::Request,
                cause,
            });
        }
        // What its units share; the rest is checked with each unit's witness.
        check::begin(&request).map_err(|e| wrong(&*e))?;
        let inputs = public_inputs(&request).map_err(|e| wrong(&e))?;
        Ok(CircuitRequest { request, inputs })
    }

    fn prepare(
        &self,
        unit: &Unit,
        request: &CircuitRequest,
        phases: &mut Phases,
    ) -> Result<PackedWitness, UnitError> {
        let circuit = unit.circuit.compiled();
        let circuit = circuit.map_err(|e| UnitError::new(Fault::Device, &e))?;
        let index = unit.index as usize;
        let made = phases.run("check and witness", Part::Witness, || {
            native::NativeWitness.witness(&request.request, index, &circuit)
        });
        self.pulse.advance(0);
        let witness = made.map_err(|error| match &error {
            WitnessError::Vanilla(failure) => UnitError::new(Fault::Request, &**failure),
            WitnessError::NoSuchPartition { .. } => UnitError::new(Fault::Request, &error),
            _ => UnitError::new(Fault::Try, &error),
        })?;
        let expected = request.inputs.get(index);
        if witness.inputs().get(1..) != expected.map(Vec::as_slice) {
            let cause = format!(
                "the witness of unit {index} is for other public inputs than the request's; this \
                 is a defect, please report it with the request"
            );
            return Err(UnitError {
                fault: Fault::Try,
                cause,
            });
        }
        Ok(witness)
    }

    fn prove(
        &self,
        unit: &Unit,
        _request: &CircuitRequest,
        witness: PackedWitness,
        phases: &mut Phases,
    ) -> Result<Vec<u8>, UnitError> {
        let began = Phases::clock();
        let (key, load) = self.keys.get(unit.circuit, &*self.pulse)?;
        if let Some(time) = load {
            phases.add("load key", Part::Load, began, time);
        }
        let blinding = Blinding::random().map_err(|e| UnitError::new(Fault::Try, &e))?;
        let began = Phases::clock();
        let (proof, times) = groth16::prove(
            &*self.backend,
            &key.circuit,
            &key.key.key,
            &key.verifying_key,
            &witness,
            blinding,
        )
        .map_err(|error| UnitError::new(fault_of(&error), &error))?;
        // The device's phases follow one another; where some overlap, their sum is what counts.
        let mut start = began;
        for (name, time) in times.iter() {
            phases.add(name, Part::Device, start, time);
            start += u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        }
        Ok(proof.to_bytes().to_vec())
    }

    fn preload(&self, circuit: CircuitId) -> Result<(bool, u64), String> {
        let (_, load) = self.keys.get(circuit, &()).map_err(|error| error.cause)?;
        let ms = load.map_or(0, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        });
        Ok((load.is_none(), ms))
    }

    fn evict(&self, circuit: CircuitId) -> (bool, u64) {
        self.keys.evict(circuit)
    }

    fn keys(&self) -> Vec<(CircuitId, u64)> {
        self.keys.loaded()
    }
}

/// Whom to blame for a proof that was not made.
fn fault_of(error: &groth16::Error) -> Fault {
    match error {
        groth16::Error::Backend(BackendError::Device { fatal: true, .. }) => Fault::Device,
        groth16::Error::Backend(BackendError::Key(error)) => key_fault(error),
        groth16::Error::Backend(BackendError::OtherCircuit { .. })
        | groth16::Error::InputCount { .. } => Fault::Parameters,
        // It computed wrongly: whatever it has in memory is not to be relied on.
        groth16::Error::ProofRejected | groth16::Error::Unsatisfied(_) => Fault::Device,
        _ => Fault::Try,
    }
}
