//! `cuzk.v2`: uploads in pieces, streams of states, and details of errors.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Daemon, Doing, FakeDevice, daemon, daemon_with, on_wire, quick, request};
use engine::scheduler::Fault;
use filecoin::{CircuitId, SubmitProofRequest};
use server::client::{self, parts};
use server::proto::v1;
use server::proto::v1::await_proof_response::Status as Outcome;
use server::proto::v2;
use server::proto::v2::job_state::Phase;
use server::proto::v2::proving_client::ProvingClient;
use server::proto::v2::submit_request::Part;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

type Calls = ProvingClient<Channel>;

async fn calls(daemon: &Daemon) -> Calls {
    let address = daemon.server.grpc_address();
    let channel = client::channel(address, &client::Options::default()).await;
    ProvingClient::new(channel.unwrap())
}

/// One of the example requests, under an id.
fn named(name: &str, id: &str) -> SubmitProofRequest {
    let request_id = id.to_owned();
    SubmitProofRequest {
        request_id,
        ..request(name)
    }
}

fn all_parts(request: SubmitProofRequest) -> Vec<v2::SubmitRequest> {
    parts(Arc::new(request), 0).collect()
}

async fn upload(calls: &mut Calls, request: SubmitProofRequest) -> v2::SubmitResponse {
    let sent = tokio_stream::iter(all_parts(request));
    calls.submit(sent).await.unwrap().into_inner()
}

async fn refused(calls: &mut Calls, sent: Vec<v2::SubmitRequest>) -> Status {
    calls.submit(tokio_stream::iter(sent)).await.unwrap_err()
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("{status:?}"));
    assert_eq!(info.domain, "cuzk");
    let trailer = status.metadata().get("cuzk-error-code").unwrap();
    assert_eq!(trailer.to_str().unwrap(), info.reason);
    info.reason
}

async fn watch(calls: &mut Calls, job: &str) -> tonic::Streaming<v2::JobState> {
    let job_id = job.to_owned();
    let watched = calls.watch_job(v2::WatchJobRequest { job_id }).await;
    watched.unwrap().into_inner()
}

/// The files of payloads, finished or not.
fn payload_files(folder: &Path) -> usize {
    let folders = std::fs::read_dir(folder.join("payloads"))
        .unwrap()
        .flatten();
    let files = folders.map(|entry| std::fs::read_dir(entry.path()).unwrap().count());
    files.sum()
}

#[tokio::test]
async fn every_kind_is_uploaded_and_followed() {
    let daemon = daemon(quick());
    let mut calls = calls(&daemon).await;
    let mut v1 = daemon.connect().await;
    for kind in ["porep", "snap", "window", "winning"] {
        let id = format!("{kind}-[1 2 3]\u{1f600}\n");
        let job = upload(&mut calls, named(kind, &id)).await;
        assert_eq!((job.job_id.as_str(), job.known), (&*id, false));
        let states: Vec<_> = watch(&mut calls, &id).await.collect().await;
        let states: Vec<_> = states.into_iter().map(Result::unwrap).collect();
        let (last, before) = states.split_last().unwrap();
        assert!(before.iter().all(|state| state.result.is_none()));
        assert_eq!(last.phase(), Phase::Ended);
        assert_eq!(
            (last.units, last.units_proven, last.units_running),
            (1, 1, 0)
        );
        let result = last.result.clone().unwrap();
        assert_eq!(result.status(), Outcome::Completed);
        assert_eq!(result.proof.len(), 192);
        // The same request in one message is the same job.
        let again = v1.submit_proof(on_wire(kind, &id)).await.unwrap();
        assert_eq!(again.into_inner().job_id, id);
        let job = upload(&mut calls, named(kind, &id)).await;
        assert!(job.known);
        let stored = store::Digest::of(&named(kind, &id).to_payload());
        assert_eq!(job.digest, stored.as_bytes());
        let states: Vec<_> = watch(&mut calls, &id).await.collect().await;
        assert_eq!(states.len(), 1, "an ended job has one state");
        assert_eq!(states[0].as_ref().unwrap().result, last.result);
    }
}

/// A stream of which nothing comes after the header: the answer must not need it.
async fn refused_by_header(calls: &mut Calls, header: v2::SubmitHeader) -> Status {
    let part = Some(Part::Header(header));
    let sent = tokio_stream::once(v2::SubmitRequest { part }).chain(tokio_stream::pending());
    let answer = tokio::time::timeout(Duration::from_secs(10), calls.submit(sent));
    answer.await.expect("it waits for pieces").unwrap_err()
}

