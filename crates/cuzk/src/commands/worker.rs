//! `cuzk worker`: the process that owns one device. The daemon starts it and talks to it over
//! standard input and output; its log goes to standard error.

use std::sync::Arc;
use std::time::Duration;

use cuda::{CudaError, Device, GpuBackend, PlanTarget, ProofPlan};
use filecoin::CircuitId;
use groth16::key::KeyStore;
use groth16::{Backend, CpuBackend};
use pipeline::{Limits, Pools};
use r1cs::CompiledCircuit;
use serde::{Deserialize, Serialize};
use worker::{CircuitProver, DeviceMemory, KeyLimits, KeyRing, OnDevice, Pulse, Served, serve};

use crate::Context;
use crate::cli::{WorkerArgs, WorkerDevice};
use crate::failure::{Exit, Failure};
use crate::proving::{self, GPU_PROOFS_MAX, GPU_UNIT_BYTES, THREADS_LEFT};
use crate::size::Size;
use crate::{keys, logging, memory};

/// Units that a GPU has at a time until its worker has loaded a key other than WinningPoSt's and says how many there is
/// memory for: while the sums of one run, the next is uploaded and begins.
pub const GPU_UNITS: usize = 2;
/// Units of WinningPoSt that a GPU has beside those. With these there are four where only WinningPoSts come: three on
/// the GPU, for which there is memory, and one that follows at once.
pub const GPU_LANE_PLACES: usize = 2;
/// Units that are prepared for a GPU beside all these: a small witness takes a thread for twice as long as
/// the GPU its sums.
pub const GPU_LOOK_AHEAD: usize = 3;
/// Added to a worker's share of memory, in thousandths, when the system looks for whom to kill.
const OOM_SCORE: &str = "500";
/// Pause between heartbeats; the daemon gives up after 15 s of silence.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// A GPU's stages take seconds, and the longest step of loading a key less than a minute.
const GPU_STALL: Duration = Duration::from_secs(120);
/// On a CPU a step of a sum over a 32 GiB sector's key may take minutes on a small machine.
const CPU_STALL: Duration = Duration::from_secs(900);

/// Runs the command.
///
/// # Errors
/// A device that is not there or not sound; a daemon that cannot be understood.
pub fn run(context: &Context, args: &WorkerArgs) -> Result<(), Failure> {
    logging::for_worker();
    if !args.list {
        // Where memory runs out, a worker is the one to go: it is replaced, its unit is made again.
        // A system without this file decides for itself.
        let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    }
    let mut store = keys::store(context, &args.keys);
    if !args.key_folders.is_empty() {
        store.folders.clone_from(&args.key_folders);
    }
    if args.list {
        let list = list(&store);
        return context.output.show(&list, &list.text());
    }
    let pulse = Arc::new(Pulse::default());
    let (prover, stall) = match &args.device {
        WorkerDevice::Cpu => (cpu(args, store, pulse)?, CPU_STALL),
        WorkerDevice::Gpu(which) => (gpu(args, which.as_deref(), store, pulse)?, GPU_STALL),
    };
    let settings = Served {
        heartbeat: HEARTBEAT,
        stall,
    };
    match serve(std::io::stdin(), std::io::stdout(), prover, settings) {
        Ok(end) => {
            tracing::debug!(?end, "worker ends");
            Ok(())
        }
        Err(error) => Err(Failure::new(
            Exit::Internal,
            "WORKER",
            error.to_string(),
            "see the daemon's log; `cuzk doctor` tests the devices",
        )),
    }
}

fn cpu(args: &WorkerArgs, store: KeyStore, pulse: Arc<Pulse>) -> Result<CircuitProver, Failure> {
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new().with_progress(pulse.clone()));
    let circuits = with_keys(&store);
    // Mapped files: what they take is page cache, which the system takes back when it must.
    let bytes = args.key_memory.map(Size::bytes);
    let bytes = bytes.or_else(memory::available).unwrap_or(u64::MAX);
    let limits = KeyLimits {
        bytes,
        count: usize::MAX,
    };
    Ok(CircuitProver::new(
        backend,
        KeyRing::new(store, limits),
        pulse,
        circuits,
    ))
}

