//! The keys that a benchmark proves with: files, or made for the occasion.

use std::time::Instant;

use cuda::GpuFixedBase;
use filecoin::CircuitId;
use groth16::key::{KeyCounts, KeyForm};
use groth16::setup::{
    CpuFixedBase, EphemeralKey, EphemeralRequest, FixedBaseMultiplier, generate_ephemeral,
};
use pipeline::CircuitKey;
use serde::Serialize;

use crate::Context;
use crate::cli::BenchE2eArgs;
use crate::device::Chosen;
use crate::failure::Failure;
use crate::progress::{Meter, Progress};
use crate::{keys, table};

/// What is told of a key.
#[derive(Debug, Clone, Serialize)]
pub struct KeyFacts {
    /// Bytes of its file, or of the memory that it lies in.
    pub bytes: u64,
    /// Whether it was made for this run and lives in memory.
    pub ephemeral: bool,
    /// In words.
    pub words: String,
}

/// Finds and checks the circuit's key, or makes one.
pub fn open(
    context: &Context,
    args: &BenchE2eArgs,
    id: CircuitId,
    device: &Chosen,
) -> Result<(CircuitKey, KeyFacts), Failure> {
    let circuit = id.compiled()?;
    let spec = id.key_spec(&circuit);
    let bytes = spec.counts.params_bytes();
    if args.ephemeral {
        let form = args.form.into();
        let (key, words) = ephemeral(&context.progress, id, args.seed, form, device)?;
        let key = key.key;
        let facts = KeyFacts {
            bytes: key.stamp().size,
            ephemeral: true,
            words,
        };
        return Ok((CircuitKey::new(circuit, key), facts));
    }
    let store = keys::store(context, &args.keys);
    let key = keys::proving_key(context, &store, &spec)?;
    let words = format!("{} ({})", key.path.display(), key.trust);
    let facts = KeyFacts {
        bytes,
        ephemeral: false,
        words,
    };
    Ok((CircuitKey::new(circuit, key.key), facts))
}

/// A test key in memory, made by the device if it is a GPU, and what is told of it.
pub fn ephemeral(
    progress: &Progress,
    id: CircuitId,
    seed: u64,
    form: KeyForm,
    device: &Chosen,
) -> Result<(EphemeralKey, String), Failure> {
    let circuit = id.compiled()?;
    let request = EphemeralRequest {
        circuit: id.name(),
        seed,
        form,
    };
    let multiplier: Box<dyn FixedBaseMultiplier> = match &device.gpu {
        // Its tables go with it, before the key's points come.
        Some(gpu) => Box::new(GpuFixedBase::on(gpu.gpu().clone())),
        None => Box::new(CpuFixedBase::new(&KeyCounts::of(&circuit))),
    };
    let meter = Meter::new(progress, &format!("{id} key"));
    let began = Instant::now();
    let made = generate_ephemeral(&circuit, &request, &*multiplier, &meter)?;
    let words = format!(
        "{} test key in memory, seed {seed}, made in {}: anyone could forge proofs for it",
        form_name(form),
        table::duration(began.elapsed())
    );
    Ok((made, words))
}

/// A key's form in words.
pub fn form_name(form: KeyForm) -> &'static str {
    match form {
        KeyForm::Published => "published",
        KeyForm::Prepared => "prepared",
    }
}
