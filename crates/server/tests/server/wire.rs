//! The calls of `cuzk.v1` over TCP and Unix socket: proofs, states, and every row of the table
//! of errors.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::{
    Calls, Doing, FakeDevice, daemon, daemon_with, on_wire, quick, right_proof, socket,
};
use engine::scheduler::Fault;
use filecoin::CircuitId;
use server::proto::v1;
use server::proto::v1::await_proof_response::Status as Outcome;
use tonic::Code;

const KINDS: [&str; 4] = ["porep", "snap", "window", "winning"];

async fn prove(calls: &mut Calls, submit: v1::SubmitProofRequest) -> v1::AwaitProofResponse {
    let submit = Some(submit);
    let response = calls.prove(v1::ProveRequest { submit }).await.unwrap();
    response.into_inner().result.unwrap()
}

async fn wait(calls: &mut Calls, job_id: &str, timeout_ms: u64) -> v1::AwaitProofResponse {
    let job_id = job_id.to_owned();
    let request = v1::AwaitProofRequest { job_id, timeout_ms };
    calls.await_proof(request).await.unwrap().into_inner()
}

fn failed(response: &v1::AwaitProofResponse, parts: &[&str]) {
    let message = &response.error_message;
    assert_eq!(response.status(), Outcome::Failed, "{message}");
    assert!(response.proof.is_empty());
    assert!(
        !message.is_empty() && !message.contains('\n'),
        "{message:?}"
    );
    assert!(!response.error_code.is_empty());
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

async fn all_kinds(mut calls: Calls) {
    for kind in KINDS {
        let id = format!("{kind}-[1 2 3]\u{1f600}\n");
        let proven = prove(&mut calls, on_wire(kind, &id)).await;
        assert_eq!(
            proven.status(),
            Outcome::Completed,
            "{}",
            proven.error_message
        );
        assert_eq!(
            (proven.proof.len(), proven.job_id.as_str()),
            (192, id.as_str())
        );
        assert!(proven.test_key && proven.error_message.is_empty());
        assert_eq!(
            (
                proven.srs_load_ms,
                proven.synthesis_ms,
                proven.gpu_compute_ms
            ),
            (1, 2, 3)
        );
        assert!(proven.total_ms >= proven.queue_wait_ms);
        // The same by the other two calls: it is the same job, with the same bytes.
        let submitted = calls
            .submit_proof(on_wire(kind, &id))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(
            (submitted.job_id.as_str(), submitted.assigned_gpu.as_str()),
            (&*id, "")
        );
        let awaited = wait(&mut calls, &submitted.job_id, 0).await;
        assert_eq!(awaited.proof, proven.proof);
    }
    let status = calls
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(status.total_proofs_completed, 4);
    assert_eq!(status.queues.len(), 4);
}

#[tokio::test]
async fn every_kind_over_tcp() {
    let daemon = daemon(quick());
    all_kinds(daemon.connect().await).await;
}

#[tokio::test]
async fn every_kind_over_a_unix_socket() {
    let daemon = daemon_with(quick(), &|folder, config, _| {
        config.daemon.listen = socket(folder);
    });
    all_kinds(daemon.connect().await).await;
    let path = daemon.folder.path().join("run/cuzk.sock");
    assert!(path.exists());
    let crate::common::Daemon { server, .. } = daemon;
    assert!(
        tokio::task::spawn_blocking(move || server.shutdown(Duration::from_secs(10)))
            .await
            .unwrap()
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn a_host_name_is_an_address() {
    let daemon = daemon_with(quick(), &|_, config, _| {
        config.daemon.listen = "localhost:0".parse().unwrap();
    });
    all_kinds(daemon.connect().await).await;
}

#[tokio::test]
async fn bad_kind_and_missing_submit_are_invalid_arguments() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    for kind in [0, 5, -1] {
        let mut request = on_wire("porep", "x");
        request.proof_kind = kind;
        let error = calls.submit_proof(request.clone()).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let submit = Some(request);
        let error = calls.prove(v1::ProveRequest { submit }).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.metadata().contains_key("cuzk-error-code"));
    }
    let error = calls
        .prove(v1::ProveRequest { submit: None })
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn unknown_jobs_are_not_found() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let request = v1::AwaitProofRequest {
        job_id: "no such job".to_owned(),
        timeout_ms: 0,
    };
    let error = calls.await_proof(request).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.message(), "job not found: no such job");
    let job_id = "no such job".to_owned();
    let cancelled = calls
        .cancel_proof(v1::CancelProofRequest { job_id })
        .await
        .unwrap();
    assert!(!cancelled.into_inner().was_running);
}