fn header(name: &str, id: &str) -> v2::SubmitHeader {
    match all_parts(named(name, id)).swap_remove(0).part {
        Some(Part::Header(header)) => header,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_header_shows_is_refused_before_any_piece() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon_with(device, &|_, _, settings| {
        settings.scheduler.max_jobs = 1;
    });
    let mut calls = calls(&daemon).await;
    let large = v2::SubmitHeader {
        vanilla_proof_bytes: vec![100 << 20, 200 << 20],
        ..header("window", "large")
    };
    let status = refused_by_header(&mut calls, large).await;
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert_eq!(reason(&status), "PAYLOAD_TOO_LARGE");

    let endless = v2::SubmitHeader {
        vanilla_proof_bytes: vec![u64::MAX; 3],
        ..header("window", "endless")
    };
    let status = refused_by_header(&mut calls, endless).await;
    assert_eq!(status.code(), Code::OutOfRange, "{status}");

    let unknown = v2::SubmitHeader {
        proof_kind: 5,
        ..header("window", "kind")
    };
    let status = refused_by_header(&mut calls, unknown).await;
    assert_eq!(reason(&status), "UNKNOWN_KIND");

    let two = v2::SubmitHeader {
        vanilla_proof_bytes: vec![1, 2],
        ..header("porep", "two")
    };
    let status = refused_by_header(&mut calls, two).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert_eq!(reason(&status), "UPLOAD_INVALID");

    let digest = v2::SubmitHeader {
        vanilla_sha256: vec![1; 31],
        ..header("porep", "digest")
    };
    assert_eq!(
        reason(&refused_by_header(&mut calls, digest).await),
        "UPLOAD_INVALID"
    );

    let circuit = CircuitId::parse("wpost-2k").unwrap();
    daemon.keys.missing.lock().unwrap().push(circuit);
    let status = refused_by_header(&mut calls, header("window", "no key")).await;
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert_eq!(reason(&status), "KEY_MISSING");

    upload(&mut calls, named("porep", "first")).await;
    let status = refused_by_header(&mut calls, header("porep", "second")).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert_eq!(reason(&status), "QUEUE_FULL");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(
        (
            info.metadata["open"].as_str(),
            info.metadata["limit"].as_str()
        ),
        ("1", "1")
    );
    // What may be there already is not refused, nor is WinningPoSt.
    assert!(upload(&mut calls, named("porep", "first")).await.known);
    upload(&mut calls, named("winning", "third")).await;
    daemon.device.held.store(false, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_not_what_it_says_leaves_nothing_behind() {
    let daemon = daemon(quick());
    let mut calls = calls(&daemon).await;
    let whole = || all_parts(named("window", "a"));
    let piece = |bytes: &[u8]| v2::SubmitRequest {
        part: Some(Part::Piece(bytes.to_vec().into())),
    };
    let changed = |change: &dyn Fn(&mut v2::SubmitHeader)| {
        let mut sent = whole();
        if let Some(Part::Header(header)) = &mut sent[0].part {
            change(header);
        }
        sent
    };
    let short = || {
        let mut sent = whole();
        sent.pop();
        sent
    };
    let cases = [
        (Vec::new(), "UPLOAD_INVALID"),
        (whole()[1..].to_vec(), "UPLOAD_INVALID"),
        (short(), "UPLOAD_INVALID"),
        ([whole(), vec![piece(b"x")]].concat(), "UPLOAD_INVALID"),
        (
            [whole(), vec![whole()[0].clone()]].concat(),
            "UPLOAD_INVALID",
        ),
        (vec![v2::SubmitRequest { part: None }], "UPLOAD_INVALID"),
        (
            changed(&|header| header.vanilla_sha256[0] ^= 1),
            "UPLOAD_DIGEST",
        ),
        // Right as an upload, but no request.
        (
            changed(&|header| header.randomness.clear()),
            "MISSING_FIELD",
        ),
        (
            changed(&|header| header.registered_proof = 1_000),
            "UNKNOWN_PROOF_NUMBER",
        ),
    ];
    for (i, (sent, code)) in cases.into_iter().enumerate() {
        let status = refused(&mut calls, sent).await;
        assert_eq!(reason(&status), code, "case {i}: {status}");
        assert!(!status.message().is_empty());
        daemon.eventually("nothing is left", |daemon| {
            payload_files(daemon.folder.path()) == 0
        });
    }
    // A piece beyond the limit of one, and a client that goes away in the middle.
    let huge = [whole()[..1].to_vec(), vec![piece(&vec![0; 5 << 20])]].concat();
    assert_eq!(refused(&mut calls, huge).await.code(), Code::OutOfRange);
    let halting = tokio_stream::iter(short()).chain(tokio_stream::pending());
    let cut = tokio::time::timeout(Duration::from_millis(200), calls.submit(halting)).await;
    assert!(cut.is_err(), "{cut:?}");
    daemon.eventually("nothing is left", |daemon| {
        payload_files(daemon.folder.path()) == 0
    });
    // Without a digest nothing is compared; pieces of any size, also empty, are fine.
    let mut sent = changed(&|header| header.vanilla_sha256.clear());
    let content = sent.split_off(1);
    for part in content {
        let Some(Part::Piece(bytes)) = part.part else {
            panic!("{part:?}");
        };
        let (one, two) = bytes.split_at(1_000);
        sent.extend([piece(one), piece(b""), piece(two)]);
    }
    let job = calls.submit(tokio_stream::iter(sent)).await.unwrap();
    assert_eq!(job.into_inner().job_id, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_follow_the_job_and_a_new_stream_begins_with_the_present_one() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let mut calls = calls(&daemon).await;
    upload(&mut calls, named("window", "first")).await;
    upload(&mut calls, named("winning", "waits")).await;
    daemon.eventually("a unit runs", |daemon| {
        let devices = daemon.service.status().devices;
        devices.iter().any(|(_, device)| device.running.is_some())
    });
    let mut waiting = watch(&mut calls, "waits").await;
    let state = waiting.message().await.unwrap().unwrap();
    assert!(matches!(state.phase(), Phase::Queued | Phase::Running));
    assert!(state.accepted_ms > 0);
    let mut running = watch(&mut calls, "first").await;
    let state = running.message().await.unwrap().unwrap();
    assert_eq!((state.phase(), state.units_running), (Phase::Running, 1));
    assert_eq!(
        (state.circuit.as_str(), state.units_proven),
        ("wpost-2k", 0)
    );
    assert!(state.started_ms >= state.accepted_ms);
    // Many that give up cost nothing.
    for _ in 0..100 {
        drop(watch(&mut calls, "first").await);
    }
    let mut second = watch(&mut calls, "first").await;
    assert_eq!(second.message().await.unwrap().unwrap(), state);
    daemon.device.held.store(false, Ordering::Relaxed);
    for stream in [&mut running, &mut second, &mut waiting] {
        let mut last = None;
        while let Some(state) = stream.message().await.unwrap() {
            assert_ne!(last.as_ref(), Some(&state), "every state is another");
            last = Some(state);
        }
        let result = last.and_then(|state| state.result).unwrap();
        assert_eq!(result.status(), Outcome::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_end_of_the_job_however_it_ends() {
    let plan = |_: &engine::service::Task| Doing::Fail(Fault::Request);
    let device = FakeDevice::new(Duration::from_millis(1), plan);
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let mut calls = calls(&daemon).await;
    upload(&mut calls, named("window", "fails")).await;
    upload(&mut calls, named("porep", "is cancelled")).await;
    let failing = watch(&mut calls, "fails").await;
    let cancelled = watch(&mut calls, "is cancelled").await;
    let job_id = "is cancelled".to_owned();
    let cancel = v1::CancelProofRequest { job_id };
    daemon.connect().await.cancel_proof(cancel).await.unwrap();
    daemon.device.held.store(false, Ordering::Relaxed);
    for (stream, outcome) in [(failing, Outcome::Failed), (cancelled, Outcome::Cancelled)] {
        let states: Vec<_> = stream.collect().await;
        let last = states.into_iter().next_back().unwrap().unwrap();
        let result = last.result.unwrap();
        assert_eq!(
            (last.phase, result.status()),
            (Phase::Ended.into(), outcome)
        );
        assert!(result.proof.is_empty());
    }
    let job_id = "no such job".to_owned();
    let unknown = calls.watch_job(v2::WatchJobRequest { job_id }).await;
    let status = unknown.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(reason(&status), "JOB_NOT_FOUND");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.metadata["job"], "no such job");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_an_open_job_is_told_of_the_daemons_end() {
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(Arc::clone(&device));
    let mut calls = calls(&daemon).await;
    upload(&mut calls, named("window", "open")).await;
    let mut states = watch(&mut calls, "open").await;
    states.message().await.unwrap().unwrap();
    let Daemon {
        server, service, ..
    } = daemon;
    let ending = tokio::task::spawn_blocking(move || server.shutdown(Duration::from_millis(50)));
    let status = loop {
        match states.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended as if the job had"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(reason(&status), "SHUTTING_DOWN");
    ending.await.unwrap();
    device.held.store(false, Ordering::Relaxed);
    drop(service);
}

/// The errors of `cuzk.v1` carry their details too.
#[tokio::test]
async fn errors_of_both_packages_carry_their_code_as_details() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let missing = calls.prove(v1::ProveRequest { submit: None }).await;
    assert_eq!(reason(&missing.unwrap_err()), "MISSING_FIELD");
    let job_id = "none".to_owned();
    let request = v1::AwaitProofRequest {
        job_id,
        timeout_ms: 1,
    };
    let unknown = calls.await_proof(request).await.unwrap_err();
    assert_eq!(reason(&unknown), "JOB_NOT_FOUND");
    let circuit_id = "porep-3k".to_owned();
    let preload = calls
        .preload_srs(v1::PreloadSrsRequest { circuit_id })
        .await;
    assert_eq!(reason(&preload.unwrap_err()), "UNKNOWN_CIRCUIT");
}

/// The blocking client uploads and follows, and does without where the daemon cannot.
#[test]
fn the_blocking_client_uploads_and_follows() {
    let daemon = daemon(quick());
    let address = daemon.server.grpc_address();
    let mut client = client::Client::connect(address, &client::Options::default()).unwrap();
    let job = client.upload(named("snap", "a job"), 0).unwrap();
    let mut states = 0;
    let followed = client.follow(&job.job_id, None, |_| states += 1).unwrap();
    let client::Followed::Ended(result) = followed else {
        panic!("{followed:?}");
    };
    assert_eq!(result.status(), Outcome::Completed);
    assert!(states >= 1);
    let error = client.follow("no job", None, |_| ()).unwrap_err();
    assert!(error.to_string().contains("no job"), "{error}");
}
