//! The worker's end over real pipes, with a prover that does as it is told.

mod leaving;

use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex as StdMutex};
use std::thread::JoinHandle;

use engine::scheduler::LeaseId;
use groth16::progress::Progress;
use store::{Digest, JobId};

use super::*;

/// Neither heartbeats nor stalls.
const PATIENT: Served = Served {
    heartbeat: Duration::from_secs(3600),
    stall: Duration::from_secs(3600),
};

/// Doors that a test opens: work waits in front of them.
#[derive(Default)]
struct Doors {
    open: StdMutex<Vec<&'static str>>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Doors {
    fn open(&self, name: &'static str) {
        self.open.lock().unwrap().push(name);
        self.changed.notify_all();
    }

    fn pass(&self, name: &str) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !open.contains(&name) {
            open = self.changed.wait(open).unwrap();
        }
    }
}

/// What happens to a unit is in its job's name, in words.
struct Scripted {
    pulse: Pulse,
    doors: Arc<Doors>,
    decoded: Arc<AtomicUsize>,
    keys: StdMutex<Vec<(CircuitId, u64)>>,
    fit: Result<(), String>,
}

impl Scripted {
    fn act(&self, unit: &Unit, place: &str) -> Result<(), UnitError> {
        let script = unit
            .name
            .split(' ')
            .find_map(|word| word.strip_prefix(place));
        match script {
            None => Ok(()),
            Some("wrong") => Err(UnitError {
                fault: Fault::Request,
                cause: format!("{place} says wrong"),
            }),
            Some("panic") => panic!("told to panic"),
            Some(door) => {
                self.doors.pass(door);
                Ok(())
            }
        }
    }
}

impl Prover for Scripted {
    type Request = Vec<u8>;
    type Prepared = Vec<u8>;
    type Sums = u32;

    fn hello(&self) -> Hello {
        Hello {
            program: "test".to_owned(),
            device: "script".to_owned(),
            uuid: None,
            memory_bytes: None,
            circuits: Vec::new(),
            look_ahead: 1,
            heartbeat_s: 1,
        }
    }

    fn self_test(&self) -> Result<(), String> {
        self.fit.clone()
    }

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<Vec<u8>, UnitError> {
        self.decoded.fetch_add(1, Ordering::SeqCst);
        self.act(unit, "decode:").map(|()| payload)
    }

    fn prepare(
        &self,
        unit: &Unit,
        request: &Vec<u8>,
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        spans.run("witness", Lane::Witness, || self.act(unit, "prepare:"))?;
        Ok([&request[..], &unit.index.to_le_bytes()].concat())
    }

    fn sums(&self, unit: &Unit, prepared: &Vec<u8>, spans: &mut Spans) -> Result<u32, UnitError> {
        assert!(prepared.ends_with(&unit.index.to_le_bytes()));
        self.pulse.begin("proving", 2);
        spans.run("sums", Lane::Device, || self.act(unit, "prove:"))?;
        self.keys
            .lock()
            .unwrap()
            .retain(|(id, _)| *id == unit.circuit);
        if self.keys.lock().unwrap().is_empty() {
            self.keys.lock().unwrap().push((unit.circuit, 7));
        }
        Ok(unit.index + 1)
    }

    fn finish(
        &self,
        unit: &Unit,
        prepared: Vec<u8>,
        sums: u32,
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        assert_eq!(sums, unit.index + 1);
        spans.run("verify", Lane::Finish, || self.act(unit, "finish:"))?;
        Ok(prepared)
    }

    fn preload(&self, circuit: CircuitId) -> Result<(bool, u64), String> {
        let known = self
            .keys
            .lock()
            .unwrap()
            .iter()
            .any(|(id, _)| *id == circuit);
        if !known {
            self.keys.lock().unwrap().push((circuit, 9));
        }
        Ok((known, 3))
    }

    fn evict(&self, circuit: CircuitId) -> (bool, u64) {
        self.keys.lock().unwrap().retain(|(id, _)| *id != circuit);
        (true, 9)
    }

    fn keys(&self) -> Vec<(CircuitId, u64)> {
        self.keys.lock().unwrap().clone()
    }

    fn at_a_time(&self) -> Option<usize> {
        let keys = self.keys.lock().unwrap();
        let spacious = |(id, _): &(CircuitId, u64)| *id == spacious();
        keys.iter().any(spacious).then_some(4)
    }
}

/// The circuit with whose key there is room for four units at a time.
fn spacious() -> CircuitId {
    CircuitId::all().nth(3).unwrap()
}

