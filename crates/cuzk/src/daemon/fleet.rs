//! The daemon's workers as the server sees them: devices, and the keys that they have loaded.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuda::PlanTarget;
use engine::scheduler::LeaseId;
use engine::service::Device;
use filecoin::CircuitId;
use groth16::DeviceKind;
use groth16::key::{KeyStore, KeyTrust};
use server::keys::{DeviceFacts, Evicted, KeyError, LoadedKey, Preloaded, Tier};
use server::{Observatory, UnitPhase};
use worker::message::{Hello, Part, Phase};
use worker::{Watcher, WorkerProcess};

use crate::commands::worker::{fits, with_keys};
use crate::failure::Failure;

/// How long loading a key may take: 60 GB over a slow network and every point checked.
const PRELOAD_LIMIT: Duration = Duration::from_secs(3600);
/// How long letting one go may take.
const EVICT_LIMIT: Duration = Duration::from_secs(30);
/// How long a check of a key's files counts.
const CHECKED: Duration = Duration::from_secs(30);

/// A worker and what it is known by.
pub struct Member {
    /// The device.
    pub process: Arc<WorkerProcess>,
    /// Its number as the driver counts, of a GPU.
    pub ordinal: Option<u32>,
    /// What it is called until it says so itself.
    pub model: String,
    /// What proofs may take of a GPU's memory; a CPU can do with any.
    pub room: Option<PlanTarget>,
}

impl Member {
    fn serves(&self, circuit: CircuitId) -> bool {
        self.process.circuits().contains(&circuit)
    }

    fn has_room(&self, circuit: CircuitId) -> bool {
        self.room.is_none_or(|target| fits(circuit, target))
    }
}

/// All workers of the daemon.
pub struct Fleet {
    members: Vec<Member>,
    known: Arc<Known>,
    store: KeyStore,
    kind: DeviceKind,
    checked: Mutex<BTreeMap<CircuitId, (Instant, bool)>>,
    unit_bytes: Mutex<BTreeMap<CircuitId, u64>>,
}

impl Fleet {
    /// `known` is the watcher that the members were made with; `kind` what they are.
    pub fn new(members: Vec<Member>, known: Arc<Known>, store: KeyStore, kind: DeviceKind) -> Self {
        Self {
            members,
            known,
            store,
            kind,
            checked: Mutex::default(),
            unit_bytes: Mutex::default(),
        }
    }

    /// For the engine, in order.
    pub fn devices(&self) -> Vec<Arc<dyn Device>> {
        let device = |member: &Member| Arc::clone(&member.process) as Arc<dyn Device>;
        self.members.iter().map(device).collect()
    }

    /// What the devices are.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// The circuits that any device serves.
    pub fn circuits(&self) -> Vec<CircuitId> {
        let serves = |id: &CircuitId| self.serving(*id).next().is_some();
        CircuitId::all().filter(serves).collect()
    }

    /// Tells all workers to end and waits until they are gone; they are killed when their grace is
    /// over. Says whether all are gone.
    pub fn stop(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        for member in &self.members {
            member.process.stop("the daemon ends");
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        self.members
            .iter()
            .all(|member| member.process.wait_gone(left()))
    }

    fn serving(&self, circuit: CircuitId) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(move |member| member.serves(circuit))
    }

    /// Checks the keys that are in the folders at present.
    pub fn check_all(&self) -> Vec<(CircuitId, Result<(), KeyError>)> {
        let mut circuits = self.circuits();
        circuits.extend(with_keys(&self.store));
        circuits.sort_unstable();
        circuits.dedup();
        let checked = circuits
            .into_iter()
            .map(|id| (id, server::Keys::check(self, id)));
        checked.collect()
    }

    /// Has every device with the memory for it serve a circuit whose key has been found.
    fn adopt(&self, circuit: CircuitId) {
        let new = |member: &&Member| !member.serves(circuit) && member.has_room(circuit);
        for member in self.members.iter().filter(new) {
            let worker = member.process.name();
            tracing::info!(worker, %circuit, "the key has come: served from now on");
            member.process.serve(circuit);
        }
    }

