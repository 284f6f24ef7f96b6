//! The prover's backend on a GPU.
//!
//! The first proof of a circuit with a key plans its memory, takes it in one arena, and copies the
//! key's points to the device, or, if they do not fit there, to page-locked memory of the host. Later
//! proofs with the same key allocate nothing: the packed witness goes up, everything from it to the
//! five sums is queued at once, and a few kilobytes of partial sums come back.

mod dual;
mod fixed;
mod front;
mod key;
mod loaded;
mod per_sum;
mod plan;
mod pool;
mod query_bits;
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
use std::time::Duration;

use groth16::key::{KeyError, ProvingKey};
use groth16::progress::Progress;
use groth16::{Backend, BackendError, DeviceInfo, DeviceKind, GroupSums, PhaseTimes};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::fatbin::Target;
use crate::topic::Topic;
use loaded::{Identity, Loaded};
use unit::Stages;

pub use dual::{DualRunError, dual_run};
pub use plan::{PlanError, PlanTarget, ProofPlan, Streaming, SumChoice};
pub use self_test::{SelfTest, SelfTestError, self_test};
pub use streamed::ChunkSummary;

/// Memory that is left to the driver and to others when no limit is given.
const VRAM_LEFT: u64 = 256 << 20;

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
    /// The circuit and key of the last proof.
    loaded: Mutex<Option<Arc<Loaded>>>,
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
            loaded: Mutex::default(),
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

    /// The memory of the circuit and key that are loaded; `None` before the first proof.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn memory(&self) -> Result<Option<MemoryUse>> {
        let free = self.device.free_bytes()?;
        Ok(lock(&self.loaded).as_ref().map(|loaded| MemoryUse {
            streamed: loaded.plan.streaming().is_some(),
            proofs: loaded.plan.units(),
            planned_bytes: loaded.plan.bytes(),
            taken_bytes: loaded.free_before.saturating_sub(free),
        }))
    }

    /// What is planned for with the memory that is free now.
    fn target(&self) -> Result<PlanTarget> {
        let free = self.device.free_bytes()?.saturating_sub(VRAM_LEFT);
        let limit = self.vram_limit.unwrap_or(u64::MAX);
        Ok(PlanTarget {
            vram_bytes: free.min(limit),
            limited: limit <= free,
            multiprocessors: self.device.info().multiprocessors,
            callers: self.callers.load(Ordering::Relaxed),
        })
    }

    /// The circuit and key on the device: as they are, or newly put there. One at a time; what
    /// was there before goes, once no proof uses it.
    fn load(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
    ) -> std::result::Result<Arc<Loaded>, BackendFailure> {
        let identity = Identity {
            circuit: circuit.digest(),
            key: key.stamp(),
        };
        let mut loaded = lock(&self.loaded);
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.identity == identity) {
            return Ok(Arc::clone(loaded));
        }
        *loaded = None;
        let plan = ProofPlan::new("the circuit", circuit, self.target()?)?;
        check_sections(&plan, key)?;
        self.check_host_memory(&plan)?;
        let new = Arc::new(Loaded::new(
            &self.device,
            plan,
            identity,
            key,
            &*self.progress,
        )?);
        *loaded = Some(Arc::clone(&new));
        Ok(new)
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

    /// Loads a key by a plan of one's own.
    #[cfg(test)]
    fn load_as(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        plan: ProofPlan,
    ) -> std::result::Result<(), BackendFailure> {
        let identity = Identity {
            circuit: circuit.digest(),
            key: key.stamp(),
        };
        let new = Loaded::new(&self.device, plan, identity, key, &*self.progress)?;
        *lock(&self.loaded) = Some(Arc::new(new));
        Ok(())
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
        let mut loading = PhaseTimes::default();
        let loaded = loading.measure("load key", || self.load(circuit, key))?;
        self.progress.begin("prove", 1);
        let (sums, times) = loaded.prove(witness, self.wait_limit)?;
        self.progress.advance(1);
        let mut all = PhaseTimes::default();
        for (phase, time) in loading.iter().chain(times.iter()) {
            all.record(phase, time);
        }
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

/// Device memory of a circuit and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Whether the key is streamed.
    pub streamed: bool,
    /// Proofs that may be under way at a time.
    pub proofs: usize,
    /// What the plan says.
    pub planned_bytes: u64,
    /// How much less the driver says is free than before. It counts in pages of 2 MiB, and
    /// includes the kernels' code and whatever other processes took meanwhile.
    pub taken_bytes: u64,
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
