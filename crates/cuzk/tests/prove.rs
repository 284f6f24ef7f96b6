//! Proving and verifying with the smallest circuits, through the binary, and everything around it.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use common::{Ran, cuzk, fixture, request, requests, run, run_with_input, test_keys, write_json};
use serde_json::{Value, json};

/// A folder with the request of a window fixture, and options that name its test keys.
struct Desk {
    dir: tempfile::TempDir,
    request: PathBuf,
    keys: PathBuf,
}

impl Desk {
    fn new(value: &Value, circuit: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let request = write_json(dir.path(), "request.json", value);
        Self {
            dir,
            request,
            keys: test_keys(circuit),
        }
    }

    fn window() -> Self {
        Self::new(&request("2KiB/window-post-1-sector"), "wpost-2k")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run<S: AsRef<OsStr>>(&self, command: &str, args: impl IntoIterator<Item = S>) -> Ran {
        let mut cuzk = cuzk();
        cuzk.arg(command)
            .arg(&self.request)
            .arg("--params")
            .arg(&self.keys)
            .arg("--allow-test-keys");
        Ran::from(cuzk.args(args).output().unwrap())
    }

    fn prove_to(&self, out: &Path) -> Ran {
        self.run("prove", ["--out".as_ref(), out.as_os_str()])
    }

    fn verify(&self, proof: &Path) -> Ran {
        self.run("verify", ["--proof".as_ref(), proof.as_os_str()])
    }

    /// Names in the folder beside the request.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|n| n != "request.json").collect()
    }
}

#[test]
fn every_small_post_proves_and_verifies() {
    for (folder, circuit) in [
        ("2KiB/window-post-1-sector", "wpost-2k"),
        ("2KiB/window-post-1-partition", "wpost-2k"),
        ("2KiB/window-post-v1", "wpost-2k"),
        ("2KiB/window-post-2-partitions", "wpost-2k"),
        ("2KiB/winning-post-a", "winning-2k"),
        ("2KiB/winning-post-b", "winning-2k"),
    ] {
        for value in requests(folder) {
            let desk = Desk::new(&value, circuit);
            let out = desk.path("proof");
            let ran = desk.prove_to(&out);
            for words in [
                "CPU",
                "all hold",
                "192 bytes, verified",
                "test key: anyone could forge this",
                "total",
            ] {
                assert!(
                    ran.ok().contains(words),
                    "{folder}: no {words:?} in {ran:#?}"
                );
            }
            assert_eq!(ran.stderr, "", "no progress where there is no terminal");
            assert_eq!(fs::metadata(&out).unwrap().len(), 192);
            let ran = desk.verify(&out);
            for words in ["verifies", "test key: anyone could forge this"] {
                assert!(
                    ran.ok().contains(words),
                    "{folder}: no {words:?} in {ran:#?}"
                );
            }
            assert_eq!(desk.files(), ["proof"]);
        }
    }
}

#[test]
fn proofs_come_as_files_hex_and_json_and_verify_from_all_of_them() {
    let desk = Desk::window();
    let verify = |bytes: &[u8]| {
        let proof = desk.path("some-proof");
        fs::write(&proof, bytes).unwrap();
        desk.verify(&proof).ok();
    };
    let ran = desk.run("prove", ["--quiet"]);
    let text = ran.ok();
    assert_eq!(text.trim_end().len(), 384, "{ran:#?}");
    assert!(
        ran.stderr.contains("test key: anyone could forge this"),
        "{ran:#?}"
    );
    verify(text.as_bytes());

    let ran = desk.run("prove", ["--out", "-"]);
    assert_eq!(ran.raw.len(), 192);
    assert!(
        ran.stderr.contains("written to standard output"),
        "{ran:#?}"
    );
    verify(&ran.raw);

    let document = desk.run("prove", ["--json"]).json();
    verify(&hex::decode(document["proof"].as_str().unwrap()).unwrap());

    let ran = desk.run::<&str>("prove", []);
    let last = ran.ok().lines().last().unwrap();
    verify(&hex::decode(last).unwrap());
    assert_ne!(
        last,
        text.trim_end(),
        "two proofs of one statement differ: r and s are random"
    );
}

#[test]
fn requests_come_from_standard_input_too() {
    let desk = Desk::window();
    let request = zstd::encode_all(&fs::read(&desk.request).unwrap()[..], 1).unwrap();
    let keys = desk.keys.to_str().unwrap();
    let ran = run_with_input(
        [
            "prove",
            "-",
            "--params",
            keys,
            "--allow-test-keys",
            "--json",
        ],
        &request,
    );
    let proof = desk.path("proof");
    fs::write(&proof, ran.json()["proof"].as_str().unwrap()).unwrap();
    desk.verify(&proof).ok();
}

