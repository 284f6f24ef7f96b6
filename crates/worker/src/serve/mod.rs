//! The worker's end: orders in, reports out, around any [`Prover`].
//!
//! ```text
//! reader ──▶ pipeline: decode, check, witness ──▶ the device ──▶ assemble, verify
//! heartbeat thread: beats as long as the work moves on
//! keys thread: loads and lets go of keys as told
//! ```

mod phases;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use engine::scheduler::{Fault, LeaseId};
use filecoin::CircuitId;
use pipeline::{Lane, Limits, Pipeline, Pools, Role, Spans, Work};

use crate::Error;
use crate::message::{self, Heard, Hello, Order, Report, Unit};
use crate::pulse::Pulse;
use crate::requests::Requests;

/// What proves units in a worker. The calls come from several threads.
pub trait Prover: Send + Sync + 'static {
    /// A decoded request; its units share it.
    type Request: Send + Sync + 'static;
    /// A unit that only needs the device.
    type Prepared: Send + 'static;
    /// What the device computes.
    type Sums: Send + 'static;

    /// What this worker is.
    fn hello(&self) -> Hello;

    /// Whether the device is sound; called once, before the first unit.
    ///
    /// # Errors
    /// What is wrong: the worker ends with it.
    fn self_test(&self) -> Result<(), String> {
        Ok(())
    }

    /// How much is under way at a time: by default one unit on the device, and one ahead of it.
    fn limits(&self) -> Limits {
        Limits {
            preparers: 1,
            urgent: true,
            device_threads: 1,
            device_units: 1,
            finishers: 1,
            ahead: 2,
            bytes: u64::MAX,
        }
    }

    /// Where units are prepared, if not in rayon's global pool. Called once.
    fn pools(&self) -> Option<Pools> {
        None
    }

    /// Bytes of host memory that a unit takes from its preparation to its end.
    fn bytes(&self, _unit: &Unit) -> u64 {
        0
    }

    /// How many units may be on the device at a time with the keys that are loaded, of a device where that
    /// depends on them.
    fn at_a_time(&self) -> Option<usize> {
        None
    }

    /// Bytes of the device's memory that are free, of a device with memory of its own.
    fn free_memory(&self) -> Option<u64> {
        None
    }

    /// How far the work is. Moves at least once per [`Settings::stall`] while a unit is at work.
    fn pulse(&self) -> &Pulse;

    /// Decodes a payload, once per job.
    ///
    /// # Errors
    /// Whatever keeps the job's units from being proven.
    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<Self::Request, UnitError>;

    /// Gets a unit ready, without the device.
    ///
    /// # Errors
    /// Whatever keeps the unit from being proven.
    fn prepare(
        &self,
        unit: &Unit,
        request: &Self::Request,
        spans: &mut Spans,
    ) -> Result<Self::Prepared, UnitError>;

    /// What is done on the device.
    ///
    /// # Errors
    /// Whatever keeps the unit from being proven.
    fn sums(
        &self,
        unit: &Unit,
        prepared: &Self::Prepared,
        spans: &mut Spans,
    ) -> Result<Self::Sums, UnitError>;

    /// Makes the proof, and verifies it.
    ///
    /// # Errors
    /// Whatever keeps the unit from being proven.
    fn finish(
        &self,
        unit: &Unit,
        prepared: Self::Prepared,
        sums: Self::Sums,
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError>;

    /// Loads a circuit's key: whether it was there, and the milliseconds that it took.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    fn preload(&self, circuit: CircuitId) -> Result<(bool, u64), String>;

    /// Lets go of a key: whether it was there, and the bytes that became free.
    fn evict(&self, circuit: CircuitId) -> (bool, u64);

    /// The keys that are loaded, with their bytes.
    fn keys(&self) -> Vec<(CircuitId, u64)>;
}

/// Why a unit is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    /// How bad it is.
    pub fault: Fault,
    /// One line, with the remedy.
    pub cause: String,
}

