//! A whole server around stand-ins: devices that replay what is stored for a payload, a judge
//! that knows it, keys that are noted down.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::Service;
use engine::scheduler::{Fault, LeaseId};
use engine::service::{Device, JobInfo, Joined, Judge, Port, Task, UnitProof};
use filecoin::{CircuitId, SubmitProofRequest};
use server::keys::{DeviceFacts, Evicted, KeyError, LoadedKey, Preloaded, Tier};
use server::proto::v1;
use server::proto::v1::proving_engine_client::ProvingEngineClient;
use server::{Address, Config, Keys, Observatory, Part, Readiness, Server, ServerSettings, client};
use store::{Digest, SqliteStore, Timings};
use tonic::transport::Channel;

/// The calls of the wire.
pub type Calls = ProvingEngineClient<Channel>;

/// The only right proof of a unit.
pub fn right_proof(digest: &Digest, index: u32) -> Vec<u8> {
    let mut seed = digest.as_bytes().to_vec();
    seed.extend(index.to_le_bytes());
    Digest::of(&seed).as_bytes().repeat(6)
}

/// What a device does with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Proves it.
    Prove,
    /// Returns a wrong proof.
    Wrong,
    /// Fails.
    Fail(Fault),
}

enum Order {
    Prove(Task),
    Discard(LeaseId),
    Stop,
}

type Plan = dyn Fn(&Task) -> Doing + Send + Sync;

/// A device made of a thread.
pub struct FakeDevice {
    unit_time: Duration,
    plan: Arc<Plan>,
    orders: Mutex<Option<Sender<Order>>>,
    /// While set, units wait.
    pub held: Arc<AtomicBool>,
}

impl FakeDevice {
    /// One that takes `unit_time` for every unit and does what `plan` says.
    pub fn new(
        unit_time: Duration,
        plan: impl Fn(&Task) -> Doing + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            unit_time,
            plan: Arc::new(plan),
            orders: Mutex::new(None),
            held: Arc::default(),
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
        "stand-in".to_owned()
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
        let (time, plan) = (self.unit_time, Arc::clone(&self.plan));
        let held = Arc::clone(&self.held);
        std::thread::spawn(move || run(&port, &orders, time, &*plan, &held));
    }

