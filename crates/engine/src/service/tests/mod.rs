//! The service with stand-in devices: what is promised is kept, whatever fails.

mod durability;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use filecoin::{CircuitId, ProofKind, SectorSize};
use store::{JobState, OpenJob, Priority, SqliteStore};

use super::fake::{Doing, FakeDevice, FakeJudge, right_job_proof};
use super::*;
use crate::scheduler::{DeviceStatus, Fault, KindCounts};

const POREP: CircuitId = CircuitId::new(ProofKind::Porep, SectorSize::KiB2);
const MOMENT: Duration = Duration::from_millis(2);
const LONG: Option<Duration> = Some(Duration::from_secs(60));

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.scheduler.heartbeat_ms = 2_000;
    settings.scheduler.restart_ms = (10, 100);
    settings
}

fn start(folder: &Path, devices: &[Arc<FakeDevice>]) -> Service {
    let store = Arc::new(SqliteStore::open(folder).unwrap());
    start_on(store, devices)
}

fn start_on(store: Arc<dyn Store>, devices: &[Arc<FakeDevice>]) -> Service {
    start_with(settings(), store, devices)
}

fn start_with(settings: Settings, store: Arc<dyn Store>, devices: &[Arc<FakeDevice>]) -> Service {
    start_observed(settings, store, devices, Arc::new(observer::Nobody))
}

fn start_observed(
    settings: Settings,
    store: Arc<dyn Store>,
    devices: &[Arc<FakeDevice>],
    observer: Arc<dyn Observer>,
) -> Service {
    let devices = devices
        .iter()
        .map(|device| Arc::clone(device) as Arc<dyn Device>)
        .collect();
    Service::start_observed(settings, store, Arc::new(FakeJudge), devices, observer).unwrap()
}

fn right(name: &str) -> Arc<FakeDevice> {
    FakeDevice::new(name, MOMENT, |_| Doing::Prove)
}

fn submission(service: &Service, name: &str, units: u32) -> Submission {
    let payload = format!("payload of {name}");
    let (digest, payload_bytes) = service.put_payload(&mut payload.as_bytes()).unwrap();
    Submission {
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
    }
}

fn submit(service: &Service, name: &str, units: u32) -> Admission {
    service.submit(submission(service, name, units)).unwrap()
}

fn finished(service: &Service, job: JobId) -> Finished {
    match service.wait(job, LONG).unwrap() {
        Waited::Ended(finished) => *finished,
        Waited::TimedOut => panic!("{job} did not end"),
    }
}

/// Waits for the job and checks its bytes.
fn completes(service: &Service, admission: &Admission) {
    let finished = finished(service, admission.job);
    let record = &finished.record;
    assert_eq!(record.state, JobState::Completed, "{:?}", record.failure);
    let expected = right_job_proof(&record.digest, record.units);
    assert_eq!(
        finished.proof.as_ref(),
        Some(&expected),
        "{}",
        admission.name
    );
    assert!(record.test_key);
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "not within a minute: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn jobs_go_through() {
    let folder = tempfile::tempdir().unwrap();
    let service = start(folder.path(), &[right("a"), right("b")]);
    let jobs: Vec<_> = (0..20)
        .map(|i| submit(&service, &format!("job {i}"), 1 + i % 5))
        .collect();
    for job in &jobs {
        completes(&service, job);
        assert_eq!(service.lookup(&job.name).unwrap(), job.job);
    }
    // The same request again is answered from the store.
    let again = submit(&service, "job 7", 3);
    assert_eq!((again.job, again.how), (jobs[7].job, Admitted::Completed));
    completes(&service, &again);
    let record = finished(&service, jobs[7].job).record;
    assert_eq!(record.timings.device_ms, 3 * 3);
    assert!(record.started_ms >= Some(record.accepted_ms));
    let status = service.status();
    assert_eq!(status.totals[&ProofKind::Porep].completed, 20);
    assert!(
        status
            .counts
            .iter()
            .all(|(_, count)| *count == KindCounts::default())
    );
    assert!(matches!(
        service.lookup("unknown"),
        Err(Error::UnknownJob(_))
    ));
    assert!(matches!(
        service.wait(JobId::random(), LONG),
        Err(Error::UnknownJob(_))
    ));
}

