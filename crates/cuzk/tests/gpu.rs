//! What the program says and does about GPUs, on machines with and without one. Builds with and
//! without the feature `cuda` pass it.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use common::{Ran, cuzk, request, run, test_keys, write_json};
use serde_json::Value;

/// Whether this build, on this machine, can prove on a GPU; else the code that says why not.
fn gpu() -> Result<Value, String> {
    let ran = run(["doctor", "gpu", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    if ran.code == Some(0) {
        return Ok(document);
    }
    let code = document["error"]["code"].as_str().unwrap().to_owned();
    println!("no GPU is used: {}", document["error"]["message"]);
    Err(code)
}

#[test]
fn the_program_starts_and_lists_circuits_without_a_driver() {
    // The loader lists what it must find before the program starts.
    let listed = cuzk().env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    let libraries = Ran::from(listed);
    assert!(libraries.ok().contains("libc.so"), "{libraries:#?}");
    for name in ["libcuda", "libcudart", "libnvrtc"] {
        assert!(!libraries.stdout.contains(name), "{libraries:#?}");
    }
    run(["--version"]).ok();
    run(["circuit", "list"]).ok();
}

#[test]
fn the_doctor_says_what_there_is() {
    match gpu() {
        Ok(document) => {
            assert_eq!(document["schema"], "cuzk.doctor-gpu/1");
            for device in document["devices"].as_array().unwrap() {
                assert!(device["uuid"].as_str().unwrap().starts_with("GPU-"));
                assert!(device["code"].is_string() && device["self_test"].is_object());
            }
        }
        Err(code) => {
            assert_eq!(code, "DEVICE_ABSENT");
            run(["doctor", "gpu"]).fails(5, &["CPU"]);
        }
    }
}

#[test]
fn a_gpu_that_is_named_and_absent_is_never_replaced() {
    if gpu().is_ok() {
        let ran = run(["prove", "/nonexistent", "--device", "gpu", "--gpu", "99"]);
        ran.fails(5, &["no GPU 99"]);
    } else {
        // Before the request is looked for.
        run(["prove", "/nonexistent", "--device", "gpu"]).fails(5, &["CPU"]);
    }
}

#[test]
fn a_proof_without_a_gpu_says_why_it_ran_on_the_cpu() {
    let keys = test_keys("winning-2k");
    let folder = tempfile::tempdir().unwrap();
    let file = write_json(folder.path(), "request", &request("2KiB/winning-post-a"));
    let prove = |device: &str| {
        run([
            "prove".as_ref(),
            file.as_os_str(),
            "--json".as_ref(),
            "--params".as_ref(),
            keys.as_os_str(),
            "--allow-test-keys".as_ref(),
            "--device".as_ref(),
            device.as_ref(),
        ])
        .json()
    };
    let cpu = prove("cpu");
    assert_eq!(cpu["device"]["device"], "cpu");
    assert_eq!(cpu["device"]["uuid"], Value::Null);
    let auto = prove("auto");
    assert_eq!(auto["verified"], true);
    match gpu() {
        Ok(document) => {
            assert_eq!(auto["device"]["device"], "gpu");
            assert_eq!(auto["device"]["uuid"], document["devices"][0]["uuid"]);
        }
        Err(_) => {
            assert_eq!(auto["device"]["device"], "cpu");
            let reason = auto["device"]["reason"].as_str().unwrap();
            assert!(reason.starts_with("no GPU: "), "{reason}");
        }
    }
}

#[test]
fn plans_need_no_gpu_and_keep_to_the_memory_given() {
    let plan =
        |vram: &str| run(["circuit", "plan", "winning-32g", "--vram", vram, "--json"]).json();
    let sum = |list: &Value| -> u64 {
        let entries = list.as_array().unwrap().iter();
        entries.map(|entry| entry["bytes"].as_u64().unwrap()).sum()
    };
    let mut last = 0;
    for gib in [2, 4, 16] {
        let document = plan(&format!("{gib}GiB"));
        assert_eq!(document["schema"], "cuzk.circuit-plan/1");
        let bytes = |name: &str| document[name].as_u64().unwrap();
        assert!(bytes("bytes") <= gib << 30);
        assert_eq!(
            bytes("bytes"),
            bytes("driver_bytes")
                + bytes("resident_bytes")
                + bytes("units") * bytes("unit_bytes")
                + bytes("work_bytes")
        );
        assert_eq!(document["key"], "resident");
        assert_eq!(sum(&document["resident"]), bytes("resident_bytes"));
        assert!(sum(&document["unit"]) >= bytes("unit_bytes"));
        assert_eq!(document["sums"].as_array().unwrap().len(), 5);
        // More memory is used for more copies of the bases.
        assert!(bytes("resident_bytes") >= last);
        last = bytes("resident_bytes");
    }
    // A third proof at a time where sums are short, two of them otherwise.
    for (circuit, units) in [("winning-32g", 3), ("snap-8m", 2)] {
        let plan = run(["circuit", "plan", circuit, "--vram", "80GiB", "--json"]).json();
        assert_eq!(plan["units"], units, "{circuit}");
    }
    // A prepared key has one more point of h, points of the inputs in l, and no vector c.
    let prepared = [
        "circuit",
        "plan",
        "winning-32g",
        "--vram",
        "2GiB",
        "--form",
        "prepared",
    ];
    let text = run(prepared);
    assert!(!text.ok().contains("ntt: c "), "{text:#?}");
    assert!(
        text.ok()
            .contains("sum h in G1: 524 288 terms of 524 288 points"),
        "{text:#?}"
    );
    let text = run(["circuit", "plan", "winning-32g", "--vram", "2GiB"]);
    assert!(text.ok().contains("ntt: c "), "{text:#?}");
    for part in [
        "what stays",
        "key: h",
        "of a proof",
        "sum b_g2 in G2",
        "chosen",
    ] {
        assert!(text.ok().contains(part), "{part}: {text:#?}");
    }
}

#[test]
fn a_key_that_does_not_fit_is_streamed() {
    let plan = |proofs: &str, rest: &[&str]| {
        let plan = ["circuit", "plan", "winning-2k", "--vram", "100MiB"];
        run(plan.iter().chain(&["--proofs", proofs]).chain(rest))
    };
    let document = plan("1", &["--json"]).json();
    assert_eq!(document["key"], "streamed");
    let streaming = &document["streaming"];
    let bytes = |value: &Value| value.as_u64().unwrap();
    let sections = streaming["sections"].as_array().unwrap();
    let all: u64 = sections
        .iter()
        .map(|section| bytes(&section["bytes"]))
        .sum();
    assert_eq!(bytes(&streaming["pass_bytes"]), all);
    assert_eq!(streaming["pass_bytes"], streaming["bytes_per_proof"]);
    for section in sections {
        let (chunks, points) = (bytes(&section["chunks"]), bytes(&section["chunk_points"]));
        assert!(
            chunks * points * 192 >= bytes(&section["bytes"]),
            "{section}"
        );
        assert!(points * 96 <= bytes(&streaming["chunk_bytes"]), "{section}");
    }
    assert!(bytes(&document["bytes"]) <= 100 << 20);
    // A pass for two copies as much as one for one.
    let two = plan("2", &["--json"]).json();
    let proofs = bytes(&two["units"]);
    assert_eq!(
        bytes(&two["streaming"]["bytes_per_proof"]),
        bytes(&two["streaming"]["pass_bytes"]) / proofs
    );
    let text = plan("1", &[]);
    for part in ["over the bus", "section of the key", "of a pass"] {
        assert!(text.ok().contains(part), "{part}: {text:#?}");
    }
}

#[test]
fn a_plan_that_does_not_fit_names_the_memory_that_would_do() {
    let refused = run(["circuit", "plan", "winning-2k", "--vram", "1MiB", "--json"]);
    assert_eq!(refused.code, Some(5), "{refused:#?}");
    let document: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(document["error"]["code"], "VRAM");
    let message = document["error"]["message"].as_str().unwrap();
    let needed = message.split(" needs ").nth(1).unwrap();
    let mib: f64 = needed.split(" MiB").next().unwrap().parse().unwrap();
    assert!(mib > 1.0, "{message}");
    let enough = format!("{}MiB", mib.ceil());
    run(["circuit", "plan", "winning-2k", "--vram", &enough]).ok();

    for size in ["0", "1.5GiB", "much"] {
        let ran = run(["circuit", "plan", "winning-2k", "--vram", size]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
    }
}