impl UnitError {
    /// With an error's text.
    pub fn new(fault: Fault, error: &dyn std::error::Error) -> Self {
        let cause = error.to_string();
        Self { fault, cause }
    }
}

/// How a worker behaves towards its daemon.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// Pause between heartbeats.
    pub heartbeat: Duration,
    /// A prover that has not moved for so long while it has a unit beats no more: the daemon
    /// replaces the process.
    pub stall: Duration,
}

/// Why serving ended without a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The daemon said so, and no unit is at work.
    Stopped,
    /// The daemon is gone. Threads may still be at work: end the process.
    Abandoned,
}

/// What ends serving.
enum Signal {
    Idle,
    Abandoned,
    Broken(Error),
    Unfit(String),
}

/// Serves one daemon until it says stop or is gone. The threads do not all end with this
/// function: end the process after it.
///
/// # Errors
/// [`Error`] when the daemon cannot be understood; [`Error::Message`] with the reason when the
/// device fails its self-test.
pub fn serve<P: Prover>(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    prover: P,
    settings: Served,
) -> Result<End, Error> {
    let (signals, ended) = channel();
    let (limits, pools) = (prover.limits(), prover.pools());
    let kept = limits.ahead + limits.device_threads + limits.finishers;
    let stages = Stages {
        prover,
        writer: Mutex::new(Box::new(writer)),
        requests: Requests::keeping(kept),
        told: Mutex::default(),
        takes: AtomicUsize::new(0),
        signals,
    };
    let shared = Arc::new(Shared {
        pipeline: Pipeline::new(stages, limits, pools),
    });
    shared
        .stages()
        .send(&Report::Hello(shared.stages().prover.hello()));
    let (chores, keys) = channel();
    start("worker-orders", &shared, move |shared| {
        shared.read(reader, &chores);
    })?;
    start("worker-keys", &shared, move |shared| {
        shared.stages().mind_keys(&keys);
    })?;
    start("worker-test", &shared, |shared| Shared::begin(&shared))?;
    start("worker-heart", &shared, move |shared| shared.beat(settings))?;
    match ended.recv() {
        Ok(Signal::Idle) => Ok(End::Stopped),
        Ok(Signal::Abandoned) | Err(_) => Ok(End::Abandoned),
        Ok(Signal::Broken(error)) => Err(error),
        Ok(Signal::Unfit(cause)) => Err(Error::Message(cause)),
    }
}

fn start<P: Prover>(
    name: &'static str,
    shared: &Arc<Shared<P>>,
    work: impl FnOnce(Arc<Shared<P>>) + Send + 'static,
) -> Result<(), Error> {
    let shared = Arc::clone(shared);
    let thread = Builder::new().name(name.to_owned());
    thread
        .spawn(move || work(shared))
        .map(drop)
        .map_err(|source| Error::Thread { name, source })
}

struct Shared<P: Prover> {
    pipeline: Pipeline<Stages<P>>,
}

/// What the pipeline does with a unit, and says of it.
struct Stages<P: Prover> {
    prover: P,
    writer: Mutex<Box<dyn Write + Send>>,
    requests: Requests<P::Request>,
    /// The keys that the daemon was told of.
    told: Mutex<BTreeMap<CircuitId, u64>>,
    /// How many units at a time it was told; 0 for nothing.
    takes: AtomicUsize,
    signals: Sender<Signal>,
}

