//! `peers prove` and `peers params`: our side and the reference's, one after the other in one run.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use ff::Field;
use filecoin::{CircuitId, ProofKind, SectorSize};
use groth16::Blinding;
use r1cs::Fr;
use serde::Serialize;

use crate::{
    fixtures::{self, Fixture},
    keys::{self, TestKeys},
    measure::{self, Cost, Meter},
    ours::Prover,
    reference,
};

/// Whose code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// This workspace.
    Cuzk,
    /// The reference crates.
    Bellperson,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Cuzk, Self::Bellperson];

    /// As the command line and the tables have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cuzk => "cuzk",
            Self::Bellperson => "bellperson",
        }
    }
}

/// Two sides of one comparison.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What was compared: `prove`, `params` or `witness`.
    pub what: &'static str,
    /// Circuit name.
    pub circuit: &'static str,
    /// The fixture or made-up request that both sides worked on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Runs per side; the costs are those of the run with the median wall time.
    pub runs: usize,
    /// Processor and cores.
    pub machine: String,
    /// Our cost.
    pub cuzk: Cost,
    /// The reference's cost.
    pub bellperson: Cost,
    /// Wall time of the reference over ours.
    pub times_faster: f64,
    /// Core-seconds of the reference over ours: hardly changed by what else the machine does.
    pub core_ratio: f64,
    /// Memory of the reference over ours: by how far it rose, where that was watched, else the peak.
    pub memory_ratio: f64,
}

impl Comparison {
    /// Runs both sides alternately, each run in a process of its own that is given the
    /// arguments for its side.
    ///
    /// # Errors
    /// A side fails, or no runs are asked for.
    pub(crate) fn new(
        what: &'static str,
        circuit: CircuitId,
        request: Option<String>,
        runs: usize,
        arguments: impl Fn(Side) -> Vec<String>,
    ) -> Result<Self> {
        let mut costs = [Vec::new(), Vec::new()];
        for run in 1..=runs {
            for (side, costs) in Side::BOTH.into_iter().zip(&mut costs) {
                eprintln!("{what} {circuit}, run {run} of {runs}: {}", side.name());
                costs.push(measure::in_child(&arguments(side))?);
            }
        }
        let [cuzk, bellperson] =
            costs.map(|costs| measure::median(costs).context("at least one run is needed"));
        let (cuzk, bellperson) = (cuzk?, bellperson?);
        let memory = |cost: &Cost| cost.grown_bytes.unwrap_or(cost.peak_bytes) as f64;
        let times_faster = bellperson.wall_s / cuzk.wall_s;
        let core_ratio = bellperson.core_s / cuzk.core_s;
        let memory_ratio = memory(&bellperson) / memory(&cuzk);
        Ok(Self {
            what,
            circuit: circuit.name(),
            request,
            runs,
            machine: measure::machine(),
            cuzk,
            bellperson,
            times_faster,
            core_ratio,
            memory_ratio,
        })
    }

    /// Prints the table, or JSON.
    ///
    /// # Errors
    /// Never but for a closed standard output.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let request = self
            .request
            .as_ref()
            .map_or(String::new(), |name| format!(" of {name}"));
        println!(
            "{} {}{request}, {}, median of {}",
            self.what, self.circuit, self.machine, self.runs
        );
        let watched = self.cuzk.grown_bytes.is_some();
        println!(
            "{:<12} {:>11} {:>14} {:>12}",
            "side",
            "wall",
            "core-seconds",
            if watched {
                "memory taken"
            } else {
                "peak memory"
            }
        );
        for (name, cost) in [("cuzk", &self.cuzk), ("bellperson", &self.bellperson)] {
            println!(
                "{name:<12} {:>9.3} s {:>14.3} {:>12}",
                cost.wall_s,
                cost.core_s,
                measure::bytes_text(cost.grown_bytes.unwrap_or(cost.peak_bytes))
            );
        }
        for (phase, seconds) in &self.cuzk.phases {
            println!("  cuzk, {phase}: {seconds:.3} s");
        }
        println!(
            "bellperson over cuzk: wall {:.1}, core-seconds {:.1}, memory {:.1}",
            self.times_faster, self.core_ratio, self.memory_ratio
        );
        Ok(())
    }
}