    fn checked(&self) -> MutexGuard<'_, BTreeMap<CircuitId, (Instant, bool)>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the key's files as far as that takes no time; says whether it is a test key.
    fn open(&self, circuit: CircuitId) -> Result<bool, Failure> {
        let spec = circuit.key_spec(&*circuit.compiled()?);
        self.store.locate_proving_key(&spec)?;
        let key = self.store.verifying_key(&spec)?;
        Ok(matches!(key.trust, KeyTrust::Test { .. }))
    }
}

impl server::Keys for Fleet {
    fn devices(&self) -> Vec<DeviceFacts> {
        let workers = self.known.workers();
        let facts = |member: &Member| {
            let hello = workers
                .get(&member.process.name())
                .and_then(|w| w.hello.as_ref());
            let free = workers
                .get(&member.process.name())
                .and_then(|worker| worker.memory_free);
            let memory_total = match hello.and_then(|hello| hello.memory_bytes) {
                Some(bytes) => bytes,
                None => server::config::host_memory(),
            };
            DeviceFacts {
                model: hello.map_or_else(|| member.model.clone(), |hello| hello.device.clone()),
                ordinal: member.ordinal,
                memory_total,
                memory_free: match self.kind {
                    DeviceKind::Gpu => free.unwrap_or(0),
                    _ => crate::memory::available().unwrap_or(0),
                },
            }
        };
        self.members.iter().map(facts).collect()
    }

    fn loaded(&self) -> Vec<LoadedKey> {
        let mut loaded: BTreeMap<CircuitId, LoadedKey> = BTreeMap::new();
        let workers = self.known.workers();
        for member in &self.members {
            let Some(worker) = workers.get(&member.process.name()) else {
                continue;
            };
            for (&circuit, &(bytes, used)) in &worker.keys {
                let idle_secs = used.elapsed().as_secs_f64();
                let key = loaded.entry(circuit).or_insert_with(|| LoadedKey {
                    circuit,
                    tier: if self.kind == DeviceKind::Gpu {
                        Tier::Hot
                    } else {
                        Tier::Warm
                    },
                    bytes: 0,
                    references: 0,
                    idle_secs,
                    test_key: self.checked().get(&circuit).is_some_and(|(_, test)| *test),
                });
                key.bytes += bytes;
                key.idle_secs = key.idle_secs.min(idle_secs);
                let units = member.process.units_of(circuit);
                key.references += u32::try_from(units).unwrap_or(u32::MAX);
            }
        }
        loaded.into_values().collect()
    }

    fn check(&self, circuit: CircuitId) -> Result<(), KeyError> {
        let known = self.checked().get(&circuit).copied();
        if known.is_some_and(|(when, _)| when.elapsed() < CHECKED) {
            return Ok(());
        }
        let test = self.open(circuit).map_err(|failure| key_error(&failure))?;
        self.adopt(circuit);
        self.checked().insert(circuit, (Instant::now(), test));
        Ok(())
    }

