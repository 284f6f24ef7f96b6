//! The daemon's end: a device that is a worker process.

use std::ffi::OsString;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use engine::scheduler::LeaseId;
use engine::service::{Callback, Device, Port, Task, UnitProof};
use filecoin::CircuitId;
use store::Digest;

use crate::Error;
use crate::at_work::AtWork;
use crate::frame::VERSION;
use crate::life::{Life, words};
use crate::log::{self, LastWords};
use crate::message::{self, Hello, Order, Phase, Report, Unit};
use crate::questions::{Question, Questions};

/// How long a process whose pipe has ended may take to end itself.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait for a dead process's last lines.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Where a service manager is told how a daemon is.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// How a worker is started.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// For people: the device, `cpu` or `gpu-0`.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables besides the daemon's own.
    pub environment: Vec<(OsString, OsString)>,
    /// The circuits that the device is to serve; [`WorkerProcess::serve`] adds to them.
    pub circuits: Vec<CircuitId>,
    /// How many units run on it at a time, until it says otherwise.
    pub at_a_time: usize,
    /// How many more of WinningPoSt may run beside those.
    pub lane_places: usize,
    /// How many units beside the running ones it prepares, and as many of WinningPoSt.
    pub look_ahead: usize,
    /// How long a process that was told to stop may go on with its unit before it is killed. Must
    /// be shorter than the scheduler's `stop_limit_ms`.
    pub stop_grace: Duration,
}

/// Sees what workers say beyond what the engine needs. Called from the threads that read the
/// pipes; must return soon.
pub trait Watcher: Send + Sync {
    /// A worker has said what it is.
    fn hello(&self, _worker: &str, _hello: &Hello) {}
    /// A worker is at work on this, so far.
    fn pulse(&self, _worker: &str, _stage: &str, _done: (u64, u64)) {}
    /// So many bytes of a worker's device are free.
    fn memory(&self, _worker: &str, _free: u64) {}
    /// A unit of this circuit is proven, in these phases. Called before the engine hears of it.
    fn phases(&self, _worker: &str, _circuit: CircuitId, _lease: LeaseId, _phases: &[Phase]) {}
    /// A key was loaded, or let go, of so many bytes.
    fn key(&self, _worker: &str, _circuit: CircuitId, _loaded: bool, _bytes: u64) {}
    /// The process is gone.
    fn gone(&self, _worker: &str, _cause: &str) {}
}

/// Sees nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Watcher for Nobody {}

/// A device whose units are proven by a process of its own.
pub struct WorkerProcess {
    spec: Arc<WorkerSpec>,
    watcher: Arc<dyn Watcher>,
    /// Circuits beside those of the spec.
    added: Mutex<Vec<CircuitId>>,
    current: Mutex<Option<Running>>,
    questions: Arc<Questions>,
    at_work: Arc<AtWork>,
}

/// The present process.
struct Running {
    orders: Sender<Job>,
    life: Arc<Life>,
    port: Port,
}

/// What the writing thread does.
enum Job {
    Send(Order),
    Feed(Digest),
}

impl WorkerProcess {
    /// A device that is not started yet.
    pub fn new(spec: WorkerSpec, watcher: Arc<dyn Watcher>) -> Self {
        Self {
            spec: Arc::new(spec),
            watcher,
            added: Mutex::default(),
            current: Mutex::new(None),
            questions: Arc::default(),
            at_work: Arc::default(),
        }
    }

    /// Loads a circuit's key, calls back with whether it was loaded before and the milliseconds
    /// that it took.
    pub fn preload(&self, circuit: CircuitId, reply: Callback<Result<(bool, u64), String>>) {
        let question = self.questions.ask(Question::Preload(reply));
        self.ask(question, Order::Preload { question, circuit });
    }

    /// Lets go of a circuit's key; calls back with whether it was loaded and how many bytes became
    /// free (none if it is in use and stays).
    pub fn evict(&self, circuit: CircuitId, reply: Callback<Result<(bool, u64), String>>) {
        let question = self.questions.ask(Question::Evict(reply));
        self.ask(question, Order::Evict { question, circuit });
    }

