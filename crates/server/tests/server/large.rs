//! Large messages, and answers under load.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::{Daemon, daemon, daemon_in, daemon_with, on_wire, quick};
use server::proto::v1;
use server::proto::v1::await_proof_response::Status as Outcome;
use tonic::Code;

/// Blanks at the end of a JSON document change nothing.
fn padded(id: &str, bytes: usize) -> v1::SubmitProofRequest {
    let mut request = on_wire("porep", id);
    request.vanilla_proof.resize(bytes, b' ');
    request
}

#[tokio::test]
async fn two_hundred_megabytes_are_taken_and_three_hundred_refused() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await.max_encoding_message_size(usize::MAX);
    let submit = Some(padded("large", 200_000_000));
    let response = calls.prove(v1::ProveRequest { submit }).await.unwrap();
    let result = response.into_inner().result.unwrap();
    assert_eq!(
        result.status(),
        Outcome::Completed,
        "{}",
        result.error_message
    );
    let submit = Some(padded("too large", 300_000_000));
    let error = calls.prove(v1::ProveRequest { submit }).await.unwrap_err();
    let too_large = [Code::OutOfRange, Code::ResourceExhausted];
    assert!(too_large.contains(&error.code()), "{error}");
    // The connection is as good as before.
    let status = calls
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(status.total_proofs_completed, 1);
}

/// The largest message is one of exactly the limit.
#[tokio::test]
async fn the_limit_is_exact() {
    const LIMIT: usize = 1 << 20;
    let daemon = daemon_with(quick(), &|_, config, _| {
        config.limits.max_message_bytes = LIMIT as u64;
    });
    let mut calls = daemon.connect().await;
    let empty = prost::Message::encoded_len(&padded("a", 300_000)) - 300_000;
    for (bytes, taken) in [(LIMIT - empty, true), (LIMIT - empty + 1, false)] {
        let request = padded("a", bytes);
        assert_eq!(prost::Message::encoded_len(&request) <= LIMIT, taken);
        assert_eq!(calls.submit_proof(request).await.is_ok(), taken);
    }
}

/// While hundreds of jobs wait and more come in, every status call is answered at once and
/// counts every job once.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_quick_and_exact_under_load() {
    const JOBS: u32 = 800;
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let calls = daemon.connect().await;
    let submitting: Vec<_> = (0..8)
        .map(|part| {
            let mut calls = calls.clone();
            tokio::spawn(async move {
                for i in 0..JOBS / 8 {
                    let request = on_wire("winning", &format!("{part}-{i}"));
                    calls.submit_proof(request).await.unwrap();
                }
            })
        })
        .collect();
    let mut status = calls.clone();
    let mut times = Vec::new();
    let mut seen = 0;
    while submitting.iter().any(|task| !task.is_finished()) {
        let began = Instant::now();
        let answer = status
            .get_status(v1::GetStatusRequest {})
            .await
            .unwrap()
            .into_inner();
        times.push(began.elapsed());
        let open: u32 = answer
            .queues
            .iter()
            .map(|q| q.pending + q.in_progress)
            .sum();
        assert!(open >= seen, "{open} after {seen}");
        seen = open;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for task in submitting {
        task.await.unwrap();
    }
    let answer = status
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    let open: u32 = answer
        .queues
        .iter()
        .map(|q| q.pending + q.in_progress)
        .sum();
    assert_eq!(open, JOBS);
    times.sort_unstable();
    let worst = *times.last().unwrap();
    println!(
        "{} status calls, median {:?}, worst {worst:?}",
        times.len(),
        times[times.len() / 2]
    );
    assert!(worst < Duration::from_secs(1), "{worst:?}");
    daemon.device.held.store(false, Ordering::Relaxed);
    daemon.eventually("all are proven", |daemon| {
        let totals = daemon.service.status().totals;
        totals.values().map(|t| t.completed).sum::<u64>() == u64::from(JOBS)
    });
}

