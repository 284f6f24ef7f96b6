//! Side-by-side benchmarks against the reference implementation, and its judgement of our proofs.

#![forbid(unsafe_code)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use filecoin::{CircuitId, SectorSize};
use peers::{
    compare::{self, Side},
    exact, fixtures, kernels,
    keys::TestKeys,
    measure, whole, witness,
};

/// Compares this prover with the reference implementation (bellperson and the public proof crates).
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Prove the first partition of a fixture on both sides.
    Prove {
        /// Circuit, such as porep-2k.
        circuit: CircuitId,
        /// Fixture of that circuit, such as 2KiB/porep-v1.
        #[arg(long)]
        fixture: Option<String>,
        /// Runs per side; the median counts.
        #[arg(long, default_value_t = 1)]
        runs: usize,
        /// Print one JSON line.
        #[arg(long)]
        json: bool,
    },
    /// Make test parameters on both sides.
    Params {
        /// Circuit, such as porep-2k.
        circuit: CircuitId,
        /// Runs per side; the median counts.
        #[arg(long, default_value_t = 1)]
        runs: usize,
        /// Print one JSON line.
        #[arg(long)]
        json: bool,
    },
    /// Make the witness of a request's first partition natively and by synthesis. Without a fixture of the
    /// circuit's size, the request is made up.
    Witness {
        /// Circuit, such as porep-32g.
        circuit: CircuitId,
        /// Fixture of that circuit, such as 2KiB/porep-v1.
        #[arg(long, conflicts_with = "seed")]
        fixture: Option<String>,
        /// Make up the request from this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// Runs per side; the median counts.
        #[arg(long, default_value_t = 1)]
        runs: usize,
        /// Print one JSON line.
        #[arg(long)]
        json: bool,
    },
    /// Compare the witnesses of made-up requests with the public circuits' values, every one.
    Exact {
        /// Circuits, such as porep-2k; without any, all kinds at 2 KiB and 8 MiB.
        circuits: Vec<CircuitId>,
        /// Instances of each circuit.
        #[arg(long, default_value_t = 5)]
        instances: u64,
        /// One instance each of the 32 GiB circuits instead.
        #[arg(long, conflicts_with_all = ["circuits", "instances"])]
        full_size: bool,
    },
    /// Time sums and transforms on both sides.
    Kernels {
        /// Binary logarithms of the sizes.
        #[arg(long, value_delimiter = ',', default_value = "14,16,18,20")]
        log_sizes: Vec<u32>,
        /// Runs per kernel and side; the median counts.
        #[arg(long, default_value_t = 5)]
        runs: usize,
        /// Compare on the first GPU, with the crate sppark; the sizes are those of sums in G1.
        #[cfg(feature = "gpu")]
        #[arg(long)]
        gpu: bool,
        /// Binary logarithms of the sizes of transforms on the GPU.
        #[cfg(feature = "gpu")]
        #[arg(long, value_delimiter = ',', default_value = "20,22,24,26,27")]
        ntt_sizes: Vec<u32>,
        /// Binary logarithms of the sizes of sums in G2 on the GPU.
        #[cfg(feature = "gpu")]
        #[arg(long, value_delimiter = ',', default_value = "20,22")]
        g2_sizes: Vec<u32>,
        /// Binary logarithms of the sizes of sums of selected points on the GPU.
        #[cfg(feature = "gpu")]
        #[arg(long, value_delimiter = ',', default_value = "24,26")]
        bit_sizes: Vec<u32>,
        /// Print one JSON line.
        #[arg(long)]
        json: bool,
    },
    /// Prove fixtures and have the reference verify them; or compare proof bytes.
    Verify {
        /// Sector sizes whose fixtures to take.
        #[arg(long, value_delimiter = ',', default_value = "2KiB")]
        sizes: Vec<String>,
        /// Take these fixtures instead, such as 2KiB/porep-v1.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Compare with the reference's bytes for the same blinding scalars instead.
        #[arg(long)]
        bytes: bool,
        /// Make no proofs: have those that `cuzk prove` wrote here, for the one fixture named with
        /// --only, verified.
        #[arg(long, requires = "only", conflicts_with = "bytes")]
        proof: Option<PathBuf>,
        /// Print one JSON line per fixture.
        #[arg(long)]
        json: bool,
    },
    /// Make the shared test keys of these circuits.
    Keys {
        /// Circuits, such as porep-2k.
        circuits: Vec<CircuitId>,
    },
    /// One side of a comparison, measuring itself.
    #[command(hide = true)]
    Side {
        what: What,
        circuit: CircuitId,
        #[arg(long)]
        side: Side,
        #[arg(long)]
        fixture: Option<String>,
        #[arg(long)]
        path: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Prove,
    Params,
    Witness,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Task::Prove {
            circuit,
            fixture,
            runs,
            json,
        } => compare::prove(circuit, &fixture_of(circuit, fixture.as_deref())?, runs)?.print(json),
        Task::Params {
            circuit,
            runs,
            json,
        } => compare::params(circuit, runs)?.print(json),
        Task::Witness {
            circuit,
            fixture,
            seed,
            runs,
            json,
        } => {
            let has_fixtures = matches!(circuit.size, SectorSize::KiB2 | SectorSize::MiB8);
            let made_up = seed.is_some() || fixture.is_none() && !has_fixtures;
            let fixture = match made_up {
                true => None,
                false => Some(fixture_of(circuit, fixture.as_deref())?),
            };
            let seed = seed.unwrap_or(1);
            witness::measure(circuit, fixture.as_ref(), seed, runs)?.print(json)
        }
        Task::Exact {
            circuits,
            instances,
            full_size,
        } => exact(circuits, instances, full_size),
        #[cfg(feature = "gpu")]
        Task::Kernels {
            log_sizes,
            runs,
            gpu: true,
            ntt_sizes,
            g2_sizes,
            bit_sizes,
            json,
        } => {
            let sizes = peers::gpu::Sizes {
                g1: log_sizes,
                g2: g2_sizes,
                bits: bit_sizes,
                ntt: ntt_sizes,
            };
            peers::gpu::measure(&sizes, runs)?.print(json)
        }
        Task::Kernels {
            log_sizes,
            runs,
            json,
            ..
        } => kernels::measure(&log_sizes, runs)?.print(json),
        Task::Verify {
            sizes,
            only,
            bytes,
            proof,
            json,
        } => match proof {
            Some(path) => verify_file(&only, &path),
            None => verify(&sizes, &only, bytes, json),
        },
        Task::Keys { circuits } => {
            let keys = TestKeys::shared()?;
            for circuit in circuits {
                println!("{}", keys.ensure(circuit)?.display());
            }
            Ok(())
        }
        Task::Side {
            what,
            circuit,
            side,
            fixture,
            path,
        } => {
            let cost = match what {
                What::Prove => {
                    let fixture = fixture.context("--fixture is needed")?;
                    compare::prove_side(side, circuit, &fixture, &path)?
                }
                What::Params => compare::params_side(side, circuit, &path)?,
                What::Witness => witness::side(side, circuit, &path)?,
            };
            println!("{}", serde_json::to_string(&cost)?);
            Ok(())
        }
    }
}