#[test]
fn waiting_has_a_limit_and_cancelling_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let slow = FakeDevice::new("slow", Duration::from_millis(300), |_| Doing::Prove);
    let service = start(folder.path(), &[slow]);
    let job = submit(&service, "slow", 50);
    eventually("it runs", || {
        service.status().devices[0].1.running.is_some()
    });
    let waited = service
        .wait(job.job, Some(Duration::from_millis(20)))
        .unwrap();
    assert_eq!(waited, Waited::TimedOut);
    assert!(service.cancel("slow").unwrap());
    assert_eq!(
        finished(&service, job.job).record.state,
        JobState::Cancelled
    );
    assert!(!service.cancel("slow").unwrap() && !service.cancel("unknown").unwrap());
}

/// Units of open jobs that are proven.
fn proven(store: &SqliteStore) -> BTreeSet<(JobId, u32)> {
    let open = store.open_jobs().unwrap();
    let units = |open: &OpenJob| {
        let job = open.job.id;
        let proven = open.units.iter().filter(|unit| unit.proven);
        proven
            .map(move |unit| (job, unit.index))
            .collect::<Vec<_>>()
    };
    open.iter().flat_map(units).collect()
}

/// Each service ends in the middle of a job: its devices prove one unit of the job at its head and
/// hold on to whatever they begin then.
#[test]
fn a_restart_resumes_every_job_and_repeats_no_proven_unit() {
    const UNITS: u32 = 4;
    let folder = tempfile::tempdir().unwrap();
    let begun = Arc::new(Mutex::new(BTreeSet::new()));
    let mut jobs = Vec::new();
    for round in 0..UNITS {
        let last = round + 1 == UNITS;
        let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
        let done = proven(&store);
        assert_eq!(done.len(), round as usize);
        begun.lock().unwrap().clear();
        let over = Arc::new(AtomicBool::new(false));
        let device = || {
            let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
            FakeDevice::new("a", MOMENT, move |task| {
                let unit = (task.unit.job, task.unit.index);
                let number = {
                    let mut begun = begun.lock().unwrap();
                    begun.insert(unit);
                    begun.len()
                };
                while !last && number > 1 && !over.load(Ordering::Relaxed) {
                    std::thread::sleep(MOMENT);
                }
                Doing::Prove
            })
        };
        let service = start_on(Arc::clone(&store) as Arc<dyn Store>, &[device(), device()]);
        for i in 0..5 {
            jobs.push(submit(&service, &format!("job {round} {i}"), UNITS));
        }
        if last {
            jobs.iter().for_each(|job| completes(&service, job));
        } else {
            eventually("one more unit is proven", || {
                proven(&store).len() > done.len()
            });
        }
        // Not drained: units are cut off in the middle.
        drop(service);
        over.store(true, Ordering::Relaxed);
        assert!(
            begun.lock().unwrap().is_disjoint(&done),
            "a proven unit was proven again"
        );
    }
}

#[test]
fn draining_ends_in_order_and_the_rest_is_open_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let slow = FakeDevice::new("slow", Duration::from_millis(50), |_| Doing::Prove);
    let service = start(folder.path(), &[Arc::clone(&slow)]);
    let job = submit(&service, "long", 100);
    eventually("it runs", || slow.begun.load(Ordering::Relaxed) > 0);
    assert!(service.shut_down(Duration::from_secs(20)));
    let before = slow.begun.load(Ordering::Relaxed);
    assert!(before < 100);
    let next = right("next");
    let service = start(folder.path(), &[Arc::clone(&next)]);
    completes(&service, &job);
    assert_eq!(
        before + next.begun.load(Ordering::Relaxed),
        100,
        "no unit was cut off"
    );
}