    fn prepare(&self, _task: Task) {}

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

fn run(port: &Port, orders: &Receiver<Order>, time: Duration, plan: &Plan, held: &AtomicBool) {
    port.ready();
    let beating = Arc::new(AtomicBool::new(true));
    let (heart, beats) = (port.clone(), Arc::clone(&beating));
    std::thread::spawn(move || {
        while beats.load(Ordering::Relaxed) {
            heart.heartbeat();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    while let Ok(order) = orders.recv() {
        match order {
            Order::Discard(lease) => port.discarded(lease),
            Order::Stop => break,
            Order::Prove(task) => {
                while held.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(2));
                }
                std::thread::sleep(time);
                // It reads what it proves, as a real one does.
                let Ok(payload) = port.payload(&task.job.digest) else {
                    break;
                };
                let bytes = match plan(&task) {
                    Doing::Prove => right_proof(&Digest::of(&payload), task.unit.index),
                    Doing::Wrong => vec![0; 192],
                    Doing::Fail(fault) => {
                        port.failed(task.lease, fault, "told to\nfail");
                        continue;
                    }
                };
                let timings = Timings {
                    load_ms: 1,
                    witness_ms: 2,
                    device_ms: 3,
                };
                port.returned(task.lease, UnitProof { bytes, timings });
            }
        }
    }
    beating.store(false, Ordering::Relaxed);
    port.stopped("as told");
}

/// Knows the right proofs.
pub struct FakeJudge;

impl Judge for FakeJudge {
    fn verify(
        &self,
        job: &JobInfo,
        _payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String> {
        Ok(proof == right_proof(&job.digest, index))
    }

    fn join(&self, _job: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String> {
        Ok(Joined {
            proof: proofs.concat(),
            test_key: true,
        })
    }
}

/// Keys by name; those in `missing` cannot be had.
#[derive(Default)]
pub struct FakeKeys {
    pub loaded: Mutex<BTreeMap<CircuitId, u32>>,
    pub missing: Mutex<Vec<CircuitId>>,
}

fn no_key(circuit: CircuitId) -> KeyError {
    KeyError {
        code: "KEY_MISSING".to_owned(),
        message: format!("/params/{circuit}.params is missing; fetch it there"),
    }
}

impl Keys for FakeKeys {
    fn devices(&self) -> Vec<DeviceFacts> {
        vec![DeviceFacts {
            model: "Stand-in 9000".to_owned(),
            ordinal: Some(4),
            memory_total: 16 << 30,
            memory_free: 15 << 30,
        }]
    }

    fn loaded(&self) -> Vec<LoadedKey> {
        let loaded = self.loaded.lock().unwrap();
        let key = |(&circuit, &references): (&CircuitId, &u32)| LoadedKey {
            circuit,
            tier: Tier::Warm,
            bytes: 1 << 20,
            references,
            idle_secs: 1.5,
            test_key: true,
        };
        loaded.iter().map(key).collect()
    }

    fn check(&self, circuit: CircuitId) -> Result<(), KeyError> {
        if self.missing.lock().unwrap().contains(&circuit) {
            return Err(no_key(circuit));
        }
        Ok(())
    }

    fn unit_bytes(&self, _circuit: CircuitId) -> u64 {
        64 << 20
    }

    fn preload(&self, circuit: CircuitId) -> Result<Preloaded, KeyError> {
        self.check(circuit)?;
        let before = self.loaded.lock().unwrap().insert(circuit, 0);
        Ok(Preloaded {
            already_loaded: before.is_some(),
            load_ms: 7,
        })
    }

    fn evict(&self, circuit: CircuitId) -> Result<Evicted, KeyError> {
        let mut loaded = self.loaded.lock().unwrap();
        Ok(match loaded.get(&circuit) {
            None => Evicted::NotLoaded,
            Some(1..) => Evicted::InUse,
            Some(0) => {
                loaded.remove(&circuit);
                Evicted::Freed { bytes: 1 << 20 }
            }
        })
    }
}

/// A daemon under test.
pub struct Daemon {
    pub server: Server,
    pub keys: Arc<FakeKeys>,
    pub device: Arc<FakeDevice>,
    pub readiness: Arc<Readiness>,
    pub folder: tempfile::TempDir,
    pub service: Arc<Service>,
}

/// Changes to the usual settings.
pub type Tune = dyn Fn(&Path, &mut Config, &mut engine::service::Settings);

/// A daemon on TCP, port chosen, with HTTP.
pub fn daemon(device: Arc<FakeDevice>) -> Daemon {
    daemon_with(device, &|_, _, _| {})
}

/// The same with other settings.
pub fn daemon_with(device: Arc<FakeDevice>, tune: &Tune) -> Daemon {
    daemon_in(tempfile::tempdir().unwrap(), device, tune)
}

/// The same with what is in a folder from before.
pub fn daemon_in(folder: tempfile::TempDir, device: Arc<FakeDevice>, tune: &Tune) -> Daemon {
    let mut config = Config::default();
    config.daemon.listen = "127.0.0.1:0".parse().unwrap();
    config.daemon.status_listen = Some("127.0.0.1:0".parse().unwrap());
    let mut settings = config.engine(8 << 30);
    settings.scheduler.heartbeat_ms = 10_000;
    settings.scheduler.restart_ms = (10, 100);
    settings.scheduler.no_device_ms = 1_000;
    tune(folder.path(), &mut config, &mut settings);
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let observatory = Arc::new(Observatory::new());
    let service = Service::start_observed(
        settings,
        store,
        Arc::new(FakeJudge),
        vec![Arc::clone(&device) as Arc<dyn Device>],
        Arc::clone(&observatory) as Arc<dyn engine::service::Observer>,
    );
    let service = Arc::new(service.unwrap());
    let readiness = Arc::new(Readiness::default());
    for part in Part::ALL {
        readiness.passed(part);
    }
    let keys = Arc::new(FakeKeys::default());
    let settings = ServerSettings {
        config,
        observatory,
        readiness: Arc::clone(&readiness),
    };
    let server = Server::start(
        settings,
        Arc::clone(&service),
        Arc::clone(&keys) as Arc<dyn Keys>,
    );
    Daemon {
        server: server.unwrap(),
        keys,
        device,
        readiness,
        folder,
        service,
    }
}

impl Daemon {
    /// A connection to it.
    pub async fn connect(&self) -> Calls {
        client::connect(self.server.grpc_address(), &client::Options::default())
            .await
            .unwrap()
    }

    /// A document of its HTTP address.
    pub fn get(&self, path: &str) -> client::Result<Vec<u8>> {
        client::http_get(self.server.http_address().unwrap(), path)
    }

    /// A JSON document of its HTTP address.
    pub fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_slice(&self.get(path).unwrap()).unwrap()
    }

    /// Waits until a condition holds. The limit is for what hangs, not for a slow disk.
    pub fn eventually(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !condition(self) {
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "not within two minutes: {what}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A device that proves everything in a moment.
pub fn quick() -> Arc<FakeDevice> {
    FakeDevice::new(Duration::from_millis(1), |_| Doing::Prove)
}

/// One of the requests under `examples/requests/`: `porep`, `snap`, `window` or `winning`.
pub fn request(name: &str) -> SubmitProofRequest {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/requests")
        .join(format!("{name}.json"));
    SubmitProofRequest::from_json(&std::fs::read(file).unwrap()).unwrap()
}

/// The same on the wire, under an id.
pub fn on_wire(name: &str, id: &str) -> v1::SubmitProofRequest {
    v1::SubmitProofRequest {
        request_id: id.to_owned(),
        ..client::message(request(name), 0)
    }
}

/// The address of a Unix socket in a folder.
pub fn socket(folder: &Path) -> Address {
    Address::Unix(folder.join("run/cuzk.sock"))
}