impl<P: Prover> Stages<P> {
    fn send(&self, report: &Report) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if message::send(&mut *writer, report).is_err() {
            self.signal(Signal::Abandoned);
        }
    }

    fn signal(&self, signal: Signal) {
        // The first one counts; after it nobody listens.
        let _ = self.signals.send(signal);
    }

    // === the keys thread ===

    fn mind_keys(&self, chores: &Receiver<Order>) {
        for chore in chores {
            let report = match chore {
                Order::Preload { question, circuit } => Report::Preloaded {
                    question,
                    result: caught(|| self.prover.preload(circuit)).unwrap_or_else(Err),
                },
                Order::Evict { question, circuit } => {
                    let (was_loaded, freed) = self.prover.evict(circuit);
                    Report::Evicted {
                        question,
                        was_loaded,
                        freed,
                    }
                }
                _ => continue,
            };
            self.tell_keys();
            self.send(&report);
        }
    }

    /// Tells the daemon which keys have come and gone since it was told last, and how many units may come with
    /// them.
    fn tell_keys(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeMap<_, _> = self.prover.keys().into_iter().collect();
        let tell = |circuit, loaded, bytes| {
            self.send(&Report::KeyLoaded {
                circuit,
                loaded,
                bytes,
            });
        };
        for (&circuit, &bytes) in told.iter().filter(|(id, _)| !now.contains_key(*id)) {
            tell(circuit, false, bytes);
        }
        for (&circuit, &bytes) in now.iter().filter(|(id, _)| !told.contains_key(*id)) {
            tell(circuit, true, bytes);
        }
        *told = now;
        if let Some(at_a_time) = self.prover.at_a_time()
            && self.takes.swap(at_a_time, Ordering::Relaxed) != at_a_time
        {
            self.send(&Report::Takes { at_a_time });
        }
    }

    fn failed(&self, unit: &Unit, error: &UnitError) {
        let UnitError { fault, cause } = error;
        tracing::warn!(
            job = unit.name,
            unit = unit.index,
            ?fault,
            cause,
            "not proven"
        );
        self.send(&Report::failed(unit.lease, *fault, cause));
    }

    fn decode(&self, unit: &Unit, spans: &mut Spans) -> Result<Arc<P::Request>, UnitError> {
        let want = || {
            self.send(&Report::Want {
                digest: unit.digest,
            });
        };
        self.requests.get(&unit.digest, want, |payload| {
            // Others wait for it, also when it panics.
            spans.run("decode", Lane::Witness, || {
                caught(|| self.prover.decode(unit, payload))
                    .unwrap_or_else(|cause| Err(self.broken(cause)))
            })
        })
    }

    /// An error of the whole process, which is replaced.
    fn broken(&self, cause: String) -> UnitError {
        UnitError {
            fault: Fault::Device,
            cause,
        }
    }
}

impl<P: Prover> Work for Stages<P> {
    type Id = LeaseId;
    type Unit = Unit;
    type Ready = P::Prepared;
    type Sums = P::Sums;
    type Proof = Vec<u8>;
    type Error = UnitError;

    fn bytes(&self, unit: &Unit) -> u64 {
        self.prover.bytes(unit)
    }

    fn prepare(&self, unit: &Unit, spans: &mut Spans) -> Result<P::Prepared, UnitError> {
        let request = self.decode(unit, spans)?;
        self.prover.prepare(unit, &request, spans)
    }

    fn sums(
        &self,
        unit: &Unit,
        ready: &P::Prepared,
        spans: &mut Spans,
    ) -> Result<P::Sums, UnitError> {
        self.prover.sums(unit, ready, spans)
    }

    fn finish(
        &self,
        unit: &Unit,
        ready: P::Prepared,
        sums: P::Sums,
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        self.prover.finish(unit, ready, sums, spans)
    }

    fn panicked(&self, text: &str) -> UnitError {
        self.broken(internal_error(text))
    }

    fn left_device(&self, lease: LeaseId) {
        // The daemon chooses the next unit by them.
        self.tell_keys();
        self.send(&Report::LeftDevice { lease });
    }

    fn ended(&self, id: LeaseId, unit: &Unit, result: Result<Vec<u8>, UnitError>, spans: Spans) {
        self.tell_keys();
        match result {
            Ok(proof) => self.send(&Report::returned(id, proof, phases::of(&spans))),
            Err(error) => self.failed(unit, &error),
        }
    }