    fn unit_bytes(&self, circuit: CircuitId) -> u64 {
        let known = || {
            self.unit_bytes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(bytes) = known().get(&circuit) {
            return *bytes;
        }
        // A build whose circuits cannot be read proves nothing anyway.
        let Ok(compiled) = circuit.compiled() else {
            return u64::MAX;
        };
        let bytes = worker::unit_bytes(&compiled, self.kind);
        known().insert(circuit, bytes);
        bytes
    }

    fn preload(&self, circuit: CircuitId) -> Result<Preloaded, KeyError> {
        self.check(circuit)?;
        let (sender, answers) = channel();
        let asked = self.serving(circuit).map(|member| {
            let sender = sender.clone();
            // Whoever waited may have given up.
            let reply = move |answer| drop(sender.send(answer));
            member.process.preload(circuit, Box::new(reply));
        });
        let asked = asked.count();
        drop(sender);
        if asked == 0 {
            return Err(KeyError {
                code: "NO_DEVICE".to_owned(),
                message: format!("no device serves {circuit}; `cuzk doctor` shows the devices"),
            });
        }
        let mut result = Preloaded {
            already_loaded: true,
            load_ms: 0,
        };
        let deadline = Instant::now() + PRELOAD_LIMIT;
        for _ in 0..asked {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = answers.recv_timeout(left).unwrap_or_else(|_| {
                Err(format!(
                    "loading took longer than {} s",
                    PRELOAD_LIMIT.as_secs()
                ))
            });
            let (already, ms) = answer.map_err(|message| KeyError {
                code: "KEY_NOT_LOADED".to_owned(),
                message: format!("{circuit}: {message}"),
            })?;
            result.already_loaded &= already;
            result.load_ms = result.load_ms.max(ms);
        }
        Ok(result)
    }

    fn evict(&self, circuit: CircuitId) -> Result<Evicted, KeyError> {
        let (sender, answers) = channel();
        for member in &self.members {
            let sender = sender.clone();
            let reply = move |answer| drop(sender.send(answer));
            member.process.evict(circuit, Box::new(reply));
        }
        drop(sender);
        let (mut was_loaded, mut freed) = (false, 0);
        let deadline = Instant::now() + EVICT_LIMIT;
        for _ in &self.members {
            let left = deadline.saturating_duration_since(Instant::now());
            // A worker that is gone holds no key.
            if let Ok(Ok((was, bytes))) = answers.recv_timeout(left) {
                was_loaded |= was;
                freed += bytes;
            }
        }
        Ok(match (was_loaded, freed) {
            (false, _) => Evicted::NotLoaded,
            (true, 0) => Evicted::InUse,
            (true, bytes) => Evicted::Freed { bytes },
        })
    }
}

fn key_error(failure: &Failure) -> KeyError {
    let causes: Vec<_> = failure
        .causes
        .iter()
        .map(|cause| format!(": {cause}"))
        .collect();
    KeyError {
        code: failure.code.to_owned(),
        message: format!("{}{}; {}", failure.message, causes.concat(), failure.remedy),
    }
}

/// What workers have said of themselves, by their names.
pub struct Known {
    workers: Mutex<BTreeMap<String, Worker>>,
    observatory: Arc<Observatory>,
}

#[derive(Default)]
struct Worker {
    hello: Option<Hello>,
    memory_free: Option<u64>,
    /// Bytes, and when a unit last used it.
    keys: BTreeMap<CircuitId, (u64, Instant)>,
}

impl Known {
    /// Nothing yet; units' phases go to the observatory.
    pub fn new(observatory: Arc<Observatory>) -> Self {
        Self {
            workers: Mutex::default(),
            observatory,
        }
    }

    fn workers(&self) -> MutexGuard<'_, BTreeMap<String, Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Known {
    fn hello(&self, worker: &str, hello: &Hello) {
        let mut workers = self.workers();
        workers.entry(worker.to_owned()).or_default().hello = Some(hello.clone());
    }

    fn memory(&self, worker: &str, free: u64) {
        let mut workers = self.workers();
        workers.entry(worker.to_owned()).or_default().memory_free = Some(free);
    }

    fn phases(&self, worker: &str, circuit: CircuitId, lease: LeaseId, phases: &[Phase]) {
        let mut workers = self.workers();
        let known = workers.entry(worker.to_owned()).or_default();
        if let Some((_, used)) = known.keys.get_mut(&circuit) {
            *used = Instant::now();
        }
        drop(workers);
        let told = phases.iter().map(|phase| UnitPhase {
            name: phase.name.clone(),
            kind: match phase.part {
                Part::Load => "load",
                Part::Witness => "prepare",
                Part::Device => "prove",
            },
            start_us: phase.start_us,
            time_us: phase.time_us,
        });
        self.observatory.phases(lease, told.collect());
    }

    fn key(&self, worker: &str, circuit: CircuitId, loaded: bool, bytes: u64) {
        tracing::info!(worker, %circuit, bytes, loaded, "key");
        let mut workers = self.workers();
        let keys = &mut workers.entry(worker.to_owned()).or_default().keys;
        if loaded {
            keys.insert(circuit, (bytes, Instant::now()));
        } else {
            keys.remove(&circuit);
        }
    }

    fn gone(&self, worker: &str, _cause: &str) {
        let mut workers = self.workers();
        let known = workers.entry(worker.to_owned()).or_default();
        known.keys.clear();
        known.memory_free = None;
    }
}
