//! The prover's backend on a GPU.
//!
//! The first proof of a circuit with a key plans its memory, takes it in one arena, and copies the
//! key's points to the device, or, if they do not fit there, to page-locked memory of the host. Several
//! circuits may be there at a time. Later proofs with the same key allocate nothing: the packed witness goes up, everything from it to the
//! five sums is queued at once, and a few kilobytes of partial sums come back.

mod clock;
mod dual;
mod fixed;
mod front;
mod key;
mod loaded;
mod per_sum;
mod plan;
mod pool;
mod query_bits;
mod residents;
mod sample;
mod search;
mod self_test;
mod streamed;
mod sum;
#[cfg(test)]
mod tests;
mod unit;

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use groth16::key::{KeyError, ProvingKey};
use groth16::progress::Progress;
use groth16::{Backend, BackendError, DeviceInfo, DeviceKind, GroupSums, PhaseTimes};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::fatbin::Target;
use crate::ntt::QuotientForm;
use crate::topic::Topic;
use clock::Clock;
use loaded::{Identity, Loaded};
use residents::Residents;
use unit::Stages;

pub use dual::{DualRunError, dual_run};
pub use plan::{PlanError, PlanTarget, ProofPlan, Streaming, SumChoice};
pub use residents::ResidentCircuit;
pub use self_test::{SelfTest, SelfTestError, self_test};
pub use streamed::ChunkSummary;

/// Memory that is left to the driver and to others when no limit is given.
const VRAM_LEFT: u64 = 256 << 20;

/// How much longer the sums of a circuit may take beside others than with all memory.
const BESIDE_OTHERS: f64 = 1.1;

/// How long a proof waits for memory that other proofs use: longer than any of them takes that is not
/// stuck.
const WAIT_LIMIT: Duration = Duration::from_secs(600);

/// Proves on one GPU.
pub struct GpuBackend {
    device: Device,
    vram_limit: Option<u64>,
    callers: AtomicUsize,
    host_memory: fn() -> Option<u64>,
    wait_limit: Duration,
    progress: Arc<dyn Progress + Send + Sync>,
    residents: Residents,
    /// From the first proof on.
    clock: Mutex<Option<Arc<Clock>>>,
}

impl GpuBackend {
    /// On GPU `ordinal`, from 0.
    ///
    /// # Errors
    /// A GPU, a driver or code for it that is missing.
    pub fn open(ordinal: usize) -> Result<Self> {
        let device = Device::open(ordinal)?;
        let info = device.info();
        let runs = |target: &Target| target.runs_on(info.capability);
        if !crate::built_targets().iter().any(runs) {
            return Err(CudaError::MissingImage {
                device: info.name.clone(),
                capability: info.capability,
                topic: Topic::Msm.name(),
            });
        }
        Ok(Self::on(device))
    }

    /// On a device that is open.
    pub fn on(device: Device) -> Self {
        GpuBackend {
            device,
            vram_limit: None,
            callers: AtomicUsize::new(1),
            host_memory: || None,
            wait_limit: WAIT_LIMIT,
            progress: Arc::new(()),
            residents: Residents::default(),
            clock: Mutex::default(),
        }
    }

    /// Takes at most `bytes` of the device's memory.
    #[must_use]
    pub fn with_vram_limit(self, bytes: u64) -> Self {
        GpuBackend {
            vram_limit: Some(bytes),
            device: self.device.with_vram_limit(bytes),
            ..self
        }
    }

    /// Lets a proof wait at most so long for memory that other proofs use.
    #[must_use]
    pub fn with_wait_limit(self, wait_limit: Duration) -> Self {
        GpuBackend { wait_limit, ..self }
    }

    /// Asks `host_memory` how many bytes this process may still take, before a key that is to be streamed
    /// takes as many as the parameter file has. `None`: not known.
    #[must_use]
    pub fn with_host_memory(self, host_memory: fn() -> Option<u64>) -> Self {
        GpuBackend {
            host_memory,
            ..self
        }
    }

    /// Says how many threads ask for proofs at a time. The next key that is loaded is planned for it: if
    /// it does not fit and is streamed, a pass makes so many proofs as pay.
    pub fn expect_callers(&self, callers: usize) {
        self.callers.store(callers.max(1), Ordering::Relaxed);
    }