#[tokio::test]
async fn undecodable_requests_fail_with_the_cause() {
    type Change = fn(&mut v1::SubmitProofRequest);
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let changes: [(&str, &str, Change); 6] = [
        ("porep", "vanilla_proof", |r| r.vanilla_proof.truncate(1000)),
        ("porep", "vanilla_proof", |r| r.vanilla_proof.clear()),
        ("snap", "vanilla_proofs", |r| r.vanilla_proofs.push(vec![1])),
        ("window", "randomness", |r| r.randomness = vec![255; 32]),
        ("window", "registered", |r| r.registered_proof = 77),
        ("winning", "vanilla_proofs", |r| r.vanilla_proofs.clear()),
    ];
    for (kind, part, change) in changes {
        let mut request = on_wire(kind, "");
        change(&mut request);
        failed(&prove(&mut calls, request.clone()).await, &[part]);
        let error = calls.submit_proof(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_missing_parameter_file_is_named() {
    let daemon = daemon(quick());
    let missing = CircuitId::parse("snap-2k").unwrap();
    daemon.keys.missing.lock().unwrap().push(missing);
    let mut calls = daemon.connect().await;
    let response = prove(&mut calls, on_wire("snap", "a")).await;
    failed(&response, &["/params/snap-2k.params"]);
    assert_eq!(
        (response.error_code.as_str(), response.job_id.as_str()),
        ("KEY_MISSING", "a")
    );
    let error = calls.submit_proof(on_wire("snap", "a")).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    // The others are not concerned.
    assert_eq!(
        prove(&mut calls, on_wire("porep", "b")).await.status(),
        Outcome::Completed
    );
}

#[tokio::test]
async fn wrong_proofs_and_failing_devices_end_in_failure_after_retries() {
    let wrong = daemon(FakeDevice::new(Duration::ZERO, |_| Doing::Wrong));
    let mut calls = wrong.connect().await;
    failed(&prove(&mut calls, on_wire("winning", "w")).await, &[]);
    let request = daemon(FakeDevice::new(Duration::ZERO, |_| {
        Doing::Fail(Fault::Request)
    }));
    let mut calls = request.connect().await;
    failed(
        &prove(&mut calls, on_wire("window", "w")).await,
        &["told to fail"],
    );
    // The job may be tried again under the same name.
    failed(
        &prove(&mut calls, on_wire("window", "w")).await,
        &["told to fail"],
    );
    let status = calls
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(status.total_proofs_failed, 2);
}

#[tokio::test]
async fn a_full_queue_refuses_all_but_winning() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon_with(device, &|_, _, settings| settings.scheduler.max_jobs = 2);
    let mut calls = daemon.connect().await;
    for (id, ahead) in [("a", 0), ("b", 0)] {
        let submitted = calls
            .submit_proof(on_wire("porep", id))
            .await
            .unwrap()
            .into_inner();
        assert!(submitted.queue_position <= ahead + 1);
    }
    let error = calls.submit_proof(on_wire("porep", "c")).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    let submit = Some(on_wire("snap", "d"));
    let error = calls.prove(v1::ProveRequest { submit }).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.message().contains("max_jobs"), "{error}");
    // The same request again is not a new one.
    calls.submit_proof(on_wire("porep", "b")).await.unwrap();
    calls.submit_proof(on_wire("winning", "e")).await.unwrap();
    daemon.device.held.store(false, Ordering::Relaxed);
    for id in ["a", "b", "e"] {
        assert_eq!(wait(&mut calls, id, 0).await.status(), Outcome::Completed);
    }
    let text = calls.get_metrics(v1::GetMetricsRequest {}).await.unwrap();
    let text = text.into_inner().prometheus_text;
    assert!(
        text.contains("cuzk_requests_refused_total{code=\"QUEUE_FULL\"} 2"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_is_unavailable_and_running_units_end() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let mut calls = daemon.connect().await;
    // Many that wait for one job: each of them must be answered.
    let running: Vec<_> = (0..32)
        .map(|_| {
            let mut calls = calls.clone();
            tokio::spawn(async move { prove(&mut calls, on_wire("porep", "runs")).await })
        })
        .collect();
    let mut waiting = calls.clone();
    daemon.eventually("a unit is on the device", |daemon| {
        daemon.service.status().devices[0].1.running.is_some()
    });
    let waiting = tokio::spawn(async move {
        let submit = Some(on_wire("snap", "waits"));
        waiting.prove(v1::ProveRequest { submit }).await
    });
    daemon.eventually("two jobs are open", |daemon| {
        let counts = daemon.service.status().counts;
        counts
            .iter()
            .map(|(_, count)| count.pending + count.in_progress)
            .sum::<u32>()
            == 2
    });
    let crate::common::Daemon {
        server,
        device,
        service,
        folder,
        ..
    } = daemon;
    let ending = tokio::task::spawn_blocking(move || server.shutdown(Duration::from_secs(20)));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = calls
        .submit_proof(on_wire("winning", "late"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    device.held.store(false, Ordering::Relaxed);
    // What was running is answered, what was not is told to come back.
    for caller in running {
        assert_eq!(caller.await.unwrap().status(), Outcome::Completed);
    }
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(ending.await.unwrap());
    drop(service);
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_time_out_and_jobs_are_cancelled() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let mut calls = daemon.connect().await;
    calls.submit_proof(on_wire("porep", "first")).await.unwrap();
    daemon.eventually("it runs", |daemon| {
        daemon.service.status().devices[0].1.running.is_some()
    });
    calls.submit_proof(on_wire("snap", "second")).await.unwrap();
    let began = Instant::now();
    let response = wait(&mut calls, "first", 100).await;
    assert_eq!(
        (response.status(), response.job_id.as_str()),
        (Outcome::Timeout, "first")
    );
    assert!(began.elapsed() >= Duration::from_millis(100));
    let mut waiter = calls.clone();
    let waiter = tokio::spawn(async move { wait(&mut waiter, "first", 0).await });
    let cancel = |id: &str| v1::CancelProofRequest {
        job_id: id.to_owned(),
    };
    let queued = calls
        .cancel_proof(cancel("second"))
        .await
        .unwrap()
        .into_inner();
    assert!(!queued.was_running);
    assert_eq!(
        wait(&mut calls, "second", 0).await.status(),
        Outcome::Cancelled
    );
    let running = calls
        .cancel_proof(cancel("first"))
        .await
        .unwrap()
        .into_inner();
    assert!(running.was_running);
    assert_eq!(waiter.await.unwrap().status(), Outcome::Cancelled);
    daemon.device.held.store(false, Ordering::Relaxed);
    // Cancelled, it may be asked for again.
    assert_eq!(
        prove(&mut calls, on_wire("snap", "second")).await.status(),
        Outcome::Completed
    );
}

#[tokio::test]
async fn the_same_id_with_other_content_is_another_job() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let first = prove(&mut calls, on_wire("porep", "id")).await;
    let second = prove(&mut calls, on_wire("winning", "id")).await;
    assert_eq!(first.job_id, "id");
    assert!(
        second.job_id.starts_with("id#") && second.job_id.len() == 11,
        "{}",
        second.job_id
    );
    assert_ne!(first.proof, second.proof);
    // The bare id means the newest; both forms are accepted; priority is not content.
    assert_eq!(wait(&mut calls, "id", 0).await.proof, second.proof);
    assert_eq!(
        wait(&mut calls, &second.job_id, 0).await.proof,
        second.proof
    );
    let mut urgent = on_wire("porep", "id");
    urgent.priority = 4;
    assert_eq!(prove(&mut calls, urgent).await.proof, first.proof);
    assert_eq!(wait(&mut calls, "id", 0).await.proof, first.proof);
    // Without an id nothing is the same.
    let (one, two) = (
        prove(&mut calls, on_wire("porep", "")).await,
        prove(&mut calls, on_wire("porep", "")).await,
    );
    assert_ne!(one.job_id, two.job_id);
}

/// What a job is stored under is the digest that the wire defines.
#[tokio::test]
async fn the_digest_is_that_of_the_stored_form() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let proven = prove(&mut calls, on_wire("winning", "id")).await;
    let request = crate::common::request("winning");
    let mut stored = Vec::new();
    let mut put = |number: u32, bytes: &[u8]| {
        stored.extend(number.to_le_bytes());
        stored.extend((bytes.len() as u64).to_le_bytes());
        stored.extend(bytes);
    };
    put(2, &4_u64.to_le_bytes());
    put(3, &request.sector_size.to_le_bytes());
    put(4, &request.registered_proof.to_le_bytes());
    put(10, &[]);
    for proof in &request.vanilla_proofs {
        put(11, proof);
    }
    put(20, &request.sector_number.to_le_bytes());
    put(21, &request.miner_id.to_le_bytes());
    put(22, &request.randomness);
    put(23, &u64::from(request.partition_index).to_le_bytes());
    for number in [30, 31, 32] {
        put(number, &[]);
    }
    assert_eq!(proven.proof, right_proof(&store::Digest::of(&stored), 0));
}

#[tokio::test]
async fn deadlines_end_jobs() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let mut calls = daemon.connect().await;
    let mut request = on_wire("porep", "late");
    request.deadline_ms = 3_000;
    let response = prove(&mut calls, request).await;
    failed(&response, &["deadline"]);
    assert_eq!(response.error_code, "DEADLINE_EXCEEDED");
    daemon.device.held.store(false, Ordering::Relaxed);
}

#[tokio::test]
async fn keys_are_loaded_and_unloaded() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let preload = |id: &str| v1::PreloadSrsRequest {
        circuit_id: id.to_owned(),
    };
    let evict = |id: &str| v1::EvictSrsRequest {
        circuit_id: id.to_owned(),
    };
    let first = calls
        .preload_srs(preload("porep-32g"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((first.already_loaded, first.load_time_ms), (false, 7));
    let again = calls
        .preload_srs(preload("porep-32g"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((again.already_loaded, again.load_time_ms), (true, 0));
    let status = calls
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(status.loaded_srs[0].circuit_id, "porep-32g");
    assert!(status.loaded_srs[0].test_key && status.test_keys && status.ready);
    let gpu = &status.gpus[0];
    assert_eq!(
        (gpu.ordinal, gpu.name.as_str(), gpu.state.as_str()),
        (4, "Stand-in 9000", "ready")
    );
    for (id, error) in [
        ("porep-33g", "unknown circuit ID: porep-33g"),
        ("", "unknown circuit ID: "),
    ] {
        let status = calls.preload_srs(preload(id)).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::InvalidArgument, error)
        );
        let status = calls.evict_srs(evict(id)).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::InvalidArgument, error)
        );
    }
    let circuit = CircuitId::parse("porep-32g").unwrap();
    for (references, expected) in [(1, (true, 0)), (0, (true, 1 << 20))] {
        daemon
            .keys
            .loaded
            .lock()
            .unwrap()
            .insert(circuit, references);
        let evicted = calls
            .evict_srs(evict("porep-32g"))
            .await
            .unwrap()
            .into_inner();
        assert_eq!((evicted.was_loaded, evicted.freed_bytes), expected);
    }
    let gone = calls
        .evict_srs(evict("porep-32g"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((gone.was_loaded, gone.freed_bytes), (false, 0));
}
