//! Ten thousand queued jobs: reads stay quick, and so does the next start.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use store::{
    Change, Digest, Filter, JobId, JobRecord, JobState, Priority, SqliteStore, Store, Timings,
};

const JOBS: u32 = 10_000;
const READS: usize = 1_000;

fn record(number: u32) -> JobRecord {
    JobRecord {
        id: JobId::random(),
        name: format!("porep-1000-{number}"),
        request_id: format!("porep-1000-{number}"),
        digest: Digest::of(&number.to_le_bytes()),
        client: "f01000".to_owned(),
        circuit: "porep-32g".to_owned(),
        priority: Priority::Normal,
        deadline_ms: None,
        accepted_ms: u64::from(number),
        submitted_ms: u64::from(number),
        payload_bytes: 100,
        unit_bytes: 1 << 30,
        units: 10,
        attempt: 1,
        state: JobState::Open,
        started_ms: None,
        finished_ms: None,
        failure: None,
        timings: Timings::default(),
        test_key: false,
    }
}

/// The 99th percentile of many calls.
fn p99(mut call: impl FnMut(usize)) -> Duration {
    let mut times: Vec<_> = (0..READS)
        .map(|i| {
            let began = Instant::now();
            call(i);
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[READS * 99 / 100]
}

#[test]
fn ten_thousand_queued_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let jobs: Vec<_> = (0..JOBS).map(record).collect();
    for batch in jobs.chunks(500) {
        let inserts: Vec<_> = batch
            .iter()
            .map(|job| Change::Insert(Box::new(job.clone())))
            .collect();
        store.apply(&inserts).unwrap();
    }
    let counts = p99(|_| assert_eq!(store.counts().unwrap().open, u64::from(JOBS)));
    let list = p99(|_| assert_eq!(store.list(Filter::default(), 0, 100).unwrap().len(), 100));
    let one = p99(|i| assert_eq!(store.job(jobs[i].id).unwrap().unwrap().name, jobs[i].name));
    drop(store);
    let began = Instant::now();
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(store.open_jobs().unwrap().len(), JOBS as usize);
    let restart = began.elapsed();
    println!("p99: counts {counts:?}, list of 100 {list:?}, one job {one:?}; restart {restart:?}");
    assert!(
        counts.max(list).max(one) < Duration::from_millis(50),
        "a status call is slow"
    );
    assert!(restart < Duration::from_secs(5), "the restart is slow");
}
