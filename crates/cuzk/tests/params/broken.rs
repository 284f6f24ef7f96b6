//! Every way in which a parameter file or a verifying key can be broken.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Ran, cuzk, file_in, request, test_keys, write_json};
use crate::{VK_FIXED, check, copy_of_keys, params};

/// Byte offset of the first point of h in the parameter file of wpost-2k (23 inputs).
const H: u64 = VK_FIXED + 23 * 96 + 4;

fn write_at(file: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new()
        .write(true)
        .open(file)
        .unwrap()
        .write_all_at(bytes, offset)
        .unwrap();
}

fn flip(file: &Path, offset: u64) {
    let handle = OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    handle.read_exact_at(&mut byte, offset).unwrap();
    handle.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

fn resize(file: &Path, change: impl Fn(u64) -> u64) {
    let handle = OpenOptions::new().write(true).open(file).unwrap();
    handle
        .set_len(change(handle.metadata().unwrap().len()))
        .unwrap();
}

/// Makes the side file agree with the changed files, as someone would who edits both.
fn adjust_side_file(folder: &Path) {
    let side = file_in(folder, ".test-key.json");
    let mut text = fs::read_to_string(&side).unwrap();
    let cause = prove(folder).1;
    let found = cause
        .split("its digest is ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    let value: Value = serde_json::from_str(&text).unwrap();
    text = text.replace(value["params_digest"].as_str().unwrap(), &found);
    fs::write(&side, text).unwrap();
}

/// Proves with the keys in `folder`: the error's code and everything it says.
fn prove(folder: &Path) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = write_json(
        dir.path(),
        "request.json",
        &request("2KiB/window-post-1-sector"),
    );
    let out = dir.path().join("proof");
    let ran = Ran::from(
        cuzk()
            .arg("prove")
            .arg(&file)
            .args(["--json", "--allow-test-keys", "--params"])
            .arg(folder)
            .arg("--out")
            .arg(&out)
            .output()
            .unwrap(),
    );
    assert!(!out.exists(), "a proof with broken keys: {ran:#?}");
    error(&ran)
}

/// Verifies some proof with the keys in `folder`.
fn verify(folder: &Path) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = write_json(
        dir.path(),
        "request.json",
        &request("2KiB/window-post-1-sector"),
    );
    let proof = dir.path().join("proof");
    fs::write(&proof, [0; 192]).unwrap();
    let ran = Ran::from(
        cuzk()
            .arg("verify")
            .arg(&file)
            .args(["--json", "--allow-test-keys", "--params"])
            .arg(folder)
            .arg("--proof")
            .arg(&proof)
            .output()
            .unwrap(),
    );
    error(&ran)
}

