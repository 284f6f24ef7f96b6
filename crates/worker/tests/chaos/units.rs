//! Single things that go wrong in workers.

use std::time::{Duration, Instant};

use engine::scheduler::DeviceStatus;
use filecoin::{CircuitId, ProofKind, SectorSize};

use crate::times;
use crate::world::{World, actor, eventually, settings, submission};

/// Jobs over two devices of which the first misbehaves; all complete.
fn jobs_complete(world: &World, count: u32) {
    let jobs: Vec<_> = (0..count)
        .map(|i| world.submit(&format!("job {i}"), 1 + i % 4))
        .collect();
    jobs.iter().for_each(|job| world.completes(job));
}

pub fn wrong_proof() {
    let bad = actor("bad", &["prove-ms=5", "corrupt=2"]);
    let world = World::new(settings(), vec![bad, actor("good", &["prove-ms=20"])]);
    jobs_complete(&world, 10);
    let cause = world.quarantine(0);
    assert!(cause.contains("did not verify"), "{cause}");
    assert_eq!(world.device_status(1), DeviceStatus::Ready);
    // Its process is gone and stays so.
    assert!(world.devices[0].wait_gone(Duration::from_secs(20)));
}

pub fn hanging() {
    let mut settings = settings();
    settings.scheduler.unit_limit_ms.porep = 1_000;
    // Its heart beats, so only the unit's own limit can end this.
    settings.scheduler.heartbeat_ms = 60_000;
    let began = Instant::now();
    let world = World::new(settings, vec![actor("hangs", &["hang=2"])]);
    jobs_complete(&world, 2);
    assert!(began.elapsed() >= Duration::from_secs(1));
}

/// The first device falls silent at its second unit, for good; its unit is made by another
/// process.
fn silent(deed: &str) {
    let mut settings = settings();
    settings.scheduler.heartbeat_ms = 1_500;
    let world = World::new(settings, vec![actor("silent", &[deed])]);
    let old = world.submit("first", 1);
    world.completes(&old);
    let pid = world.devices[0].pid();
    jobs_complete(&world, 1);
    assert_ne!(world.devices[0].pid(), pid);
}

pub fn frozen() {
    silent("freeze=2");
}

pub fn stalled() {
    silent("stall=2");
}

pub fn garbage() {
    let world = World::new(settings(), vec![actor("chatty", &["garbage=3"])]);
    jobs_complete(&world, 6);
}

pub fn cannot_start() {
    let mut settings = settings();
    settings.scheduler.start_tries = 4;
    settings.scheduler.restart_ms = (50, 400);
    settings.scheduler.no_device_ms = 300;
    let began = Instant::now();
    let unfit = actor("unfit", &["unfit=the GPU has fallen off the bus"]);
    let world = World::new(settings, vec![unfit]);
    let job = world.submit("job", 1);
    let cause = world.quarantine(0);
    // It was tried again after pauses that grow: 50, 100, 200 ms.
    assert!(began.elapsed() >= Duration::from_millis(350));
    assert!(cause.contains("failed to start 4 times"), "{cause}");
    assert!(cause.contains("fallen off the bus"), "{cause}");
    let (code, message) = world.fails(&job);
    assert_eq!(code, "NO_DEVICE", "{message}");

    // A program that is not there is as good.
    let spec = worker::WorkerSpec {
        name: "absent".to_owned(),
        program: "/nonexistent/cuzk".into(),
        arguments: Vec::new(),
        environment: Vec::new(),
        circuits: CircuitId::all().collect(),
        at_a_time: 1,
        lane_places: 0,
        look_ahead: 1,
        stop_grace: Duration::ZERO,
    };
    let absent = worker::WorkerProcess::new(spec, std::sync::Arc::new(worker::Nobody));
    let mut settings = crate::world::settings();
    settings.scheduler.start_tries = 2;
    let world = World::new(settings, vec![std::sync::Arc::new(absent)]);
    let cause = world.quarantine(0);
    assert!(
        cause.contains("/nonexistent/cuzk cannot be started"),
        "{cause}"
    );
}