/// The 99th of a hundred.
fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Memory of this process that is not mapped files, bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes.unwrap().parse::<u64>().unwrap() << 10
}

/// Ten thousand jobs queued, each with a payload of its own: status calls while they come in, when
/// all are there, and while they are proven; memory; and the next start with all of them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a minute; scripts/verify-full runs it"]
async fn ten_thousand_queued_jobs() {
    const JOBS: u64 = 10_000;
    const LIMIT: Duration = Duration::from_millis(50);
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon_with(device, &|_, config, settings| {
        config.limits.max_jobs = 2 * JOBS;
        settings.scheduler.max_jobs = 2 * JOBS as usize;
    });
    let before = memory();
    let calls = daemon.connect().await;
    let began = Instant::now();
    let submitting: Vec<_> = (0..8)
        .map(|part| {
            let mut calls = calls.clone();
            tokio::spawn(async move {
                for i in (part..JOBS).step_by(8) {
                    let mut request = on_wire("window", &format!("wdpost-{i}"));
                    request.miner_id = i;
                    calls.submit_proof(request).await.unwrap();
                }
            })
        })
        .collect();
    let mut status = daemon.connect().await;
    let mut ask = async |times: &mut Vec<Duration>| {
        let began = Instant::now();
        let answer = status.get_status(v1::GetStatusRequest {}).await.unwrap();
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
        let queues = answer.into_inner().queues;
        queues
            .iter()
            .map(|q| u64::from(q.pending + q.in_progress))
            .sum::<u64>()
    };
    let mut coming = Vec::new();
    while submitting.iter().any(|task| !task.is_finished()) {
        ask(&mut coming).await;
    }
    for task in submitting {
        task.await.unwrap();
    }
    let submitted = began.elapsed();
    let mut queued = Vec::new();
    for _ in 0..1_000 {
        assert_eq!(ask(&mut queued).await, JOBS);
    }
    let began = Instant::now();
    let page = tokio::task::block_in_place(|| daemon.json("/status"));
    let page_took = began.elapsed();
    // One is on the device and one prepared.
    assert_eq!(page["counters"]["queue_depth"].as_u64().unwrap() + 2, JOBS);
    let held = memory().saturating_sub(before);
    // The next start, with the device held as before.
    let Daemon {
        server,
        service,
        folder,
        device,
        ..
    } = daemon;
    tokio::task::block_in_place(|| {
        server.shutdown(Duration::from_millis(10));
        drop(service);
    });
    let began = Instant::now();
    let daemon = daemon_in(folder, device, &|_, _, _| {});
    let mut status = daemon.connect().await;
    let answer = status.get_status(v1::GetStatusRequest {}).await.unwrap();
    let restart = began.elapsed();
    let queues = answer.into_inner().queues;
    assert_eq!(
        queues
            .iter()
            .map(|q| u64::from(q.pending + q.in_progress))
            .sum::<u64>(),
        JOBS
    );
    // While they are proven, one after the other as quickly as it goes.
    daemon.device.held.store(false, Ordering::Relaxed);
    let mut proving = Vec::new();
    for _ in 0..1_000 {
        let began = Instant::now();
        status.get_status(v1::GetStatusRequest {}).await.unwrap();
        proving.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let p99s = [p99(&mut coming), p99(&mut queued), p99(&mut proving)];
    println!(
        "{JOBS} jobs submitted in {submitted:.1?}; GetStatus p99 while they come {:.1?}, queued \
         {:.1?}, while they are proven {:.1?}; /status {page_took:.1?}; {} MiB held; restart \
         {restart:.1?}",
        p99s[0],
        p99s[1],
        p99s[2],
        held >> 20
    );
    assert!(p99s.iter().all(|p99| *p99 < LIMIT), "{p99s:?}");
    assert!(held < 256 << 20, "{held} bytes");
    assert!(restart < Duration::from_secs(5), "{restart:?}");
}