    /// Has the device serve one more circuit from now on. The process needs no telling: it looks for a
    /// key when a unit needs it.
    pub fn serve(&self, circuit: CircuitId) {
        let mut added = self.added();
        if self.spec.circuits.contains(&circuit) || added.contains(&circuit) {
            return;
        }
        added.push(circuit);
        drop(added);
        // Before its first start nobody can be told; then the start does it.
        if let Some(running) = self.current().as_ref() {
            running.port.serves(circuit);
        }
    }

    fn added(&self) -> MutexGuard<'_, Vec<CircuitId>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many units of the circuit it has, prepared ones too.
    pub fn units_of(&self, circuit: CircuitId) -> usize {
        let units = self.at_work.units();
        units
            .values()
            .filter(|at_work| **at_work == circuit)
            .count()
    }

    /// The number of its process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.current()
            .as_ref()
            .and_then(|running| running.life.pid())
    }

    /// Waits until its process is gone; says whether it is.
    pub fn wait_gone(&self, timeout: Duration) -> bool {
        let life = self
            .current()
            .as_ref()
            .map(|running| Arc::clone(&running.life));
        life.is_none_or(|life| life.wait_gone(timeout))
    }

    fn ask(&self, question: u64, order: Order) {
        if !self.send(Job::Send(order)) {
            self.questions
                .fail(question, "its process does not run at present");
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Running>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, task: &Task, order: fn(Unit) -> Order) {
        self.at_work.units().insert(task.lease, task.job.circuit);
        self.send(Job::Send(order(unit(task))));
    }

    /// Says whether somebody takes it.
    fn send(&self, job: Job) -> bool {
        let current = self.current();
        current
            .as_ref()
            .is_some_and(|running| running.orders.send(job).is_ok())
    }
}

impl Device for WorkerProcess {
    fn name(&self) -> String {
        self.spec.name.clone()
    }

    fn circuits(&self) -> Vec<CircuitId> {
        let mut circuits = self.spec.circuits.clone();
        circuits.extend(self.added().iter());
        circuits
    }

    fn at_a_time(&self) -> usize {
        self.spec.at_a_time
    }

    fn lane_places(&self) -> usize {
        self.spec.lane_places
    }

    fn look_ahead(&self) -> usize {
        self.spec.look_ahead
    }

    fn start(&self, port: Port) {
        let (orders, queue) = channel();
        let life = Arc::new(Life::default());
        *self.current() = Some(Running {
            orders: orders.clone(),
            life: Arc::clone(&life),
            port: port.clone(),
        });
        for circuit in self.added().iter() {
            port.serves(*circuit);
        }
        let process = Process {
            spec: Arc::clone(&self.spec),
            watcher: Arc::clone(&self.watcher),
            questions: Arc::clone(&self.questions),
            at_work: Arc::clone(&self.at_work),
            port: port.clone(),
            life: Arc::clone(&life),
            orders,
        };
        let thread = Builder::new().name(format!("worker {}", self.spec.name));
        if let Err(error) = thread.spawn(move || process.run(queue)) {
            life.end();
            port.stopped(&format!(
                "no thread for it: {error}; raise the limit of processes"
            ));
        }
    }

    fn prepare(&self, task: Task) {
        self.give(&task, Order::Prepare);
    }

    fn prove(&self, task: Task) {
        self.give(&task, Order::Prove);
    }

    fn discard(&self, lease: LeaseId) {
        self.send(Job::Send(Order::Discard { lease }));
    }

    fn stop(&self, cause: &str) {
        let Some(life) = self
            .current()
            .as_ref()
            .map(|running| Arc::clone(&running.life))
        else {
            return;
        };
        if life.wait_gone(Duration::ZERO) {
            return;
        }
        tracing::info!(worker = self.spec.name, cause, "told to stop");
        self.send(Job::Send(Order::Stop));
        let grace = self.spec.stop_grace;
        let killer = {
            let life = Arc::clone(&life);
            move || {
                if !life.wait_gone(grace) {
                    life.kill();
                }
            }
        };
        let thread = Builder::new().name("worker stop".to_owned());
        if thread.spawn(killer).is_err() {
            life.kill();
        }
    }
}

