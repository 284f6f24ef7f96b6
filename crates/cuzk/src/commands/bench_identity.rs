//! `cuzk bench identity NAME`: whether both forms of a key give the same proof, byte for byte.

use std::sync::Arc;
use std::time::{Duration, Instant};

use filecoin::native::NativeWitness;
use filecoin::{CircuitId, WitnessGenerator};
use groth16::Proof;
use groth16::key::{KeyForm, ProvingKey};
use instances::Instance;
use r1cs::{CompiledCircuit, PackedWitness};
use serde::Serialize;

use super::bench_e2e::{keys, unwritten};
use super::circuit;
use crate::Context;
use crate::cli::BenchIdentityArgs;
use crate::device::{self, Chosen, DeviceDocument};
use crate::failure::{Exit, Failure};
use crate::outfile::OutFile;
use crate::progress::Progress;
use crate::table::{self, Align, Table};

/// Runs the command.
pub fn run(context: &Context, args: &BenchIdentityArgs) -> Result<(), Failure> {
    let json = args.json_out.as_deref().map(OutFile::reserve).transpose()?;
    let subject = Subject::new(circuit::parse(&args.name)?, args.seed)?;
    let device = device::choose(&args.device, &context.progress)?;
    // One key after the other: both may not fit in memory.
    let made = [KeyForm::Published, KeyForm::Prepared]
        .into_iter()
        .map(|form| subject.prove(form, Seeds::all(args.seed), &device, &context.progress))
        .collect::<Result<_, _>>()?;
    let document = Document::new(subject.id, args.seed, device.document, made);
    if let Some(file) = json {
        let text = serde_json::to_vec_pretty(&document);
        file.commit(&text.map_err(|error| unwritten(&error))?)?;
    }
    context.output.show(&document, &document.text())?;
    document.verdict()
}

/// What follows from which seed, besides the request.
#[derive(Clone, Copy)]
struct Seeds {
    key: u64,
    blinding: u64,
}

impl Seeds {
    fn all(seed: u64) -> Self {
        Seeds {
            key: seed,
            blinding: seed,
        }
    }
}

/// A statement to be proven, with its witness.
struct Subject {
    id: CircuitId,
    circuit: Arc<CompiledCircuit>,
    witness: PackedWitness,
}

impl Subject {
    /// The first partition of a made-up request.
    fn new(id: CircuitId, seed: u64) -> Result<Self, Failure> {
        let request = Instance::new(id, seed).request()?;
        let circuit = id.compiled()?;
        let witness = NativeWitness.witness(&request, 0, &circuit)?;
        Ok(Subject {
            id,
            circuit,
            witness,
        })
    }

    /// Makes a key in this form, and with it a proof, which is verified.
    fn prove(
        &self,
        form: KeyForm,
        seeds: Seeds,
        device: &Chosen,
        progress: &Progress,
    ) -> Result<Made, Failure> {
        let began = Instant::now();
        let (key, _) = keys::ephemeral(progress, self.id, seeds.key, form, device)?;
        let key_time = began.elapsed();
        let began = Instant::now();
        let (proof, _) = key.prove_repeatably(
            &*device.backend,
            &self.circuit,
            &self.witness,
            seeds.blinding,
        )?;
        let proof_time = began.elapsed();
        if let Some(gpu) = &device.gpu {
            gpu.unload(&self.circuit.digest());
        }
        Ok(Made::new(&key.key, proof, key_time, proof_time))
    }
}

/// A proof that was made and verified.
#[derive(Serialize)]
struct Made {
    form: &'static str,
    key_bytes: u64,
    key_seconds: f64,
    /// With loading the key.
    proof_seconds: f64,
    /// Of the 192 bytes.
    proof: String,
}

impl Made {
    fn new(key: &ProvingKey, proof: Proof, key_time: Duration, proof_time: Duration) -> Self {
        let exact = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
        Made {
            form: keys::form_name(key.form()),
            key_bytes: key.stamp().size,
            key_seconds: exact(key_time),
            proof_seconds: exact(proof_time),
            proof: hex::encode(proof.to_bytes()),
        }
    }
}

/// The result in `--json`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    circuit: &'static str,
    seed: u64,
    device: DeviceDocument,
    identical: bool,
    proofs: Vec<Made>,
}

impl Document {
    fn new(id: CircuitId, seed: u64, device: DeviceDocument, proofs: Vec<Made>) -> Self {
        Document {
            schema: "cuzk.bench-identity/1",
            circuit: id.name(),
            seed,
            device,
            identical: proofs.windows(2).all(|two| two[0].proof == two[1].proof),
            proofs,
        }
    }

    /// A difference is a failure, which the output has told already.
    fn verdict(&self) -> Result<(), Failure> {
        match self.identical {
            true => Ok(()),
            false => Err(Failure::reported(Exit::Internal)),
        }
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            ("form", Align::Left),
            ("key", Align::Right),
            ("made in", Align::Right),
            ("proof in", Align::Right),
            ("proof", Align::Left),
        ]);
        for made in &self.proofs {
            table.row([
                made.form.to_owned(),
                table::bytes(made.key_bytes),
                format!("{:.3} s", made.key_seconds),
                format!("{:.3} s", made.proof_seconds),
                shortened(&made.proof),
            ]);
        }
        let verdict = if self.identical {
            "IDENTICAL: both forms give the same 192 bytes"
        } else {
            "DIFFERENT: do not use this device or these keys, and report this output with --json"
        };
        format!(
            "{}, seed {}, {}\n{}{verdict}\n",
            self.circuit,
            self.seed,
            self.device.name,
            table.render()
        )
    }
}

/// The ends of a proof's digits.
fn shortened(proof: &str) -> String {
    match (proof.get(..16), proof.get(proof.len().saturating_sub(16)..)) {
        (Some(first), Some(last)) => format!("{first}…{last}"),
        _ => proof.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Device, DeviceArgs, GpuWait};

    /// The command's own way to the verdict with another seed for one of two proofs: it must see it.
    #[test]
    fn another_seed_is_a_difference_and_a_failure() {
        let cpu = DeviceArgs {
            device: Device::Cpu,
            gpu: 0,
            vram: None,
            gpu_wait: GpuWait::Sleep,
        };
        let quiet = Progress::new(true);
        let device = device::choose(&cpu, &quiet).unwrap();
        let subject = Subject::new(circuit::parse("wpost-2k").unwrap(), 1).unwrap();
        let other = |seeds| {
            let first = subject.prove(KeyForm::Prepared, Seeds::all(1), &device, &quiet);
            let second = subject.prove(KeyForm::Prepared, seeds, &device, &quiet);
            let made = vec![first.unwrap(), second.unwrap()];
            Document::new(subject.id, 1, device.document.clone(), made)
        };
        let document = other(Seeds {
            key: 1,
            blinding: 2,
        });
        assert!(!document.identical && document.text().contains("DIFFERENT"));
        assert_eq!(document.verdict().unwrap_err().exit, Exit::Internal);
    }
}
