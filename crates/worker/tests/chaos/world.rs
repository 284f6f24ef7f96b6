//! A service with worker processes, and what is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::Service;
use engine::scheduler::{Action, DeviceStatus, Event, LeaseId, Millis, Submission};
use engine::service::{
    Admission, Device, Finished, JobInfo, Joined, Judge, Observer, Settings, Waited,
};
use filecoin::{CircuitId, ProofKind, SectorSize};
use store::{Digest, JobId, JobState, Priority, SqliteStore, Store, Timings};
use tempfile::TempDir;
use worker::{Nobody, WorkerProcess, WorkerSpec};

pub const POREP: CircuitId = CircuitId::new(ProofKind::Porep, SectorSize::KiB2);
/// Nothing here may take longer.
pub const LONG: Duration = Duration::from_secs(120);

/// The only right proof of a unit.
pub fn right_proof(digest: &Digest, index: u32) -> Vec<u8> {
    let mut seed = digest.as_bytes().to_vec();
    seed.extend(index.to_le_bytes());
    Digest::of(&seed).as_bytes().repeat(6)
}

/// The only right proof of a job.
pub fn right_job_proof(digest: &Digest, units: u32) -> Vec<u8> {
    (0..units)
        .flat_map(|index| right_proof(digest, index))
        .collect()
}

/// Knows the right bytes.
pub struct KnowingJudge;

impl Judge for KnowingJudge {
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

/// Settings in which failures show within seconds, and none ends a job for its number alone.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.scheduler.heartbeat_ms = 5_000;
    settings.scheduler.restart_ms = (10, 50);
    settings.scheduler.stop_limit_ms = 20_000;
    settings.scheduler.unit_tries = 1_000;
    settings.scheduler.quarantine_after = 1_000;
    settings.scheduler.start_tries = 1_000;
    settings
}

/// A worker that is this program, with these options.
pub fn actor(name: &str, options: &[&str]) -> Arc<WorkerProcess> {
    let mut arguments = vec!["worker".into()];
    arguments.extend(options.iter().map(Into::into));
    let spec = WorkerSpec {
        name: name.to_owned(),
        program: std::env::current_exe().unwrap(),
        arguments,
        environment: Vec::new(),
        circuits: CircuitId::all().collect(),
        at_a_time: 1,
        lane_places: 0,
        look_ahead: 1,
        stop_grace: Duration::from_millis(500),
    };
    Arc::new(WorkerProcess::new(spec, Arc::new(Nobody)))
}

/// When jobs were first on a device: their units may have been prepared before.
#[derive(Default)]
pub struct Starts(Mutex<BTreeMap<JobId, Millis>>);

impl Starts {
    pub fn of(&self, job: JobId) -> Millis {
        self.0.lock().unwrap()[&job]
    }
}

impl Observer for Starts {
    fn event(&self, _: Millis, _: &Event) {}
    fn returned(&self, _: Millis, _: LeaseId, _: &Timings) {}
    fn action(&self, now: Millis, action: &Action) {
        if let Action::Start { unit, .. } = action {
            self.0.lock().unwrap().entry(unit.job).or_insert(now);
        }
    }
}

/// A service in a folder of its own.
pub struct World {
    // Ends before its folder goes.
    pub service: Option<Service>,
    pub starts: Arc<Starts>,
    pub devices: Vec<Arc<WorkerProcess>>,
    pub folder: TempDir,
}

impl World {
    pub fn new(settings: Settings, devices: Vec<Arc<WorkerProcess>>) -> Self {
        Self::with_judge(settings, devices, Arc::new(KnowingJudge))
    }

    pub fn with_judge(
        settings: Settings,
        devices: Vec<Arc<WorkerProcess>>,
        judge: Arc<dyn Judge>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).unwrap());
        let as_devices = devices
            .iter()
            .map(|device| Arc::clone(device) as Arc<dyn Device>)
            .collect();
        let starts = Arc::<Starts>::default();
        let observer = Arc::clone(&starts) as Arc<dyn Observer>;
        let service = Service::start_observed(settings, store, judge, as_devices, observer);
        Self {
            service: Some(service.unwrap()),
            starts,
            devices,
            folder,
        }
    }

    pub fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    pub fn submit(&self, name: &str, units: u32) -> Admission {
        let submission = submission(self.service(), name, units).unwrap();
        self.service().submit(submission).unwrap()
    }

    /// Waits for a job's end.
    pub fn finished(&self, job: JobId) -> Finished {
        match self.service().wait(job, Some(LONG)).unwrap() {
            Waited::Ended(finished) => *finished,
            Waited::TimedOut => panic!("{job} does not end: {:#?}", self.service().status()),
        }
    }

    /// Waits for the job and checks its bytes.
    pub fn completes(&self, admission: &Admission) {
        is_right(&self.finished(admission.job));
    }

    /// The code and message of the job's failure.
    pub fn fails(&self, admission: &Admission) -> (String, String) {
        let failure = self.finished(admission.job).record.failure.unwrap();
        (failure.code, failure.message)
    }

    pub fn device_status(&self, device: usize) -> DeviceStatus {
        self.service().status().devices[device].1.status.clone()
    }

    /// Waits until a device is quarantined; says why.
    pub fn quarantine(&self, device: usize) -> String {
        let mut cause = String::new();
        eventually("quarantine", || match self.device_status(device) {
            DeviceStatus::Quarantined(why) => {
                cause = why;
                true
            }
            _ => false,
        });
        cause
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Stores a payload and says what is to be proven.
pub fn submission(service: &Service, name: &str, units: u32) -> Result<Submission, engine::Error> {
    let payload = payload(name);
    let (digest, payload_bytes) = service.put_payload(&mut &payload[..])?;
    Ok(Submission {
        id: JobId::random(),
        request_id: name.to_owned(),
        digest,
        client: "test".to_owned(),
        circuit: POREP,
        priority: Priority::Normal,
        deadline_ms: None,
        units,
        unit_bytes: 1 << 20,
        payload_bytes,
    })
}

pub fn payload(name: &str) -> Vec<u8> {
    format!("payload of {name} ").repeat(1_000).into_bytes()
}

/// Completed, with the right bytes.
pub fn is_right(finished: &Finished) {
    let record = &finished.record;
    assert_eq!(
        record.state,
        JobState::Completed,
        "{}: {:?}",
        record.name,
        record.failure
    );
    let expected = right_job_proof(&record.digest, record.units);
    assert!(
        finished.proof.as_ref() == Some(&expected),
        "{}: other bytes",
        record.name
    );
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes with `text` in their command line, this one not counted.
pub fn processes(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
        let line = String::from_utf8_lossy(&line.unwrap_or_default()).into_owned();
        if pid != std::process::id() && line.contains(text) {
            found.push(pid);
        }
    }
    found
}
