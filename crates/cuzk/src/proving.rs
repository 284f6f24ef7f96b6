//! Units of requests to verified proofs, by the pipeline that workers use too.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use cuda::GpuBackend;
use filecoin::Request;
use groth16::{Backend, DeviceKind, GroupSums, Proof};
use pipeline::{CircuitKey, Lane, Limits, Pipeline, Pools, Spans, Statement, Work};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::failure::{Exit, Failure};
use crate::memory;
use crate::progress::Progress;
use crate::table;

/// The most proofs that are under way on a GPU: with a streamed key they share a pass.
pub const GPU_PROOFS_MAX: usize = 4;
/// Host memory of the units under way on a GPU, by [`pipeline::unit_bytes`]: two Window PoSts of 32 GiB
/// on the device and two whose witnesses are made, one of which alone would keep the device waiting.
pub const GPU_UNIT_BYTES: u64 = 32 << 30;
/// Threads that are left to launching, combining and verifying while witnesses are made.
pub const THREADS_LEFT: usize = 2;

/// A request whose units are proven; decoded, or bytes that the first of them decodes.
pub struct Source {
    key: Arc<CircuitKey>,
    bytes: Vec<u8>,
    statement: Mutex<Option<Arc<Statement>>>,
}

impl Source {
    /// A decoded request.
    pub fn decoded(key: Arc<CircuitKey>, statement: Arc<Statement>) -> Self {
        Self {
            key,
            bytes: Vec::new(),
            statement: Mutex::new(Some(statement)),
        }
    }

    /// A request in the form in which the daemon stores it.
    pub fn stored(key: Arc<CircuitKey>, bytes: Vec<u8>) -> Self {
        Self {
            key,
            bytes,
            statement: Mutex::default(),
        }
    }

    fn statement(&self, spans: &mut Spans) -> Result<Arc<Statement>, Failure> {
        // Units that come meanwhile wait for the one that decodes.
        let mut known = lock(&self.statement);
        if let Some(statement) = &*known {
            return Ok(Arc::clone(statement));
        }
        let decode = || Statement::new(Request::from_payload(&self.bytes)?);
        let statement = Arc::new(spans.run("decode", Lane::Witness, decode)?);
        *known = Some(Arc::clone(&statement));
        Ok(statement)
    }
}

/// One partition of a request.
pub struct Unit {
    source: Arc<Source>,
    index: usize,
    /// Its witness, if it is there.
    made: Mutex<Option<PackedWitness>>,
}

impl Unit {
    /// Partition `index` of `source`; `made` is its witness, if it is there.
    pub fn new(source: &Arc<Source>, index: usize, made: Option<PackedWitness>) -> Self {
        Self {
            source: Arc::clone(source),
            index,
            made: Mutex::new(made),
        }
    }
}

/// A proof that has been verified.
pub struct Proven {
    /// Which unit, in the order in which they were ordered.
    pub number: usize,
    /// Its proof.
    pub proof: Proof,
    /// What was done for it, and when.
    pub spans: Spans,
}

/// What proves.
pub struct Prover {
    /// Computes the sums.
    pub backend: Arc<dyn Backend>,
    /// The same, if it is a GPU.
    pub gpu: Option<Arc<GpuBackend>>,
    /// Where progress shows.
    pub progress: Progress,
}

