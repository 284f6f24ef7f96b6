//! A worker that speaks the protocol and does as its arguments say, `key=value` each.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::scheduler::Fault;
use filecoin::CircuitId;
use groth16::progress::Progress;
use pipeline::{Lane, Spans};
use rustix::process::{Signal, getpid, kill_process};
use store::Digest;
use worker::message::{Hello, Unit};
use worker::{Prover, Pulse, Served, UnitError, serve};

use crate::world::right_proof;

/// Proves after a while; at the n-th unit of its life it does what the arguments say.
struct Actor {
    options: HashMap<String, String>,
    begun: AtomicU64,
    pulse: Pulse,
}

impl Actor {
    fn number(&self, key: &str) -> u64 {
        self.options
            .get(key)
            .map_or(0, |text| text.parse().unwrap())
    }

    fn sleep(&self, key: &str) {
        std::thread::sleep(Duration::from_millis(self.number(key)));
    }

    /// Whether `deed` is due at the n-th unit: its value lists such numbers, or is `all`. With
    /// `once=FILE` it is done once in all processes' lives.
    fn is_due(&self, deed: &str, n: u64) -> bool {
        let Some(list) = self.options.get(deed) else {
            return false;
        };
        let due = list == "all" || list.split(',').any(|item| item.parse() == Ok(n));
        due && self.options.get("once").is_none_or(|file| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(file)
                .is_ok()
        })
    }
}

impl Prover for Actor {
    /// The digest of the payload as it came.
    type Request = Digest;
    type Prepared = Digest;
    type Sums = Vec<u8>;

    fn hello(&self) -> Hello {
        Hello {
            program: "test".to_owned(),
            device: "actor".to_owned(),
            uuid: None,
            memory_bytes: None,
            circuits: CircuitId::all().collect(),
            look_ahead: 1,
            heartbeat_s: 1,
        }
    }

    fn self_test(&self) -> Result<(), String> {
        match self.options.get("unfit") {
            Some(cause) => Err(cause.clone()),
            None => Ok(()),
        }
    }

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<Digest, UnitError> {
        let digest = Digest::of(&payload);
        if digest == unit.digest {
            return Ok(digest);
        }
        let cause = "the payload arrived as another".to_owned();
        Err(UnitError {
            fault: Fault::Payload,
            cause,
        })
    }

    fn prepare(&self, _: &Unit, digest: &Digest, spans: &mut Spans) -> Result<Digest, UnitError> {
        spans.run("witness", Lane::Witness, || self.sleep("prepare-ms"));
        Ok(*digest)
    }

    fn finish(
        &self,
        _: &Unit,
        _: Digest,
        proof: Vec<u8>,
        spans: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        spans.run("verify", Lane::Finish, || self.sleep("verify-ms"));
        Ok(proof)
    }

    fn sums(&self, unit: &Unit, digest: &Digest, spans: &mut Spans) -> Result<Vec<u8>, UnitError> {
        let n = 1 + self.begun.fetch_add(1, Ordering::SeqCst);
        self.pulse.begin("acting", 1);
        if self.is_due("die", n) {
            std::process::abort();
        }
        if self.is_due("freeze", n) {
            kill_process(getpid(), Signal::STOP).unwrap();
            // This thread may go on for a moment.
            std::thread::sleep(Duration::from_secs(1));
        }
        if self.is_due("garbage", n) {
            std::io::stdout()
                .write_all(b"warning: deprecated\n")
                .unwrap();
            std::io::stdout().flush().unwrap();
        }
        if self.is_due("stall", n) {
            std::thread::sleep(Duration::from_secs(3600));
        }
        while self.is_due("hang", n) {
            std::thread::sleep(Duration::from_millis(10));
            self.pulse.advance(1);
        }
        spans.run("sums", Lane::Device, || self.sleep("prove-ms"));
        if self.is_due("fail", n) {
            let cause = "told to fail".to_owned();
            return Err(UnitError {
                fault: Fault::Try,
                cause,
            });
        }
        let mut proof = match self.options.get("proofs") {
            Some(folder) => {
                let name = format!("{digest}-{}", unit.index);
                fs::read(PathBuf::from(folder).join(name)).unwrap()
            }
            None => right_proof(digest, unit.index),
        };
        if self.is_due("corrupt", n) {
            proof[100] ^= 4;
        }
        Ok(proof)
    }

    fn preload(&self, _: CircuitId) -> Result<(bool, u64), String> {
        Ok((false, 1))
    }

    fn evict(&self, _: CircuitId) -> (bool, u64) {
        (false, 0)
    }

    fn keys(&self) -> Vec<(CircuitId, u64)> {
        Vec::new()
    }
}

/// Serves the daemon at the other end of standard input and output.
pub fn run(arguments: &[String]) -> ExitCode {
    let option = |argument: &String| {
        let (key, value) = argument.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    let actor = Actor {
        options: arguments.iter().filter_map(option).collect(),
        begun: AtomicU64::new(0),
        pulse: Pulse::default(),
    };
    let settings = Served {
        heartbeat: Duration::from_millis(100),
        stall: Duration::from_millis(700),
    };
    match serve(std::io::stdin(), std::io::stdout(), actor, settings) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ERROR {error}");
            ExitCode::FAILURE
        }
    }
}
