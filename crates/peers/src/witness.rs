//! `peers witness`: a partition's witness, generated natively and by synthesis.

use anyhow::{Context, Result, ensure};
use filecoin::{CircuitId, Request, WitnessGenerator, native::NativeWitness};
use oracle::Oracle;
use r1cs::{CompiledCircuit, PackedWitness};
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
    /// By the native generator.
    pub native: Cost,
    /// By synthesis through the reference crates, packed.
    pub synthesis: Cost,
    /// Wall time of the synthesis over that of the native generator.
    pub times_faster: f64,
    /// Bytes of the packed witness: inputs, bitmap and field elements.
    pub packed_bytes: usize,
}

/// Times both generators on a fixture's first partition, in this process, one after the other.
///
/// # Errors
/// The fixture cannot be read, its witness not made, or the two witnesses differ.
pub fn measure(id: CircuitId, fixture: &Fixture, runs: usize) -> Result<Witness> {
    let circuit = id.compiled()?;
    let requests = fixture.requests()?;
    let request = requests.first().context("a fixture without requests")?;
    // Native first: peak memory only grows.
    let (native, witness) = time(&NativeWitness, request, &circuit, runs)?;
    let (synthesis, other) = time(&Oracle, request, &circuit, runs)?;
    ensure!(
        witness == other,
        "the native witness of {} is not the synthesised one",
        fixture.name
    );
    let values = witness.inputs().len() + witness.dense().len();
    Ok(Witness {
        circuit: id.name(),
        fixture: fixture.name.clone(),
        machine: measure::machine(),
        runs,
        times_faster: synthesis.wall_s / native.wall_s,
        native,
        synthesis,
        packed_bytes: 32 * values + 8 * witness.bits().len(),
    })
}

fn time(
    generator: &dyn WitnessGenerator,
    request: &Request,
    circuit: &CompiledCircuit,
    runs: usize,
) -> Result<(Cost, PackedWitness)> {
    // Once to warm up: the first call makes tables that later calls share.
    let witness = generator.witness(request, 0, circuit)?;
    let costs = (0..runs)
        .map(|_| {
            let meter = Meter::start()?;
            generator.witness(request, 0, circuit)?;
            meter.stop(Vec::new())
        })
        .collect::<Result<_>>()?;
    let cost = measure::median(costs).context("at least one run is needed")?;
    Ok((cost, witness))
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
        for (name, cost) in [("native", &self.native), ("synthesis", &self.synthesis)] {
            println!(
                "{name:<10} {:>8.3} s {:>8.2} core-seconds, peak memory so far {}",
                cost.wall_s,
                cost.core_s,
                measure::bytes_text(cost.peak_bytes)
            );
        }
        println!(
            "the native generator is {:.1} times faster",
            self.times_faster
        );
        println!("packed: {}", measure::bytes_text(self.packed_bytes as u64));
        Ok(())
    }
}
