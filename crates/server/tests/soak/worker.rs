//! A worker that replays: it takes the payload, checks it, waits, and returns the right bytes.

use std::process::ExitCode;
use std::time::Duration;

use engine::scheduler::Fault;
use filecoin::CircuitId;
use pipeline::{Lane, Spans};
use store::Digest;
use worker::message::{Hello, Unit};
use worker::{Prover, Pulse, Served, UnitError, serve};

use crate::{Options, right_proof};

struct Replayer {
    unit: Duration,
    pulse: Pulse,
}

impl Prover for Replayer {
    type Request = Digest;
    type Prepared = Digest;
    type Sums = Vec<u8>;

    fn hello(&self) -> Hello {
        Hello {
            program: "soak".to_owned(),
            device: "replays".to_owned(),
            uuid: None,
            memory_bytes: None,
            circuits: CircuitId::all().collect(),
            look_ahead: 1,
            heartbeat_s: 1,
        }
    }

    fn self_test(&self) -> Result<(), String> {
        Ok(())
    }

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn decode(&self, unit: &Unit, payload: Vec<u8>) -> Result<Digest, UnitError> {
        let digest = Digest::of(&payload);
        if digest == unit.digest {
            return Ok(digest);
        }
        Err(UnitError {
            fault: Fault::Payload,
            cause: "the payload arrived as another".to_owned(),
        })
    }

    fn prepare(&self, _: &Unit, digest: &Digest, _: &mut Spans) -> Result<Digest, UnitError> {
        Ok(*digest)
    }

    fn sums(&self, unit: &Unit, digest: &Digest, spans: &mut Spans) -> Result<Vec<u8>, UnitError> {
        spans.run("sums", Lane::Device, || std::thread::sleep(self.unit));
        Ok(right_proof(digest, unit.index))
    }

    fn finish(
        &self,
        _: &Unit,
        _: Digest,
        proof: Vec<u8>,
        _: &mut Spans,
    ) -> Result<Vec<u8>, UnitError> {
        Ok(proof)
    }

    fn preload(&self, _: CircuitId) -> Result<(bool, u64), String> {
        Ok((false, 0))
    }

    fn evict(&self, _: CircuitId) -> (bool, u64) {
        (false, 0)
    }

    fn keys(&self) -> Vec<(CircuitId, u64)> {
        Vec::new()
    }
}

/// Serves the daemon at the other end of standard input and output.
pub fn run(options: &Options) -> ExitCode {
    let replayer = Replayer {
        unit: Duration::from_millis(options.number("unit-ms", 100)),
        pulse: Pulse::default(),
    };
    let settings = Served {
        heartbeat: Duration::from_secs(1),
        stall: Duration::from_secs(60),
    };
    match serve(std::io::stdin(), std::io::stdout(), replayer, settings) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