fn gpu(
    args: &WorkerArgs,
    which: Option<&str>,
    store: KeyStore,
    pulse: Arc<Pulse>,
) -> Result<CircuitProver, Failure> {
    let backend = GpuBackend::open(ordinal(which)?)?;
    backend.gpu().set_waiting(args.gpu_wait.into());
    let backend = match args.vram {
        Some(vram) => backend.with_vram_limit(vram.bytes()),
        None => backend,
    };
    let backend = Arc::new(backend.with_progress(pulse.clone()));
    let circuits = fitting(backend.gpu(), with_keys(&store), args.vram.map(Size::bytes))?;
    let vram = backend.gpu().info().total_bytes;
    // Mapped files; which of them are in the GPU's memory is the backend's business.
    let keys = KeyLimits {
        bytes: u64::MAX,
        count: usize::MAX,
    };
    backend.expect_callers(GPU_PROOFS_MAX);
    let threads = rayon::current_num_threads();
    let bytes = memory::available().unwrap_or(u64::MAX).min(GPU_UNIT_BYTES);
    let at_most = GPU_PROOFS_MAX + GPU_LANE_PLACES;
    let pools = Pools::new(threads.saturating_sub(THREADS_LEFT));
    let pools = pools.map_err(|error| proving::no_threads().because(&error))?;
    let (tested, loaded) = (Arc::clone(&backend), Arc::clone(&backend));
    let epoch = backend.epoch()?;
    let prover = CircuitProver::new(backend, KeyRing::new(store, keys), pulse, circuits)
        .with_limits(
            Limits::new(at_most, threads, bytes),
            GPU_LANE_PLACES,
            Some(pools),
        )
        .with_epoch(epoch)
        .with_device_memory(GpuMemory(loaded));
    Ok(prover.with_memory(vram).with_self_test(move || {
        // A backend of its own, so that the test's key does not stay in the device's memory.
        let backend = GpuBackend::on(tested.gpu().clone());
        cuda::self_test(&backend)
            .map(drop)
            .map_err(|error| error.to_string())
    }))
}

/// What is in a GPU's memory.
struct GpuMemory(Arc<GpuBackend>);

impl DeviceMemory for GpuMemory {
    fn resident(&self) -> Option<Vec<OnDevice>> {
        let resident = self.0.resident().into_iter();
        let on_device = resident.map(|circuit| OnDevice {
            circuit: circuit.circuit,
            bytes: circuit.planned_bytes,
            proofs: circuit.proofs,
        });
        Some(on_device.collect())
    }

    fn unload(&self, circuit: &CompiledCircuit) -> u64 {
        self.0.unload(&circuit.digest())
    }

    fn free(&self) -> Option<u64> {
        // A driver that does not tell fails the next unit, which says why.
        self.0.gpu().free_bytes().ok()
    }
}

/// The place of the GPU that is meant among those that the driver shows: the first without a wish,
/// a number, or a UUID.
fn ordinal(which: Option<&str>) -> Result<usize, Failure> {
    let Some(which) = which else { return Ok(0) };
    if let Ok(ordinal) = which.parse() {
        return Ok(ordinal);
    }
    let count = Device::count()?;
    for ordinal in 0..count {
        if Device::open(ordinal)?
            .info()
            .uuid
            .eq_ignore_ascii_case(which)
        {
            return Ok(ordinal);
        }
    }
    Err(Failure::new(
        Exit::Resources,
        "DEVICE_ABSENT",
        format!("none of the {count} GPUs that the driver shows is {which}"),
        "see `nvidia-smi -L`; a device that has fallen off the bus comes back with a restart",
    ))
}

/// The circuits whose parameter files or prepared keys are there. Whether they are right is seen when they
/// are loaded.
pub fn with_keys(store: &KeyStore) -> Vec<CircuitId> {
    let has_key = |id: &CircuitId| {
        let name = format!("{}.params", id.params_stem());
        let has_params = store.folders.iter().any(|f| f.join(&name).is_file());
        // Only now the circuit, which takes milliseconds to read.
        has_params
            || id
                .compiled()
                .is_ok_and(|circuit| store.locate_proving_key(&id.key_spec(&circuit)).is_ok())
    };
    CircuitId::all().filter(has_key).collect()
}

