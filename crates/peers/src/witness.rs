//! `peers witness`: a partition's witness, made natively and by synthesis of the public circuit.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use filecoin::{CircuitId, Request, WitnessGenerator, decode::Hints, native::NativeWitness};
use instances::{Instance, submit};
use oracle::Oracle;

use crate::{
    compare::{Comparison, Side},
    fixtures::Fixture,
    measure::{Cost, Meter},
};

/// Compares the witness of the first partition of a fixture, or of a request made up from `seed`.
///
/// Each run is a process of its own, which decodes the request and then measures the first
/// witness that it makes, tables and all. Memory is how far it rises from there. Ours is the
/// packed witness. The reference side is the public circuit's synthesis with a constraint system
/// that does nothing but keep the values, 32 bytes each in memory reserved for them: what
/// `bellpepper`'s own `WitnessCS` does, and the least that its prover starts from. After the
/// clocks stop, the reference side compares its values with ours, every one, and checks that they
/// satisfy the compiled circuit.
///
/// # Errors
/// The request cannot be made, a side fails, or the two witnesses differ.
pub fn measure(
    id: CircuitId,
    fixture: Option<&Fixture>,
    seed: u64,
    runs: usize,
) -> Result<Comparison> {
    let (request, name) = match fixture {
        Some(fixture) => {
            let mut requests = fixture.requests()?.into_iter();
            let first = requests.next().context("a fixture without requests")?;
            (first, fixture.name.clone())
        }
        None => {
            let request = Instance::new(id, seed).request()?;
            (request, format!("a made-up request, seed {seed}"))
        }
    };
    let file = tempfile::NamedTempFile::new().context("making a temporary file")?;
    fs::write(file.path(), submit(&request, "peers").to_json())?;
    drop(request);
    Comparison::new("witness", id, Some(name), runs, |side| {
        vec![
            "side".into(),
            "witness".into(),
            id.name().into(),
            "--side".into(),
            side.name().into(),
            "--path".into(),
            file.path().display().to_string(),
        ]
    })
}

/// One side of [`measure`], in the process that it measures, for the request in `file`.
///
/// # Errors
/// The request cannot be read or has no witness, or the witnesses differ.
pub fn side(side: Side, id: CircuitId, file: &Path) -> Result<Cost> {
    let circuit = id.compiled()?;
    let bytes = fs::read(file)?;
    let request = Request::decode(&bytes, Hints::default())?.request;
    drop(bytes);
    match side {
        Side::Cuzk => {
            let meter = Meter::watching_memory()?;
            let witness = NativeWitness.witness(&request, 0, &circuit)?;
            let cost = meter.stop(Vec::new());
            drop(witness);
            cost
        }
        Side::Bellperson => {
            let shape = circuit.shape();
            let meter = Meter::watching_memory()?;
            let assignment = Oracle::assignment(&request, 0, shape.inputs, shape.aux)?;
            let cost = meter.stop(Vec::new());
            let witness = NativeWitness.witness(&request, 0, &circuit)?;
            oracle::compare_assignment(&assignment, &circuit, &witness)?;
            drop(assignment);
            circuit.check(&witness)?;
            cost
        }
    }
}