/// The daemon's side of the pipes.
struct Daemon {
    to: Arc<StdMutex<Option<PipeWriter>>>,
    reports: Receiver<Report>,
    doors: Arc<Doors>,
    decoded: Arc<AtomicUsize>,
    serving: JoinHandle<Result<End, Error>>,
}

/// Reads reports; with `answers`, sends payloads as they are asked for.
fn pump(
    mut from: PipeReader,
    to: &StdMutex<Option<PipeWriter>>,
    reports: &Sender<Report>,
    answers: bool,
) {
    while let Ok(Some(report)) = message::hear_report(&mut from) {
        match report {
            Report::Want { digest } if answers => {
                if let Some(to) = to.lock().unwrap().as_mut() {
                    message::send_payload(to, &digest, &digest.as_bytes()[..4]).unwrap();
                }
            }
            report => drop(reports.send(report)),
        }
    }
}

impl Daemon {
    fn with(fit: Result<(), String>, settings: Served, answers: bool) -> Self {
        let (worker_reads, to) = pipe().unwrap();
        let (from, worker_writes) = pipe().unwrap();
        let (doors, decoded) = (Arc::<Doors>::default(), Arc::<AtomicUsize>::default());
        let prover = Scripted {
            pulse: Pulse::default(),
            doors: Arc::clone(&doors),
            decoded: Arc::clone(&decoded),
            keys: StdMutex::default(),
            fit,
        };
        let serving =
            std::thread::spawn(move || serve(worker_reads, worker_writes, prover, settings));
        let to = Arc::new(StdMutex::new(Some(to)));
        let (sender, reports) = channel();
        let pumped = Arc::clone(&to);
        std::thread::spawn(move || pump(from, &pumped, &sender, answers));
        let daemon = Self {
            to,
            reports,
            doors,
            decoded,
            serving,
        };
        assert!(matches!(daemon.hears(), Report::Hello(_)));
        daemon
    }

    fn new() -> Self {
        Self::that(true)
    }

    fn that(answers: bool) -> Self {
        let daemon = Self::with(Ok(()), PATIENT, answers);
        assert_eq!(daemon.hears(), Report::Ready);
        daemon
    }

    fn says(&self, order: &Order) {
        message::send(self.to.lock().unwrap().as_mut().unwrap(), order).unwrap();
    }

    /// The next report.
    fn hears_all(&self) -> Report {
        self.reports.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// The next report but those of units that have left the device.
    fn hears(&self) -> Report {
        loop {
            match self.hears_all() {
                Report::LeftDevice { .. } => {}
                report => return report,
            }
        }
    }

    /// The next report that is not about keys.
    fn hears_of_units(&self) -> Report {
        loop {
            match self.hears() {
                Report::KeyLoaded { .. } => {}
                report => return report,
            }
        }
    }

    fn waits_for(&self, count: usize) {
        while self.doors.waiting.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }

    fn end(self) -> Result<End, Error> {
        *self.to.lock().unwrap() = None;
        self.serving.join().unwrap()
    }
}

fn unit(lease: u64, job: u8, script: &str) -> Unit {
    Unit {
        lease: LeaseId(lease),
        job: JobId::from_bytes([job; 16]),
        name: script.to_owned(),
        circuit: CircuitId::all().next().unwrap(),
        digest: Digest::new([job; 32]),
        index: u32::try_from(lease).unwrap(),
        units: 9,
    }
}

fn proof(report: Report, lease: u64) -> (Vec<u8>, Vec<String>) {
    match report {
        Report::Returned {
            lease: found,
            proof,
            phases,
        } if found == LeaseId(lease) => {
            (proof, phases.into_iter().map(|phase| phase.name).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn failure(report: Report, lease: u64) -> (Fault, String) {
    match report {
        Report::Failed {
            lease: found,
            fault,
            cause,
        } if found == LeaseId(lease) => (fault, cause),
        other => panic!("{other:?}"),
    }
}

#[test]
fn units_of_a_job_decode_once_and_come_back_with_their_phases() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prove(unit(1, 5, "")));
    assert!(matches!(
        daemon.hears(),
        Report::KeyLoaded {
            loaded: true,
            bytes: 7,
            ..
        }
    ));
    let (bytes, phases) = proof(daemon.hears(), 1);
    assert_eq!(bytes, [5, 5, 5, 5, 1, 0, 0, 0]);
    assert_eq!(phases, ["decode", "witness", "sums", "verify"]);
    daemon.says(&Order::Prepare(unit(2, 5, "")));
    daemon.says(&Order::Prove(unit(2, 5, "")));
    assert_eq!(proof(daemon.hears(), 2).1, ["witness", "sums", "verify"]);
    assert_eq!(daemon.decoded.load(Ordering::SeqCst), 1);
    assert_eq!(daemon.end().unwrap(), End::Abandoned);
}

#[test]
fn the_next_unit_is_prepared_while_one_is_proven() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prove(unit(1, 1, "prove:a")));
    daemon.says(&Order::Prepare(unit(2, 2, "prepare:b")));
    daemon.waits_for(2);
    daemon.doors.open("b");
    daemon.says(&Order::Prove(unit(2, 2, "prepare:b")));
    daemon.doors.open("a");
    proof(daemon.hears_of_units(), 1);
    proof(daemon.hears_of_units(), 2);
}

#[test]
fn an_urgent_unit_does_not_wait_for_one_that_is_being_prepared() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prepare(unit(1, 1, "prepare:slow")));
    daemon.waits_for(1);
    daemon.says(&Order::Prove(unit(2, 2, "")));
    proof(daemon.hears_of_units(), 2);
    daemon.says(&Order::Prove(unit(1, 1, "prepare:slow")));
    daemon.doors.open("slow");
    proof(daemon.hears_of_units(), 1);
}