/// Those of the circuits that the device has the memory for.
fn fitting(
    device: &Device,
    circuits: Vec<CircuitId>,
    limit: Option<u64>,
) -> Result<Vec<CircuitId>, CudaError> {
    let free = device.free_bytes()?;
    let target = PlanTarget {
        vram_bytes: limit.map_or(free, |limit| limit.min(free)),
        limited: limit.is_some(),
        multiprocessors: device.info().multiprocessors,
        callers: 1,
    };
    Ok(circuits
        .into_iter()
        .filter(|id| fits(*id, target))
        .collect())
}

/// Whether a GPU with this memory can prove a circuit. Needs no GPU.
pub fn fits(id: CircuitId, target: PlanTarget) -> bool {
    id.compiled()
        .is_ok_and(|circuit| ProofPlan::new(id.name(), &circuit, target).is_ok())
}

/// What `cuzk worker --list` prints: the GPUs, for a daemon that does not touch them itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct GpuList {
    schema: String,
    /// Why there are none to be used, if so.
    pub absent: Option<String>,
    /// Each that the driver shows.
    pub gpus: Vec<GpuDocument>,
}

/// A GPU in the list.
#[derive(Debug, Serialize, Deserialize)]
pub struct GpuDocument {
    /// Its place among those that the driver shows.
    pub ordinal: u32,
    /// `GPU-…`.
    pub uuid: String,
    /// Its model.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Of those, free before any proof.
    pub free_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Names of the circuits that it can prove: their key is there, and the memory suffices.
    pub circuits: Vec<String>,
    /// Why it cannot be used, if so.
    pub failure: Option<String>,
}

impl GpuDocument {
    /// What proofs may take of it.
    pub fn target(&self) -> PlanTarget {
        PlanTarget {
            vram_bytes: self.free_bytes,
            limited: false,
            multiprocessors: self.multiprocessors,
            callers: 1,
        }
    }
}

impl GpuList {
    fn text(&self) -> String {
        let line = |gpu: &GpuDocument| {
            let state = match &gpu.failure {
                Some(failure) => failure.clone(),
                None => format!("proves {}", gpu.circuits.join(" ")),
            };
            format!("{}: {} {}: {state}\n", gpu.ordinal, gpu.name, gpu.uuid)
        };
        let gpus = self.gpus.iter().map(line);
        gpus.chain(self.absent.iter().map(|absent| format!("{absent}\n")))
            .collect()
    }
}

fn list(store: &KeyStore) -> GpuList {
    let (count, absent) = match Device::count() {
        Ok(0) => (0, Some("the driver shows no GPU".to_owned())),
        Ok(count) => (count, None),
        Err(error) => (0, Some(error.to_string())),
    };
    let circuits = if count == 0 {
        Vec::new()
    } else {
        with_keys(store)
    };
    GpuList {
        schema: "cuzk.worker-list/1".to_owned(),
        absent,
        gpus: (0..count)
            .map(|ordinal| examine(ordinal, &circuits))
            .collect(),
    }
}

fn examine(ordinal: usize, circuits: &[CircuitId]) -> GpuDocument {
    let mut document = GpuDocument {
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
        uuid: String::new(),
        name: String::new(),
        memory_bytes: 0,
        free_bytes: 0,
        multiprocessors: 0,
        circuits: Vec::new(),
        failure: None,
    };
    // Through the backend, which also says whether this build has code for the device.
    let fitting = GpuBackend::open(ordinal).and_then(|backend| {
        let info = backend.gpu().info();
        document.uuid.clone_from(&info.uuid);
        document.name.clone_from(&info.name);
        document.memory_bytes = info.total_bytes;
        document.free_bytes = backend.gpu().free_bytes()?;
        document.multiprocessors = info.multiprocessors;
        fitting(backend.gpu(), circuits.to_vec(), None)
    });
    match fitting {
        Ok(fitting) => {
            document.circuits = fitting.iter().map(|id| id.name().to_owned()).collect();
        }
        Err(error) => document.failure = Some(error.to_string()),
    }
    document
}
