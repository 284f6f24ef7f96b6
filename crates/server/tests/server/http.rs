//! Status, metrics, health, readiness, traces and the page.

use std::sync::atomic::Ordering;

use crate::common::{daemon, on_wire, quick};
use server::client::{ClientError, percent_encoded};
use server::proto::v1;
use server::{Part, client};

/// Every key of the status document of the earlier daemon, by path; `[]` is a list's item.
const KEYS: [&str; 39] = [
    "uptime_secs",
    "memory.total_bytes",
    "memory.used_bytes",
    "memory.available_bytes",
    "synthesis.max_concurrent",
    "synthesis.active",
    "pipelines.[].job_id",
    "pipelines.[].proof_kind",
    "pipelines.[].started_secs_ago",
    "pipelines.[].total_partitions",
    "pipelines.[].partitions_done",
    "pipelines.[].partitions.[].index",
    "pipelines.[].partitions.[].state",
    "pipelines.[].partitions.[].synth_ms",
    "pipelines.[].partitions.[].gpu_ms",
    "gpu_workers.[].worker_id",
    "gpu_workers.[].gpu_ordinal",
    "gpu_workers.[].state",
    "gpu_workers.[].current_job",
    "gpu_workers.[].current_partition",
    "gpu_workers.[].busy_secs",
    "allocations.srs.[].circuit_id",
    "allocations.srs.[].bytes",
    "allocations.srs.[].last_used_secs_ago",
    "allocations.srs.[].evictable",
    "allocations.pce",
    "counters.total_completed",
    "counters.total_failed",
    "counters.completed_by_kind.porep-c2",
    "counters.completed_by_kind.winning-post",
    "counters.failed_by_kind.snap-update",
    "counters.failed_by_kind.window-post",
    "counters.queue_depth",
    "buffers.synth_in_flight",
    "buffers.provers_in_flight",
    "buffers.aux_in_flight",
    "buffers.shells_in_flight",
    "buffers.pending_handles",
    "test_keys",
];