impl Prover {
    /// Gives `work` a running pipeline, for so many units of this circuit. When it returns, what is on
    /// the device ends and everything else is dropped.
    ///
    /// # Errors
    /// `work`'s, and `THREADS`.
    pub fn run<T>(
        &self,
        circuit: &CompiledCircuit,
        units: usize,
        work: impl FnOnce(&Session<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let kind = self.backend.device().kind;
        let (limits, pools) = limits(kind, units, circuit)?;
        let (sender, ended) = channel();
        let epoch = self.gpu.as_ref().map(|gpu| gpu.epoch()).transpose()?;
        let stages = Stages {
            backend: Arc::clone(&self.backend),
            epoch,
            progress: self.progress.clone(),
            kind,
            ended: sender,
        };
        let pipeline = Pipeline::new(stages, limits, pools);
        let session = Session {
            pipeline: &pipeline,
            gpu: self.gpu.as_deref(),
            ended,
            ordered: Mutex::default(),
        };
        thread::scope(|scope| {
            let _stops = Stops(&pipeline);
            for role in pipeline.roles() {
                let pipeline = &pipeline;
                let thread = thread::Builder::new().name(role.name().to_owned());
                thread
                    .spawn_scoped(scope, move || pipeline.attend(role))
                    .map_err(|error| no_threads().because(&error))?;
            }
            work(&session)
        })
    }

    /// Proves units and hands each proof to `each`, in order.
    ///
    /// # Errors
    /// The first failure of a unit or of `each`; units after it may be under way, none is begun.
    pub fn prove(
        &self,
        circuit: &CompiledCircuit,
        units: Vec<Unit>,
        mut each: impl FnMut(Proven) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = units.len();
        self.run(circuit, count, |session| {
            units.into_iter().for_each(|unit| session.order(unit));
            let mut early = BTreeMap::new();
            for number in 0..count {
                let proven = loop {
                    if let Some(proven) = early.remove(&number) {
                        break proven;
                    }
                    let proven = session.next()?;
                    early.insert(proven.number, proven);
                };
                each(proven)?;
            }
            Ok(())
        })
    }
}

/// Which unit has ended, and its proof with what was done for it.
type Ended = (usize, Result<(Proof, Spans), Failure>);

/// Ends a pipeline's threads, also when starting them or their user fails.
struct Stops<'a>(&'a Pipeline<Stages>);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A running pipeline.
pub struct Session<'a> {
    pipeline: &'a Pipeline<Stages>,
    gpu: Option<&'a GpuBackend>,
    ended: Receiver<Ended>,
    ordered: Mutex<usize>,
}

impl Session<'_> {
    /// Orders a unit.
    pub fn order(&self, unit: Unit) {
        let mut ordered = lock(&self.ordered);
        self.pipeline.prove(*ordered, unit);
        *ordered += 1;
    }

    /// Bytes that have gone to the GPU, and come from it.
    pub fn traffic(&self) -> Option<(u64, u64)> {
        self.gpu.map(|gpu| gpu.gpu().traffic().bytes())
    }

    /// Waits for the next proof; they come in the order in which they are made.
    ///
    /// # Errors
    /// Why a unit has none.
    pub fn next(&self) -> Result<Proven, Failure> {
        let (number, result) = self
            .ended
            .recv()
            .map_err(|_| stopped("its threads ended"))?;
        let (proof, spans) = result?;
        if number == 0
            && let Some(memory) = self.gpu.map(GpuBackend::memory).transpose()?.flatten()
        {
            // Now it is known for how many there is memory.
            self.pipeline.set_device_units(memory.proofs);
        }
        Ok(Proven {
            number,
            proof,
            spans,
        })
    }
}

/// How much may be under way.
fn limits(
    kind: DeviceKind,
    units: usize,
    circuit: &CompiledCircuit,
) -> Result<(Limits, Option<Pools>), Failure> {
    let threads = rayon::current_num_threads();
    let available = memory::available().unwrap_or(u64::MAX);
    if kind == DeviceKind::Gpu {
        let bytes = available.min(GPU_UNIT_BYTES);
        let at_a_time = units.clamp(1, GPU_PROOFS_MAX);
        let pools = Pools::new(threads.saturating_sub(THREADS_LEFT));
        let pools = pools.map_err(|error| no_threads().because(&error))?;
        return Ok((Limits::new(at_a_time, threads, bytes), Some(pools)));
    }
    // Sums take all threads for as long as a unit lasts: one witness is made beside them.
    let limits = Limits {
        preparers: 1,
        urgent: false,
        device_threads: 1,
        device_units: 1,
        finishers: 1,
        ahead: 1,
        bytes: available.max(pipeline::unit_bytes(circuit, kind)),
    };
    Ok((limits, None))
}