#[test]
fn a_wrong_proof_is_caught_made_again_elsewhere_and_its_device_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = FakeDevice::new("wrong", MOMENT, |_| Doing::Wrong);
    let service = start(folder.path(), &[wrong, right("right")]);
    let jobs: Vec<_> = (0..10)
        .map(|i| submit(&service, &format!("job {i}"), 3))
        .collect();
    for job in &jobs {
        completes(&service, job);
    }
    let devices = service.status().devices;
    assert!(
        matches!(&devices[0].1.status, DeviceStatus::Quarantined(cause)
        if cause.contains("did not verify"))
    );
    assert_eq!(devices[1].1.status, DeviceStatus::Ready);
    // Sound again (or so the operator says): it is asked again, and caught again.
    service.release(DeviceId(0));
    eventually("it is ready", || {
        service.status().devices[0].1.status == DeviceStatus::Ready
    });
    let jobs: Vec<_> = (0..4)
        .map(|i| submit(&service, &format!("more {i}"), 3))
        .collect();
    for job in &jobs {
        completes(&service, job);
    }
}

#[test]
fn devices_that_die_hang_and_fail_cost_no_job() {
    let folder = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let bad = FakeDevice::new("bad", MOMENT, move |_| {
        match count.fetch_add(1, Ordering::Relaxed) % 10 {
            1 => Doing::Die,
            3 => Doing::Fail(Fault::Try),
            5 => Doing::Fail(Fault::Device),
            7 => Doing::Hang,
            _ => Doing::Prove,
        }
    });
    let good = FakeDevice::new("good", Duration::from_millis(10), |_| Doing::Prove);
    let service = start(folder.path(), &[Arc::clone(&bad), good]);
    let mut round = 0;
    while bad.begun.load(Ordering::Relaxed) < 12 {
        let name = |i| format!("job {round} {i}");
        let jobs: Vec<_> = (0..4).map(|i| submit(&service, &name(i), 5)).collect();
        jobs.iter().for_each(|job| completes(&service, job));
        round += 1;
        assert!(
            round < 500,
            "the bad device is used again after each failure"
        );
    }
}

#[test]
fn a_request_at_fault_and_a_panic_in_the_judge_fail_their_job_alone() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |task: &Task| match task.job.name.as_str() {
        "bad request" => Doing::Fail(Fault::Request),
        _ => Doing::Prove,
    };
    let service = start(folder.path(), &[FakeDevice::new("a", MOMENT, plan)]);
    let names = ["bad request", "good", "panic", "good too"];
    let jobs = names.map(|name| submit(&service, name, 2));
    let failure = |i: usize| finished(&service, jobs[i].job).record.failure.unwrap();
    assert_eq!(failure(0).code, "REQUEST_INVALID");
    let panicked = failure(2);
    assert_eq!(panicked.code, "UNIT_FAILED");
    assert!(
        panicked.message.contains("a fault in the verifier"),
        "{}",
        panicked.message
    );
    completes(&service, &jobs[1]);
    completes(&service, &jobs[3]);
    // A failed job runs again when it is submitted again.
    let again = submit(&service, "bad request", 2);
    assert_eq!((again.job, again.how), (jobs[0].job, Admitted::Again));
    assert_eq!(finished(&service, again.job).record.attempt, 2);
}

#[test]
fn results_go_after_their_time_and_the_request_is_a_new_job_then() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let mut settings = settings();
    settings.retention.max_results = 1;
    settings.sweep_every_ms = 50;
    let service = start_with(settings, store, &[right("a")]);
    let old = submit(&service, "old", 1);
    completes(&service, &old);
    completes(&service, &submit(&service, "new", 1));
    eventually("it is forgotten", || service.lookup("old").is_err());
    let again = submit(&service, "old", 1);
    assert_eq!(again.how, Admitted::New);
    completes(&service, &again);
}

fn open_jobs(service: &Service) -> u32 {
    let counts = service.status().counts;
    counts.iter().map(|(_, c)| c.pending + c.in_progress).sum()
}

