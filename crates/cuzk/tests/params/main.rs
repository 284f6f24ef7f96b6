//! Parameter files: making, listing and checking them; a broken one is refused with exit 4.

#![allow(clippy::unwrap_used, reason = "test code")]

mod broken;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Ran, cuzk, file_in, request, run, test_keys, write_json};

const CIRCUIT: &str = "wpost-2k";

/// Bytes of a verifying key before its input points.
const VK_FIXED: u64 = 868;

/// A private copy of the test keys of wpost-2k.
fn copy_of_keys() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(test_keys(CIRCUIT)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn params(folder: &Path) -> PathBuf {
    file_in(folder, ".params")
}

fn check(folder: &Path) -> Ran {
    run([
        "params",
        "check",
        CIRCUIT,
        "--json",
        "--params",
        folder.to_str().unwrap(),
    ])
}

#[test]
fn test_keys_need_permission() {
    let keys = test_keys(CIRCUIT);
    let dir = tempfile::tempdir().unwrap();
    let file = write_json(
        dir.path(),
        "request.json",
        &request("2KiB/window-post-1-sector"),
    );
    let prove = [
        "prove".as_ref(),
        file.as_os_str(),
        "--params".as_ref(),
        keys.as_os_str(),
    ];
    run(prove).fails(4, &["test key", "--allow-test-keys", "srs.allow_test_keys"]);
    let proof = dir.path().join("proof");
    fs::write(&proof, [0; 192]).unwrap();
    let verify = [
        "verify".as_ref(),
        file.as_os_str(),
        "--params".as_ref(),
        keys.as_os_str(),
        "--proof".as_ref(),
        proof.as_os_str(),
    ];
    run(verify).fails(4, &["test key"]);

    // The configuration may allow them.
    let config = dir.path().join("cuzk.toml");
    fs::write(
        &config,
        format!(
            "[srs]\nallow_test_keys = true\nparam_cache = {:?}\n",
            keys.to_str().unwrap()
        ),
    )
    .unwrap();
    let ran = run([
        "prove".as_ref(),
        file.as_os_str(),
        "--config".as_ref(),
        config.as_os_str(),
    ]);
    assert!(
        ran.ok().contains("test key: anyone could forge this"),
        "{ran:#?}"
    );
}

#[test]
fn missing_parameters_tell_everything_needed_to_get_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_json(
        dir.path(),
        "request.json",
        &request("2KiB/window-post-1-sector"),
    );
    let ran = Ran::from(
        cuzk()
            .arg("prove")
            .arg(&file)
            .env("FIL_PROOFS_PARAMETER_CACHE", dir.path().join("elsewhere"))
            .output()
            .unwrap(),
    );
    ran.fails(
        4,
        &[
            "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-0-0-0170db1f394b35d995252228ee359194b13199d259380541dc529fb0099096b0.params",
            "7610b9f82bfc88405b7a832b651ce2f6",
            "wpost-2k",
            "elsewhere",
            "/var/tmp/filecoin-proof-parameters",
            "fetch-params",
        ],
    );
}

#[test]
fn generation_is_deterministic_and_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let generate = |seed: &str, name: &str| {
        let folder = dir.path().join(name);
        run([
            "params",
            "generate",
            CIRCUIT,
            "--test",
            "--seed",
            seed,
            "--params",
            folder.to_str().unwrap(),
        ])
    };
    let ran = generate("0", "a");
    assert!(ran.ok().contains("test key"), "{ran:#?}");
    assert_eq!(ran.stderr, "", "no progress where there is no terminal");
    generate("1", "b").ok();
    let read = |folder: &Path| fs::read(params(folder)).unwrap();
    let keys = read(&dir.path().join("a"));
    assert!(
        keys == read(&test_keys(CIRCUIT)),
        "the same seed gives the same file"
    );
    assert!(
        keys != read(&dir.path().join("b")),
        "another seed gives another file"
    );

    generate("2", "a").fails(4, &[".params", "exists"]);
    assert!(keys == read(&dir.path().join("a")));
    assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 3);
}

