//! A daemon under load for as long as is wanted: jobs in the shape of 32 GiB PoReps (51 MB, ten
//! units each) uploaded, proven by workers that replay what is stored for a payload, verified,
//! and fetched; and what the daemon takes meanwhile: memory, file handles, threads, disk.
//!
//! ```text
//! soak run [jobs=N] [minutes=N] [bytes=N] [clients=N] [workers=N] [unit-ms=N] [circuit=NAME]
//!          [folder=DIR]
//! ```
//!
//! starts the daemon as a process of its own (`soak daemon …`, whose workers are `soak worker …`),
//! spreads the jobs over the time, prints a line of measurements every few seconds, and fails if a
//! job does, a proof has other bytes, or what the daemon takes grows. The defaults are a release's.
//! The program needs nothing but itself, so it can be carried to another machine. Without
//! arguments it is a test: the same, in seconds.

#![allow(clippy::unwrap_used, reason = "test code")]

mod daemon;
mod load;
mod measure;
mod worker;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use store::Digest;

/// The only right proof of a unit.
fn right_proof(digest: &Digest, index: u32) -> Vec<u8> {
    let mut seed = digest.as_bytes().to_vec();
    seed.extend(index.to_le_bytes());
    Digest::of(&seed).as_bytes().repeat(6)
}

/// `key=value` arguments.
struct Options(HashMap<String, String>);

impl Options {
    fn new(arguments: &[String]) -> Self {
        let option = |argument: &String| {
            let (key, value) = argument.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        };
        Self(arguments.iter().filter_map(option).collect())
    }

    fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0.get(key).map_or(default, String::as_str)
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        let value = self.0.get(key);
        value.map_or(default, |text| text.parse().expect("a number"))
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.0.get(key).map(PathBuf::from)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = Options::new(arguments.get(1..).unwrap_or_default());
    match arguments.first().map(String::as_str) {
        Some("run") => return load::run(&rest),
        Some("daemon") => return daemon::run(&rest),
        Some("worker") => return worker::run(&rest),
        _ => {}
    }
    let trial = Trial::test("a_daemon_under_load_stays_as_it_is", || {
        let options = ["jobs=60", "seconds=3", "bytes=2000000", "circuit=wpost-2k"];
        let options = Options::new(&options.map(str::to_owned));
        assert_eq!(load::run(&options), ExitCode::SUCCESS);
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}
