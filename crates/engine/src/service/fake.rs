//! Stand-ins for tests: a device made of a thread, a judge that knows the right bytes, a store
//! that can be told to fail.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filecoin::CircuitId;
use store::{
    Change, Counts, Digest, Filter, JobId, JobRecord, OpenJob, Retention, SqliteStore, Store,
    Swept, Timings,
};

use super::*;
use crate::scheduler::{Fault, LeaseId};

/// The only right proof of a unit.
pub(super) fn right_proof(digest: &Digest, index: u32) -> Vec<u8> {
    let mut seed = digest.as_bytes().to_vec();
    seed.extend(index.to_le_bytes());
    Digest::of(&seed).as_bytes().repeat(6)
}

/// The only right proof of a job.
pub(super) fn right_job_proof(digest: &Digest, units: u32) -> Vec<u8> {
    (0..units)
        .flat_map(|index| right_proof(digest, index))
        .collect()
}

/// What a device does with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Prove,
    /// The unit leaves the device, its proof comes later.
    Leave,
    Wrong,
    Fail(Fault),
    /// The process ends.
    Die,
    /// The process says nothing any more.
    Hang,
}

enum Order {
    Prepare,
    Prove(Task),
    Discard(LeaseId),
    Stop,
}

type Plan = Box<dyn Fn(&Task) -> Doing + Send + Sync>;

/// A device whose process is a thread.
pub(super) struct FakeDevice {
    name: String,
    unit_time: Duration,
    plan: Arc<Plan>,
    orders: Mutex<Option<Sender<Order>>>,
    /// Units begun.
    pub(super) begun: Arc<AtomicUsize>,
}

impl FakeDevice {
    pub(super) fn new(
        name: &str,
        unit_time: Duration,
        plan: impl Fn(&Task) -> Doing + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            unit_time,
            plan: Arc::new(Box::new(plan)),
            orders: Mutex::new(None),
            begun: Arc::new(AtomicUsize::new(0)),
        })
    }

    fn order(&self, order: Order) {
        if let Some(orders) = self.orders.lock().unwrap().as_ref() {
            let _ = orders.send(order);
        }
    }
}

impl Device for FakeDevice {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn circuits(&self) -> Vec<CircuitId> {
        CircuitId::all().collect()
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn start(&self, port: Port) {
        let (sender, orders) = channel();
        *self.orders.lock().unwrap() = Some(sender);
        let process = Process {
            port,
            unit_time: self.unit_time,
            plan: Arc::clone(&self.plan),
            begun: Arc::clone(&self.begun),
            alive: Arc::new(AtomicBool::new(true)),
        };
        std::thread::spawn(move || process.run(&orders));
    }

    fn prepare(&self, _task: Task) {
        self.order(Order::Prepare);
    }

    fn prove(&self, task: Task) {
        self.order(Order::Prove(task));
    }

    fn discard(&self, lease: LeaseId) {
        self.order(Order::Discard(lease));
    }

