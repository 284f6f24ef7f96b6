//! `cuzk bench prove NAME`: proofs of one witness over and over, from the packed witness to the
//! verified proof.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cuda::MemoryUse;
use filecoin::native::NativeWitness;
use filecoin::{CircuitId, WitnessGenerator};
use groth16::{Blinding, PreparedVerifyingKey};
use instances::Instance;
use serde::Serialize;

use crate::Context;
use crate::cli::BenchProveArgs;
use crate::device::{self, DeviceDocument, VramDocument};
use crate::failure::{Exit, Failure};
use crate::keys::{self, KeyDocument};
use crate::table::{self, Align, Table, grouped};

/// Runs the command.
pub fn run(context: &Context, id: CircuitId, args: &BenchProveArgs) -> Result<(), Failure> {
    let device = device::choose(&args.device, &context.progress)?;
    let request = Instance::new(id, args.seed).request()?;
    let circuit = id.compiled()?;
    let store = keys::store(context, &args.keys);
    let key = keys::proving_key(context, &store, &id.key_spec(&circuit))?;
    let witness = NativeWitness.witness(&request, 0, &circuit)?;
    let pvk = PreparedVerifyingKey::from(key.key.vk());

    let at_a_time = args.at_a_time as usize;
    if let Some(gpu) = &device.gpu {
        gpu.expect_callers(at_a_time);
    }
    let backend = &*device.backend;
    let prove = || -> Result<Run, Failure> {
        let blinding = Blinding::random()?;
        let start = Instant::now();
        let (_, times) = groth16::prove(backend, &circuit, &key.key, &pvk, &witness, blinding)?;
        Ok(Run {
            total: start.elapsed(),
            phases: times.iter().collect(),
        })
    };
    let first = prove()?;
    let start = Instant::now();
    let runs = repeat(args.repeat, at_a_time, &prove)?;
    let all = start.elapsed();
    let memory = match &device.gpu {
        Some(gpu) => gpu.memory()?,
        None => None,
    };
    let document = Document {
        schema: "cuzk.bench-prove/1",
        circuit: id.name(),
        seed: args.seed,
        device: device.document,
        key: KeyDocument::new(&key.path, key.trust),
        vram: memory.map(VramDocument::from),
        proofs: runs.len(),
        at_a_time,
        first_ms: ms(first.total),
        total_ms: median(runs.iter().map(|run| run.total)),
        per_proof_ms: ms(all / u32::try_from(runs.len().max(1)).unwrap_or(u32::MAX)),
        phases: phases(&first, &runs),
    };
    match memory {
        Some(memory) if memory.taken_bytes > memory.planned_bytes => Err(above_plan(memory)),
        _ => context.output.show(&document, &document.text()),
    }
}

/// `count` proofs, `at_a_time` under way.
fn repeat(
    count: usize,
    at_a_time: usize,
    prove: &(impl Fn() -> Result<Run, Failure> + Sync),
) -> Result<Vec<Run>, Failure> {
    let next = AtomicUsize::new(0);
    let some = || -> Result<Vec<Run>, Failure> {
        let mut runs = Vec::new();
        while next.fetch_add(1, Ordering::Relaxed) < count {
            runs.push(prove()?);
        }
        Ok(runs)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(some)).collect();
        threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect()
    });
    let mut runs = Vec::new();
    for result in results {
        runs.extend(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(runs)
}

/// More memory is taken than planned: the plan is wrong, or others took some meanwhile.
pub fn above_plan(memory: MemoryUse) -> Failure {
    Failure::new(
        Exit::Internal,
        "VRAM_ABOVE_PLAN",
        format!(
            "{} of GPU memory are taken, {} were planned",
            grouped(memory.taken_bytes),
            grouped(memory.planned_bytes)
        ),
        "measure while no other process uses the GPU; if the figures stay, this is a defect: please report it",
    )
}

/// A proof.
struct Run {
    total: Duration,
    phases: Vec<(&'static str, Duration)>,
}

/// The phases of the warm proofs, medians, in order; those of the first proof too.
fn phases(first: &Run, runs: &[Run]) -> Vec<PhaseDocument> {
    let phase = |(i, (name, time)): (usize, &(&'static str, Duration))| PhaseDocument {
        name,
        first_ms: ms(*time),
        median_ms: median(runs.iter().filter_map(|run| Some(run.phases.get(i)?.1))),
    };
    first.phases.iter().enumerate().map(phase).collect()
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn median(times: impl Iterator<Item = Duration>) -> f64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| ms(*time))
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    circuit: &'static str,
    seed: u64,
    device: DeviceDocument,
    key: KeyDocument,
    vram: Option<VramDocument>,
    proofs: usize,
    at_a_time: usize,
    first_ms: f64,
    /// From the start to the end of a proof after the first, median.
    total_ms: f64,
    /// The time of all proofs after the first, divided by their number.
    per_proof_ms: f64,
    phases: Vec<PhaseDocument>,
}

#[derive(Serialize)]
struct PhaseDocument {
    name: &'static str,
    first_ms: f64,
    median_ms: f64,
}

impl Document {
    fn text(&self) -> String {
        let uuid = self.device.uuid.as_deref().unwrap_or("no UUID");
        let vram = (self.vram.as_ref()).map_or("none".to_owned(), VramDocument::text);
        let head = table::pairs(&[
            ("circuit", format!("{}, seed {}", self.circuit, self.seed)),
            (
                "device",
                format!("{} ({uuid}), {}", self.device.name, self.device.reason),
            ),
            ("key", self.key.words.clone()),
            ("GPU memory", vram),
            (
                "proofs",
                format!(
                    "1 first, {} more, {} at a time, all verified: {:.3} ms for each",
                    self.proofs, self.at_a_time, self.per_proof_ms
                ),
            ),
        ]);
        let mut table = Table::new(&[
            ("phase", Align::Left),
            ("first ms", Align::Right),
            ("median ms", Align::Right),
        ]);
        for phase in &self.phases {
            table.row([
                phase.name.to_owned(),
                format!("{:.3}", phase.first_ms),
                format!("{:.3}", phase.median_ms),
            ]);
        }
        table.row([
            "from witness to proof".to_owned(),
            format!("{:.3}", self.first_ms),
            format!("{:.3}", self.total_ms),
        ]);
        format!("{head}\n{}", table.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_the_middle_one() {
        let ms = |list: &[u64]| median(list.iter().map(|ms| Duration::from_millis(*ms)));
        assert_eq!((ms(&[]), ms(&[3]), ms(&[9, 1, 3])), (0.0, 3.0, 3.0));
    }
}