fn error(ran: &Ran) -> (String, String) {
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let error = &document["error"];
    assert_eq!(error["exit_code"], 4);
    assert!(
        error["remedy"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{document:#}"
    );
    let causes = error["causes"].as_array().unwrap().iter();
    let mut said = error["message"].as_str().unwrap().to_owned();
    causes.for_each(|cause| said += &format!("\n{}", cause.as_str().unwrap()));
    (error["code"].as_str().unwrap().to_owned(), said)
}

/// What is done to the key's folder, the code that follows, and words that the error must say.
type Case = (
    &'static str,
    fn(&Path),
    &'static str,
    &'static [&'static str],
);

fn vk(folder: &Path) -> PathBuf {
    file_in(folder, ".vk")
}

fn other_circuit(extension: &str) -> PathBuf {
    file_in(&test_keys("winning-2k"), extension)
}

fn copy_over(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

const PARAMS_CASES: &[Case] = &[
    (
        "no files at all",
        |d| fs::remove_dir_all(d).unwrap(),
        "PARAMS_MISSING",
        &[".params", "bytes", "digest", "folders"],
    ),
    (
        "only the .vk",
        |d| fs::remove_file(params(d)).unwrap(),
        "PARAMS_MISSING",
        &[".params"],
    ),
    (
        "empty",
        |d| fs::write(params(d), []).unwrap(),
        "PARAMS_CORRUPT",
        &[".params", "empty"],
    ),
    (
        "text",
        |d| fs::write(params(d), "Not Found\n".repeat(200)).unwrap(),
        "PARAMS_CORRUPT",
        &[".params"],
    ),
    (
        "short text",
        |d| fs::write(params(d), "404\n").unwrap(),
        "PARAMS_CORRUPT",
        &["4 bytes"],
    ),
    (
        "one byte short",
        |d| resize(&params(d), |n| n - 1),
        "PARAMS_CORRUPT",
        &["cut short"],
    ),
    (
        "half of it",
        |d| resize(&params(d), |n| n / 2),
        "PARAMS_CORRUPT",
        &["cut short"],
    ),
    (
        "only the fixed head",
        |d| resize(&params(d), |_| VK_FIXED),
        "PARAMS_CORRUPT",
        &["ic"],
    ),
    (
        "one byte more",
        |d| resize(&params(d), |n| n + 1),
        "PARAMS_CORRUPT",
        &["1 bytes follow"],
    ),
    (
        "a hole of zeros behind it",
        |d| resize(&params(d), |n| n + (1 << 40)),
        "PARAMS_CORRUPT",
        &["follow"],
    ),
    (
        "more inputs",
        |d| write_at(&params(d), VK_FIXED - 4, &24u32.to_be_bytes()),
        "PARAMS_OTHER_CIRCUIT",
        &["ic", "24", "23"],
    ),
    (
        "billions of inputs",
        |d| write_at(&params(d), VK_FIXED - 4, &[0xff; 4]),
        "PARAMS_CORRUPT",
        &["ic", "4294967295"],
    ),
    (
        "one point of h less",
        |d| write_at(&params(d), H - 4, &32766u32.to_be_bytes()),
        "PARAMS_OTHER_CIRCUIT",
        &["h", "32766"],
    ),
    (
        "billions of points",
        |d| write_at(&params(d), H - 4, &[0xff; 4]),
        "PARAMS_CORRUPT",
        &["h", "4294967295"],
    ),
    (
        "another circuit's",
        |d| copy_over(&other_circuit(".params"), &params(d)),
        "PARAMS_OTHER_CIRCUIT",
        &["another circuit"],
    ),
    (
        "a flipped byte in alpha",
        |d| flip(&params(d), 40),
        "PARAMS_CORRUPT",
        &["alpha_g1"],
    ),
    (
        "a flipped byte in an input's point",
        |d| flip(&params(d), VK_FIXED + 50),
        "PARAMS_CORRUPT",
        &["ic"],
    ),
    (
        "a flipped byte in h",
        |d| flip(&params(d), H + 96 * 77 + 30),
        "TEST_KEY_MISMATCH",
        &["digest"],
    ),
    (
        "a flipped byte in h, side file adjusted",
        |d| {
            flip(&params(d), H + 96 * 77 + 30);
            adjust_side_file(d);
        },
        "PARAMS_CORRUPT",
        &["point 77", "section h"],
    ),
    (
        "a point at infinity, side file adjusted",
        |d| {
            let mut infinity = [0; 96];
            infinity[0] = 0x40;
            write_at(&params(d), H + 96 * 5, &infinity);
            adjust_side_file(d);
        },
        "PARAMS_CORRUPT",
        &["point 5", "section h"],
    ),
    (
        "no side file",
        |d| fs::remove_file(file_in(d, ".test-key.json")).unwrap(),
        "PARAMS_UNTRUSTED",
        &["digest", "test-key.json"],
    ),
    (
        "a side file that is no JSON",
        |d| fs::write(file_in(d, ".test-key.json"), "{").unwrap(),
        "PARAMS_CORRUPT",
        &["test-key.json"],
    ),
    (
        "another circuit's side file",
        |d| {
            copy_over(
                &other_circuit(".test-key.json"),
                &file_in(d, ".test-key.json"),
            );
        },
        "TEST_KEY_MISMATCH",
        &["winning-2k"],
    ),
    (
        "another key's .vk beside it",
        |d| copy_over(&other_circuit(".vk"), &vk(d)),
        "PARAMS_PAIR_MISMATCH",
        &[".vk", ".params"],
    ),
    (
        "a folder of that name",
        |d| {
            let path = params(d);
            fs::remove_file(&path).unwrap();
            fs::create_dir(path).unwrap();
        },
        "PARAMS_CORRUPT",
        &["regular file"],
    ),
];

#[test]
fn broken_parameter_files_are_refused_by_prove_and_by_check() {
    for &(name, breakage, code, words) in PARAMS_CASES {
        let dir = copy_of_keys();
        breakage(dir.path());
        let (found, said) = prove(dir.path());
        assert_eq!(found, code, "{name}: {said}");
        for word in words {
            assert!(said.contains(word), "{name}: no {word:?} in {said}");
        }
        let ran = check(dir.path());
        assert_eq!(ran.code, Some(4), "{name}: {ran:#?}");
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            document["keys"][0]["error"]["code"], code,
            "{name}: {document:#}"
        );
    }
}

const VK_CASES: &[Case] = &[
    (
        "missing",
        |d| fs::remove_file(vk(d)).unwrap(),
        "PARAMS_MISSING",
        &[".vk"],
    ),
    (
        "empty",
        |d| fs::write(vk(d), []).unwrap(),
        "PARAMS_CORRUPT",
        &[".vk", "empty"],
    ),
    (
        "text",
        |d| fs::write(vk(d), "<html>".repeat(1000)).unwrap(),
        "PARAMS_CORRUPT",
        &[".vk"],
    ),
    (
        "one byte short",
        |d| resize(&vk(d), |n| n - 1),
        "PARAMS_CORRUPT",
        &[".vk"],
    ),
    (
        "one byte more",
        |d| resize(&vk(d), |n| n + 1),
        "PARAMS_CORRUPT",
        &[".vk"],
    ),
    (
        "another circuit's",
        |d| copy_over(&other_circuit(".vk"), &vk(d)),
        "PARAMS_OTHER_CIRCUIT",
        &["ic"],
    ),
    (
        "a flipped byte",
        |d| flip(&vk(d), 100),
        "PARAMS_CORRUPT",
        &["beta_g1"],
    ),
    (
        "no side file",
        |d| fs::remove_file(file_in(d, ".test-key.json")).unwrap(),
        "PARAMS_UNTRUSTED",
        &[".vk"],
    ),
];

#[test]
fn broken_verifying_keys_are_refused_by_verify() {
    for &(name, breakage, code, words) in VK_CASES {
        let dir = copy_of_keys();
        breakage(dir.path());
        let (found, said) = verify(dir.path());
        assert_eq!(found, code, "{name}: {said}");
        for word in words {
            assert!(said.contains(word), "{name}: no {word:?} in {said}");
        }
    }
}