    fn stop(&self, _cause: &str) {
        self.order(Order::Stop);
    }
}

struct Process {
    port: Port,
    unit_time: Duration,
    plan: Arc<Plan>,
    begun: Arc<AtomicUsize>,
    /// Its heart beats.
    alive: Arc<AtomicBool>,
}

impl Process {
    fn run(&self, orders: &Receiver<Order>) {
        self.port.ready();
        let (port, alive) = (self.port.clone(), Arc::clone(&self.alive));
        std::thread::spawn(move || {
            while alive.load(Ordering::Relaxed) {
                port.heartbeat();
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        while let Ok(order) = orders.recv() {
            match order {
                Order::Prepare => {}
                Order::Discard(lease) => self.port.discarded(lease),
                Order::Prove(task) => {
                    if !self.prove(&task, orders) {
                        break;
                    }
                }
                Order::Stop => {
                    self.port.stopped("as told");
                    break;
                }
            }
        }
        self.alive.store(false, Ordering::Relaxed);
    }

    /// Returns whether the process goes on.
    fn prove(&self, task: &Task, orders: &Receiver<Order>) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.unit_time);
        let Ok(payload) = self.port.payload(&task.job.digest) else {
            // The service has ended meanwhile.
            return false;
        };
        let digest = Digest::of(&payload);
        let proof = |bytes| UnitProof {
            bytes,
            timings: Timings {
                load_ms: 1,
                witness_ms: 2,
                device_ms: 3,
            },
        };
        match (self.plan)(task) {
            Doing::Prove => {
                self.port
                    .returned(task.lease, proof(right_proof(&digest, task.unit.index)));
            }
            Doing::Leave => {
                self.port.left_device(task.lease);
                let (port, lease, alive) = (self.port.clone(), task.lease, Arc::clone(&self.alive));
                let proof = proof(right_proof(&digest, task.unit.index));
                let time = 3 * self.unit_time;
                std::thread::spawn(move || {
                    std::thread::sleep(time);
                    if alive.load(Ordering::Relaxed) {
                        port.returned(lease, proof);
                    }
                });
            }
            Doing::Wrong => self.port.returned(task.lease, proof(vec![0; 192])),
            Doing::Fail(fault) => self.port.failed(task.lease, fault, "told to fail"),
            Doing::Die => {
                self.port.stopped("killed");
                return false;
            }
            Doing::Hang => {
                self.alive.store(false, Ordering::Relaxed);
                // Only the end of its process ends this.
                while !matches!(orders.recv(), Ok(Order::Stop) | Err(_)) {}
                self.port.stopped("killed");
                return false;
            }
        }
        true
    }
}

/// Knows the right bytes; panics for a job whose name says so.
pub(super) struct FakeJudge;

impl Judge for FakeJudge {
    fn verify(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String> {
        assert!(!job.name.starts_with("panic"), "a fault in the verifier");
        Ok(proof == right_proof(&Digest::of(&payload()?), index))
    }

    fn join(&self, _job: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String> {
        Ok(Joined {
            proof: proofs.concat(),
            test_key: true,
        })
    }
}

/// A store that refuses writes while it is told to.
pub(super) struct MoodyStore {
    pub(super) inner: SqliteStore,
    pub(super) full: AtomicBool,
    /// It fills up with the next write of a lease.
    pub(super) fills_with_claim: AtomicBool,
    /// So long takes the next write, milliseconds.
    pub(super) slow_ms: AtomicUsize,
}

impl MoodyStore {
    pub(super) fn open(folder: &std::path::Path) -> Arc<Self> {
        Arc::new(Self {
            inner: SqliteStore::open(folder).unwrap(),
            full: AtomicBool::new(false),
            fills_with_claim: AtomicBool::new(false),
            slow_ms: AtomicUsize::new(0),
        })
    }
}

impl Store for MoodyStore {
    fn put_payload(&self, source: &mut dyn Read, limit: u64) -> store::Result<(Digest, u64)> {
        self.inner.put_payload(source, limit)
    }

    fn payload(&self, digest: &Digest) -> store::Result<Vec<u8>> {
        self.inner.payload(digest)
    }

    fn renew_payload(&self, digest: &Digest) -> store::Result<()> {
        self.inner.renew_payload(digest)
    }

    fn discard_payload(&self, digest: &Digest) -> store::Result<bool> {
        self.inner.discard_payload(digest)
    }

    fn apply(&self, changes: &[Change]) -> store::Result<()> {
        let slow_ms = self.slow_ms.swap(0, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(slow_ms as u64));
        let claims = |change: &Change| matches!(change, Change::Claim { .. });
        if changes.iter().any(claims) && self.fills_with_claim.swap(false, Ordering::SeqCst) {
            self.full.store(true, Ordering::SeqCst);
        }
        if self.full.load(Ordering::SeqCst) {
            return Err(store::Error::DiskFull {
                path: "jobs.db".into(),
                action: "write",
            });
        }
        self.inner.apply(changes)
    }

    fn job(&self, id: JobId) -> store::Result<Option<JobRecord>> {
        self.inner.job(id)
    }

    fn proof(&self, id: JobId) -> store::Result<Option<Vec<u8>>> {
        self.inner.proof(id)
    }

    fn unit_proofs(&self, id: JobId) -> store::Result<Vec<(u32, Vec<u8>)>> {
        self.inner.unit_proofs(id)
    }

    fn open_jobs(&self) -> store::Result<Vec<OpenJob>> {
        self.inner.open_jobs()
    }

    fn ended_jobs(&self) -> store::Result<Vec<JobRecord>> {
        self.inner.ended_jobs()
    }

    fn list(&self, filter: Filter, offset: u64, limit: u64) -> store::Result<Vec<JobRecord>> {
        self.inner.list(filter, offset, limit)
    }

    fn counts(&self) -> store::Result<Counts> {
        self.inner.counts()
    }

    fn renew(&self, holder: &str, expires_ms: u64) -> store::Result<u64> {
        self.inner.renew(holder, expires_ms)
    }

    fn sweep(&self, retention: &Retention, now_ms: u64) -> store::Result<Swept> {
        self.inner.sweep(retention, now_ms)
    }
}
