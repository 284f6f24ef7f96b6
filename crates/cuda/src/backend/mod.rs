//! The prover's backend on a GPU.
//!
//! The first proof of a circuit with a key plans its memory, takes it in one arena, and copies the
//! key's points to the device. Later proofs with the same key allocate nothing: the packed
//! witness goes up, everything from it to the five sums is queued at once, and a few kilobytes of
//! partial sums come back.

mod dual;
mod key;
mod plan;
mod pool;
mod sample;
mod search;
mod self_test;
mod sum;
#[cfg(test)]
mod tests;
mod unit;

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use groth16::key::{FileStamp, KeyError, ProvingKey};
use groth16::progress::Progress;
use groth16::{Backend, BackendError, DeviceInfo, DeviceKind, GroupSums, PhaseTimes};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::device::{Arena, Device, Ledger};
use crate::error::{CudaError, Result};
use crate::fatbin::Target;
use crate::topic::Topic;
use pool::Pool;
use unit::{Shared, Stages, Unit};

pub use dual::{DualRunError, dual_run};
pub use plan::{PlanError, PlanTarget, ProofPlan, SumChoice};
pub use self_test::{SelfTest, SelfTestError, self_test};

/// Memory that is left to the driver and to others when no limit is given.
const VRAM_LEFT: u64 = 256 << 20;

/// Proves on one GPU.
pub struct GpuBackend {
    device: Device,
    vram_limit: Option<u64>,
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

    /// Every stage of a proof, for comparisons.
    fn stages(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> std::result::Result<Stages, BackendFailure> {
        let loaded = self.load(circuit, key)?;
        let mut unit = loaded.units.take();
        Ok(unit.stages(&loaded.plan, &loaded.shared, witness)?)
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
        let (sums, times) = loaded.prove(witness)?;
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
    /// What the plan says.
    pub planned_bytes: u64,
    /// How much less the driver says is free than before. It counts in pages of 2 MiB, and
    /// includes the kernels' code and whatever other processes took meanwhile.
    pub taken_bytes: u64,
}

/// Which circuit and key are on the device.
#[derive(PartialEq, Eq)]
struct Identity {
    circuit: [u8; 32],
    key: FileStamp,
}

/// A circuit and a key on the device, with the memory of the proofs under way.
struct Loaded {
    identity: Identity,
    plan: ProofPlan,
    shared: Shared,
    units: Pool<Unit>,
    /// Free memory before the arena was taken.
    free_before: u64,
    /// Everything above lies in it.
    _arena: Arena,
}

impl Loaded {
    fn new(
        device: &Device,
        plan: ProofPlan,
        identity: Identity,
        key: &ProvingKey,
        progress: &dyn Progress,
    ) -> std::result::Result<Self, BackendFailure> {
        let mut ledger = Ledger::new(plan.resident.name().to_owned());
        let lifetime = crate::Lifetime::RESIDENT;
        let resident_room = ledger.reserve_ledger(&plan.resident, lifetime);
        let rooms: Vec<_> = (0..plan.units)
            .map(|unit| {
                let bytes = plan.unit_bytes() as usize;
                ledger.reserve::<u8>(format!("unit {unit}"), bytes, lifetime)
            })
            .collect();
        let free_before = device.free_bytes()?;
        let arena = device.arena(&ledger)?;
        let resident = arena.within(resident_room, &plan.resident);
        let work = |ledger: &Ledger| arena.within(rooms[0], ledger);
        key::load(&plan, device, &resident, work, key, progress)?;
        let shared = Shared::bind(&plan, device, &resident, &work(&plan.unit))?;
        let units = rooms
            .iter()
            .map(|room| Unit::bind(&plan, device, &resident, &arena.within(*room, &plan.unit)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Loaded {
            identity,
            plan,
            shared,
            units: Pool::new(units),
            free_before,
            _arena: arena,
        })
    }

    /// Proves with the next unit that is free.
    fn prove(
        &self,
        witness: &PackedWitness,
    ) -> std::result::Result<(GroupSums, PhaseTimes), BackendFailure> {
        let mut unit = self.units.take();
        Ok(unit.prove(&self.plan, &self.shared, witness)?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Errors on their way to a [`BackendError`].
struct BackendFailure(BackendError);

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