impl Drop for WorkerProcess {
    /// Nobody will hear of the process again.
    fn drop(&mut self) {
        if let Some(running) = self.current().take() {
            running.life.kill();
        }
    }
}

fn unit(task: &Task) -> Unit {
    Unit {
        lease: task.lease,
        job: task.unit.job,
        name: task.job.name.clone(),
        circuit: task.job.circuit,
        digest: task.job.digest,
        index: task.unit.index,
        units: task.job.units,
    }
}

/// One process, from its start to its end. Lives on the thread that reads what it says.
struct Process {
    spec: Arc<WorkerSpec>,
    watcher: Arc<dyn Watcher>,
    questions: Arc<Questions>,
    at_work: Arc<AtWork>,
    port: Port,
    life: Arc<Life>,
    orders: Sender<Job>,
}

/// The ends of its pipes.
struct Pipes {
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
}

impl Process {
    fn run(self, queue: Receiver<Job>) {
        let cause = match self.begin() {
            Err(cause) => {
                self.life.end();
                cause
            }
            Ok(pipes) => self.attend(pipes, queue),
        };
        self.questions.fail_all(&cause);
        self.at_work.units().clear();
        tracing::info!(worker = self.spec.name, cause, "worker ended");
        self.watcher.gone(&self.spec.name, &cause);
        self.port.stopped(&cause);
    }

