//! What waits for the store and what does not, and what happens while it fails.

use super::*;
use crate::scheduler::{Action, LeaseId, Write};
use crate::service::fake::MoodyStore;

/// A device with whose unit of this number the disk becomes full.
fn fills(store: &Arc<MoodyStore>, number: u32) -> Arc<FakeDevice> {
    let store = Arc::clone(store);
    FakeDevice::new("device", MOMENT, move |task| {
        if task.unit.index == number {
            store.full.store(true, Ordering::SeqCst);
        }
        Doing::Prove
    })
}

/// What is written when a unit ends is nothing that the next one has to wait for.
#[test]
fn a_device_goes_on_to_a_prepared_unit_before_the_store_has_taken_the_proof() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let device = fills(&store, 0);
    let service = start_on(Arc::clone(&store) as Arc<dyn Store>, &[Arc::clone(&device)]);
    let admission = submit(&service, "two units", 2);
    eventually("the second unit begins", || {
        device.begun.load(Ordering::Relaxed) == 2
    });
    assert!(store.full.swap(false, Ordering::SeqCst));
    completes(&service, &admission);
}

#[test]
fn while_the_store_fails_nothing_is_acknowledged_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let device = fills(&store, 3);
    let service = start_on(Arc::clone(&store) as Arc<dyn Store>, &[device]);
    let running = submit(&service, "running", 20);
    eventually("the disk is full", || store.full.load(Ordering::SeqCst));
    for i in 0..3 {
        let submission = submission(&service, &format!("refused {i}"), 1);
        let error = service.submit(submission).unwrap_err();
        assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
        assert!(error.to_string().contains("no space left"), "{error}");
    }
    eventually("it shows", || service.status().store_error.is_some());
    let waited = service
        .wait(running.job, Some(Duration::from_millis(200)))
        .unwrap();
    assert_eq!(waited, Waited::TimedOut);
    store.full.store(false, Ordering::SeqCst);
    completes(&service, &running);
    eventually("it is well again", || {
        service.status().store_error.is_none()
    });
    for i in 0..3 {
        completes(&service, &submit(&service, &format!("refused {i}"), 1));
    }
}

/// A job that is stored is acknowledged, whatever cannot be written after it; and who cancels is told that it
/// cannot be promised, instead of waiting.
#[test]
fn nobody_waits_for_a_store_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let service = start_on(Arc::clone(&store) as Arc<dyn Store>, &[right("a")]);
    store.fills_with_claim.store(true, Ordering::SeqCst);
    let admission = submit(&service, "stored", 1);
    assert!(store.full.load(Ordering::SeqCst));
    let refused = |error: Error| assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
    refused(service.cancel("stored").unwrap_err());
    refused(service.submit(submission(&service, "new", 1)).unwrap_err());
    store.full.store(false, Ordering::SeqCst);
    completes(&service, &admission);
}

