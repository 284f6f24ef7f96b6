//! Events lead to the state that is shown.

use engine::scheduler::{Action, DeviceId, Event, Fault, LeaseId, Outcome, Verdict, Write};
use engine::service::Observer;
use store::{Digest, JobId, JobRecord, JobState, OpenJob, Priority, Timings, UnitKey, UnitRecord};

use super::*;

const JOB: JobId = JobId::from_bytes([1; 16]);
const DEVICE: DeviceId = DeviceId(0);

fn record(id: JobId, units: u32) -> JobRecord {
    JobRecord {
        id,
        name: format!("job {id}"),
        request_id: String::new(),
        digest: Digest::new([0; 32]),
        client: "test".to_owned(),
        circuit: "porep-2k".to_owned(),
        priority: Priority::Normal,
        deadline_ms: None,
        accepted_ms: 1_000,
        submitted_ms: 1_000,
        payload_bytes: 1,
        unit_bytes: 1,
        units,
        attempt: 1,
        state: JobState::Open,
        started_ms: None,
        finished_ms: None,
        failure: None,
        timings: Timings::default(),
        test_key: false,
    }
}

fn unit(index: u32) -> UnitKey {
    UnitKey {
        job: JOB,
        attempt: 1,
        index,
    }
}

fn start(lease: u64, index: u32) -> Action {
    Action::Start {
        device: DEVICE,
        lease: LeaseId(lease),
        unit: unit(index),
    }
}

fn insert(observatory: &Observatory, units: u32) {
    let write = Write::Insert(Box::new(record(JOB, units)));
    observatory.action(1_000, &Action::Persist(write));
}

fn states(observatory: &Observatory, now: Millis) -> Vec<&'static str> {
    let views = observatory.pipelines(now);
    views[0]
        .partitions
        .iter()
        .map(|p| p.state.label())
        .collect()
}

fn finish(observatory: &Observatory, now: Millis, outcome: Outcome) {
    let write = Write::Finish {
        job: JOB,
        attempt: 1,
        outcome,
        finished_ms: now,
    };
    observatory.action(now, &Action::Persist(write));
}

const TIMINGS: Timings = Timings {
    load_ms: 0,
    witness_ms: 40,
    device_ms: 90,
};

#[test]
fn a_unit_goes_through_its_phases() {
    let observatory = Observatory::new();
    insert(&observatory, 2);
    assert_eq!(observatory.pipelines(1_500)[0].state, "waiting");
    let (device, lease) = (DEVICE, LeaseId(1));
    let prepare = Action::Prepare {
        device,
        lease,
        unit: unit(1),
    };
    observatory.action(2_000, &prepare);
    assert_eq!(states(&observatory, 2_100), ["pending", "synthesizing"]);
    assert_eq!(observatory.at_work().preparing, 1);
    observatory.action(3_000, &start(1, 1));
    assert_eq!(states(&observatory, 3_100), ["pending", "gpu"]);
    let running = observatory.timeline(0, 3_100);
    assert_eq!(
        (running[0].unit, running[0].end_ms, running[0].state),
        (1, None, "running")
    );
    observatory.returned(4_000, lease, &TIMINGS);
    assert_eq!(states(&observatory, 4_000), ["pending", "synth_done"]);
    assert_eq!(observatory.at_work().checking, 1);
    let verdict = Verdict::Right;
    observatory.event(4_100, &Event::UnitJudged { lease, verdict });
    let proven = Write::Prove {
        unit: unit(1),
        lease,
    };
    observatory.action(4_200, &Action::Persist(proven));
    let view = &observatory.pipelines(4_200)[0];
    assert_eq!((view.state, view.total, view.done), ("running", 2, 1));
    let done = &view.partitions[1];
    assert_eq!((done.synth_ms, done.gpu_ms), (Some(40), Some(90)));
    assert_eq!(observatory.at_work(), AtWork::default());
    let span = &observatory.timeline(0, 5_000)[0];
    assert_eq!(
        (span.start_ms, span.end_ms, span.state),
        (3_000, Some(4_000), "done")
    );
    assert!(observatory.timeline(4_001, 5_000).is_empty());
    let trace = observatory.trace(JOB, 5_000).unwrap().to_string();
    for phase in ["queued", "prepare 1", "prove 1", "check 1"] {
        assert!(trace.contains(phase), "{phase} is not in {trace}");
    }
}