/// Nor for the room of those that are prepared and not ordered, while another's proof is made.
#[test]
fn an_urgent_unit_does_not_wait_for_room_that_units_made_ahead_take() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prove(unit(1, 1, "finish:later")));
    daemon.waits_for(1);
    for lease in [2, 3] {
        daemon.says(&Order::Prepare(unit(lease, 2, "prepare:now")));
    }
    daemon.doors.open("now");
    daemon.waits_for(3);
    // The device is free.
    daemon.says(&Order::Prove(unit(4, 4, "")));
    let proven = loop {
        match daemon.reports.recv_timeout(Duration::from_secs(5)) {
            Ok(Report::LeftDevice { lease: LeaseId(4) }) => break true,
            Ok(_) => {}
            Err(_) => break false,
        }
    };
    daemon.doors.open("later");
    assert!(proven, "the device had nothing to do");
}

#[test]
fn discarding_is_answered_whatever_the_state() {
    let daemon = Daemon::new();
    let discarded = |lease| Report::Discarded {
        lease: LeaseId(lease),
    };
    // Unknown.
    daemon.says(&Order::Discard { lease: LeaseId(9) });
    assert_eq!(daemon.hears(), discarded(9));
    // Being prepared: when that is over.
    daemon.says(&Order::Prepare(unit(1, 1, "prepare:a")));
    daemon.waits_for(1);
    daemon.says(&Order::Discard { lease: LeaseId(1) });
    // Waiting behind it: at once.
    daemon.says(&Order::Prepare(unit(2, 2, "")));
    daemon.says(&Order::Discard { lease: LeaseId(2) });
    assert_eq!(daemon.hears(), discarded(2));
    daemon.doors.open("a");
    assert_eq!(daemon.hears(), discarded(1));
    // Prepared.
    daemon.says(&Order::Prepare(unit(3, 3, "prepare:b")));
    daemon.waits_for(2);
    daemon.doors.open("b");
    daemon.says(&Order::Discard { lease: LeaseId(3) });
    assert_eq!(daemon.hears(), discarded(3));
    daemon.says(&Order::Prove(unit(4, 4, "")));
    proof(daemon.hears_of_units(), 4);
}

#[test]
fn a_unit_that_failed_early_is_said_once_and_not_begun_again() {
    let daemon = Daemon::new();
    for (lease, script) in [(1, "prepare:wrong"), (2, "decode:wrong")] {
        let job = u8::try_from(lease).unwrap();
        daemon.says(&Order::Prepare(unit(lease, job, script)));
        let (fault, cause) = failure(daemon.hears(), lease);
        assert_eq!(fault, Fault::Request);
        assert!(cause.ends_with("says wrong"), "{cause}");
        daemon.says(&Order::Prove(unit(lease, job, script)));
    }
    daemon.says(&Order::Prove(unit(3, 3, "")));
    proof(daemon.hears_of_units(), 3);
}

#[test]
fn a_panic_is_a_fault_of_the_process_and_named() {
    let daemon = Daemon::new();
    for (lease, script) in [
        (1, "prove:panic"),
        (2, "prepare:panic"),
        (3, "decode:panic"),
        (4, "finish:panic"),
    ] {
        let job = u8::try_from(lease).unwrap();
        daemon.says(&Order::Prove(unit(lease, job, script)));
        let (fault, cause) = failure(daemon.hears_of_units(), lease);
        assert_eq!(fault, Fault::Device);
        assert!(cause.contains("told to panic"), "{cause}");
    }
}

