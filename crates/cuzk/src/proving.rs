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
    /// Proves all partitions in order and hands each proof, verified, to `each`. `made` are the
    /// witnesses of the first partitions; the others are made here.
    ///
    /// # Errors
    /// The first failure of a witness, a proof or `each`; no proof after it is made.
    pub fn prove(
        &self,
        made: Vec<PackedWitness>,
        phases: &mut Phases,
        mut each: impl FnMut(usize, &Proof) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.inputs.len();
        let pvk = PreparedVerifyingKey::from(self.key.vk());
        // One partition has no line of its own: its phases show.
        let stage = (count > 1).then(|| self.progress.stage(label(0, count), count as u64));
        // The time is that of a witness made here; one from the check has none of its own.
        let mut prove = |k: usize, witness: PackedWitness, time: Option<Duration>| {
            if let Some(stage) = &stage {
                stage.rename(label(k, count));
            }
            if let Some(time) = time {
                phases.add("witness", time);
            }
            self.verify_inputs(k, &witness)?;
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
        };
        let first = made.len();
        for (k, witness) in made.into_iter().enumerate() {
            prove(k, witness, None)?;
        }
        self.witnesses(first, self.room_for_two(), |k, (witness, time)| {
            prove(k, witness, Some(time))
        })
    }

    /// Makes the witnesses from partition `first` on, in order, and hands each to `take`. With
    /// `ahead`, the next one is made on another thread while `take` works: at most two exist at any
    /// time.
    fn witnesses(
        &self,
        first: usize,
        ahead: bool,
        mut take: impl FnMut(usize, (PackedWitness, Duration)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.inputs.len();
        if !ahead || count - first < 2 {
            return (first..count).try_for_each(|k| take(k, self.witness(k)?));
        }
        thread::scope(|scope| {
            // No buffer: the maker waits until its witness is taken.
            let (send, receive) = mpsc::sync_channel::<Made>(0);
            let maker = scope.spawn(move || {
                for k in first..count {
                    let made = self.witness(k);
                    let failed = made.is_err();
                    if send.send(made).is_err() || failed {
                        break;
                    }
                }
            });
            let result = (first..count).try_for_each(|k| match receive.recv() {
                Ok(made) => take(k, made?),
                Err(_) => Err(stopped()),
            });
            drop(receive);
            maker.join().map_err(|_| stopped()).and(result)
        })
    }

    /// The witness of partition `k`, which the check has gone through before.
    fn witness(&self, k: usize) -> Made {
        let start = Instant::now();
        let _line = self.progress.stage("making the witness", 0);
        let witness = self.generator.witness(self.request, k, self.circuit)?;
        Ok((witness, start.elapsed()))
    }

    /// The prover verifies against the witness's own inputs; that these are the statement's, which the
    /// verifier will check, is checked here.
    fn verify_inputs(&self, k: usize, witness: &PackedWitness) -> Result<(), Failure> {
        if witness.inputs().get(1..) == Some(&self.inputs[k][..]) {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Internal,
            "WITNESS_INPUTS",
            format!("the witness of partition {k} is for other public inputs than the request's"),
            "this is a defect: please report it with the command line and the request",
        ))
    }

    fn room_for_two(&self) -> bool {
        let needed = worker::unit_bytes(self.circuit, self.backend.device().kind);
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

/// Most bytes of witnesses that are kept from the check, beside the first.
const WITNESS_BUDGET: u64 = 1 << 30;

/// How many partitions' witnesses to keep from the check until they are proven. The others, such as most of the
/// 126 of a non-interactive PoRep, are made again while the one before is proven.
pub fn witnesses_to_keep(circuit: &CompiledCircuit, device: DeviceKind) -> usize {
    let free = memory::available().map_or(u64::MAX, |free| {
        free.saturating_sub(worker::unit_bytes(circuit, device)) / 2
    });
    let more = free.min(WITNESS_BUDGET) / worker::packed_bytes(circuit).max(1);
    1 + usize::try_from(more).unwrap_or(usize::MAX - 1)
}

/// Refuses a proof for which there is certainly not the memory, before the system kills it halfway.
///
/// # Errors
/// `MEMORY`, with both figures.
pub fn check_memory(circuit: &CompiledCircuit, device: DeviceKind) -> Result<(), Failure> {
    let needed = worker::unit_bytes(circuit, device);
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