#[test]
fn ten_thousand_queued_jobs() {
    const JOBS: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let stuck = || FakeDevice::new("stuck", Duration::from_secs(3600), |_| Doing::Prove);
    let service = Arc::new(start(folder.path(), &[stuck()]));
    let done = Arc::new(AtomicBool::new(false));
    let asker = {
        let (service, done) = (Arc::clone(&service), Arc::clone(&done));
        std::thread::spawn(move || {
            let mut times = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let began = Instant::now();
                let status = service.status();
                times.push(began.elapsed());
                assert!(status.queued <= JOBS);
                std::thread::sleep(Duration::from_millis(1));
            }
            times.sort_unstable();
            times
        })
    };
    let template = submission(&service, "template", 10);
    let (sender, receiver) = std::sync::mpsc::channel();
    let began = Instant::now();
    for number in 0..JOBS {
        let request_id = format!("job {number}");
        let submission = Submission {
            id: JobId::random(),
            request_id,
            ..template.clone()
        };
        let sender = sender.clone();
        service.submit_then(
            submission,
            Box::new(move |answer| drop(sender.send(answer))),
        );
    }
    drop(sender);
    let accepted = receiver.iter().filter(Result::is_ok).count();
    let submitting = began.elapsed();
    assert_eq!(accepted, JOBS);
    done.store(true, Ordering::Relaxed);
    let times = asker.join().unwrap();
    let p99 = times[times.len() * 99 / 100];
    let open = open_jobs(&service);
    assert_eq!(open as usize, JOBS);
    drop(service);
    let began = Instant::now();
    let service = start(folder.path(), &[stuck()]);
    let open = open_jobs(&service);
    let restart = began.elapsed();
    assert_eq!(open as usize, JOBS);
    println!(
        "{JOBS} jobs accepted in {submitting:?}; status p99 {p99:?} of {}; restart {restart:?}",
        times.len()
    );
    assert!(p99 < Duration::from_millis(50), "status is slow: {p99:?}");
    assert!(
        restart < Duration::from_secs(5),
        "the restart is slow: {restart:?}"
    );
}

/// Names what it sees.
#[derive(Default)]
struct Notes(Mutex<Vec<&'static str>>);

impl Observer for Notes {
    fn event(&self, _now: Millis, event: &Event) {
        let note = match event {
            Event::Submit { .. } => "submit",
            Event::UnitReturned { .. } => "unit returned",
            Event::UnitJudged { .. } => "unit judged",
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }

    fn returned(&self, _now: Millis, _lease: crate::scheduler::LeaseId, timings: &store::Timings) {
        assert_eq!(timings.device_ms, 3);
        self.0.lock().unwrap().push("timings");
    }

    fn action(&self, _now: Millis, action: &crate::scheduler::Action) {
        use crate::scheduler::{Action, Write};
        let note = match action {
            Action::Persist(Write::Insert(_)) => "stored",
            Action::Start { .. } => "start",
            Action::Assemble { .. } => "assemble",
            Action::Ended { .. } => "ended",
            _ => return,
        };
        self.0.lock().unwrap().push(note);
    }
}

#[test]
fn an_observer_sees_a_job_from_its_submission_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let notes = Arc::new(Notes::default());
    let observer = Arc::clone(&notes) as Arc<dyn Observer>;
    let service = start_observed(settings(), store, &[right("a")], observer);
    completes(&service, &submit(&service, "a job", 1));
    assert_eq!(
        *notes.0.lock().unwrap(),
        [
            "submit",
            "stored",
            "start",
            "timings",
            "unit returned",
            "unit judged",
            "assemble",
            "ended"
        ]
    );
    // After draining nothing is taken, and what was asked before is still answered.
    assert!(service.drain(Duration::from_secs(20)));
    let refused = service.submit(submission(&service, "another", 1));
    assert!(matches!(
        refused,
        Err(Error::Refused(crate::scheduler::Refusal::Draining))
    ));
}