pub fn damaged_payload() {
    let world = World::new(settings(), vec![actor("slow", &["prove-ms=300"])]);
    let busy = world.submit("busy", 1);
    eventually("it runs", || {
        world.service().status().devices[0].1.running.is_some()
    });
    // Two jobs behind it: the file of one is changed, that of the other goes.
    let jobs = ["changed", "gone"].map(|name| {
        let job = submission(world.service(), name, 4).unwrap();
        let digest = job.digest.to_string();
        let file = world.file("payloads").join(&digest[..2]).join(&digest);
        assert!(file.is_file(), "{}", file.display());
        if name == "gone" {
            std::fs::remove_file(&file).unwrap();
        } else {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[9] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        world.service().submit(job).unwrap()
    });
    for job in &jobs {
        let (code, message) = world.fails(job);
        assert_eq!(code, "PAYLOAD_DAMAGED", "{message}");
    }
    world.completes(&busy);
    assert_eq!(world.device_status(0), DeviceStatus::Ready);
    // Submitted again, the file is whole again and the job is proven.
    for (name, old) in ["changed", "gone"].into_iter().zip(&jobs) {
        let again = world.submit(name, 4);
        assert_eq!(again.job, old.job);
        world.completes(&again);
    }
}

pub fn stopping() {
    let mut world = World::new(settings(), vec![actor("a", &["prove-ms=200"])]);
    let job = world.submit("job", 3);
    eventually("it runs", || {
        world.service().status().devices[0].1.running.is_some()
    });
    let device = std::sync::Arc::clone(&world.devices[0]);
    let pid = device.pid().unwrap();
    assert!(
        world
            .service
            .take()
            .unwrap()
            .shut_down(Duration::from_secs(60))
    );
    assert!(device.wait_gone(Duration::from_secs(20)));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    // The unit that ran has come to its end, the others are for the next start.
    let store = store::SqliteStore::open(world.folder.path()).unwrap();
    let open = store::Store::open_jobs(&store).unwrap();
    assert_eq!(open[0].job.id, job.job);
    assert_eq!(open[0].units.iter().filter(|unit| unit.proven).count(), 1);
}

/// With PoRep-shaped jobs on every device, each WinningPoSt goes to the device that is free next.
pub fn lane() {
    const UNIT_MS: u64 = 100;
    let devices = vec![
        actor("a", &["prove-ms=100", "prepare-ms=5"]),
        actor("b", &["prove-ms=100", "prepare-ms=5"]),
    ];
    let world = World::new(settings(), devices);
    let winning = CircuitId::new(ProofKind::Winning, SectorSize::KiB2);
    let mut waits = Vec::new();
    let mut proven = Vec::new();
    for i in 0..times(100, 15) {
        // Always more to do than both devices can.
        while world.service().status().queued < 4 {
            let number = proven.len();
            proven.push(world.submit(&format!("porep {number}"), 10));
        }
        let mut urgent = submission(world.service(), &format!("winning {i}"), 1).unwrap();
        urgent.circuit = winning;
        let urgent = world.service().submit(urgent).unwrap();
        let record = world.finished(urgent.job).record;
        waits.push(world.starts.of(urgent.job) - record.accepted_ms);
    }
    waits.sort_unstable();
    let (median, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    println!(
        "{} WinningPoSt jobs waited {median} ms (median), {p99} ms (99th percentile), {} ms \
         (longest); a unit takes {UNIT_MS} ms",
        waits.len(),
        waits[waits.len() - 1]
    );
    // Behind a unit and not behind a job of ten, also where the machine is busy otherwise.
    assert!(median <= 3 * UNIT_MS && p99 < 10 * UNIT_MS, "{waits:?}");
    proven
        .iter()
        .for_each(|job| drop(world.service().cancel(&job.name)));
}
