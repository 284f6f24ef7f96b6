//! The client's commands, as far as they go without a daemon.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::run;

fn request(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/requests")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn without_a_daemon_every_command_says_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}", folder.path().join("no.sock").display());
    let request = request("winning.json");
    let commands: &[&[&str]] = &[
        &["submit", &request],
        &["submit", &request, "--no-wait"],
        &["wait", "a job"],
        &["status"],
        &["cancel", "a job"],
        &["metrics"],
        &["preload", "porep-32g"],
        &["preload", "-c", "porep-32g"],
        &["evict", "porep-32g"],
        &["batch", "-t", "winningpost", "--vanilla", &request],
    ];
    for command in commands {
        let ran = run([*command, &["--addr", &socket]].concat());
        assert_eq!(ran.code, Some(5), "{command:?}: {ran:#?}");
        for part in ["cannot be reached", "no.sock", "cuzk daemon"] {
            assert!(ran.stderr.contains(part), "{command:?}: {part}: {ran:#?}");
        }
    }
    for command in [&["trace", "a job"][..], &["top", "--once"]] {
        let ran = run([command, &["--status-addr", &socket]].concat());
        assert_eq!(ran.code, Some(5), "{command:?}: {ran:#?}");
    }
}

#[test]
fn what_cannot_be_sent_is_said_before_a_daemon_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("request.json");
    fs::write(&file, "[]").unwrap();
    let file = file.to_str().unwrap();
    for (command, code) in [
        (&["submit", file][..], 3),
        (&["submit", "/nonexistent"], 3),
        (&["single", "-t", "porep"], 2),
        (&["single", "-t", "snap", "--vanilla", file], 2),
        (&["single", "-t", "abacus"], 2),
        (
            &[
                "single",
                "-t",
                "wpost",
                "--vanilla",
                file,
                "--randomness",
                "00",
            ],
            2,
        ),
        (&["status", "--addr", "9820"], 2),
        (&["status", "--tls-cert", "x"], 2),
    ] {
        let ran = run(command);
        assert_eq!(ran.code, Some(code), "{command:?}: {ran:#?}");
    }
}

#[test]
fn commands_of_the_earlier_tool_name_what_replaced_them() {
    for (command, instead) in [
        (
            &["gen-vanilla", "winning-post", "--sealed", "x"][..],
            "cuzk bench",
        ),
        (&["pce-bench", "--c1", "x"], "cuzk bench prove"),
        (&["pce-pipeline"], "cuzk bench prove"),
        (&["slotted-bench"], "cuzk bench prove"),
        (&["synth-only", "-i", "3"], "cuzk bench prove"),
    ] {
        let ran = run(command);
        assert_eq!(ran.code, Some(2), "{command:?}: {ran:#?}");
        assert!(ran.stderr.contains(instead), "{command:?}: {ran:#?}");
    }
}

#[test]
fn a_configuration_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cuzk.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        run(["config", "check", file.to_str().unwrap()])
    };
    let good = check("[pipeline]\nenabled = true\n[limits]\nmax_jobs = 5\n");
    assert_eq!(good.code, Some(0), "{good:#?}");
    assert!(
        good.stdout.contains("pipeline.enabled has no effect"),
        "{good:#?}"
    );
    let unknown = check("[limits]\nmax_job = 5\n");
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
    assert!(
        unknown.stdout.contains("unknown key limits.max_job"),
        "{unknown:#?}"
    );
    let wrong = check("[limits]\nmax_jobs = \"many\"\n");
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(wrong.stderr.contains("limits.max_jobs"), "{wrong:#?}");
}
