//! `peers witness`: how long a partition's witness takes.

use anyhow::{Context, Result, ensure};
use filecoin::{CircuitId, WitnessGenerator};
use oracle::Oracle;
use serde::Serialize;

use crate::{
    fixtures::Fixture,
    measure::{self, Cost, Meter},
};

/// What the witness of one partition costs.
#[derive(Debug, Serialize)]
pub struct Witness {
    /// Circuit name.
    pub circuit: &'static str,
    /// The fixture.
    pub fixture: String,
    /// Processor and cores.
    pub machine: String,
    /// How many runs the median is of.
    pub runs: usize,
    /// By synthesis through the reference crates, packed.
    pub synthesis: Cost,
    /// Bytes of the packed witness: inputs, bitmap and field elements.
    pub packed_bytes: usize,
}

/// Times the synthesis of a fixture's first partition.
///
/// # Errors
/// The fixture cannot be read or its witness not made.
pub fn measure(id: CircuitId, fixture: &Fixture, runs: usize) -> Result<Witness> {
    ensure!(runs > 0, "at least one run is needed");
    let circuit = id.compiled()?;
    let requests = fixture.requests()?;
    let request = requests.first().context("a fixture without requests")?;
    let mut costs = Vec::with_capacity(runs);
    let mut packed_bytes = 0;
    for _ in 0..runs {
        let meter = Meter::start()?;
        let witness = Oracle.witness(request, 0, &circuit)?;
        costs.push(meter.stop(Vec::new())?);
        packed_bytes =
            32 * (witness.inputs().len() + witness.dense().len()) + 8 * witness.bits().len();
    }
    Ok(Witness {
        circuit: id.name(),
        fixture: fixture.name.clone(),
        machine: measure::machine(),
        runs,
        synthesis: measure::median(costs).context("at least one run")?,
        packed_bytes,
    })
}

impl Witness {
    /// Prints the table, or JSON.
    ///
    /// # Errors
    /// Never but for a closed standard output.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!(
            "witness {} of {}, {}, median of {}",
            self.circuit, self.fixture, self.machine, self.runs
        );
        println!(
            "by synthesis through the reference crates: {:.2} s, {:.1} core-seconds, peak memory {}",
            self.synthesis.wall_s,
            self.synthesis.core_s,
            measure::bytes_text(self.synthesis.peak_bytes)
        );
        println!("packed: {}", measure::bytes_text(self.packed_bytes as u64));
        println!("There is no native generator yet to compare it with.");
        Ok(())
    }
}
