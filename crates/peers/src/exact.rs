//! `peers exact`: made-up requests, whose witnesses must be the public circuits' own, value for value.

use std::{fmt, ops::Range, time::Instant};

use anyhow::{Context, Result, ensure};
use filecoin::{
    CircuitId, ProofKind, SealVersion, SectorSize, WitnessGenerator, native::NativeWitness,
    registered::PostVersion,
};
use instances::Instance;
use r1cs::CompiledCircuit;
use rayon::prelude::*;

/// The circuits that are small enough for many instances.
#[must_use]
pub fn small_circuits() -> Vec<CircuitId> {
    circuits(&[SectorSize::KiB2, SectorSize::MiB8])
}

/// The circuits of the network's usual sector size.
#[must_use]
pub fn full_size_circuits() -> Vec<CircuitId> {
    circuits(&[SectorSize::GiB32])
}

fn circuits(sizes: &[SectorSize]) -> Vec<CircuitId> {
    let of_size = |size: &SectorSize| ProofKind::ALL.map(|kind| CircuitId::new(kind, *size));
    sizes.iter().flat_map(of_size).collect()
}

/// What was compared and agreed.
#[derive(Debug)]
pub struct Agreement {
    /// The instances' circuit.
    pub circuit: CircuitId,
    /// How many instances.
    pub instances: u64,
    /// Variables compared, of all instances.
    pub variables: usize,
    /// Wall time in seconds.
    pub seconds: f64,
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (instances, plural) = match self.instances {
            1 => (1, ""),
            more => (more, "s"),
        };
        write!(
            f,
            "{:<12} ok  {instances} instance{plural}, {} variables, all equal; A·w ∘ B·w = C·w ({:.1} s)",
            self.circuit.name(),
            self.variables,
            self.seconds
        )
    }
}

/// The instance of a seed. The seal types (the ones that need a whole sector sealed: 2 KiB alone), the versions of
/// window challenges and the numbers of sectors take turns.
#[must_use]
pub fn instance(circuit: CircuitId, seed: u64) -> Instance {
    let turn = |count: u64| (seed % count) as usize;
    let seals = match circuit.size {
        SectorSize::KiB2 => &[
            SealVersion::V1_1,
            SealVersion::V1,
            SealVersion::Synthetic,
            SealVersion::NonInteractive,
        ][..],
        _ => &[SealVersion::V1_1, SealVersion::V1][..],
    };
    Instance {
        seal: seals[turn(seals.len() as u64)],
        window: [PostVersion::WindowV1_2, PostVersion::WindowV1][turn(2)],
        sectors: [None, Some(1)][turn(3) % 2],
        ..Instance::new(circuit, seed)
    }
}

/// Makes the instances of `seeds` and compares the witness of one partition of each with what the
/// public circuit allocates; also that it satisfies the compiled circuit, and that its inputs
/// are those which the verifier derives. Instances are worked on side by side. Memory for each: the packed
/// witness, and what the public circuit holds without its assignment.
///
/// # Errors
/// An instance that cannot be made, or whose witness differs.
pub fn compare(circuit: CircuitId, seeds: Range<u64>) -> Result<Agreement> {
    let start = Instant::now();
    let compiled = circuit.compiled()?;
    let instances = seeds.end.saturating_sub(seeds.start);
    let variables = seeds
        .into_par_iter()
        .map(|seed| {
            let instance = instance(circuit, seed);
            compare_one(instance, &compiled).with_context(|| format!("{instance:?}"))
        })
        .sum::<Result<usize>>()?;
    Ok(Agreement {
        circuit,
        instances,
        variables,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// How many variables agree.
fn compare_one(instance: Instance, circuit: &CompiledCircuit) -> Result<usize> {
    let request = instance.request()?;
    let partition = (instance.seed % request.partitions() as u64) as usize;
    let witness = NativeWitness.witness(&request, partition, circuit)?;
    let variables = oracle::compare(&request, partition, circuit, &witness)?;
    circuit.check(&witness)?;
    let inputs = filecoin::public_inputs(&request)?;
    ensure!(
        witness.inputs()[1..] == inputs[partition],
        "other public inputs than the verifier's"
    );
    Ok(variables)
}