#[test]
fn json_results_have_these_keys() {
    let desk = Desk::window();
    let out = desk.path("proof");
    let document = desk
        .run(
            "prove",
            ["--json".as_ref(), "--out".as_ref(), out.as_os_str()],
        )
        .json();
    assert_eq!(
        keys(&document),
        [
            "check",
            "device",
            "key",
            "notice",
            "out",
            "proof",
            "proof_bytes",
            "request",
            "schema",
            "timing",
            "verified"
        ]
    );
    assert_eq!(document["schema"], "cuzk.prove/1");
    assert_eq!(document["verified"], true);
    assert_eq!(document["proof_bytes"], 192);
    assert_eq!(document["out"], out.to_str().unwrap());
    assert_eq!(document["notice"], "test key: anyone could forge this");
    assert_eq!(document["device"]["device"], "cpu");
    assert_eq!(document["check"]["replica_id"], "not-involved");
    assert_eq!(
        keys(&document["check"]),
        ["challenges", "labels", "merkle_paths", "replica_id"]
    );
    assert_eq!(
        keys(&document["key"]),
        ["digest", "notice", "path", "seed", "test_key"]
    );
    assert_eq!(
        keys(&document["timing"]),
        ["peak_memory_bytes", "phases", "total_seconds"]
    );
    let phases = document["timing"]["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|p| p["name"].as_str().unwrap()).collect();
    let own = ["decode", "load circuit", "check and witness", "open key"];
    assert_eq!(names[..4], own);
    assert!(
        names[4..].iter().all(|name| name.starts_with("prove: ")),
        "{names:?}"
    );
    assert_eq!(names.last(), Some(&"prove: verify"));
    assert_eq!(
        hex::decode(document["proof"].as_str().unwrap()).unwrap(),
        fs::read(&out).unwrap()
    );

    let document = desk
        .run(
            "verify",
            ["--json".as_ref(), "--proof".as_ref(), out.as_os_str()],
        )
        .json();
    assert_eq!(
        keys(&document),
        [
            "key",
            "notice",
            "partitions",
            "request",
            "schema",
            "verified"
        ]
    );
    assert_eq!(document["schema"], "cuzk.verify/1");
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn wrong_proofs_exit_1_and_impossible_ones_3() {
    let desk = Desk::window();
    let good = desk.path("good");
    desk.prove_to(&good).ok();
    let good = fs::read(good).unwrap();
    let bad = |name: &str, bytes: &[u8], code: i32, words: &[&str]| {
        let file = desk.path(name);
        fs::write(&file, bytes).unwrap();
        desk.verify(&file).fails(code, words);
    };
    for at in [1, 60, 100, 191] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bad("flipped", &bytes, 1, &["partition 0", "does not verify"]);
    }
    let swapped = [&good[144..], &good[48..144], &good[..48]].concat();
    bad("swapped", &swapped, 1, &["does not verify"]);
    bad("zeros", &[0; 192], 1, &["element A"]);
    bad("empty", b"", 3, &["0 bytes", "192"]);
    bad("short", &good[..191], 3, &["191 bytes"]);
    bad("long", &[&good[..], &[0]].concat(), 3, &["193 bytes"]);
    bad("text", b"this is not a proof", 3, &["19 bytes"]);

    // A good proof of another statement.
    let other = Desk::new(&request("2KiB/window-post-1-partition"), "wpost-2k");
    let proof = other.path("proof");
    other.prove_to(&proof).ok();
    desk.verify(&proof).fails(1, &["does not verify"]);

    desk.verify(&desk.path("absent"))
        .fails(3, &["absent", "No such file"]);
    let both = run(["verify", "-", "--proof", "-"]);
    both.fails(2, &["standard input"]);
}

#[test]
fn outputs_are_replaced_whole_or_left_alone() {
    let desk = Desk::window();
    let out = desk.path("proof");
    fs::write(&out, "an older proof").unwrap();
    // A failing run: the keys are not there.
    let ran = run([
        "prove".as_ref(),
        desk.request.as_os_str(),
        "--out".as_ref(),
        out.as_os_str(),
    ]);
    ran.fails(4, &[]);
    assert_eq!(fs::read(&out).unwrap(), b"an older proof");
    desk.prove_to(&out).ok();
    assert_eq!(fs::read(&out).unwrap().len(), 192);
    assert_eq!(desk.files(), ["proof"]);
}

#[test]
fn places_that_cannot_be_written_exit_5() {
    let desk = Desk::window();
    desk.prove_to(&desk.path("absent/proof"))
        .fails(5, &["absent/proof"]);
    desk.prove_to(desk.dir.path()).fails(5, &["folder"]);
    assert!(desk.files().is_empty());
    #[cfg(target_os = "linux")]
    {
        desk.prove_to(Path::new("/dev/full"))
            .fails(5, &["/dev/full", "space"]);
        desk.prove_to(Path::new("/proc/proof"))
            .fails(5, &["/proc/proof"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_who_leaves_loses_only_what_was_not_saved() {
    let desk = Desk::window();
    let prove = |args: &[&OsStr]| {
        let mut command = cuzk();
        command
            .arg("prove")
            .arg(&desk.request)
            .arg("--params")
            .arg(&desk.keys)
            .arg("--allow-test-keys");
        let mut child = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let out = desk.path("proof");
    assert_eq!(
        prove(&["--out".as_ref(), out.as_os_str()]).status.code(),
        Some(0)
    );
    desk.verify(&out).ok();
    let output = prove(&[]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

/// Whenever a process is killed, its output is there whole or not at all, and nothing else is.
#[cfg(unix)]
#[test]
fn a_killed_process_leaves_no_part_of_a_file() {
    use std::os::unix::process::ExitStatusExt;
    let desk = Desk::new(&request("2KiB/winning-post-a"), "winning-2k");
    let out = desk.path("proof");
    let mut hits = 0;
    for (signal, delay) in [("-INT", 40), ("-TERM", 80), ("-KILL", 160), ("-KILL", 320)] {
        let mut command = cuzk();
        command
            .arg("prove")
            .arg(&desk.request)
            .arg("--params")
            .arg(&desk.keys);
        command
            .args(["--allow-test-keys", "--threads", "1", "--out"])
            .arg(&out);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(kill.unwrap().success());
        hits += usize::from(child.wait().unwrap().signal().is_some());
        match fs::read(&out) {
            Ok(bytes) => assert_eq!(bytes.len(), 192, "{signal} after {delay} ms"),
            Err(_) => assert!(desk.files().is_empty(), "{signal}: {:?}", desk.files()),
        }
        let _ = fs::remove_file(&out);
        assert!(desk.files().is_empty(), "{signal}: {:?}", desk.files());
    }
    assert!(hits > 0, "every process had ended before its signal came");
}

#[test]
fn the_named_miner_and_sector_are_checked_before_anything_else() {
    // No keys are needed to find out.
    let c1 = fixture("2KiB/porep-v1_1-a/c1.json");
    let prove = |args: &[&str]| {
        run(["prove".as_ref(), c1.as_os_str()]
            .into_iter()
            .chain(args.iter().map(AsRef::as_ref)))
    };
    prove(&["--miner", "f0857193", "--sector", "83832"]).fails(3, &["replica_id"]);
    prove(&["--miner", "f0857192", "--sector", "83833"]).fails(3, &["replica_id"]);
    // Right, or skipped: the next thing that is missing are the keys.
    prove(&["--miner", "f0857192", "--sector", "83832"]).fails(4, &[".params"]);
    prove(&["--miner", "f0857192"]).fails(4, &[".params"]);
    prove(&[]).fails(4, &[".params"]);
    // The envelope names the sector.
    let envelope = fixture("2KiB/porep-v1_1-a/c2-input.json");
    run([
        "prove".as_ref(),
        envelope.as_os_str(),
        "--sector".as_ref(),
        "1".as_ref(),
    ])
    .fails(3, &["83832"]);
}

#[test]
fn non_interactive_poreps_are_refused_before_proving() {
    let c1 = fixture("2KiB/porep-v1_2-ni/c1.json");
    run(["prove".as_ref(), c1.as_os_str()]).fails(3, &["SnarkPack", "--partitions-only"]);
    run([
        "verify".as_ref(),
        c1.as_os_str(),
        "--proof".as_ref(),
        "x".as_ref(),
    ])
    .fails(3, &["SnarkPack"]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("proofs");
    let ran = run([
        "prove".as_ref(),
        c1.as_os_str(),
        "--partitions-only".as_ref(),
        "--out".as_ref(),
        out.as_os_str(),
    ]);
    ran.fails(4, &[".params"]);
    // For other kinds there is nothing to leave out.
    let other = fixture("2KiB/porep-v1/c1.json");
    run([
        "prove".as_ref(),
        other.as_os_str(),
        "--partitions-only".as_ref(),
        "--out".as_ref(),
        out.as_os_str(),
    ])
    .fails(2, &["--partitions-only"]);
}

#[test]
fn a_vanilla_proof_that_does_not_hold_is_refused_before_keys_are_looked_for() {
    let mut value = request("2KiB/window-post-1-sector");
    let proofs = value["vanillaProofs"]
        .as_array()
        .or(value["vanilla_proofs"].as_array())
        .unwrap();
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut bytes = engine.decode(proofs[0].as_str().unwrap()).unwrap();
    // A sibling hash in the first Merkle path: after sector id, comm_r, two counts, tag, root and leaf.
    bytes[8 + 32 + 8 + 8 + 4 + 64 + 8 + 8 + 5] ^= 1;
    let key = if value.get("vanillaProofs").is_some() {
        "vanillaProofs"
    } else {
        "vanilla_proofs"
    };
    value[key] = json!([engine.encode(bytes)]);
    let dir = tempfile::tempdir().unwrap();
    let file = write_json(dir.path(), "request.json", &value);
    run(["prove".as_ref(), file.as_os_str()])
        .fails(3, &["sector 84602", "inclusion_proofs[0]", "hashes to"]);
}
