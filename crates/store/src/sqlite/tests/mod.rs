//! The store's rules for jobs, one by one. Crash tests are in the crate's `tests/`.

mod faults;
mod payloads;

use super::*;
use crate::Conflict;
use crate::record::{End, Failure, JobState, LeaseRecord, Priority, Timings, UnitKey};

const NOW: u64 = 1_700_000_000_000;

fn open() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    (folder, store)
}

fn job(number: u8, request_id: &str) -> JobRecord {
    JobRecord {
        id: JobId::from_bytes([number; 16]),
        name: format!("{request_id}-{number}"),
        request_id: request_id.to_owned(),
        digest: Digest::of(&[number]),
        client: "f01000".to_owned(),
        circuit: "porep-2k".to_owned(),
        priority: Priority::Normal,
        deadline_ms: None,
        accepted_ms: NOW,
        submitted_ms: NOW,
        payload_bytes: 100,
        unit_bytes: 1 << 30,
        units: 3,
        attempt: 1,
        state: JobState::Open,
        started_ms: None,
        finished_ms: None,
        failure: None,
        timings: Timings::default(),
        test_key: false,
    }
}

fn unit(job: &JobRecord, index: u32) -> UnitKey {
    UnitKey {
        job: job.id,
        attempt: job.attempt,
        index,
    }
}

fn claim(unit: UnitKey, token: u64, holder: &str, now_ms: u64) -> Change {
    let lease = LeaseRecord {
        token,
        holder: holder.to_owned(),
        expires_ms: now_ms + 1000,
    };
    Change::Claim {
        unit,
        lease,
        now_ms,
    }
}

fn prove(unit: UnitKey, token: u64, holder: &str, proof: &[u8]) -> Change {
    let timings = Timings {
        load_ms: 1,
        witness_ms: 2,
        device_ms: 3,
    };
    Change::Prove {
        unit,
        token,
        holder: holder.to_owned(),
        proof: proof.to_vec(),
        timings,
    }
}

fn finish(job: &JobRecord, end: End, finished_ms: u64) -> Change {
    Change::Finish {
        job: job.id,
        attempt: job.attempt,
        end,
        finished_ms,
    }
}

fn completed(proof: &[u8]) -> End {
    End::Completed {
        proof: proof.to_vec(),
        test_key: true,
    }
}

fn conflict(result: Result<()>) -> (usize, Conflict) {
    match result.unwrap_err() {
        Error::Conflict { index, cause } => (index, cause),
        other => panic!("not a conflict: {other}"),
    }
}

#[test]
fn a_job_comes_back_as_it_was_stored() {
    let (folder, store) = open();
    let mut job = job(1, "porep-1000-7 [1 2] \u{1F980}\n'\"");
    job.deadline_ms = Some(NOW + 5);
    store
        .apply(&[Change::Insert(Box::new(job.clone()))])
        .unwrap();
    assert_eq!(store.job(job.id).unwrap().unwrap(), job);
    assert_eq!(store.job(JobId::from_bytes([9; 16])).unwrap(), None);
    drop(store);
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(
        store.open_jobs().unwrap(),
        [OpenJob {
            job,
            units: Vec::new()
        }]
    );
}

#[test]
fn identity_and_name_are_unique_but_an_empty_request_id_is_nobody_s() {
    let (_folder, store) = open();
    let first = job(1, "id");
    store
        .apply(&[Change::Insert(Box::new(first.clone()))])
        .unwrap();
    let mut same = job(2, "id");
    same.digest = first.digest;
    let refused = store.apply(&[Change::Insert(Box::new(same))]);
    assert_eq!(conflict(refused), (0, Conflict::JobExists));
    let mut named = job(3, "other");
    named.name.clone_from(&first.name);
    let refused = store.apply(&[Change::Insert(Box::new(named))]);
    assert_eq!(conflict(refused), (0, Conflict::JobExists));
    let (mut a, mut b) = (job(4, ""), job(5, ""));
    a.digest = first.digest;
    b.digest = first.digest;
    store
        .apply(&[Change::Insert(Box::new(a)), Change::Insert(Box::new(b))])
        .unwrap();
}

#[test]
fn a_batch_is_applied_wholly_or_not_at_all() {
    let (_folder, store) = open();
    let (a, b) = (job(1, "a"), job(2, "b"));
    store.apply(&[Change::Insert(Box::new(b.clone()))]).unwrap();
    let refused = store.apply(&[
        Change::Insert(Box::new(a.clone())),
        Change::Insert(Box::new(b)),
    ]);
    assert_eq!(conflict(refused), (1, Conflict::JobExists));
    assert_eq!(store.job(a.id).unwrap(), None);
}