/// Joins when it is told to.
struct PatientJudge {
    joins: Mutex<std::sync::mpsc::Sender<()>>,
    may_join: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Judge for PatientJudge {
    fn verify(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String> {
        FakeJudge.verify(job, payload, index, proof)
    }

    fn join(&self, job: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String> {
        self.joins.lock().unwrap().send(()).unwrap();
        self.may_join.lock().unwrap().recv().unwrap();
        FakeJudge.join(job, proofs)
    }
}

/// Nor who asks again for a job of which the end cannot be written.
#[test]
fn nobody_waits_for_the_end_of_a_job_that_the_store_does_not_take() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let (join, may_join) = channel();
    let (joins, joining) = channel();
    let judge = PatientJudge {
        joins: Mutex::new(joins),
        may_join: Mutex::new(may_join),
    };
    let service = Service::start(
        settings(),
        Arc::clone(&store) as Arc<dyn Store>,
        Arc::new(judge),
        vec![right("a")],
    )
    .unwrap();
    let admission = submit(&service, "job", 1);
    joining.recv().unwrap();
    let again = submission(&service, "job", 1);
    let (answer, answered) = channel();
    let (go_on, may_go_on) = channel::<()>();
    std::thread::scope(|scope| {
        // The loop takes the end of the job and the request together.
        let held = scope.spawn(|| service.ask(move |_| may_go_on.recv().unwrap()));
        std::thread::sleep(Duration::from_millis(50));
        join.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        service.submit_then(again, Box::new(move |reply| answer.send(reply).unwrap()));
        store.full.store(true, Ordering::SeqCst);
        go_on.send(()).unwrap();
        held.join().unwrap().unwrap();
    });
    let reply = answered.recv_timeout(Duration::from_secs(5));
    store.full.store(false, Ordering::SeqCst);
    let error = reply.expect("nobody waits").unwrap_err();
    assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
    completes(&service, &admission);
}

/// What a repeated request asks for is acknowledged when it is stored.
#[test]
fn a_higher_priority_is_not_acknowledged_before_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let device = FakeDevice::new("a", Duration::from_secs(1), |_| Doing::Prove);
    let service = start_on(Arc::clone(&store) as Arc<dyn Store>, &[device]);
    let job = submit(&service, "job", 20).job;
    let mut again = submission(&service, "job", 20);
    again.priority = Priority::Critical;
    store.full.store(true, Ordering::SeqCst);
    let reply = service.submit(again);
    // The process is killed.
    drop(service);
    let acknowledged = reply.is_ok();
    let stored = store.job(job).unwrap().unwrap().priority;
    assert!(
        !acknowledged || stored == Priority::Critical,
        "{reply:?}, {stored:?}"
    );
}

/// Hears of devices that are told to stop.
#[derive(Default)]
struct Stops(AtomicUsize);

impl Observer for Stops {
    fn event(&self, _: Millis, _: &Event) {}
    fn returned(&self, _: Millis, _: LeaseId, _: &store::Timings) {}
    fn action(&self, _: Millis, action: &Action) {
        if let Action::StopDevice { .. } = action {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// While the loop waits for the disk it hears no heartbeats: nobody was silent.
#[test]
fn no_device_is_stopped_for_a_write_that_took_long() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let stops = Arc::<Stops>::default();
    let service = start_observed(
        settings(),
        Arc::clone(&store) as Arc<dyn Store>,
        &[right("a"), right("b")],
        Arc::clone(&stops) as Arc<dyn Observer>,
    );
    eventually("they are ready", || {
        let ready =
            |(_, view): &(String, crate::scheduler::DeviceView)| view.status == DeviceStatus::Ready;
        service.status().devices.iter().all(ready)
    });
    store.slow_ms.store(2_500, Ordering::SeqCst);
    let admission = submit(&service, "job", 5);
    completes(&service, &admission);
    assert_eq!(stops.0.load(Ordering::SeqCst), 0);
}

/// However long it does: what was done before is not done in vain, and no device is blamed.
#[test]
fn nothing_runs_out_of_time_while_the_store_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let filling = Arc::clone(&store);
    // The last proof of the first job comes when the disk is full.
    let device = FakeDevice::new("a", MOMENT, move |task| {
        if task.job.name == "first" && task.unit.index == 2 {
            filling.full.store(true, Ordering::SeqCst);
        }
        Doing::Prove
    });
    let mut settings = settings();
    let limits = &mut settings.scheduler;
    (limits.assembly_limit_ms, limits.judge_limit_ms) = (1_500, 1_500);
    (limits.stop_limit_ms, limits.heartbeat_ms) = (1_500, 1_500);
    limits.unit_limit_ms.porep = 1_500;
    (limits.unit_tries, limits.quarantine_after) = (1, 1);
    let service = start_with(settings, Arc::clone(&store) as Arc<dyn Store>, &[device]);
    let second = submit(&service, "second", 20);
    let mut urgent = submission(&service, "first", 3);
    urgent.priority = Priority::High;
    let first = service.submit(urgent).unwrap();
    eventually("it shows", || service.status().store_error.is_some());
    std::thread::sleep(Duration::from_secs(4));
    store.full.store(false, Ordering::SeqCst);
    completes(&service, &first);
    completes(&service, &second);
    assert_eq!(service.status().devices[0].1.status, DeviceStatus::Ready);
    assert_eq!(finished(&service, first.job).record.attempt, 1);
}

/// Sees whether a unit is given to a device in the order in which that may be.
#[derive(Default)]
struct Auditor {
    /// Leases whose claims are durable and which have not ended.
    stands: Mutex<BTreeSet<LeaseId>>,
    /// Devices with a process that was not told to end.
    up: Mutex<BTreeSet<DeviceId>>,
    starts: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Observer for Auditor {
    fn event(&self, _: Millis, _: &Event) {}
    fn returned(&self, _: Millis, _: LeaseId, _: &store::Timings) {}
    fn action(&self, _: Millis, action: &Action) {
        let (mut stands, mut up) = (self.stands.lock().unwrap(), self.up.lock().unwrap());
        match action {
            Action::Persist(Write::Claim { lease, .. }) => drop(stands.insert(*lease)),
            Action::Persist(Write::Release { lease, .. } | Write::Prove { lease, .. })
            | Action::Discard { lease, .. } => drop(stands.remove(lease)),
            Action::StartDevice { device, .. } => drop(up.insert(*device)),
            Action::StopDevice { device, .. } => drop(up.remove(device)),
            Action::Start { lease, device, .. } => {
                self.starts.fetch_add(1, Ordering::SeqCst);
                if !stands.contains(lease) || !up.contains(device) {
                    self.wrong.lock().unwrap().push(format!("{action:?}"));
                }
            }
            _ => {}
        }
    }
}

/// Whatever fails and whoever cancels: no unit starts before its lease is stored, or after it has
/// ended; and while the store fails devices only come to an end of what they have.
#[test]
fn no_unit_starts_without_a_stored_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = MoodyStore::open(folder.path());
    let auditor = Arc::<Auditor>::default();
    let device = |name: &str| {
        FakeDevice::new(name, MOMENT, move |task| {
            match (task.lease.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 32 {
                0 => Doing::Die,
                1 => Doing::Fail(Fault::Device),
                2 | 3 => Doing::Fail(Fault::Try),
                _ => Doing::Leave,
            }
        })
    };
    let mut settings = settings();
    settings.scheduler.unit_tries = 1_000;
    settings.scheduler.quarantine_after = 1_000;
    let service = start_observed(
        settings,
        Arc::clone(&store) as Arc<dyn Store>,
        &[device("a"), device("b")],
        Arc::clone(&auditor) as Arc<dyn Observer>,
    );
    let mut jobs = Vec::new();
    for round in 0..3 {
        for i in 0..12 {
            jobs.push(submit(&service, &format!("job {round} {i}"), 1 + i % 4));
        }
        service.cancel(&format!("job {round} 10")).unwrap();
        store.full.store(true, Ordering::SeqCst);
        let refused = submission(&service, &format!("refused {round}"), 1);
        assert!(service.submit(refused).is_err());
        let before = auditor.starts.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        let more = auditor.starts.load(Ordering::SeqCst) - before;
        assert!(more <= 2, "{more} starts while the store fails, 2 prepared");
        store.full.store(false, Ordering::SeqCst);
        eventually("the store is well", || {
            service.status().store_error.is_none()
        });
        jobs.push(submit(&service, &format!("job {round} 10"), 3));
    }
    for job in &jobs {
        completes(&service, job);
    }
    let wrong = auditor.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
