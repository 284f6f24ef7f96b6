//! What the command-line tests share: running the binary, requests made from the
//! repository's fixtures, and test keys made once.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use filecoin::support::fixtures;
use serde_json::Value;

/// The binary, in a world of its own: no configuration, no cache, no parameters of the host.
pub fn cuzk() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command
        .env_clear()
        .env("HOME", scratch.join("home"))
        .env("CUZK_CACHE", cache())
        .env("FIL_PROOFS_PARAMETER_CACHE", scratch.join("no-params"))
        .stdin(Stdio::null());
    command
}

/// The cache folder that tests share.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// Runs the binary with these arguments.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    Ran::from(cuzk().args(args).output().unwrap())
}

/// Runs the binary with these arguments and this standard input.
pub fn run_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
    let mut child = cuzk()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The child may end without reading everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran::from(output)
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub raw: Vec<u8>,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            raw: output.stdout,
        }
    }
}

impl Ran {
    /// Asserts success and gives stdout.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:#?}");
        &self.stdout
    }

    /// Asserts success with `--json` and gives the document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.ok()).unwrap()
    }

    /// Asserts a failure in words: this exit code, nothing on stdout, no panic, and a text that
    /// names the thing and the remedy.
    #[track_caller]
    pub fn fails(&self, code: i32, names: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        assert!(self.stderr.starts_with("error: "), "{self:#?}");
        assert!(self.stderr.contains("\nremedy: "), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        for name in names {
            assert!(self.stderr.contains(name), "no {name:?} in {self:#?}");
        }
    }
}

/// A file of the repository's fixtures.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(path)
}

/// The `SubmitProofRequest` of a fixture: its first, or only, partition.
pub fn request(folder: &str) -> Value {
    requests(folder).remove(0)
}

/// The `SubmitProofRequest`s of a fixture, one per partition of a window PoSt.
pub fn requests(folder: &str) -> Vec<Value> {
    let submits = fixtures::fixture(folder).submits();
    submits
        .iter()
        .map(|s| serde_json::from_slice(&s.to_json()).unwrap())
        .collect()
}

/// Writes `value` as a file in `dir`.
pub fn write_json(dir: &Path, name: &str, value: &Value) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, serde_json::to_vec(value).unwrap()).unwrap();
    path
}

/// The folder of the test keys of `circuit`, made on first use with seed 0.
pub fn test_keys(circuit: &str) -> PathBuf {
    static LOCK: OnceLock<()> = OnceLock::new();
    LOCK.get_or_init(|| fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let keys = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("keys-{circuit}"));
    // Test binaries run one after another, the tests of one in parallel.
    static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _making = MAKING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if fs::read_dir(&keys).map_or(0, Iterator::count) < 3 {
        let _ = fs::remove_dir_all(&keys);
        run([
            "params",
            "generate",
            circuit,
            "--test",
            "--params",
            keys.to_str().unwrap(),
        ])
        .ok();
    }
    keys
}

/// The file in `folder` whose name ends so.
pub fn file_in(folder: &Path, ending: &str) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files
        .find(|p| p.to_string_lossy().ends_with(ending))
        .unwrap()
}