#[test]
fn a_lease_is_a_compare_and_set() {
    let (_folder, store) = open();
    let job = job(1, "a");
    let unit = unit(&job, 2);
    store
        .apply(&[
            Change::Insert(Box::new(job.clone())),
            claim(unit, 7, "here", NOW),
        ])
        .unwrap();
    let refused = store.apply(&[claim(unit, 8, "there", NOW + 999)]);
    assert_eq!(conflict(refused), (0, Conflict::UnitTaken));
    // Neither another token nor another holder may end it.
    assert_eq!(
        conflict(store.apply(&[prove(unit, 8, "here", b"p")])).1,
        Conflict::NotHolder
    );
    assert_eq!(
        conflict(store.apply(&[prove(unit, 7, "there", b"p")])).1,
        Conflict::NotHolder
    );
    // Renewed, it stands longer; expired, it is free.
    assert_eq!(store.renew("here", NOW + 5000).unwrap(), 1);
    assert_eq!(
        conflict(store.apply(&[claim(unit, 8, "there", NOW + 4999)])).1,
        Conflict::UnitTaken
    );
    store.apply(&[claim(unit, 8, "there", NOW + 5000)]).unwrap();
    assert_eq!(
        conflict(store.apply(&[prove(unit, 7, "here", b"p")])).1,
        Conflict::NotHolder
    );
    store.apply(&[prove(unit, 8, "there", b"p")]).unwrap();
    // A proven unit is not leased again.
    assert_eq!(
        conflict(store.apply(&[claim(unit, 9, "here", NOW + 99_999)])).1,
        Conflict::UnitTaken
    );
    let stored = store.job(job.id).unwrap().unwrap();
    assert_eq!(stored.started_ms, Some(NOW));
    assert_eq!(
        stored.timings,
        Timings {
            load_ms: 1,
            witness_ms: 2,
            device_ms: 3
        }
    );
}