    fn dropped(&self, lease: LeaseId) {
        self.send(&Report::Discarded { lease });
    }
}

impl<P: Prover> Shared<P> {
    fn stages(&self) -> &Stages<P> {
        self.pipeline.work()
    }

    // === the reader thread ===

    fn read(&self, mut reader: impl Read, chores: &Sender<Order>) {
        let signal = loop {
            match message::hear(&mut reader) {
                Ok(None) => break Signal::Abandoned,
                Err(Error::Pipe(_)) => break Signal::Abandoned,
                Err(error) => break Signal::Broken(error),
                Ok(Some(Heard::Payload(digest, payload))) => {
                    self.stages().requests.arrived(&digest, payload);
                }
                Ok(Some(Heard::Order(order))) => self.obey(order, chores),
            }
        };
        self.stages().signal(signal);
    }

    fn obey(&self, order: Order, chores: &Sender<Order>) {
        match order {
            Order::Prepare(unit) => self.pipeline.prepare(unit.lease, unit),
            Order::Prove(unit) => self.pipeline.prove(unit.lease, unit),
            Order::Discard { lease } => {
                if self.pipeline.discard(lease) {
                    self.stages().send(&Report::Discarded { lease });
                }
            }
            Order::NoPayload {
                digest,
                damaged,
                cause,
            } => {
                let fault = if damaged { Fault::Payload } else { Fault::Try };
                let error = UnitError { fault, cause };
                self.stages().requests.missing(&digest, error);
            }
            // Its thread lives as long as this one.
            Order::Preload { .. } | Order::Evict { .. } => drop(chores.send(order)),
            Order::Stop => {
                self.pipeline.stop();
                // Before the pipeline has threads, nobody else says so.
                if !self.pipeline.is_proving() {
                    self.stages().signal(Signal::Idle);
                }
            }
        }
    }

    // === the threads of the pipeline ===

    /// Tests the device, says that it is ready, and starts the pipeline's threads.
    fn begin(self: &Arc<Self>) {
        let stages = self.stages();
        match caught(|| stages.prover.self_test()) {
            Ok(Ok(())) => stages.send(&Report::Ready),
            Ok(Err(cause)) | Err(cause) => return stages.signal(Signal::Unfit(cause)),
        }
        for role in self.pipeline.roles() {
            let attend = move |shared: Arc<Self>| {
                shared.pipeline.attend(role);
                // The last stage: nothing is under way any more.
                if role == Role::Finish {
                    shared.stages().signal(Signal::Idle);
                }
            };
            if let Err(error) = start(role.name(), self, attend) {
                return stages.signal(Signal::Broken(error));
            }
        }
    }

    // === the heartbeat thread ===

    fn beat(&self, settings: Served) {
        let pulse = self.stages().prover.pulse();
        let mut moved = (pulse.steps(), Instant::now());
        let mut stalled = false;
        loop {
            std::thread::sleep(settings.heartbeat);
            for lease in self.pipeline.overdue_drops() {
                self.stages().dropped(lease);
            }
            let steps = pulse.steps();
            if steps != moved.0 || !self.pipeline.is_busy() {
                moved = (steps, Instant::now());
                stalled = false;
            }
            let (stage, done) = pulse.now();
            if moved.1.elapsed() < settings.stall {
                let stage = stage.to_owned();
                let memory_free = self.stages().prover.free_memory();
                self.stages().send(&Report::Heartbeat {
                    stage,
                    done,
                    memory_free,
                });
            } else if !stalled {
                stalled = true;
                let seconds = settings.stall.as_secs();
                tracing::error!(
                    "stage {stage:?} has not moved for {seconds} s: no more heartbeats"
                );
            }
        }
    }
}

/// Runs `work` and turns a panic into its text.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        internal_error(text)
    })
}

fn internal_error(text: &str) -> String {
    format!("internal error: {text}; please report it")
}
