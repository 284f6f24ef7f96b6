//! The real prover: vanilla check and witness on the CPU, the sums on a [`Backend`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use engine::scheduler::Fault;
use filecoin::{CircuitId, ProofKind, Request, WitnessError, check};
use groth16::progress::Progress;
use groth16::{Backend, BackendError, DeviceKind, GroupSums};
use pipeline::{Lane, Limits, Pools, Spans, Statement};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::keys::{KeyRing, LoadedKey, key_fault};
use crate::message::{Hello, Unit};
use crate::pulse::Pulse;
use crate::serve::{Prover, UnitError};

/// The memory of a device that has its own.
pub trait DeviceMemory: Send + Sync {
    /// The circuits whose keys are there; `None` for a device without memory of its own.
    fn resident(&self) -> Option<Vec<OnDevice>>;
    /// Takes a circuit out, once no proof uses it; how many bytes that frees.
    fn unload(&self, circuit: &CompiledCircuit) -> u64;
    /// Bytes that are free.
    fn free(&self) -> Option<u64>;
}

/// A circuit whose key is in the memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnDevice {
    /// The circuit's digest.
    pub circuit: [u8; 32],
    /// What it takes, bytes.
    pub bytes: u64,
    /// For so many proofs at a time there is memory.
    pub proofs: usize,
}

/// Of a processor.
struct NoMemory;

impl DeviceMemory for NoMemory {
    fn resident(&self) -> Option<Vec<OnDevice>> {
        None
    }

    fn unload(&self, _circuit: &CompiledCircuit) -> u64 {
        0
    }

    fn free(&self) -> Option<u64> {
        None
    }
}

/// One unit on the device and one ahead of it.
const ONE_AT_A_TIME: Limits = Limits {
    preparers: 1,
    urgent: true,
    device_threads: 1,
    device_units: 1,
    finishers: 1,
    ahead: 2,
    bytes: u64::MAX,
};
/// Seconds between heartbeats.
const HEARTBEAT_S: u64 = 2;