#[test]
fn failures_are_counted_and_recovery_sees_the_units() {
    let (_folder, store) = open();
    let job = job(1, "a");
    let release = |token, failed| Change::Release {
        unit: unit(&job, 0),
        token,
        holder: "here".to_owned(),
        failed,
    };
    store
        .apply(&[
            Change::Insert(Box::new(job.clone())),
            claim(unit(&job, 0), 1, "here", NOW),
            release(1, true),
            claim(unit(&job, 0), 2, "here", NOW),
            release(2, false),
            claim(unit(&job, 1), 3, "here", NOW),
            prove(unit(&job, 1), 3, "here", b"one"),
            claim(unit(&job, 2), 4, "here", NOW),
        ])
        .unwrap();
    let units = store.open_jobs().unwrap().remove(0).units;
    assert_eq!(units.iter().map(|u| u.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(
        units.iter().map(|u| u.failures).collect::<Vec<_>>(),
        [1, 0, 0]
    );
    assert_eq!(
        units.iter().map(|u| u.proven).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(units[2].lease.as_ref().unwrap().token, 4);
    assert!(units[0].lease.is_none() && units[1].lease.is_none());
    assert_eq!(store.unit_proofs(job.id).unwrap(), [(1, b"one".to_vec())]);
}

#[test]
fn an_attempt_ends_once_and_only_a_failed_one_runs_again() {
    let (_folder, store) = open();
    let job = job(1, "a");
    let failure = Failure {
        code: "UNIT_FAILED".to_owned(),
        message: "no luck".to_owned(),
    };
    let restart = Change::Restart {
        job: job.id,
        attempt: 2,
        accepted_ms: NOW + 9,
        priority: Priority::High,
        deadline_ms: Some(NOW + 50),
    };
    store
        .apply(&[Change::Insert(Box::new(job.clone()))])
        .unwrap();
    assert_eq!(
        conflict(store.apply(std::slice::from_ref(&restart))).1,
        Conflict::JobState
    );
    store
        .apply(&[
            claim(unit(&job, 0), 1, "here", NOW),
            finish(&job, End::Failed(failure.clone()), NOW + 8),
        ])
        .unwrap();
    let stored = store.job(job.id).unwrap().unwrap();
    assert_eq!(
        (stored.state, stored.failure),
        (JobState::Failed, Some(failure))
    );
    assert_eq!(stored.finished_ms, Some(NOW + 8));
    let again = finish(&job, End::Cancelled, NOW + 9);
    assert_eq!(conflict(store.apply(&[again])).1, Conflict::JobState);

    store.apply(&[restart]).unwrap();
    let open = store.open_jobs().unwrap().remove(0);
    assert_eq!(
        (open.job.attempt, open.job.state, open.units.len()),
        (2, JobState::Open, 0)
    );
    assert_eq!(
        (open.job.started_ms, open.job.failure.clone()),
        (None, None)
    );
    assert_eq!(open.job.priority, Priority::High);
    // A late word about the first attempt changes nothing.
    assert_eq!(
        conflict(store.apply(&[prove(unit(&job, 0), 1, "here", b"p")])).1,
        Conflict::NotHolder
    );
    assert_eq!(
        conflict(store.apply(&[claim(unit(&job, 0), 2, "here", NOW)])).1,
        Conflict::JobState
    );

    store
        .apply(&[finish(&open.job, completed(b"proof"), NOW + 20)])
        .unwrap();
    assert_eq!(store.proof(job.id).unwrap().unwrap(), b"proof");
    let stored = store.job(job.id).unwrap().unwrap();
    assert_eq!((stored.state, stored.test_key), (JobState::Completed, true));
}

#[test]
fn joining_raises_the_priority_and_never_lowers_it() {
    let (_folder, store) = open();
    let job = job(1, "a");
    let join = |priority, submitted_ms| Change::Join {
        job: job.id,
        submitted_ms,
        priority,
    };
    store
        .apply(&[
            Change::Insert(Box::new(job.clone())),
            join(Priority::Low, NOW + 1),
        ])
        .unwrap();
    assert_eq!(
        store.job(job.id).unwrap().unwrap().priority,
        Priority::Normal
    );
    store
        .apply(&[
            join(Priority::Critical, NOW + 2),
            join(Priority::High, NOW - 1),
        ])
        .unwrap();
    let stored = store.job(job.id).unwrap().unwrap();
    assert_eq!(
        (stored.priority, stored.submitted_ms),
        (Priority::Critical, NOW + 2)
    );
}

#[test]
fn listings_and_counts() {
    let (_folder, store) = open();
    let jobs: Vec<_> = (0..5).map(|i| job(i, &format!("id{i}"))).collect();
    for job in &jobs {
        store
            .apply(&[Change::Insert(Box::new(job.clone()))])
            .unwrap();
    }
    store
        .apply(&[
            finish(&jobs[0], completed(b"p"), NOW),
            finish(&jobs[1], End::Cancelled, NOW),
            finish(&jobs[2], completed(b"p"), NOW),
        ])
        .unwrap();
    let counts = store.counts().unwrap();
    let expected = Counts {
        open: 2,
        completed: 2,
        failed: 0,
        cancelled: 1,
        open_payload_bytes: 200,
    };
    assert_eq!(counts, expected);
    let names = |filter, offset, limit| -> Vec<String> {
        let list = store.list(filter, offset, limit).unwrap();
        list.into_iter().map(|job| job.request_id).collect()
    };
    assert_eq!(names(Filter::default(), 1, 2), ["id3", "id2"]);
    let done = Filter {
        state: Some(JobState::Completed),
    };
    assert_eq!(names(done, 0, u64::MAX), ["id2", "id0"]);
    assert_eq!(store.ended_jobs().unwrap().len(), 3);
}

#[test]
fn retention_by_age_number_and_bytes_never_touches_open_jobs() {
    let (_folder, store) = open();
    let keep_all = Retention {
        max_age_ms: 1000,
        max_results: 100,
        max_result_bytes: 100,
        payload_grace_ms: u64::MAX,
    };
    let jobs: Vec<_> = (0..6).map(|i| job(i, &format!("id{i}"))).collect();
    for job in &jobs {
        store
            .apply(&[Change::Insert(Box::new(job.clone()))])
            .unwrap();
    }
    for (i, job) in jobs[..5].iter().enumerate() {
        store
            .apply(&[finish(job, completed(b"0123456789"), NOW + i as u64)])
            .unwrap();
    }
    assert_eq!(
        store.sweep(&keep_all, NOW + 1000).unwrap(),
        Swept::default()
    );
    let swept = |retention: Retention, now| store.sweep(&retention, now).unwrap().jobs;
    assert_eq!(swept(keep_all, NOW + 1001), [jobs[0].id]);
    assert_eq!(
        swept(
            Retention {
                max_results: 3,
                ..keep_all
            },
            NOW
        ),
        [jobs[1].id]
    );
    assert_eq!(
        swept(
            Retention {
                max_result_bytes: 29,
                ..keep_all
            },
            NOW
        ),
        [jobs[2].id]
    );
    assert_eq!(store.proof(jobs[2].id).unwrap(), None);
    assert!(store.proof(jobs[3].id).unwrap().is_some());
    assert_eq!(
        swept(
            Retention {
                max_results: 0,
                ..keep_all
            },
            NOW
        )
        .len(),
        2
    );
    assert_eq!(store.counts().unwrap().open, 1);
}
