//! Large messages, and answers under load.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::{daemon, daemon_with, on_wire, quick};
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

/// While thousands of jobs wait and more come in, every status call is answered at once and
/// counts every job once.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_quick_and_exact_under_load() {
    const JOBS: u32 = 1_000;
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