#[test]
fn test_keys_are_not_made_where_production_keys_live() {
    let dir = tempfile::tempdir().unwrap();
    let ran = Ran::from(
        cuzk()
            .args(["params", "generate", CIRCUIT, "--test", "--params"])
            .arg(dir.path())
            .env("FIL_PROOFS_PARAMETER_CACHE", dir.path())
            .output()
            .unwrap(),
    );
    ran.fails(2, &["production"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn list_and_check_say_what_there_is() {
    let keys = test_keys(CIRCUIT);
    let list = run(["params", "list", "--params", keys.to_str().unwrap()]);
    assert!(
        list.ok().contains("wpost-2k") && list.stdout.contains("test key"),
        "{list:#?}"
    );
    let document = run([
        "params",
        "list",
        "--json",
        "--params",
        keys.to_str().unwrap(),
    ])
    .json();
    assert_eq!(document["schema"], "cuzk.params-list/1");
    let key = &document["keys"][0];
    assert_eq!(key["circuit"], "wpost-2k");
    assert_eq!(key["test_key"], true);
    assert_eq!(key["params"]["bytes"], key["params"]["expected_bytes"]);
    assert_eq!(key["vk"]["bytes"], VK_FIXED + 23 * 96);

    let document = check(&keys).json();
    assert_eq!(document["schema"], "cuzk.params-check/1");
    assert_eq!(document["keys"][0]["files"][0]["seed"], 0);
    assert_eq!(
        document["keys"][0]["files"][1]["notice"],
        "test key: anyone could forge this"
    );
    let text = run(["params", "check", "--params", keys.to_str().unwrap()]);
    assert_eq!(text.ok().lines().count(), 2, "{text:#?}");

    let nothing = tempfile::tempdir().unwrap();
    let folder = nothing.path().to_str().unwrap();
    assert!(
        run(["params", "list", "--params", folder])
            .ok()
            .contains("no parameter files")
    );
    run(["params", "check", "--params", folder]).fails(4, &[folder]);
}

#[test]
fn prepared_keys_are_made_listed_checked_and_used() {
    let keys = copy_of_keys();
    let out = tempfile::tempdir().unwrap();
    let (keys, out) = (keys.path().to_str().unwrap(), out.path().to_str().unwrap());
    let prepare = |more: &[&str]| {
        let start = [
            "params", "prepare", CIRCUIT, "--device", "cpu", "--params", keys,
        ];
        run([&start, more].concat())
    };
    prepare(&["--out", out]).fails(4, &["test key", "--allow-test-keys"]);
    let allowed = ["--allow-test-keys", "--out", out, "--json"];
    let document = prepare(&allowed).json();
    assert_eq!(document["schema"], "cuzk.params-prepare/1");
    assert_eq!(document["notice"], "test key: anyone could forge this");
    let path = PathBuf::from(document["path"].as_str().unwrap());
    assert_eq!(path.parent(), Some(Path::new(out)));
    assert_eq!(fs::read_dir(out).unwrap().count(), 1);
    prepare(&allowed[..3]).fails(4, &["exists"]);

    // The same key made from its secrets at once.
    let direct = tempfile::tempdir().unwrap();
    let folder = direct.path().to_str().unwrap();
    let generate = [
        "params", "generate", CIRCUIT, "--test", "--form", "prepared", "--params",
    ];
    run([&generate[..], &[folder]].concat()).ok();
    let made = file_in(direct.path(), ".key");
    assert_eq!(made.file_name(), path.file_name());
    let (one, other) = (fs::read(&path).unwrap(), fs::read(&made).unwrap());
    assert!(
        one[4096..] == other[4096..],
        "all but the header is the same"
    );

    fs::rename(&path, Path::new(keys).join(path.file_name().unwrap())).unwrap();
    let list = run(["params", "list", "--json", "--params", keys]).json();
    let prepared = &list["keys"][0]["prepared"][0];
    assert_eq!(prepared["bytes"], prepared["expected_bytes"]);
    let document = check(Path::new(keys)).json();
    assert_eq!(document["keys"][0]["files"].as_array().unwrap().len(), 3);
    // With and without the parameter file beside it.
    let dir = tempfile::tempdir().unwrap();
    let value = request("2KiB/window-post-1-sector");
    let file = write_json(dir.path(), "request.json", &value);
    for folder in [keys, folder] {
        let file = file.to_str().unwrap();
        let ran = run([
            "prove",
            file,
            "--allow-test-keys",
            "--device",
            "cpu",
            "--params",
            folder,
        ]);
        assert!(ran.ok().contains("test key"), "{ran:#?}");
    }
}

#[test]
fn preparing_asks_for_a_circuit_and_one_place() {
    let ran = run(["params", "prepare", "porep-3k", "--device", "cpu"]);
    ran.fails(2, &["porep-3k"]);
    // The command line's own refusals have a usage in place of a remedy.
    let ran = run(["params", "prepare", CIRCUIT, "--verify-only", "--out", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("cannot be used with '--out"),
        "{ran:#?}"
    );
}

#[test]
fn a_config_folder_is_searched_before_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("cuzk.toml");
    fs::write(&config, "[srs]\nparam_cache = \"/first\"\n").unwrap();
    let document = Ran::from(
        cuzk()
            .args(["params", "list", "--json", "--config"])
            .arg(&config)
            .env("FIL_PROOFS_PARAMETER_CACHE", "/second")
            .output()
            .unwrap(),
    )
    .json();
    let folders: Vec<&str> = document["folders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    assert_eq!(
        folders[..3],
        ["/first", "/second", "/var/tmp/filecoin-proof-parameters"]
    );
    assert!(folders[3].ends_with("test-keys"));
}