/// What the pipeline does with a unit.
struct Stages {
    backend: Arc<dyn Backend>,
    /// From which it counts its spans.
    epoch: Option<Instant>,
    progress: Progress,
    kind: DeviceKind,
    ended: Sender<Ended>,
}

impl Work for Stages {
    type Id = usize;
    type Unit = Unit;
    type Ready = PackedWitness;
    type Sums = GroupSums;
    type Proof = Proof;
    type Error = Failure;

    fn bytes(&self, unit: &Unit) -> u64 {
        pipeline::unit_bytes(&unit.source.key.circuit, self.kind)
    }

    fn prepare(&self, unit: &Unit, spans: &mut Spans) -> Result<PackedWitness, Failure> {
        let statement = unit.source.statement(spans)?;
        if let Some(made) = lock(&unit.made).take() {
            statement.accept(unit.index, &made)?;
            return Ok(made);
        }
        let _line = self.progress.stage("making the witness", 0);
        Ok(statement.witness(unit.index, &unit.source.key.circuit, spans)?)
    }

    fn sums(
        &self,
        unit: &Unit,
        ready: &PackedWitness,
        spans: &mut Spans,
    ) -> Result<GroupSums, Failure> {
        let key = &unit.source.key;
        Ok(pipeline::sums(
            &*self.backend,
            self.epoch,
            key,
            ready,
            spans,
        )?)
    }

    fn finish(
        &self,
        unit: &Unit,
        ready: PackedWitness,
        sums: GroupSums,
        spans: &mut Spans,
    ) -> Result<Proof, Failure> {
        Ok(pipeline::finish(&unit.source.key, &ready, &sums, spans)?)
    }

    fn panicked(&self, text: &str) -> Failure {
        stopped(text)
    }

    fn ended(&self, id: usize, _: &Unit, result: Result<Proof, Failure>, spans: Spans) {
        // Nobody listens any more after a failure.
        let _ = self.ended.send((id, result.map(|proof| (proof, spans))));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is said where threads cannot be started.
pub fn no_threads() -> Failure {
    Failure::new(
        Exit::Resources,
        "THREADS",
        "cannot start the threads that prove",
        "ask for fewer with --threads, or raise the limit (ulimit -u, cgroup pids.max)",
    )
}

fn stopped(cause: &str) -> Failure {
    let mut failure = Failure::new(
        Exit::Internal,
        "PROVING_STOPPED",
        "a thread that makes proofs stopped",
        "this is a defect: please report it with the command line and the request",
    );
    failure.cause(cause.to_owned());
    failure
}

/// Most bytes of witnesses that are kept from the check, beside the first.
const WITNESS_BUDGET: u64 = 1 << 30;

/// How many partitions' witnesses to keep from the check until they are proven. The others, such as most of the
/// 126 of a non-interactive PoRep, are made again while the one before is proven.
pub fn witnesses_to_keep(circuit: &CompiledCircuit, device: DeviceKind) -> usize {
    let free = memory::available().map_or(u64::MAX, |free| {
        free.saturating_sub(pipeline::unit_bytes(circuit, device)) / 2
    });
    let more = free.min(WITNESS_BUDGET) / pipeline::packed_bytes(circuit).max(1);
    1 + usize::try_from(more).unwrap_or(usize::MAX - 1)
}

/// Refuses a proof for which there is certainly not the memory, before the system kills it halfway.
///
/// # Errors
/// `MEMORY`, with both figures.
pub fn check_memory(circuit: &CompiledCircuit, device: DeviceKind) -> Result<(), Failure> {
    let needed = pipeline::unit_bytes(circuit, device);
    match memory::available() {
        Some(free) if free < needed => Err(Failure::new(
            Exit::Resources,
            "MEMORY",
            format!(
                "proving needs at least {} of memory, {} are available",
                table::bytes(needed),
                table::bytes(free)
            ),
            "free memory, raise this process's limit (container, ulimit -v), or use a larger machine",
        )),
        _ => Ok(()),
    }
}