    /// Reports the loading of keys and every proof to `progress`.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        GpuBackend { progress, ..self }
    }

    /// The GPU.
    pub fn gpu(&self) -> &Device {
        &self.device
    }

    /// The memory of the circuits and keys that are loaded; `None` while there is none.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn memory(&self) -> Result<Option<MemoryUse>> {
        let free = self.device.free_bytes()?;
        let resident = self.residents.list();
        Ok(resident.last().map(|last| MemoryUse {
            streamed: last.streamed,
            proofs: last.proofs,
            planned_bytes: resident.iter().map(|circuit| circuit.planned_bytes).sum(),
            taken_bytes: self.residents.free_before().saturating_sub(free),
            free_bytes: free,
        }))
    }

    /// The circuits that are on the device, in the order in which they were used last.
    pub fn resident(&self) -> Vec<ResidentCircuit> {
        self.residents.list()
    }

    /// Takes a circuit off the device, with whatever key; its memory is free once no proof uses it. How
    /// many bytes that is: 0 if it was not there.
    pub fn unload(&self, circuit: &[u8; 32]) -> u64 {
        self.residents.remove_circuit(circuit)
    }

    /// The clock that [`PhaseTimes::spans`] are on: the host's instant 0.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn epoch(&self) -> Result<Instant> {
        Ok(self.clock()?.epoch())
    }

    fn clock(&self) -> Result<Arc<Clock>> {
        let mut clock = lock(&self.clock);
        if let Some(clock) = clock.as_ref() {
            return Ok(Arc::clone(clock));
        }
        let new = Arc::new(Clock::new(&self.device)?);
        Ok(Arc::clone(clock.insert(new)))
    }

    /// What may be planned for: the memory that is free now, and all that circuits have if `all_leave`.
    fn target(&self, all_leave: bool) -> Result<PlanTarget> {
        let resident = self.residents.list();
        let taken: u64 = resident.iter().map(|circuit| circuit.planned_bytes).sum();
        let (reclaimed, kept) = if all_leave { (taken, 0) } else { (0, taken) };
        let free = self.device.free_bytes()?.saturating_add(reclaimed);
        let free = free.saturating_sub(VRAM_LEFT);
        let limit = self.vram_limit.unwrap_or(u64::MAX).saturating_sub(kept);
        Ok(PlanTarget {
            vram_bytes: free.min(limit),
            limited: limit <= free,
            multiprocessors: self.device.info().multiprocessors,
            callers: self.callers.load(Ordering::Relaxed),
        })
    }

    /// The circuit and key on the device: as they are, or newly put there. One at a time.
    fn load(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
    ) -> std::result::Result<Arc<Loaded>, BackendFailure> {
        let identity = Identity {
            circuit: circuit.digest(),
            key: key.stamp(),
        };
        if let Some(loaded) = self.residents.find(&identity) {
            return Ok(loaded);
        }
        let _loading = self.residents.loading();
        // Somebody else may have loaded it meanwhile.
        if let Some(loaded) = self.residents.find(&identity) {
            return Ok(loaded);
        }
        let plan = self.make_room(circuit, key)?;
        self.load_as(identity, key, plan)
    }

    /// A plan, and the memory for it. Circuits that are there stay if the new one's key can stay beside
    /// them and, by the model, [`BESIDE_OTHERS`] times the sums' time with all memory is enough;
    /// otherwise they leave until it is so, who was used least lately first.
    fn make_room(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
    ) -> std::result::Result<ProofPlan, BackendFailure> {
        let form = QuotientForm::from(key.form());
        let plan = |target| ProofPlan::of_form("the circuit", circuit, form, target);
        let mut alone = plan(self.target(true)?)?;
        // Before anybody has to leave.
        check_sections(&alone, key)?;
        self.check_host_memory(&alone)?;
        loop {
            let target = self.target(false)?;
            // Nobody leaves for a third proof at a time.
            if alone.fit(target.vram_bytes) {
                return Ok(alone);
            }
            let last = self.residents.list().is_empty();
            match plan(target) {
                Ok(beside) if last || is_as_good(&beside, &alone) => {
                    self.check_host_memory(&beside)?;
                    return Ok(beside);
                }
                Err(error) if last => return Err(error.into()),
                _ => {}
            }
            self.residents.remove_one(self.wait_limit)?;
        }
    }

    /// Refuses to stream a key that the host has no memory for, before the system ends the process.
    fn check_host_memory(&self, plan: &ProofPlan) -> Result<()> {
        let needed = plan.streaming().map(|streaming| streaming.pass_bytes);
        match (needed, (self.host_memory)()) {
            (Some(needed), Some(available)) if needed > available => {
                Err(CudaError::HostMemory { needed, available })
            }
            _ => Ok(()),
        }
    }

    /// Loads a key by a plan.
    fn load_as(
        &self,
        identity: Identity,
        key: &ProvingKey,
        plan: ProofPlan,
    ) -> std::result::Result<Arc<Loaded>, BackendFailure> {
        let loaded = Loaded::new(&self.device, plan, identity, key, &*self.progress)?;
        Ok(self.residents.insert(loaded.0, loaded.1))
    }

    /// Every stage of a proof, for comparisons.
    fn stages(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> std::result::Result<Stages, BackendFailure> {
        let loaded = self.load(circuit, key)?;
        Ok(loaded.stages(witness, self.wait_limit)?)
    }

    fn prove(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> std::result::Result<(GroupSums, PhaseTimes), BackendFailure> {
        let mut all = PhaseTimes::default();
        let loaded = all.measure("load key", || self.load(circuit, key))?;
        self.progress.begin("prove", 1);
        let (sums, times) = loaded.prove(witness, &*self.clock()?, self.wait_limit)?;
        self.progress.advance(1);
        all.append(times);
        Ok((sums, all))
    }
}

impl Backend for GpuBackend {
    fn device(&self) -> DeviceInfo {
        let info = self.device.info();
        DeviceInfo {
            kind: DeviceKind::Gpu,
            description: info.name.clone(),
            uuid: Some(info.uuid.clone()),
        }
    }

    fn sums(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> std::result::Result<(GroupSums, PhaseTimes), BackendError> {
        Ok(self.prove(circuit, key, witness)?)
    }
}

/// Refuses a key whose sections have other lengths than the circuit's.
fn check_sections(plan: &ProofPlan, key: &ProvingKey) -> std::result::Result<(), BackendError> {
    use groth16::points::Points;
    let found = [
        key.h().len(),
        key.l().len(),
        key.a().len(),
        key.b_g1().len(),
        key.b_g2().len(),
    ];
    for (sum, found) in plan.sums().zip(found) {
        if sum.points != found {
            return Err(BackendError::OtherCircuit {
                section: sum.name,
                found,
                expected: sum.points,
            });
        }
    }
    Ok(())
}

/// Whether a key stays beside others, and its sums take hardly longer than with all memory.
fn is_as_good(beside: &ProofPlan, alone: &ProofPlan) -> bool {
    beside.streaming().is_none() && beside.model_ms() <= BESIDE_OTHERS * alone.model_ms()
}

/// Device memory of circuits and their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Whether the key used last is streamed.
    pub streamed: bool,
    /// Proofs of that circuit that may be under way at a time.
    pub proofs: usize,
    /// What the plans say.
    pub planned_bytes: u64,
    /// How much less the driver says is free than before. It counts in pages of 2 MiB, and
    /// includes the kernels' code and whatever other processes took meanwhile.
    pub taken_bytes: u64,
    /// What the driver says is free.
    pub free_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Errors on their way to a [`BackendError`].
pub(crate) struct BackendFailure(BackendError);

impl From<CudaError> for BackendFailure {
    fn from(error: CudaError) -> Self {
        let fatal = error.is_fatal();
        BackendFailure(device_error(error, fatal))
    }
}

impl From<PlanError> for BackendFailure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Device(error) => error.into(),
            PlanError::Program(error) => BackendFailure(device_error(error, false)),
        }
    }
}

impl From<KeyError> for BackendFailure {
    fn from(error: KeyError) -> Self {
        BackendFailure(error.into())
    }
}

impl From<BackendError> for BackendFailure {
    fn from(error: BackendError) -> Self {
        BackendFailure(error)
    }
}

impl From<BackendFailure> for BackendError {
    fn from(failure: BackendFailure) -> Self {
        failure.0
    }
}

fn device_error(error: impl Error + Send + Sync + 'static, fatal: bool) -> BackendError {
    BackendError::Device {
        source: Box::new(error),
        fatal,
    }
}
