//! The worker's end: orders in, reports out, around any [`Prover`].
//!
//! ```text
//! reader ──▶ units ──▶ look-ahead thread: decode, check, witness
//!                 └──▶ prover thread: the device (prepares itself what was not prepared)
//! heartbeat thread: beats as long as the prover thread moves on
//! keys thread: loads and lets go of keys as told
//! ```

mod units;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::scheduler::Fault;
use filecoin::CircuitId;

use crate::Error;
use crate::message::{self, Heard, Hello, Order, Part, Phase, Report, Unit};
use crate::pulse::Pulse;
use crate::requests::Requests;
use units::{Next, Units};

/// What proves units in a worker. The calls come from several threads.
pub trait Prover: Send + Sync + 'static {
    /// A decoded request; its units share it.
    type Request: Send + Sync + 'static;
    /// A unit that only needs the device.
    type Prepared: Send + 'static;

    /// What this worker is.
    fn hello(&self) -> Hello;

    /// Whether the device is sound; called once, before the first unit.
    ///
    /// # Errors
    /// What is wrong: the worker ends with it.
    fn self_test(&self) -> Result<(), String> {
        Ok(())
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
        phases: &mut Phases,
    ) -> Result<Self::Prepared, UnitError>;

    /// Proves a unit on the device. The proof has been verified.
    ///
    /// # Errors
    /// Whatever keeps the unit from being proven.
    fn prove(
        &self,
        unit: &Unit,
        request: &Self::Request,
        prepared: Self::Prepared,
        phases: &mut Phases,
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

/// The phases of a unit, as they come.
#[derive(Debug, Default)]
pub struct Phases(Vec<Phase>);

impl Phases {
    /// Microseconds since the Unix epoch.
    pub fn clock() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
    }

    /// Runs `work` as a phase.
    pub fn run<T>(&mut self, name: &str, part: Part, work: impl FnOnce() -> T) -> T {
        let (start, began) = (Self::clock(), Instant::now());
        let result = work();
        self.add(name, part, start, began.elapsed());
        result
    }

    /// Adds a phase that was timed elsewhere; it began at `start_us`.
    pub fn add(&mut self, name: &str, part: Part, start_us: u64, time: Duration) {
        self.0.push(Phase {
            name: name.to_owned(),
            part,
            start_us,
            time_us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        });
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
    let shared = Arc::new(Shared {
        prover,
        writer: Mutex::new(Box::new(writer)),
        units: Units::new(),
        requests: Requests::default(),
        told: Mutex::default(),
        signals,
    });
    shared.send(&Report::Hello(shared.prover.hello()));
    let (chores, keys) = channel();
    start("worker-orders", &shared, move |shared| {
        shared.read(reader, &chores);
    })?;
    start("worker-keys", &shared, move |shared| {
        shared.mind_keys(&keys);
    })?;
    start("worker-ahead", &shared, Shared::look_ahead)?;
    start("worker-prover", &shared, Shared::prove_units)?;
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
    work: impl FnOnce(&Shared<P>) + Send + 'static,
) -> Result<(), Error> {
    let shared = Arc::clone(shared);
    let thread = Builder::new().name(name.to_owned());
    thread
        .spawn(move || work(&shared))
        .map(drop)
        .map_err(|source| Error::Thread { name, source })
}

struct Shared<P: Prover> {
    prover: P,
    writer: Mutex<Box<dyn Write + Send>>,
    units: Units<(Arc<P::Request>, P::Prepared)>,
    requests: Requests<P::Request>,
    /// The keys that the daemon was told of.
    told: Mutex<BTreeMap<CircuitId, u64>>,
    signals: Sender<Signal>,
}

impl<P: Prover> Shared<P> {
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

    // === the reader thread ===

    fn read(&self, mut reader: impl Read, chores: &Sender<Order>) {
        let signal = loop {
            match message::hear(&mut reader) {
                Ok(None) => break Signal::Abandoned,
                Err(Error::Pipe(_)) => break Signal::Abandoned,
                Err(error) => break Signal::Broken(error),
                Ok(Some(Heard::Payload(digest, payload))) => {
                    self.requests.arrived(&digest, payload);
                }
                Ok(Some(Heard::Order(order))) => self.obey(order, chores),
            }
        };
        self.signal(signal);
    }

    fn obey(&self, order: Order, chores: &Sender<Order>) {
        match order {
            Order::Prepare(unit) => self.units.prepare(&unit),
            Order::Prove(unit) => self.units.prove(&unit),
            Order::Discard { lease } => {
                if self.units.discard(lease) {
                    self.send(&Report::Discarded { lease });
                }
            }
            Order::NoPayload {
                digest,
                damaged,
                cause,
            } => {
                let fault = if damaged { Fault::Payload } else { Fault::Try };
                self.requests.missing(&digest, UnitError { fault, cause });
            }
            // Its thread lives as long as this one.
            Order::Preload { .. } | Order::Evict { .. } => drop(chores.send(order)),
            Order::Stop => {
                if self.units.stop() {
                    self.signal(Signal::Idle);
                }
            }
        }
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

    /// Tells the daemon which keys have come and gone since it was told last.
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
    }

    // === the look-ahead thread ===

    fn look_ahead(&self) {
        while let Some((unit, mut phases)) = self.units.next_to_prepare() {
            let lease = unit.lease;
            let prepared = self.prepare(&unit, &mut phases);
            match self.units.prepared(lease, prepared, phases) {
                Some(Ok(())) => {}
                Some(Err(error)) => self.failed(&unit, &error),
                None => self.send(&Report::Discarded { lease }),
            }
        }
    }

    fn prepare(
        &self,
        unit: &Unit,
        phases: &mut Phases,
    ) -> Result<(Arc<P::Request>, P::Prepared), UnitError> {
        let want = || {
            self.send(&Report::Want {
                digest: unit.digest,
            });
        };
        let request = self.requests.get(&unit.digest, want, |payload| {
            phases.run("decode", Part::Witness, || {
                blamed(|| self.prover.decode(unit, payload))
            })
        })?;
        let prepared = blamed(|| self.prover.prepare(unit, &request, phases))?;
        Ok((request, prepared))
    }

    // === the prover thread ===

    fn prove_units(&self) {
        match caught(|| self.prover.self_test()) {
            Ok(Ok(())) => self.send(&Report::Ready),
            Ok(Err(cause)) | Err(cause) => return self.signal(Signal::Unfit(cause)),
        }
        loop {
            match self.units.next_to_prove() {
                Next::Stopped => return self.signal(Signal::Idle),
                Next::Unit(unit, ready, mut phases) => {
                    let result = match ready {
                        Some(ready) => Ok(ready),
                        None => self.prepare(&unit, &mut phases),
                    };
                    let proof = result.and_then(|(request, prepared)| {
                        blamed(|| self.prover.prove(&unit, &request, prepared, &mut phases))
                    });
                    self.tell_keys();
                    match proof {
                        Ok(proof) => self.send(&Report::returned(unit.lease, proof, phases.0)),
                        Err(error) => self.failed(&unit, &error),
                    }
                    self.units.done(unit.lease);
                }
            }
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

    // === the heartbeat thread ===

    fn beat(&self, settings: Served) {
        let pulse = self.prover.pulse();
        let mut moved = (pulse.steps(), Instant::now());
        let mut stalled = false;
        loop {
            std::thread::sleep(settings.heartbeat);
            for lease in self.units.overdue_discards() {
                self.send(&Report::Discarded { lease });
            }
            let steps = pulse.steps();
            if steps != moved.0 || !self.units.is_proving() {
                moved = (steps, Instant::now());
                stalled = false;
            }
            let (stage, done) = pulse.now();
            if moved.1.elapsed() < settings.stall {
                let stage = stage.to_owned();
                self.send(&Report::Heartbeat { stage, done });
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

/// Runs `work`; a panic is an error of the whole process, which is replaced.
fn blamed<T>(work: impl FnOnce() -> Result<T, UnitError>) -> Result<T, UnitError> {
    caught(work).unwrap_or_else(|cause| {
        Err(UnitError {
            fault: Fault::Device,
            cause,
        })
    })
}

/// Runs `work` and turns a panic into its text.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("internal error: {text}; please report it")
    })
}