    fn begin(&self) -> Result<Pipes, String> {
        let spec = &self.spec;
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.arguments)
            .envs(spec.environment.iter().cloned())
            // The service manager hears of the daemon from the daemon alone.
            .env_remove(NOTIFY_SOCKET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Of its own, so that a terminal's Ctrl-C reaches the daemon alone, which drains.
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|e| format!("{} cannot be started: {e}", spec.program.display()))?;
        tracing::info!(worker = spec.name, pid = child.id(), "worker started");
        let pipes = pipes(&mut child);
        self.life.begin(child);
        pipes.ok_or_else(|| "it was started without pipes".to_owned())
    }

    /// Attends to the process until it is gone; returns why it is.
    fn attend(&self, pipes: Pipes, queue: Receiver<Job>) -> String {
        let last = LastWords::default();
        let (done, silent) = channel::<()>();
        let forwarder = {
            let (name, last, errors) = (self.spec.name.clone(), last.clone(), pipes.errors);
            move || {
                log::forward(&name, errors, &last);
                drop(done);
            }
        };
        let writer = {
            let (port, input) = (self.port.clone(), pipes.input);
            move || write(&port, BufWriter::with_capacity(64 << 10, input), &queue)
        };
        let started = Builder::new()
            .name("worker log".to_owned())
            .spawn(forwarder)
            .and_then(|_| Builder::new().name("worker feed".to_owned()).spawn(writer));
        let read = match started {
            Ok(_) => self.read(&mut BufReader::with_capacity(64 << 10, pipes.output)),
            Err(source) => Err(Error::Thread {
                name: "worker feed",
                source,
            }),
        };
        if read.is_err() {
            self.life.kill();
        }
        let status = self.life.reap(EXIT_PATIENCE);
        // Only a guard against a descendant that holds the pipe open.
        let _: Result<(), RecvTimeoutError> = silent.recv_timeout(LAST_WORDS);
        let ended = words(status);
        let in_order = status.is_some_and(|status| status.success());
        match (read, last.get().filter(|_| !in_order)) {
            (Err(error), _) => format!("{error} ({ended})"),
            (Ok(()), Some(line)) => format!("{ended}; last it said: {line}"),
            (Ok(()), None) => ended,
        }
    }

    fn read(&self, output: &mut impl std::io::Read) -> Result<(), Error> {
        match message::hear_report(output)? {
            None => return Ok(()),
            Some(Report::Hello(hello)) => self.greet(&hello)?,
            Some(_) => return Err(Error::Unexpected("a worker that does not say what it is")),
        }
        while let Some(report) = message::hear_report(output)? {
            self.take(report)?;
        }
        Ok(())
    }

    fn greet(&self, hello: &Hello) -> Result<(), Error> {
        let (name, device) = (&self.spec.name, &hello.device);
        let lacks = |circuit: &&CircuitId| !hello.circuits.contains(circuit);
        let lacking: Vec<_> = self.spec.circuits.iter().filter(lacks).collect();
        tracing::info!(
            worker = name,
            device,
            uuid = hello.uuid,
            version = VERSION,
            "worker is up"
        );
        if !lacking.is_empty() {
            let circuits = lacking
                .iter()
                .map(|c| c.name())
                .collect::<Vec<_>>()
                .join(" ");
            tracing::warn!(
                worker = name,
                circuits,
                "the device cannot serve these circuits"
            );
        }
        self.watcher.hello(name, hello);
        Ok(())
    }

    fn take(&self, report: Report) -> Result<(), Error> {
        let (name, port) = (&self.spec.name, &self.port);
        match report {
            Report::Hello(_) => return Err(Error::Unexpected("a second hello")),
            Report::Ready => port.ready(),
            Report::Heartbeat {
                stage,
                done,
                memory_free,
            } => {
                self.watcher.pulse(name, &stage, done);
                if let Some(bytes) = memory_free {
                    self.watcher.memory(name, bytes);
                }
                port.heartbeat();
            }
            Report::KeyLoaded {
                circuit,
                loaded,
                bytes,
            } => {
                self.watcher.key(name, circuit, loaded, bytes);
                port.key_loaded(circuit, loaded);
            }
            Report::Takes { at_a_time } => port.takes(at_a_time),
            // Its writer may be gone with the process.
            Report::Want { digest } => drop(self.orders.send(Job::Feed(digest))),
            Report::LeftDevice { lease } => port.left_device(lease),
            Report::Returned {
                lease,
                proof,
                phases,
            } => {
                if let Some(circuit) = self.at_work.units().remove(&lease) {
                    self.watcher.phases(name, circuit, lease, &phases);
                }
                let (bytes, timings) = (proof, message::timings(&phases));
                port.returned(lease, UnitProof { bytes, timings });
            }
            Report::Failed {
                lease,
                fault,
                cause,
            } => {
                tracing::warn!(worker = name, lease = lease.0, ?fault, cause, "unit failed");
                self.at_work.units().remove(&lease);
                port.failed(lease, fault, &cause);
            }
            Report::Discarded { lease } => {
                self.at_work.units().remove(&lease);
                port.discarded(lease);
            }
            Report::Preloaded { question, result } => self.questions.preloaded(question, result),
            Report::Evicted {
                question,
                was_loaded,
                freed,
            } => self.questions.evicted(question, (was_loaded, freed)),
        }
        Ok(())
    }
}

fn pipes(child: &mut Child) -> Option<Pipes> {
    Some(Pipes {
        input: child.stdin.take()?,
        output: child.stdout.take()?,
        errors: child.stderr.take()?,
    })
}

/// Writes orders and payloads until the process or the device is gone.
fn write(port: &Port, mut input: impl Write, queue: &Receiver<Job>) {
    for job in queue {
        let written = match job {
            Job::Send(order) => message::send(&mut input, &order),
            Job::Feed(digest) => feed(port, &mut input, digest),
        };
        // Whoever reads the other pipe finds out why.
        if written.is_err() {
            break;
        }
    }
}

fn feed(port: &Port, input: &mut impl Write, digest: Digest) -> Result<(), Error> {
    let (damaged, cause) = match port.payload(&digest) {
        Ok(payload) => match message::send_payload(input, &digest, &payload) {
            Err(error @ Error::Frame(_)) => (true, error.to_string()),
            sent => return sent,
        },
        Err(error) => {
            let lasting = matches!(&error, engine::Error::Store(cause) if !cause.is_temporary());
            (lasting, error.to_string())
        }
    };
    message::send(
        input,
        &Order::NoPayload {
            digest,
            damaged,
            cause,
        },
    )
}