fn fixture_of(circuit: CircuitId, name: Option<&str>) -> Result<fixtures::Fixture> {
    let fixture = match name {
        Some(name) => fixtures::find(name)?,
        None => compare::default_fixture(circuit)?,
    };
    let requests = fixture.requests()?;
    ensure!(
        requests
            .iter()
            .all(|request| request.circuit_id() == circuit),
        "{} is not proven by {circuit}",
        fixture.name
    );
    Ok(fixture)
}

fn exact(circuits: Vec<CircuitId>, instances: u64, full_size: bool) -> Result<()> {
    let (circuits, instances) = match (full_size, circuits.is_empty()) {
        (true, _) => (exact::full_size_circuits(), 1),
        (false, true) => (exact::small_circuits(), instances),
        (false, false) => (circuits, instances),
    };
    for circuit in circuits {
        println!("{}", exact::compare(circuit, 0..instances)?);
    }
    Ok(())
}

/// The variable that tells the reference crates where parameter files lie.
const REFERENCE_FOLDER: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// Whether the reference looks for parameter files in the folder of `keys`. It reads the variable once and
/// keeps it, so it must stand before the start: if it does not, this program runs again with it.
fn reference_reads(keys: &TestKeys) -> Result<bool> {
    if std::env::var_os(REFERENCE_FOLDER).is_some_and(|folder| folder == *keys.folder().as_os_str())
    {
        return Ok(true);
    }
    let status = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(REFERENCE_FOLDER, keys.folder())
        .status()?;
    ensure!(status.success(), "verification failed");
    Ok(false)
}

fn verify_file(only: &[String], path: &Path) -> Result<()> {
    let [name] = only else {
        bail!("a proof is of one fixture: name it, and no other, with --only");
    };
    let keys = TestKeys::shared()?;
    if !reference_reads(&keys)? {
        return Ok(());
    }
    let (count, verified_by) = whole::verify_file(&fixtures::find(name)?, path, &keys)?;
    println!(
        "{name:<36} ok  {count:>2} proofs of {}, {verified_by}",
        path.display()
    );
    Ok(())
}

fn verify(sizes: &[String], only: &[String], bytes: bool, json: bool) -> Result<()> {
    let keys = TestKeys::shared()?;
    if !reference_reads(&keys)? {
        return Ok(());
    }
    let fixtures = if only.is_empty() {
        fixtures::load(&sizes.iter().map(String::as_str).collect::<Vec<_>>())?
    } else {
        only.iter()
            .map(|name| fixtures::find(name))
            .collect::<Result<_>>()?
    };
    let mut provers = whole::Provers::new(keys);
    let mut failed = Vec::new();
    for fixture in &fixtures {
        let start = Instant::now();
        let line = if bytes {
            whole::compare_bytes(fixture, &mut provers)
                .map(|()| "same bytes as bellperson for the same r, s".to_owned())
        } else {
            whole::prove_and_verify(fixture, &mut provers).and_then(|outcome| {
                if json {
                    Ok(serde_json::to_string(&outcome)?)
                } else {
                    Ok(outcome.to_string())
                }
            })
        };
        match line {
            Ok(line) if json => println!("{line}"),
            Ok(line) => println!(
                "{:<36} ok  {line} ({:.1} s in all)",
                fixture.name,
                start.elapsed().as_secs_f64()
            ),
            Err(error) => {
                println!("{:<36} FAILED: {error:#}", fixture.name);
                failed.push(fixture.name.as_str());
            }
        }
    }
    if !failed.is_empty() {
        bail!(
            "{} of {} fixtures failed: {}",
            failed.len(),
            fixtures.len(),
            failed.join(", ")
        );
    }
    println!(
        "{} fixtures, all right, on {}",
        fixtures.len(),
        measure::machine()
    );
    Ok(())
}