/// Proves units on a backend with keys from a ring.
pub struct CircuitProver {
    backend: Arc<dyn Backend>,
    keys: KeyRing,
    pulse: Arc<Pulse>,
    circuits: Vec<CircuitId>,
    memory_bytes: Option<u64>,
    limits: Limits,
    /// So many of the units on the device may only be of WinningPoSt.
    lane_places: usize,
    pools: Mutex<Option<Pools>>,
    /// From which the backend counts its spans.
    epoch: Option<Instant>,
    device_memory: Box<dyn DeviceMemory>,
    self_test: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl CircuitProver {
    fn kind(&self) -> DeviceKind {
        self.backend.device().kind
    }

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
            limits: ONE_AT_A_TIME,
            lane_places: 0,
            pools: Mutex::default(),
            epoch: None,
            device_memory: Box::new(NoMemory),
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

    /// Has several units under way, on the device `lane_places` of them for WinningPoSts alone, and prepares them in
    /// `pools`.
    #[must_use]
    pub fn with_limits(self, limits: Limits, lane_places: usize, pools: Option<Pools>) -> Self {
        Self {
            limits,
            lane_places,
            pools: Mutex::new(pools),
            ..self
        }
    }

    /// Says from which instant the backend counts its spans.
    #[must_use]
    pub fn with_epoch(self, epoch: Instant) -> Self {
        Self {
            epoch: Some(epoch),
            ..self
        }
    }

    /// Says what is in the device's own memory, and can take it out.
    #[must_use]
    pub fn with_device_memory(self, memory: impl DeviceMemory + 'static) -> Self {
        Self {
            device_memory: Box::new(memory),
            ..self
        }
    }

    /// What is in the device's own memory, of the keys that are loaded.
    fn on_device(&self) -> Option<Vec<(CircuitId, OnDevice)>> {
        let resident = self.device_memory.resident()?;
        let on_device = |(id, _): (CircuitId, u64)| {
            let digest = id.compiled().ok()?.digest();
            let found = resident.iter().find(|key| key.circuit == digest);
            found.map(|key| (id, *key))
        };
        let loaded = self.keys.loaded().into_iter();
        Some(loaded.filter_map(on_device).collect())
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
    type Request = Statement;
    type Prepared = PackedWitness;
    type Sums = (Arc<LoadedKey>, GroupSums);

    fn limits(&self) -> Limits {
        self.limits
    }

    fn pools(&self) -> Option<Pools> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.take()
    }

    fn bytes(&self, unit: &Unit) -> u64 {
        // A circuit that cannot be read is told of when its unit is prepared.
        let circuit = unit.circuit.compiled().ok();
        circuit.map_or(0, |circuit| pipeline::unit_bytes(&circuit, self.kind()))
    }

    fn hello(&self) -> Hello {
        let device = self.backend.device();
        Hello {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.to_string(),
            uuid: device.uuid,
            memory_bytes: self.memory_bytes,
            circuits: self.circuits.clone(),
            look_ahead: self.limits.ahead.saturating_sub(1),
            heartbeat_s: HEARTBEAT_S,
        }
    }

    fn self_test(&self) -> Result<(), String> {
        (self.self_test)()
    }

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<Statement, UnitError> {
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
        Statement::new(request).map_err(|e| wrong(&e))
    }

    fn prepare(
        &self,
        unit: &Unit,
        request: &Statement,
        spans: &mut Spans,
    ) -> Result<PackedWitness, UnitError> {
        let circuit = unit.circuit.compiled();
        let circuit = circuit.map_err(|e| UnitError::new(Fault::Device, &e))?;
        let witness = request.witness(unit.index as usize, &circuit, spans);
        self.pulse.advance(0);
        witness.map_err(|error| UnitError::new(fault_of(&error), &error))
    }

    fn sums(
        &self,
        unit: &Unit,
        witness: &PackedWitness,
        spans: &mut Spans,
    ) -> Result<(Arc<LoadedKey>, GroupSums), UnitError> {
        let began = Instant::now();
        let (key, load) = self.keys.get(unit.circuit, &*self.pulse)?;
        if let Some(time) = load {
            spans.add("open key", Lane::Load, began, began + time);
        }
        let sums = pipeline::sums(&*self.backend, self.epoch, &key.key, witness, spans);
        let sums = sums.map_err(|error| UnitError::new(fault_of(&error), &error))?;
        Ok((key, sums))
    }

    fn finish(
        &self,
        _unit: &Unit,
        witness: PackedWitness,
        (key, sums): (Arc<LoadedKey>, GroupSums),
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        let proof = pipeline::finish(&key.key, &witness, &sums, spans);
        let proof = proof.map_err(|error| UnitError::new(fault_of(&error), &error))?;
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
        let (was_loaded, freed) = self.keys.evict(circuit);
        if freed == 0 {
            return (was_loaded, freed);
        }
        let compiled = circuit.compiled();
        let on_device = compiled.map_or(0, |circuit| self.device_memory.unload(&circuit));
        // Of a device with memory of its own, that counts; the file was only mapped.
        (was_loaded, if on_device > 0 { on_device } else { freed })
    }

    fn keys(&self) -> Vec<(CircuitId, u64)> {
        match self.on_device() {
            None => self.keys.loaded(),
            // Those in the device's memory, with what they take there.
            Some(there) => there.iter().map(|(id, key)| (*id, key.bytes)).collect(),
        }
    }

    fn free_memory(&self) -> Option<u64> {
        self.device_memory.free()
    }

    fn at_a_time(&self) -> Option<usize> {
        let most = self.limits.device_threads.saturating_sub(self.lane_places);
        at_a_time(&self.on_device()?, most.max(1))
    }
}

/// How many units may be on a device at a time with these keys, at most `most`; `None` if they do not say. Those of
/// WinningPoSt have places beside.
fn at_a_time(there: &[(CircuitId, OnDevice)], most: usize) -> Option<usize> {
    let others = there.iter().filter(|(id, _)| id.kind != ProofKind::Winning);
    let proofs = others.map(|(_, key)| key.proofs).max()?;
    Some(proofs.clamp(1, most))
}

/// Whom to blame for a proof that was not made.
fn fault_of(error: &pipeline::Error) -> Fault {
    use groth16::Error as Proof;
    match error {
        pipeline::Error::Witness(
            WitnessError::Vanilla(_) | WitnessError::NoSuchPartition { .. },
        ) => Fault::Request,
        pipeline::Error::Proof(error) => match error {
            Proof::Backend(BackendError::Device { fatal: true, .. }) => Fault::Device,
            Proof::Backend(BackendError::Key(error)) => key_fault(error),
            Proof::Backend(BackendError::OtherCircuit { .. }) | Proof::InputCount { .. } => {
                Fault::Parameters
            }
            // It computed wrongly: whatever it has in memory is not to be relied on.
            Proof::ProofRejected | Proof::Unsatisfied(_) => Fault::Device,
            _ => Fault::Try,
        },
        _ => Fault::Try,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winning_post_says_nothing_about_the_places_of_others() {
        let key = |name: &str, proofs| {
            let on_device = OnDevice {
                circuit: [0; 32],
                bytes: 1,
                proofs,
            };
            (CircuitId::parse(name).unwrap(), on_device)
        };
        let (winning, porep) = (key("winning-32g", 3), key("porep-32g", 2));
        assert_eq!(at_a_time(&[], 4), None);
        assert_eq!(at_a_time(&[winning], 4), None);
        assert_eq!(at_a_time(&[winning, porep], 4), Some(2));
        assert_eq!(at_a_time(&[porep, key("snap-32g", 9)], 4), Some(4));
        assert_eq!(at_a_time(&[key("wpost-32g", 0)], 4), Some(1));
    }
}
