//! Requests as users have them: every form, compressed or not, from files and pipes, and broken.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::fs;
use std::io::Write;

use common::{fixture, request, run, run_with_input, write_json};
use serde_json::{Value, json};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_form_is_understood_in_words() {
    let folder = "2KiB/porep-v1_1-a";
    let envelope = fixture(&format!("{folder}/c2-input.json"));
    let text = run(["request".as_ref(), "show".as_ref(), envelope.as_os_str()])
        .ok()
        .to_owned();
    for words in [
        "PoRep, seal commit phase 2",
        "C2 input",
        "StackedDrg2KiBV1_1 (5)",
        "porep-2k",
        "192 bytes",
        "83832",
        "not named by the request",
        "1e2743839e0a70dd35102113ab066a1ee61c39a4a96890dd4332e28c367a8204",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let phase1 = fixture(&format!("{folder}/c1.json"));
    let text = run(["request".as_ref(), "show".as_ref(), phase1.as_os_str()])
        .ok()
        .to_owned();
    assert!(text.contains("phase-1 output"), "{text}");

    let dir = tempfile::tempdir().unwrap();
    let file = write_json(dir.path(), "request.json", &request(folder));
    let text = run(["request".as_ref(), "show".as_ref(), file.as_os_str()])
        .ok()
        .to_owned();
    assert!(
        text.contains("request file") && text.contains("f0857192"),
        "{text}"
    );
}

#[test]
fn compressed_and_piped_requests_are_the_same_requests() {
    let plain = fs::read(fixture("2KiB/porep-v1/c1.json")).unwrap();
    let show = |bytes: &[u8]| {
        let mut document = run_with_input(["request", "show", "-", "--json"], bytes).json();
        let form = document["request"]["form"].take();
        (document, form)
    };
    let (document, form) = show(&plain);
    assert_eq!(form, "phase-1 output");
    let gzipped = show(&gzip(&plain));
    assert_eq!(gzipped, (document.clone(), json!("phase-1 output, gzip")));
    let zstd = show(&zstd::encode_all(&plain[..], 1).unwrap());
    assert_eq!(zstd, (document, json!("phase-1 output, zstd")));
}

/// The shape of `request show --json`, which programs read.
#[test]
fn the_json_form_is_stable() {
    let dir = tempfile::tempdir().unwrap();
    let show = |folder: &str| {
        let file = write_json(dir.path(), "request.json", &request(folder));
        run([
            "request".as_ref(),
            "show".as_ref(),
            "--json".as_ref(),
            file.as_os_str(),
        ])
        .json()
    };
    assert_eq!(
        show("2KiB/porep-v1_1-a"),
        json!({
            "schema": "cuzk.request/1",
            "request": {
                "form": "request file",
                "request_id": "2KiB/porep-v1_1-a",
                "kind": "porep-c2",
                "proof_type": "StackedDrg2KiBV1_1 (5)",
                "sector_size": 2048,
                "circuit": "porep-2k",
                "miner_id": 857192,
                "sector_number": 83832,
                "comm_r": "1e2743839e0a70dd35102113ab066a1ee61c39a4a96890dd4332e28c367a8204",
                "comm_d": "6d1925a67ab8496411de7b182b6eddca788f8d72338016c1315e558b26c4a11f",
                "replica_id": "0d5fa8767edb7e602bbe1a41e9ff703bab907bc295854fbd2d60ea648552ec22",
                "ticket": "efa11ecbeccad5b2cb129bf57106ba718b01efe35ee2fd4b85a316a1b9183037",
                "seed": "bb5a0e8ae78cee34d8aefc77cf264cde5e5eb525db8afd0e3a272600ba5fdf60",
                "challenges": 2,
                "partitions": 1
            },
            "warnings": []
        })
    );
    assert_eq!(
        show("2KiB/window-post-1-sector")["request"],
        json!({
            "form": "request file",
            "request_id": "2KiB/window-post-1-sector",
            "kind": "window-post",
            "proof_type": "StackedDrgWindow2KiBV1_2 (10)",
            "sector_size": 2048,
            "circuit": "wpost-2k",
            "miner_id": 857192,
            "randomness": "63babe90eed097bf099f5ab4a6dba1cbb8e39fbe6d1df676cb72dd5e92998531",
            "partition_index": 0,
            "sectors": [84602],
            "challenges": 10,
            "partitions": 1
        })
    );
    let snap = &show("2KiB/empty-sector-update-a")["request"];
    assert_eq!(snap["kind"], "snap-update");
    for key in ["comm_r_old", "comm_r_new", "comm_d_new"] {
        assert_eq!(snap[key].as_str().map(str::len), Some(64), "{snap:#}");
    }
}

#[test]
fn oddities_are_warnings_and_quiet_hides_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut odd = request("2KiB/window-post-1-partition");
    odd["flavour"] = json!("vanilla");
    let file = write_json(dir.path(), "request.json", &odd);
    let ran = run(["request".as_ref(), "show".as_ref(), file.as_os_str()]);
    ran.ok();
    assert!(
        ran.stderr.contains("warning: ") && ran.stderr.contains("flavour"),
        "{ran:#?}"
    );
    let ran = run([
        "request".as_ref(),
        "show".as_ref(),
        "-q".as_ref(),
        file.as_os_str(),
    ]);
    ran.ok();
    assert_eq!(ran.stderr, "");
}

#[test]
fn every_malformed_request_exits_3_and_says_why() {
    let cases = filecoin::support::corpus::requests();
    assert!(cases.len() >= 40);
    for case in &cases {
        let mut args = vec!["prove".to_owned(), "-".to_owned(), "--json".to_owned()];
        for (option, value) in [
            ("--miner", case.hints.miner_id),
            ("--sector", case.hints.sector_number),
        ] {
            args.extend(
                value
                    .map(|v| [option.to_owned(), v.to_string()])
                    .into_iter()
                    .flatten(),
            );
        }
        let ran = run_with_input(&args, &case.bytes);
        assert_eq!(ran.code, Some(3), "{}: {ran:#?}", case.name);
        assert!(!ran.stderr.contains("panicked"), "{}: {ran:#?}", case.name);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let error = &document["error"];
        assert_eq!(error["code"], case.code, "{}", case.name);
        let causes = error["causes"].as_array().unwrap().iter();
        let said: Vec<&str> = [&error["message"]]
            .into_iter()
            .chain(causes)
            .chain([&error["remedy"]])
            .filter_map(Value::as_str)
            .collect();
        assert!(
            said.join("; ").contains(case.text),
            "{}: no {:?} in {said:#?}",
            case.name,
            case.text
        );
        assert!(
            said.last().is_some_and(|remedy| remedy.len() > 8),
            "{}: {said:#?}",
            case.name
        );
    }
}