/// The fixture that stands for a circuit where none is named.
///
/// # Errors
/// There is no fixture of the circuit's sector size.
pub fn default_fixture(id: CircuitId) -> Result<Fixture> {
    let size = match id.size {
        SectorSize::KiB2 | SectorSize::MiB8 => id.size.label(),
        other => anyhow::bail!("there is no fixture of {other}"),
    };
    let name = match id.kind {
        ProofKind::Porep => "porep-v1_1-a",
        ProofKind::Snap => "empty-sector-update-a",
        ProofKind::Window => "window-post-1-sector",
        ProofKind::Winning => "winning-post-a",
    };
    fixtures::find(&format!("{size}/{name}"))
}

/// Compares the proof of a fixture's first partition on both sides.
///
/// Both prove the same request with the same parameter file, which is mapped, checked and in the
/// page cache before the clocks start. Timed on both sides: from the decoded request to verified
/// proof bytes.
///
/// # Errors
/// A side fails.
pub fn prove(id: CircuitId, fixture: &Fixture, runs: usize) -> Result<Comparison> {
    let params = TestKeys::shared()?.ensure(id)?;
    Comparison::new("prove", id, Some(fixture.name.clone()), runs, |side| {
        vec![
            "side".into(),
            "prove".into(),
            id.name().into(),
            "--side".into(),
            side.name().into(),
            "--fixture".into(),
            fixture.name.clone(),
            "--path".into(),
            params.display().to_string(),
        ]
    })
}

/// Compares the making of test parameters on both sides, file written, into a folder that is
/// removed afterwards.
///
/// # Errors
/// A side fails.
pub fn params(id: CircuitId, runs: usize) -> Result<Comparison> {
    let folder = tempfile::tempdir_in(TestKeys::shared()?.folder())?;
    Comparison::new("params", id, None, runs, |side| {
        vec![
            "side".into(),
            "params".into(),
            id.name().into(),
            "--side".into(),
            side.name().into(),
            "--path".into(),
            folder.path().join(side.name()).display().to_string(),
        ]
    })
}

/// One side of [`prove`], in the process that it measures.
///
/// # Errors
/// The proof cannot be made or does not verify.
pub fn prove_side(side: Side, id: CircuitId, fixture: &str, params: &Path) -> Result<Cost> {
    let requests = fixtures::find(fixture)?.requests()?;
    let request = requests.first().context("a fixture without requests")?;
    // Both sides find the file in the page cache.
    std::io::copy(&mut std::fs::File::open(params)?, &mut std::io::sink())?;
    match side {
        Side::Cuzk => {
            let prover = Prover::open(id, params)?;
            let meter = Meter::start();
            let proven = prover.prove(request, 0, Blinding::random()?)?;
            meter.stop(proven.phases)
        }
        Side::Bellperson => {
            let inputs = filecoin::public_inputs(request)?;
            let parameters = reference::map_parameters(params)?;
            let meter = Meter::start();
            let blinding = (Fr::random(rand_core::OsRng), Fr::random(rand_core::OsRng));
            let proof = reference::prove(request, 0, &parameters, blinding)?;
            let accepted = reference::verify_one(&parameters.pvk, &inputs[0], &proof)?;
            anyhow::ensure!(accepted, "the reference's own proof does not verify");
            meter.stop(Vec::new())
        }
    }
}

/// One side of [`params`], in the process that it measures: makes parameters in `folder`.
///
/// # Errors
/// The set-up fails.
pub fn params_side(side: Side, id: CircuitId, folder: &Path) -> Result<Cost> {
    // A run before this one may have left its files.
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let meter = Meter::start();
    match side {
        Side::Cuzk => keys::generate(id, folder)?,
        Side::Bellperson => reference::generate_parameters(id, &folder.join("parameters"))?,
    }
    meter.stop(Vec::new())
}
