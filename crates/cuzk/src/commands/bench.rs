//! `cuzk bench make-instance NAME` and `cuzk bench witness NAME`: requests of any size without a
//! sealed sector, and what decoding them and making their witness costs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use filecoin::decode::Hints;
use filecoin::native::NativeWitness;
use filecoin::{CircuitId, Request, WitnessGenerator};
use instances::Instance;
use serde::{Deserialize, Serialize};

use super::{bench_compare, bench_e2e, bench_identity, bench_kernels, bench_prove, circuit};
use crate::Context;
use crate::cli::BenchCommand;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::outfile::{self, OutFile};
use crate::phases::{kibibytes, seconds};
use crate::table::{self, Align, Table};

/// Runs the command.
pub fn run(context: &Context, command: &BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::MakeInstance { name, seed, out } => {
            let out = OutFile::reserve(out)?;
            out.commit(&make(circuit::parse(name)?, *seed)?)
        }
        BenchCommand::Witness { name, seed } => witness(context, circuit::parse(name)?, *seed),
        BenchCommand::Prove(args) => bench_prove::run(context, circuit::parse(&args.name)?, args),
        BenchCommand::E2e(args) => bench_e2e::run(context, args),
        BenchCommand::Identity(args) => bench_identity::run(context, args),
        BenchCommand::Compare(args) => bench_compare::run(context, args),
        BenchCommand::Kernels(args) => bench_kernels::run(context, args),
        BenchCommand::MeasureWitness { file } => measure(context, file),
    }
}

/// A fabricated request of this circuit, as the JSON of a `SubmitProofRequest`.
fn make(id: CircuitId, seed: u64) -> Result<Vec<u8>, Failure> {
    let request = Instance::new(id, seed).request()?;
    let name = format!("{id}-seed-{seed}");
    Ok(instances::submit(&request, &name).to_json())
}

/// Fabricates a request and measures it in a process of its own, whose memory nothing else has
/// used before.
fn witness(context: &Context, id: CircuitId, seed: u64) -> Result<(), Failure> {
    let unwritable = |error| outfile::unwritable(&std::env::temp_dir(), &error);
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let path = folder.path().join("request.json");
    fs::write(&path, make(id, seed)?).map_err(|error| outfile::unwritable(&path, &error))?;
    let output = std::env::current_exe()
        .and_then(|program| {
            Command::new(program)
                .args(["--json", "--threads"])
                .arg(rayon::current_num_threads().to_string())
                .args(["bench", "measure-witness"])
                .arg(&path)
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .output()
        })
        .map_err(|error| child_failure().because(&error))?;
    if !output.status.success() {
        return Err(child_failure());
    }
    let measured =
        serde_json::from_slice(&output.stdout).map_err(|error| child_failure().because(&error))?;
    let document = Document {
        schema: "cuzk.bench-witness/1".into(),
        circuit: id.name().into(),
        seed,
        threads: rayon::current_num_threads(),
        measured,
    };
    context.output.show(&document, &document.text())
}

fn child_failure() -> Failure {
    Failure::new(
        Exit::Internal,
        "MEASUREMENT",
        "the measuring process failed",
        "run the command again; report it if that fails too",
    )
}

/// What decoding and the witness of the first partition cost, in this process.
fn measure(context: &Context, file: &Path) -> Result<(), Failure> {
    let bytes = fs::read(file)
        .map_err(|error| input::unreadable("request", "REQUEST_UNREADABLE", file, &error))?;
    let (decoded, decode) = Cost::of(|| Request::decode(&bytes, Hints::default()));
    let request = decoded?.request;
    let request_bytes = bytes.len() as u64;
    drop(bytes);
    let circuit = request.circuit_id().compiled()?;
    // The first use of Poseidon derives its constants, in a few milliseconds, once per process.
    let (witness, witness_cost) = Cost::of(|| NativeWitness.witness(&request, 0, &circuit));
    let witness = witness?;
    let field_elements = witness.inputs().len() + witness.dense().len();
    let measured = Measured {
        request_bytes,
        partitions: request.partitions(),
        decode,
        witness: witness_cost,
        packed_bytes: (32 * field_elements + 8 * witness.bits().len()) as u64,
    };
    context.output.show(&measured, "")
}

/// What one step took.
#[derive(Serialize, Deserialize)]
struct Cost {
    wall_seconds: f64,
    core_seconds: f64,
    /// How far resident memory rose above where it stood before; none without `/proc`.
    peak_memory_bytes: Option<u64>,
}

impl Cost {
    fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let status = |name| kibibytes(&fs::read_to_string("/proc/self/status").ok()?, name);
        // Without this the peak would be that of the whole process so far.
        let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
        let before = status("VmRSS:");
        let core = core_seconds();
        let start = Instant::now();
        let result = work();
        let wall = start.elapsed();
        let core_seconds = ((core_seconds() - core) * 1e3).round() / 1e3;
        let peak = status("VmHWM:").filter(|_| reset);
        let cost = Self {
            wall_seconds: seconds(wall),
            core_seconds,
            peak_memory_bytes: peak
                .zip(before)
                .map(|(peak, before)| peak.saturating_sub(before)),
        };
        (result, cost)
    }
}

/// Core-seconds that the threads of this process have used; rayon's threads live as long as it.
/// 0 without `/proc`.
fn core_seconds() -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return 0.0;
    };
    let nanoseconds: u64 = threads
        .flatten()
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    nanoseconds as f64 * 1e-9
}

/// What the measuring process reports.
#[derive(Serialize, Deserialize)]
struct Measured {
    request_bytes: u64,
    partitions: usize,
    decode: Cost,
    witness: Cost,
    packed_bytes: u64,
}

/// The result in `--json`.
#[derive(Serialize)]
struct Document {
    schema: String,
    circuit: String,
    seed: u64,
    threads: usize,
    #[serde(flatten)]
    measured: Measured,
}

impl Document {
    fn text(&self) -> String {
        let mut table = Table::new(&[
            ("step", Align::Left),
            ("time", Align::Right),
            ("core-seconds", Align::Right),
            ("memory taken", Align::Right),
        ]);
        let measured = &self.measured;
        for (name, cost) in [
            ("decode, all partitions", &measured.decode),
            ("witness, one partition", &measured.witness),
        ] {
            let memory = cost.peak_memory_bytes;
            table.row([
                name.into(),
                format!("{:.3} s", cost.wall_seconds),
                format!("{:.3}", cost.core_seconds),
                memory.map_or_else(|| "-".into(), table::bytes),
            ]);
        }
        format!(
            "{}, fabricated from seed {}, {} threads\n{}request {}, {} partitions; packed witness {}\n",
            self.circuit,
            self.seed,
            self.threads,
            table.render(),
            table::bytes(measured.request_bytes),
            measured.partitions,
            table::bytes(measured.packed_bytes),
        )
    }
}
