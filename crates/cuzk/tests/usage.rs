//! The command line itself: help, versions, wrong arguments, configuration, output plumbing.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{cuzk, run, run_with_input};

#[test]
fn help_and_version_are_instant_and_need_nothing() {
    let commands: &[&[&str]] = &[
        &["--version"],
        &["--help"],
        &["prove", "--help"],
        &["verify", "--help"],
        &["request", "--help"],
        &["request", "show", "--help"],
        &["circuit", "--help"],
        &["params", "--help"],
        &["params", "generate", "--help"],
        &["demo", "--help"],
    ];
    for args in commands {
        let start = Instant::now();
        let ran = run(*args);
        assert!(!ran.ok().is_empty());
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{args:?} took {:?}",
            start.elapsed()
        );
    }
    assert_eq!(
        run(["--version"]).ok(),
        concat!("cuzk ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let help = run(["--help"]).ok().to_owned();
    for command in [
        "prove",
        "verify",
        "request",
        "circuit",
        "params",
        "demo",
        "Exit codes",
    ] {
        assert!(help.contains(command), "{command}");
    }
}

#[test]
fn wrong_arguments_exit_2() {
    let cases: &[&[&str]] = &[
        &[],
        &["frobnicate"],
        &["prove"],
        &["prove", "x", "--miner", "f1abc"],
        &["prove", "x", "--miner", "-5"],
        &["prove", "x", "--sector", "many"],
        &["prove", "x", "--device", "abacus"],
        &["prove", "x", "--threads", "0"],
        &["prove", "x", "--partitions-only"],
        &["verify", "x"],
        &["circuit"],
        &["circuit", "show"],
        &["params", "generate", "porep-2k"],
        &["params", "generate", "porep-2k", "--test", "--seed", "-1"],
    ];
    for args in cases {
        let ran = run(*args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
        assert_eq!(ran.stdout, "");
        assert!(
            ran.stderr.contains("--help") || ran.stderr.contains("Usage"),
            "{args:?}: {ran:#?}"
        );
    }
}

#[test]
fn unknown_circuits_are_usage_errors() {
    for args in [
        &["circuit", "show", "porep-3k"][..],
        &["params", "check", "porep-3k"],
        &["params", "generate", "porep-3k", "--test"],
    ] {
        run(args).fails(2, &["porep-3k", "cuzk circuit list"]);
    }
}

#[test]
fn with_json_every_failure_is_one_document() {
    for (args, code, name) in [
        (&["--json", "prove"][..], 2, "USAGE"),
        (
            &["circuit", "show", "nothing", "--json"],
            2,
            "UNKNOWN_CIRCUIT",
        ),
        (
            &["prove", "/nonexistent/request", "--json"],
            3,
            "REQUEST_UNREADABLE",
        ),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert_eq!(ran.stderr, "");
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["schema"], "cuzk.error/1");
        assert_eq!(document["error"]["code"], name);
        assert_eq!(document["error"]["exit_code"], code);
        for key in ["message", "remedy"] {
            assert!(
                document["error"][key]
                    .as_str()
                    .is_some_and(|t| !t.is_empty()),
                "{document:#}"
            );
        }
        assert!(document["error"]["causes"].is_array());
    }
}

#[test]
fn configuration_is_checked_before_anything_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cuzk.toml");
    let show = |text: &str| {
        fs::write(&file, text).unwrap();
        run(["--config", file.to_str().unwrap(), "params", "list"])
    };
    show("[srs]\nparam_cache = 5\n").fails(2, &["cuzk.toml", "srs.param_cache"]);
    show("[srs\n").fails(2, &["cuzk.toml", "TOML"]);
    let ran =
        show("[srs]\nparam_cache = \"/somewhere/keys\"\nnew_key = 1\n[daemon]\nlisten = \"x\"\n");
    assert!(ran.ok().contains("/somewhere/keys"));
    assert!(
        ran.stderr.contains("warning: ") && ran.stderr.contains("srs.new_key"),
        "{ran:#?}"
    );
    assert!(!ran.stderr.contains("daemon"));
    run(["--config", "/nonexistent.toml", "params", "list"]).fails(2, &["/nonexistent.toml"]);
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let mut child = cuzk()
        .args(["circuit", "show", "porep-2k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_exit_5() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = cuzk()
        .args(["circuit", "show", "porep-2k"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn an_absent_device_is_named() {
    run_with_input(["prove", "-", "--device", "gpu"], b"{}").fails(5, &["--device cpu"]);
}