fn has(document: &serde_json::Value, path: &str) -> bool {
    let mut value = document;
    for step in path.split('.') {
        let next = match step {
            "[]" => value.get(0),
            key => value.get(key),
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_document_has_every_key_and_counts_posts_too() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let circuit_id = "winning-2k".to_owned();
    calls
        .preload_srs(v1::PreloadSrsRequest { circuit_id })
        .await
        .unwrap();
    let submit = Some(on_wire("winning", "w"));
    calls.prove(v1::ProveRequest { submit }).await.unwrap();
    daemon.device.held.store(true, Ordering::Relaxed);
    calls.submit_proof(on_wire("porep", "p")).await.unwrap();
    // The engine's state is published before the phases of what it does.
    daemon.eventually("it runs", |d| {
        let status = d.json("/status");
        let units = &status["pipelines"][1]["partitions"];
        status["gpu_workers"][0]["state"] == "proving" && units[0]["state"] == "gpu"
    });
    let status = daemon.json("/status");
    for key in KEYS {
        assert!(has(&status, key), "{key} is missing in {status:#}");
    }
    assert_eq!(status["counters"]["completed_by_kind"]["winning-post"], 1);
    assert_eq!(status["gpu_workers"][0]["current_job"], "p");
    assert_eq!(status["gpu_workers"][0]["gpu_ordinal"], 4);
    assert_eq!(status["note"], "test key");
    let pipelines = status["pipelines"].as_array().unwrap();
    let states: Vec<_> = pipelines
        .iter()
        .map(|p| (&p["job_id"], &p["state"]))
        .collect();
    assert_eq!(states[0], (&"w".into(), &"completed".into()));
    assert_eq!(states[1], (&"p".into(), &"running".into()));
    let unit = &pipelines[0]["partitions"][0];
    assert_eq!(
        (&unit["state"], &unit["synth_ms"], &unit["gpu_ms"]),
        (&"done".into(), &2.into(), &3.into())
    );
    assert_eq!(pipelines[1]["partitions"][0]["state"], "gpu");
    // Every path that begins so, as before.
    assert!(has(&daemon.json("/status/x?y"), "uptime_secs"));
    daemon.device.held.store(false, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_when_every_part_has_passed() {
    let daemon = daemon(quick());
    assert_eq!(daemon.get("/healthz").unwrap(), b"ok\n");
    assert_eq!(daemon.json("/readyz")["ready"], true);
    daemon
        .readiness
        .failed(Part::SelfTest, "the proof is wrong");
    let not_ready = daemon.get("/readyz").unwrap_err();
    assert!(
        matches!(not_ready, ClientError::Http { status: 503, .. }),
        "{not_ready}"
    );
    assert!(
        not_ready.to_string().contains("the proof is wrong"),
        "{not_ready}"
    );
    daemon.readiness.passed(Part::SelfTest);
    assert_eq!(daemon.json("/readyz")["parts"]["keys"]["state"], "passed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_shows_every_phase() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let name = "porep-1000-7 [\u{e9}]/x";
    let submit = Some(on_wire("porep", name));
    calls.prove(v1::ProveRequest { submit }).await.unwrap();
    let trace = daemon.json(&format!("/jobs/{}/trace", percent_encoded(name)));
    assert_eq!(trace["otherData"]["job_id"], name);
    assert_eq!(trace["otherData"]["state"], "completed");
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let phases: Vec<_> = spans
        .iter()
        .map(|span| span["cat"].as_str().unwrap())
        .collect();
    for phase in ["queued", "prove", "check", "join"] {
        assert!(phases.contains(&phase), "{phase} is not in {phases:?}");
    }
    for span in &spans {
        assert!(span["dur"].as_u64().unwrap() < 60_000_000 && span["ts"].as_u64().unwrap() > 0);
        let lane = |e: &&serde_json::Value| e["ph"] == "M" && e["tid"] == span["tid"];
        assert_eq!(events.iter().filter(lane).count(), 1);
    }
    let id = trace["otherData"]["id"].as_str().unwrap();
    assert_eq!(
        daemon.json(&format!("/jobs/{id}/trace"))["otherData"]["job_id"],
        name
    );
    for (path, expected) in [
        ("/jobs/none/trace", 404),
        ("/jobs/%ff/trace", 400),
        ("/no", 404),
    ] {
        let error = daemon.get(path).unwrap_err();
        let ClientError::Http { status, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(status, expected, "{path}");
    }
    let spans = daemon.json("/timeline");
    assert_eq!(spans["spans"][0]["job"], name);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_the_same_by_both_ways_and_the_page_is_one_file() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    let submit = Some(on_wire("snap", "s"));
    calls.prove(v1::ProveRequest { submit }).await.unwrap();
    let by_call = calls
        .get_metrics(v1::GetMetricsRequest {})
        .await
        .unwrap()
        .into_inner();
    let by_http = String::from_utf8(daemon.get("/metrics").unwrap()).unwrap();
    let steady = |text: &str| -> Vec<String> {
        let moving = |line: &&str| !line.starts_with("cuzk_uptime_seconds ");
        text.lines().filter(moving).map(str::to_owned).collect()
    };
    assert_eq!(steady(&by_call.prometheus_text), steady(&by_http));
    for line in [
        "cuzk_proofs_completed_total 1",
        "cuzk_proofs_completed{proof_kind=\"snap_update\"} 1",
        "cuzk_proofs_failed{proof_kind=\"porep_c2\"} 0",
        "cuzk_proof_duration_seconds_count{proof_kind=\"snap_update\"} 1",
        "cuzk_queue_depth 0",
        "cuzk_running_jobs 0",
        "cuzk_gpu_workers 1",
        "cuzk_units_total{device=\"0\",outcome=\"proven\"} 1",
    ] {
        assert!(
            by_http.lines().any(|found| found == line),
            "{line} is not in {by_http}"
        );
    }
    let page = String::from_utf8(daemon.get("/").unwrap()).unwrap();
    assert!(page.contains("<h2>Timeline") && page.contains("test key"));
    // Nothing is loaded from elsewhere.
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_and_slow_clients_are_turned_away() {
    use std::io::{Read, Write};
    let daemon = daemon(quick());
    let address = daemon.server.http_address().unwrap().to_string();
    let ask = |request: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let answer = ask("POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    let answer = ask("HEAD /status HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
    let answer = ask("GET /status HTTP/1.1\r\nHost: x\r\n\r\n").to_lowercase();
    for header in [
        "content-type: application/json",
        "access-control-allow-origin: *",
        "connection: close",
    ] {
        assert!(answer.contains(header), "{header} is not in {answer}");
    }
    assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(client::http_get(daemon.server.http_address().unwrap(), "/healthz").is_ok());
}