#[test]
fn failures_go_back_to_waiting_and_are_seen() {
    let observatory = Observatory::new();
    insert(&observatory, 1);
    let release = |lease| {
        Action::Persist(Write::Release {
            unit: unit(0),
            lease,
            failed: true,
        })
    };
    for (n, wrong) in [(1, false), (2, true)] {
        let lease = LeaseId(n);
        observatory.action(2_000, &start(n, 0));
        if wrong {
            observatory.returned(2_500, lease, &TIMINGS);
            let verdict = Verdict::Wrong;
            observatory.event(2_600, &Event::UnitJudged { lease, verdict });
        } else {
            let (fault, cause) = (Fault::Try, "it broke".to_owned());
            observatory.event(
                2_600,
                &Event::UnitFailed {
                    lease,
                    fault,
                    cause,
                },
            );
        }
        observatory.action(2_700, &release(lease));
        assert_eq!(states(&observatory, 2_700), ["pending"]);
    }
    let failure = store::Failure {
        code: "UNIT_FAILED".to_owned(),
        message: "tried twice".to_owned(),
    };
    finish(&observatory, 3_000, Outcome::Failed(failure));
    assert_eq!(states(&observatory, 3_000), ["failed"]);
    let trace = observatory.trace(JOB, 4_000).unwrap();
    assert_eq!(trace["otherData"]["cause"], "tried twice");
    assert!(trace.to_string().contains("wrong proof"));
    // Ended jobs are shown for 30 seconds.
    assert_eq!(observatory.pipelines(33_000).len(), 1);
    assert_eq!(observatory.pipelines(33_001).len(), 0);
    assert!(observatory.trace(JOB, 99_000).is_some());
}

#[test]
fn what_comes_back_for_an_ended_job_leaves_nothing_behind() {
    let observatory = Observatory::new();
    insert(&observatory, 2);
    observatory.action(2_000, &start(1, 0));
    observatory.action(2_000, &start(2, 1));
    observatory.returned(2_100, LeaseId(1), &TIMINGS);
    finish(&observatory, 2_200, Outcome::Cancelled);
    observatory.returned(2_300, LeaseId(2), &TIMINGS);
    assert_eq!(observatory.at_work(), AtWork::default());
}

/// What a device has counted as busy, seconds.
fn busy(observatory: &Observatory) -> f64 {
    observatory.metrics().busy_seconds(DEVICE)
}

/// The time in which there is something on it, however many units: not that in which a proof is made
/// beside it.
#[test]
fn a_device_is_busy_with_what_is_on_it() {
    let observatory = Observatory::new();
    insert(&observatory, 4);
    let left = |now, lease| {
        let lease = LeaseId(lease);
        observatory.event(now, &Event::UnitLeftDevice { lease });
    };
    observatory.action(2_000, &start(1, 0));
    left(3_000, 1);
    left(3_500, 1);
    assert_eq!(busy(&observatory), 1.0);
    assert_eq!(states(&observatory, 3_600)[0], "gpu");
    assert_eq!(observatory.at_work().proving, 1);
    observatory.action(4_000, &start(2, 1));
    observatory.action(4_500, &start(3, 2));
    observatory.returned(5_000, LeaseId(1), &TIMINGS);
    left(6_000, 2);
    // The third says so only with its proof.
    observatory.returned(6_500, LeaseId(3), &TIMINGS);
    assert_eq!(busy(&observatory), 3.5);
    let spans = observatory.timeline(0, 7_000);
    let times: Vec<_> = spans.iter().map(|s| (s.start_ms, s.end_ms)).collect();
    let expected = [(2_000, 3_000), (4_000, 6_000), (4_500, 6_500)];
    assert_eq!(times, expected.map(|(start, end)| (start, Some(end))));
    let trace = observatory.trace(JOB, 7_000).unwrap().to_string();
    assert!(trace.contains("finish 0") && trace.contains("finish 1"));
    assert!(!trace.contains("finish 2"));
}

#[test]
fn what_an_ended_job_has_on_a_device_goes_with_the_process() {
    let observatory = Observatory::new();
    insert(&observatory, 3);
    observatory.action(2_000, &start(1, 0));
    observatory.action(2_000, &start(2, 1));
    let lease = LeaseId(2);
    observatory.event(2_500, &Event::UnitLeftDevice { lease });
    finish(&observatory, 2_600, Outcome::Cancelled);
    let (incarnation, cause) = (1, "killed".to_owned());
    let stopped = Event::DeviceStopped {
        device: DEVICE,
        incarnation,
        cause,
    };
    observatory.event(3_000, &stopped);
    assert_eq!(observatory.at_work(), AtWork::default());
    assert_eq!(busy(&observatory), 1.0);
    let spans = observatory.timeline(0, 9_000);
    assert!(spans.iter().all(|span| span.end_ms.is_some()), "{spans:?}");
}

fn restart(observatory: &Observatory, now: Millis) {
    let write = Write::Restart {
        job: JOB,
        attempt: 2,
        accepted_ms: now,
        priority: Priority::Normal,
        deadline_ms: None,
    };
    observatory.action(now, &Action::Persist(write));
}

fn stopped() -> Event {
    Event::DeviceStopped {
        device: DEVICE,
        incarnation: 1,
        cause: "killed".to_owned(),
    }
}

