//! `cuzk bench`: fabricated requests and measurements on them.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use common::run;
use serde_json::Value;

#[test]
fn a_made_up_request_is_a_request_and_follows_from_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, seed: &str, file: &str| {
        let path = folder.path().join(file);
        let out = path.to_str().unwrap();
        run(["bench", "make-instance", name, "--seed", seed, "--out", out]).ok();
        path
    };
    for (name, kind) in [
        ("porep-2k", "porep-c2"),
        ("snap-2k", "snap-update"),
        ("wpost-8m", "window-post"),
        ("winning-32g", "winning-post"),
    ] {
        let path = make(name, "7", "request");
        let shown = run(["request", "show", path.to_str().unwrap(), "--json"]);
        let shown: Value = serde_json::from_str(shown.ok()).unwrap();
        assert_eq!(shown["request"]["kind"], kind);
        assert_eq!(shown["request"]["circuit"], name);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(std::fs::read(make(name, "7", "again")).unwrap(), bytes);
        assert_ne!(std::fs::read(make(name, "8", "other")).unwrap(), bytes);
    }
}

#[test]
fn a_witness_is_measured() {
    let ran = run(["bench", "witness", "winning-2k", "--json", "--threads", "1"]);
    let document: Value = serde_json::from_str(ran.ok()).unwrap();
    assert_eq!(document["schema"], "cuzk.bench-witness/1");
    assert_eq!(document["circuit"], "winning-2k");
    assert_eq!(document["threads"], 1);
    for step in ["decode", "witness"] {
        assert!(document[step]["wall_seconds"].as_f64().is_some());
        assert!(document[step]["core_seconds"].as_f64().is_some());
        assert!(document[step]["peak_memory_bytes"].as_u64().is_some());
    }
    // 91 014 field elements of the auxiliary variables, 660 bits, 133 inputs.
    let packed = document["packed_bytes"].as_u64().unwrap();
    assert_eq!(packed, 32 * (91_014 + 133) + 8 * 660_u64.div_ceil(64));

    let text = run(["bench", "witness", "wpost-2k"]);
    assert!(text.ok().contains("witness, one partition"));
}

#[test]
fn an_unknown_circuit_is_a_usage_error() {
    for command in ["make-instance", "witness"] {
        let mut arguments = vec!["bench", command, "porep-1k"];
        if command == "make-instance" {
            arguments.extend(["--out", "-"]);
        }
        assert_eq!(run(arguments).code, Some(2));
    }
}

#[test]
fn whole_requests_are_proven_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, copy) = (folder.path().join("trace"), folder.path().join("document"));
    let ran = run([
        "bench",
        "e2e",
        "wpost-2k",
        "--alternate",
        "winning-2k",
        "--count",
        "2",
        "--alone",
        "1",
        "--ephemeral",
        "--device",
        "cpu",
        "--json",
        "--trace",
        trace.to_str().unwrap(),
        "--json-out",
        copy.to_str().unwrap(),
    ]);
    let document: Value = serde_json::from_str(ran.ok()).unwrap();
    assert_eq!(document["schema"], "cuzk.bench-e2e/1");
    assert_eq!(
        (
            &document["requests"],
            &document["proofs"],
            &document["verified"]
        ),
        (&4.into(), &4.into(), &true.into())
    );
    for figure in [
        "wall_seconds",
        "request_seconds",
        "steady_proof_seconds",
        "core_seconds_per_proof",
        "setup_core_seconds",
    ] {
        assert!(document[figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(document["resident"]["own_bytes"].as_u64().unwrap() > 0);
    let names: Vec<_> = document["circuits"].as_array().unwrap().iter().collect();
    for (circuit, name) in names.iter().zip(["wpost-2k", "winning-2k"]) {
        assert_eq!(circuit["circuit"], name);
        assert_eq!(circuit["key"]["ephemeral"], true);
        assert!(circuit["alone_seconds"].as_f64().unwrap() > 0.0);
        let phases = document["phases"].as_array().unwrap().iter();
        let mut of_circuit = phases.filter(|phase| phase["circuit"] == name);
        assert!(of_circuit.any(|phase| phase["phase"] == "verify"));
    }
    let copied: Value = serde_json::from_slice(&std::fs::read(copy).unwrap()).unwrap();
    assert_eq!(copied, document);

    // Every proof decodes or shares a request, has a witness, sums and a verification.
    let trace: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!(
        (count("verify"), count("check and witness"), count("h")),
        (8, 8, 8)
    );

    let refused = run(["bench", "e2e", "wpost-2k", "--form", "prepared"]);
    assert_eq!(refused.code, Some(2));
}

#[test]
fn both_forms_of_a_key_give_the_same_proof() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("document");
    let ran = run([
        "bench",
        "identity",
        "wpost-2k",
        "--seed",
        "3",
        "--device",
        "cpu",
        "--json",
        "--json-out",
        copy.to_str().unwrap(),
    ]);
    let document: Value = serde_json::from_str(ran.ok()).unwrap();
    assert_eq!(document["schema"], "cuzk.bench-identity/1");
    assert_eq!(document["identical"], true);
    let proofs = document["proofs"].as_array().unwrap();
    let forms: Vec<_> = proofs.iter().map(|made| &made["form"]).collect();
    assert_eq!(forms, ["published", "prepared"]);
    assert_eq!(proofs[0]["proof"], proofs[1]["proof"]);
    assert_eq!(proofs[0]["proof"].as_str().unwrap().len(), 2 * 192);
    let copied: Value = serde_json::from_slice(&std::fs::read(copy).unwrap()).unwrap();
    assert_eq!(copied, document);
}