#[test]
fn a_payload_that_is_gone_fails_its_units() {
    let daemon = Daemon::that(false);
    for (lease, damaged, expected) in [(1, true, Fault::Payload), (2, false, Fault::Try)] {
        daemon.says(&Order::Prove(unit(lease, 1, "")));
        let report = daemon.hears();
        let Report::Want { digest } = report else {
            panic!("{report:?}");
        };
        let cause = "no such file".to_owned();
        daemon.says(&Order::NoPayload {
            digest,
            damaged,
            cause,
        });
        assert_eq!(
            failure(daemon.hears_of_units(), lease),
            (expected, "no such file".to_owned())
        );
    }
}

#[test]
fn stop_lets_the_running_unit_end_and_no_other_begin() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prove(unit(1, 1, "prove:a")));
    daemon.waits_for(1);
    daemon.says(&Order::Prove(unit(2, 2, "")));
    daemon.says(&Order::Stop);
    daemon.doors.open("a");
    proof(daemon.hears_of_units(), 1);
    assert_eq!(daemon.serving.join().unwrap().unwrap(), End::Stopped);

    let idle = Daemon::new();
    idle.says(&Order::Stop);
    assert_eq!(idle.serving.join().unwrap().unwrap(), End::Stopped);
}

#[test]
fn a_daemon_that_is_gone_ends_it_while_a_unit_runs() {
    let daemon = Daemon::new();
    daemon.says(&Order::Prove(unit(1, 1, "prove:never")));
    daemon.waits_for(1);
    assert_eq!(daemon.end().unwrap(), End::Abandoned);
}

#[test]
fn garbage_and_an_unfit_device_end_it_with_a_reason() {
    let daemon = Daemon::new();
    let mut to = daemon.to.lock().unwrap().take().unwrap();
    to.write_all(&[b'x'; 64]).unwrap();
    let error = daemon.serving.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::Frame(_)), "{error}");

    let unfit = Daemon::with(Err("computes wrongly".to_owned()), PATIENT, true);
    let error = unfit.serving.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("computes wrongly"), "{error}");
}

#[test]
fn the_heart_beats_while_the_work_moves_and_stops_with_it() {
    let settings = Served {
        heartbeat: Duration::from_millis(5),
        stall: Duration::from_millis(300),
    };
    let daemon = Daemon::with(Ok(()), settings, true);
    let is_beat = |report: &Report| matches!(report, Report::Heartbeat { .. });
    // Idle: it beats for longer than a stall.
    let began = Instant::now();
    while began.elapsed() < 2 * settings.stall {
        let report = daemon.hears();
        assert!(is_beat(&report) || report == Report::Ready, "{report:?}");
    }
    daemon.says(&Order::Prove(unit(1, 1, "prove:a")));
    daemon.waits_for(1);
    std::thread::sleep(2 * settings.stall);
    daemon.doors.open("a");
    // Between the beats before the stall and the proof there is a gap.
    let beats = std::iter::from_fn(|| Some(daemon.hears_of_units()).filter(is_beat)).count();
    let most = 3 * settings.stall.as_millis() / settings.heartbeat.as_millis();
    assert!((beats as u128) < most / 2, "{beats} beats");
    // And it beats again.
    assert!(is_beat(&daemon.hears()));
}

#[test]
fn how_many_units_may_come_is_told_once_with_the_key() {
    let daemon = Daemon::new();
    let (circuit, question) = (spacious(), 4);
    for known in [false, true] {
        daemon.says(&Order::Preload { question, circuit });
        if !known {
            assert!(matches!(daemon.hears(), Report::KeyLoaded { .. }));
            assert_eq!(daemon.hears(), Report::Takes { at_a_time: 4 });
        }
        assert!(matches!(daemon.hears(), Report::Preloaded { .. }));
    }
}

#[test]
fn keys_come_and_go_as_told() {
    let daemon = Daemon::new();
    let circuit = CircuitId::all().last().unwrap();
    let question = 4;
    for known in [false, true] {
        daemon.says(&Order::Preload { question, circuit });
        if !known {
            let loaded = Report::KeyLoaded {
                circuit,
                loaded: true,
                bytes: 9,
            };
            assert_eq!(daemon.hears(), loaded);
        }
        let result = Ok((known, 3));
        assert_eq!(daemon.hears(), Report::Preloaded { question, result });
    }
    daemon.says(&Order::Evict { question, circuit });
    assert!(matches!(
        daemon.hears(),
        Report::KeyLoaded { loaded: false, .. }
    ));
    assert!(matches!(daemon.hears(), Report::Evicted { freed: 9, .. }));
}