/// The job may have been submitted again: what was begun for it before is wanted no more for that.
#[test]
fn what_an_ended_attempt_had_on_a_device_goes_with_its_process_or_its_proof() {
    let observatory = Observatory::new();
    insert(&observatory, 1);
    observatory.action(2_000, &start(1, 0));
    finish(&observatory, 2_500, Outcome::Cancelled);
    restart(&observatory, 2_600);
    observatory.event(3_000, &stopped());
    assert_eq!(observatory.at_work(), AtWork::default());
    let spans = observatory.timeline(0, 9_000);
    assert!(spans.iter().all(|span| span.end_ms.is_some()), "{spans:?}");
    let observatory = Observatory::new();
    insert(&observatory, 1);
    observatory.action(2_000, &start(1, 0));
    finish(&observatory, 2_500, Outcome::Cancelled);
    restart(&observatory, 2_600);
    observatory.returned(3_000, LeaseId(1), &TIMINGS);
    assert_eq!(states(&observatory, 3_000), ["pending"]);
    assert_eq!(observatory.at_work(), AtWork::default(), "nobody checks it");
}

/// A unit may have been given to a process that had ended already: what waited for the store is done late.
#[test]
fn what_a_process_got_after_its_end_is_gone_when_the_next_one_starts() {
    let observatory = Observatory::new();
    insert(&observatory, 2);
    observatory.event(2_000, &stopped());
    observatory.action(2_500, &start(1, 0));
    finish(&observatory, 2_500, Outcome::Cancelled);
    let (device, incarnation) = (DEVICE, 2);
    observatory.action(
        3_000,
        &Action::StartDevice {
            device,
            incarnation,
        },
    );
    assert_eq!(observatory.at_work(), AtWork::default());
    assert_eq!(busy(&observatory), 0.5);
}

#[test]
fn restored_jobs_show_what_was_proven() {
    let observatory = Observatory::new();
    let proven = UnitRecord {
        index: 1,
        failures: 0,
        lease: None,
        proven: true,
    };
    let mut job = record(JOB, 3);
    job.started_ms = Some(1_200);
    let open = OpenJob {
        job,
        units: vec![proven],
    };
    observatory.event(9_000, &Event::Restore(Box::new(open)));
    assert_eq!(states(&observatory, 9_000), ["pending", "done", "pending"]);
    let view = &observatory.pipelines(9_000)[0];
    assert_eq!((view.done, view.started_secs_ago), (1, 7.8));
}

#[test]
fn what_is_kept_is_bounded() {
    let observatory = Observatory::new();
    for i in 0..3_000_u128 {
        let id = JobId::from_bytes((i + 5).to_be_bytes());
        let insert = Write::Insert(Box::new(record(id, 1)));
        observatory.action(1_000, &Action::Persist(insert));
        let finish = Write::Finish {
            job: id,
            attempt: 1,
            outcome: Outcome::Completed,
            finished_ms: 2_000,
        };
        observatory.action(2_000, &Action::Persist(finish));
    }
    assert_eq!(observatory.lock().jobs.len(), 1_000);
    // Of many that wait the first ones are shown.
    for i in 0..500_u128 {
        let id = JobId::from_bytes((1 << 100 | i).to_be_bytes());
        let mut record = record(id, 1);
        record.accepted_ms = 10_000 - u64::try_from(i).unwrap();
        observatory.action(1_000, &Action::Persist(Write::Insert(Box::new(record))));
    }
    let shown = observatory.pipelines(99_999);
    assert_eq!(shown.len(), 100);
    assert!((shown[0].started_secs_ago - 90.498).abs() < 1e-9);
}

#[test]
fn what_workers_say_they_did_is_in_the_trace_in_rows_that_do_not_overlap() {
    let observatory = Observatory::new();
    insert(&observatory, 2);
    let phase = |name: &str, kind, start_us, time_us| UnitPhase {
        name: name.to_owned(),
        kind,
        start_us,
        time_us,
    };
    for (lease, index) in [(1, 0), (2, 1)] {
        observatory.action(2_000, &start(lease, index));
        let from = 1_000_000 * lease;
        let phases = vec![
            phase("witness", "prepare", from, 500_000),
            phase("ntt", "device", from + 600_000, 300_000),
            phase("h", "device", from + 900_000, 800_000),
        ];
        observatory.phases(LeaseId(lease), phases);
    }
    // Of a lease that nobody knows.
    observatory.phases(LeaseId(9), vec![phase("lost", "device", 0, 1)]);
    let trace = observatory.trace(JOB, 5_000).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let lane = |name: &str, unit: u32| {
        let is =
            |event: &&serde_json::Value| event["name"] == name && event["args"]["unit"] == unit;
        events.iter().find(is).unwrap()["tid"].as_u64().unwrap()
    };
    assert!(events.iter().all(|event| event["name"] != "lost"));
    // The device's phases of the two overlap, their witnesses do not.
    assert_ne!(lane("h", 0), lane("ntt", 1));
    assert_eq!(lane("ntt", 1), lane("h", 1));
    assert_eq!(lane("witness", 0), lane("witness", 1));
    assert_ne!(lane("witness", 0), lane("h", 0));
}
