//! The daemon: server, engine and store as in the real one, with workers that replay.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::Service;
use engine::service::{Device, JobInfo, Joined, Judge, Observer};
use filecoin::{CircuitId, Request, public_inputs};
use server::keys::{DeviceFacts, Evicted, KeyError, LoadedKey, Preloaded};
use server::{Config, Keys, Observatory, Part, Readiness, Server, ServerSettings};
use store::{Digest, SqliteStore, Store};
use worker::{Nobody, WorkerProcess, WorkerSpec};

use crate::{Options, right_proof};

/// Jobs whose public inputs are kept, as in the real judge.
const KEPT: usize = 64;

/// Knows the right bytes, and works as the real judge does: it decodes each job's payload once and
/// derives its public inputs.
#[derive(Default)]
struct Replayed(Mutex<VecDeque<(Digest, Arc<Mutex<bool>>)>>);

impl Replayed {
    fn slot(&self, digest: &Digest) -> Arc<Mutex<bool>> {
        let mut kept = self.0.lock().unwrap();
        if let Some((_, slot)) = kept.iter().find(|(known, _)| known == digest) {
            return Arc::clone(slot);
        }
        // The oldest goes.
        kept.truncate(KEPT - 1);
        kept.push_front((*digest, Arc::default()));
        Arc::clone(&kept[0].1)
    }
}

impl Judge for Replayed {
    fn verify(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String> {
        let slot = self.slot(&job.digest);
        let mut known = slot.lock().unwrap();
        if !*known {
            let request = Request::from_payload(&payload()?).map_err(|e| e.to_string())?;
            public_inputs(&request).map_err(|e| e.to_string())?;
            *known = true;
        }
        drop(known);
        Ok(proof == right_proof(&job.digest, index))
    }

    fn join(&self, _: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String> {
        Ok(Joined {
            proof: proofs.concat(),
            test_key: true,
        })
    }
}

/// Every key is there.
struct AllKeys;

impl Keys for AllKeys {
    fn devices(&self) -> Vec<DeviceFacts> {
        Vec::new()
    }

    fn loaded(&self) -> Vec<LoadedKey> {
        Vec::new()
    }

    fn check(&self, _: CircuitId) -> Result<(), KeyError> {
        Ok(())
    }

    fn unit_bytes(&self, _: CircuitId) -> u64 {
        64 << 20
    }

    fn preload(&self, _: CircuitId) -> Result<Preloaded, KeyError> {
        Ok(Preloaded {
            already_loaded: true,
            load_ms: 0,
        })
    }

    fn evict(&self, _: CircuitId) -> Result<Evicted, KeyError> {
        Ok(Evicted::NotLoaded)
    }
}

fn device(number: u64, unit_ms: u64) -> Arc<dyn Device> {
    let spec = WorkerSpec {
        name: format!("replayer-{number}"),
        program: std::env::current_exe().unwrap(),
        arguments: vec!["worker".into(), format!("unit-ms={unit_ms}").into()],
        environment: Vec::new(),
        circuits: CircuitId::all().collect(),
        at_a_time: 1,
        lane_places: 0,
        look_ahead: 1,
        stop_grace: Duration::from_secs(5),
    };
    Arc::new(WorkerProcess::new(spec, Arc::new(Nobody)))
}

/// Serves at the Unix socket `FOLDER/grpc.sock` until standard input ends.
pub fn run(options: &Options) -> ExitCode {
    let folder = options.path("folder").unwrap();
    let mut config = Config::default();
    let socket = format!("unix://{}", folder.join("grpc.sock").display());
    config.daemon.listen = socket.parse().unwrap();
    let mut settings = config.engine(16 << 30);
    let second = Duration::from_secs(1).as_millis() as u64;
    // Scaled with the length of the run, so that a short one too sees things go.
    settings.sweep_every_ms = options.number("sweep-ms", 60 * second);
    settings.retention.payload_grace_ms = options.number("grace-ms", 300 * second);
    settings.retention.max_results = options.number("results", 500);
    let store = SqliteStore::open(&folder.join("store")).unwrap();
    let observatory = Arc::new(Observatory::new());
    let devices = (0..options.number("workers", 4))
        .map(|number| device(number, options.number("unit-ms", 100)));
    let service = Service::start_observed(
        settings,
        Arc::new(store) as Arc<dyn Store>,
        Arc::new(Replayed::default()),
        devices.collect(),
        Arc::clone(&observatory) as Arc<dyn Observer>,
    );
    let service = Arc::new(service.unwrap());
    let readiness = Arc::new(Readiness::default());
    Part::ALL.iter().for_each(|part| readiness.passed(*part));
    let server = Server::start(
        ServerSettings {
            config,
            observatory,
            readiness,
        },
        Arc::clone(&service),
        Arc::new(AllKeys),
    );
    let server = server.unwrap();
    println!("ready");
    std::io::stdout().flush().unwrap();
    // The parent ends it by closing the pipe, and by its own end.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    assert!(server.shutdown(Duration::from_secs(30)));
    ExitCode::SUCCESS
}
