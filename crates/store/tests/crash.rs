//! A process that stores jobs is killed at random moments. What it acknowledged must be there
//! afterwards, and nothing half-written may be visible.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use store::{
    Change, Digest, End, JobId, JobRecord, JobState, LeaseRecord, Priority, SqliteStore, Store,
    Timings, UnitKey,
};

const KILLS: u64 = 30;
const FOLDER: &str = "CUZK_STORE_CRASH_FOLDER";
const SEED: &str = "CUZK_STORE_CRASH_SEED";

fn payload(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; 1 + (rng.next_u32() % 300_000) as usize];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn record(id: JobId, digest: Digest, bytes: u64) -> JobRecord {
    JobRecord {
        id,
        name: id.to_string(),
        request_id: String::new(),
        digest,
        client: "crash".to_owned(),
        circuit: "porep-2k".to_owned(),
        priority: Priority::Normal,
        deadline_ms: None,
        accepted_ms: 1,
        submitted_ms: 1,
        payload_bytes: bytes,
        unit_bytes: 1,
        units: 1,
        attempt: 1,
        state: JobState::Open,
        started_ms: None,
        finished_ms: None,
        failure: None,
        timings: Timings::default(),
        test_key: false,
    }
}

/// Stores a job, proves every other one; says each on standard output once it is durable.
fn submit_one(store: &SqliteStore, rng: &mut ChaCha8Rng) {
    let bytes = payload(rng);
    let (digest, length) = store.put_payload(&mut &bytes[..], 1 << 20).unwrap();
    let job = record(JobId::random(), digest, length);
    store
        .apply(&[Change::Insert(Box::new(job.clone()))])
        .unwrap();
    say(&format!("open {}", job.id));
    if rng.next_u32().is_multiple_of(2) {
        let unit = UnitKey {
            job: job.id,
            attempt: 1,
            index: 0,
        };
        let lease = LeaseRecord {
            token: 1,
            holder: "here".to_owned(),
            expires_ms: 9,
        };
        let (holder, timings) = ("here".to_owned(), Timings::default());
        let proof = job.id.as_bytes().repeat(12);
        let end = End::Completed {
            proof: proof.clone(),
            test_key: false,
        };
        store
            .apply(&[Change::Claim {
                unit,
                lease,
                now_ms: 1,
            }])
            .unwrap();
        store
            .apply(&[
                Change::Prove {
                    unit,
                    token: 1,
                    holder,
                    proof,
                    timings,
                },
                Change::Finish {
                    job: job.id,
                    attempt: 1,
                    end,
                    finished_ms: 2,
                },
            ])
            .unwrap();
        say(&format!("done {}", job.id));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}")
        .and_then(|()| out.flush())
        .unwrap();
}

/// The process that is killed; does nothing unless the parent test starts it.
#[test]
#[ignore = "started by the crash test with a folder in the environment"]
fn crash_child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let store = SqliteStore::open(Path::new(&folder)).unwrap();
    say("ready");
    loop {
        submit_one(&store, &mut rng);
    }
}

/// When a child is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// So long after its start, ready or not.
    AfterStart(Duration),
    /// So long after it has acknowledged a job.
    AfterFirst(Duration),
}

/// Runs the child, kills it at the moment, and returns what it said.
fn run_and_kill(folder: &Path, seed: u64, moment: Moment) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash_child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (says, said) = channel();
    let reader = std::thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        let notes = lines.inspect(|line| {
            if line.starts_with("open ") {
                // Nobody listens after the first.
                let _ = says.send(());
            }
        });
        notes.collect()
    });
    match moment {
        Moment::AfterStart(life) => std::thread::sleep(life),
        Moment::AfterFirst(life) => {
            let first = said.recv_timeout(Duration::from_secs(60));
            first.expect("the child stores jobs");
            std::thread::sleep(life);
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

fn ids(lines: &[String], word: &str) -> BTreeSet<JobId> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix(word)?.trim().parse().ok())
        .collect()
}

#[test]
fn what_was_acknowledged_survives_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let seed = 0x6372_6173;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut open, mut done) = (BTreeSet::new(), BTreeSet::new());
    let mut slowest = Duration::ZERO;
    for kill in 0..KILLS {
        let life = Duration::from_millis(u64::from(rng.next_u32() % 350));
        let moment = match kill % 3 {
            0 => Moment::AfterStart(life),
            _ => Moment::AfterFirst(life),
        };
        let lines = run_and_kill(folder.path(), seed + kill, moment);
        open.extend(ids(&lines, "open "));
        done.extend(ids(&lines, "done "));

        let began = Instant::now();
        let store = SqliteStore::open(folder.path()).unwrap();
        slowest = slowest.max(began.elapsed());
        let incoming = folder.path().join("payloads/incoming");
        assert_eq!(
            std::fs::read_dir(incoming).unwrap().count(),
            0,
            "half-written payloads"
        );
        let jobs = store.list(store::Filter::default(), 0, u64::MAX).unwrap();
        let stored: BTreeSet<_> = jobs.iter().map(|job| job.id).collect();
        assert!(
            stored.is_superset(&open),
            "kill {kill}: an acknowledged job is gone"
        );
        // Also the one that was stored but not acknowledged is whole, if it is there.
        for job in &jobs {
            assert_eq!(
                store.payload(&job.digest).unwrap().len() as u64,
                job.payload_bytes
            );
            let proof = store.proof(job.id).unwrap();
            assert_eq!(proof.is_some(), job.state == JobState::Completed);
            assert!(proof.is_none_or(|proof| proof == job.id.as_bytes().repeat(12)));
            assert!(
                job.state == JobState::Completed || !done.contains(&job.id),
                "kill {kill}"
            );
        }
        assert!(
            jobs.len() <= open.len() + kill as usize + 1,
            "at most one more per kill"
        );
    }
    println!(
        "{KILLS} kills, {} jobs, slowest open {slowest:?}",
        open.len()
    );
}
