//! From a request that passed its check to verified proofs, partition by partition.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use filecoin::{Request, WitnessGenerator};
use groth16::key::ProvingKey;
use groth16::{Backend, Blinding, DeviceKind, PreparedVerifyingKey, Proof};
use r1cs::{CompiledCircuit, Fr, PackedWitness};

use crate::failure::{Exit, Failure};
use crate::memory;
use crate::phases::Phases;
use crate::progress::Progress;
use crate::table;

/// Everything that the partitions of one request share.
pub struct Prover<'a> {
    /// The request, checked.
    pub request: &'a Request,
    /// Public inputs of each partition, derived from the request's public values.
    pub inputs: &'a [Vec<Fr>],
    /// Makes the witnesses.
    pub generator: &'a dyn WitnessGenerator,
    /// The request's circuit.
    pub circuit: &'a CompiledCircuit,
    /// Its key.
    pub key: &'a ProvingKey,
    /// Computes the sums.
    pub backend: &'a dyn Backend,
    /// Where progress shows.
    pub progress: &'a Progress,
}

/// A witness and how long it took.
type Made = Result<(PackedWitness, Duration), Failure>;

impl Prover<'_> {
    /// Proves all partitions in order and hands each proof, verified, to `each`.
    ///
    /// # Errors
    /// The first failure of a witness, a proof or `each`; no proof after it is made.
    pub fn prove(
        &self,
        phases: &mut Phases,
        mut each: impl FnMut(usize, &Proof) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.inputs.len();
        let pvk = PreparedVerifyingKey::from(self.key.vk());
        // One partition has no line of its own: its phases show.
        let stage = (count > 1).then(|| self.progress.stage(label(0, count), count as u64));
        self.witnesses(count > 1 && self.room_for_two(), |k, (witness, time)| {
            if let Some(stage) = &stage {
                stage.rename(label(k, count));
            }
            phases.add("witness", time);
            let blinding = Blinding::random()?;
            let (proof, times) = groth16::prove(
                self.backend,
                self.circuit,
                self.key,
                &pvk,
                &witness,
                blinding,
            )?;
            for (phase, time) in times.iter() {
                phases.add(&format!("prove: {phase}"), time);
            }
            if let Some(stage) = &stage {
                stage.advance(1);
            }
            each(k, &proof)
        })
    }

    /// Makes the witnesses in order and hands each to `take`. With `ahead`, the next one is made
    /// on another thread while `take` works: at most two exist at any time.
    fn witnesses(
        &self,
        ahead: bool,
        mut take: impl FnMut(usize, (PackedWitness, Duration)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.inputs.len();
        if !ahead {
            return (0..count).try_for_each(|k| take(k, self.witness(k)?));
        }
        thread::scope(|scope| {
            // No buffer: the maker waits until its witness is taken.
            let (send, receive) = mpsc::sync_channel::<Made>(0);
            let maker = scope.spawn(move || {
                for k in 0..count {
                    let made = self.witness(k);
                    let failed = made.is_err();
                    if send.send(made).is_err() || failed {
                        break;
                    }
                }
            });
            let result = (0..count).try_for_each(|k| match receive.recv() {
                Ok(made) => take(k, made?),
                Err(_) => Err(stopped()),
            });
            drop(receive);
            maker.join().map_err(|_| stopped()).and(result)
        })
    }

    /// The witness of partition `k`, for the statement that the verifier will check.
    fn witness(&self, k: usize) -> Made {
        let start = Instant::now();
        let _line = self.progress.stage("making the witness", 0);
        let witness = self.generator.witness(self.request, k, self.circuit)?;
        // The prover verifies against the witness's own inputs; that these are the statement's is
        // checked here.
        if witness.inputs().get(1..) != Some(&self.inputs[k][..]) {
            return Err(Failure::new(
                Exit::Internal,
                "WITNESS_INPUTS",
                format!(
                    "the witness of partition {k} is for other public inputs than the request's"
                ),
                "this is a defect: please report it with the command line and the request",
            ));
        }
        Ok((witness, start.elapsed()))
    }

    fn room_for_two(&self) -> bool {
        let needed = memory_needed(self.circuit, self.backend.device().kind);
        memory::available().is_some_and(|free| free >= 2 * needed)
    }
}

fn label(k: usize, count: usize) -> String {
    format!("partition {} of {count}", k + 1)
}

fn stopped() -> Failure {
    Failure::new(
        Exit::Internal,
        "WITNESS_STOPPED",
        "the thread that makes witnesses stopped",
        "this is a defect: please report it with the command line and the request",
    )
}

/// Bytes that proving one partition allocates at least.
fn memory_needed(circuit: &CompiledCircuit, device: DeviceKind) -> u64 {
    let (shape, layout) = (circuit.shape(), circuit.layout());
    if device == DeviceKind::Gpu {
        // The packed witness, and its copy in page-locked memory.
        let dense = 32 * (shape.inputs + layout.dense_count()) as u64;
        return 2 * (dense + layout.bit_count() as u64 / 8);
    }
    let (domain, variables) = (shape.domain() as u64, (shape.inputs + shape.aux) as u64);
    // The witness before it is packed, or the three vectors of the quotient: 32 bytes an element.
    32 * (3 * domain).max(variables)
}

/// Refuses a proof for which there is certainly not the memory, before the system kills it halfway.
///
/// # Errors
/// `MEMORY`, with both figures.
pub fn check_memory(circuit: &CompiledCircuit, device: DeviceKind) -> Result<(), Failure> {
    let needed = memory_needed(circuit, device);
    match memory::available() {
        Some(free) if free < needed => Err(Failure::new(
            Exit::Resources,
            "MEMORY",
            format!(
                "proving needs at least {} of memory, {} are available",
                table::bytes(needed),
                table::bytes(free)
            ),
            "free memory, raise this process's limit (container, ulimit -v), or use a larger machine",
        )),
        _ => Ok(()),
    }
}
