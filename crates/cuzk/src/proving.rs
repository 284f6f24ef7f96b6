//! From a request that passed its check to verified proofs, partition by partition.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use filecoin::{Request, WitnessGenerator};
use groth16::key::ProvingKey;
use groth16::{Backend, Blinding, DeviceKind, PhaseTimes, PreparedVerifyingKey, Proof};
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

/// The most proofs that are under way on a GPU: with a streamed key they share a pass.
const GPU_PROOFS_MAX: usize = 4;

/// A witness, and how long it took if it was made here.
type Made = (PackedWitness, Option<Duration>);

/// A partition's proof, with the times of its phases.
type Proven = Result<(Proof, PhaseTimes, Option<Duration>), Failure>;

/// What the threads of one request share.
struct Work<'a> {
    prover: &'a Prover<'a>,
    pvk: PreparedVerifyingKey,
    /// The partition whose turn is next.
    next: AtomicUsize,
    /// Whether a failure has ended the work.
    stopped: AtomicBool,
    /// Witnesses of the first partitions.
    made: Mutex<Vec<Option<PackedWitness>>>,
    /// As many as proofs may be under way.
    permits: Permits,
}

impl Prover<'_> {
    /// Proves all partitions and hands each proof, verified, to `each`, in order. `made` are the
    /// witnesses of the first partitions; the others are made here, the next one while proofs are under
    /// way.
    ///
    /// # Errors
    /// The first failure of a witness, a proof or `each`; proofs after it may be under way, none is
    /// begun.
    pub fn prove(
        &self,
        made: Vec<PackedWitness>,
        phases: &mut Phases,
        mut each: impl FnMut(usize, &Proof) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = self.inputs.len();
        let plan = self.threads(made.len());
        let work = Work {
            prover: self,
            pvk: PreparedVerifyingKey::from(self.key.vk()),
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            made: Mutex::new(made.into_iter().map(Some).collect()),
            permits: Permits::new(plan.proofs),
        };
        // One partition has no line of its own: its phases show.
        let stage = (count > 1).then(|| self.progress.stage(label(0, count), count as u64));
        let mut take = |k: usize, (proof, times, witness): (Proof, PhaseTimes, _)| {
            if let Some(time) = witness {
                phases.add("witness", time);
            }
            for (phase, time) in times.iter() {
                phases.add(&format!("prove: {phase}"), time);
            }
            if let Some(stage) = &stage {
                stage.advance(1);
                stage.rename(label((k + 1).min(count - 1), count));
            }
            each(k, &proof)
        };
        thread::scope(|scope| {
            let (send, done) = mpsc::channel();
            for _ in 0..plan.threads {
                let (work, send) = (&work, send.clone());
                scope.spawn(move || work.run(&send));
            }
            drop(send);
            let result = in_order(count, &done, &mut take);
            work.stopped.store(true, Ordering::Relaxed);
            result
        })
    }

    /// How many proofs may be under way, and how many threads make them. One thread more makes the next
    /// witness, if there is memory for it.
    fn threads(&self, made: usize) -> Threads {
        let kind = self.backend.device().kind;
        let count = self.inputs.len();
        let most = match kind {
            DeviceKind::Gpu => count.clamp(1, GPU_PROOFS_MAX),
            _ => 1,
        };
        let needed = worker::unit_bytes(self.circuit, kind).max(1);
        let room = memory::available().map_or(1, |free| free / needed);
        let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
        let proofs = most.min(room);
        let ahead = usize::from(room > proofs && made < count);
        Threads {
            proofs,
            threads: (proofs + ahead).min(count),
        }
    }

    /// The witness of partition `k`, which the check has gone through before.
    fn witness(&self, k: usize) -> Result<Made, Failure> {
        let start = Instant::now();
        let _line = self.progress.stage("making the witness", 0);
        let witness = self.generator.witness(self.request, k, self.circuit)?;
        Ok((witness, Some(start.elapsed())))
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
}

/// How a request is shared out.
struct Threads {
    proofs: usize,
    threads: usize,
}

impl Work<'_> {
    /// Takes partition after partition until none is left or one has failed.
    fn run(&self, done: &mpsc::Sender<(usize, Proven)>) {
        while !self.stopped.load(Ordering::Relaxed) {
            let k = self.next.fetch_add(1, Ordering::Relaxed);
            if k >= self.prover.inputs.len() {
                break;
            }
            let proven = self.prove(k);
            if proven.is_err() {
                self.stopped.store(true, Ordering::Relaxed);
            }
            // Nobody listens any more after a failure.
            let _ = done.send((k, proven));
        }
    }

    fn prove(&self, k: usize) -> Proven {
        let prover = self.prover;
        let made = lock(&self.made).get_mut(k).and_then(Option::take);
        let (witness, time) = match made {
            Some(witness) => (witness, None),
            None => prover.witness(k)?,
        };
        prover.verify_inputs(k, &witness)?;
        let _permit = self.permits.take();
        let (proof, times) = groth16::prove(
            prover.backend,
            prover.circuit,
            prover.key,
            &self.pvk,
            &witness,
            Blinding::random()?,
        )?;
        Ok((proof, times, time))
    }
}

/// Hands on results in the order of their numbers, up to the first failure.
fn in_order<T>(
    count: usize,
    done: &mpsc::Receiver<(usize, Result<T, Failure>)>,
    mut take: impl FnMut(usize, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut early = BTreeMap::new();
    for next in 0..count {
        let result = loop {
            if let Some(result) = early.remove(&next) {
                break result;
            }
            let (k, result) = done.recv().map_err(|_| stopped())?;
            early.insert(k, result);
        };
        take(next, result?)?;
    }
    Ok(())
}

/// Rights to prove, as many as proofs may be under way.
struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

/// One of them, until it is dropped.
struct Permit<'a>(&'a Permits);

impl Permits {
    fn new(count: usize) -> Self {
        Permits {
            free: Mutex::new(count),
            returned: Condvar::new(),
        }
    }

    /// Waits for one; who has one ends or fails in the time that the device is given.
    fn take(&self) -> Permit<'_> {
        let free = lock(&self.free);
        let mut free = self
            .returned
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.returned.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn label(k: usize, count: usize) -> String {
    format!("partition {} of {count}", k + 1)
}

fn stopped() -> Failure {
    Failure::new(
        Exit::Internal,
        "PROVING_STOPPED",
        "a thread that makes proofs stopped",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_up_to_the_first_failure() {
        let (send, done) = mpsc::channel();
        for k in [2, 0, 1, 4] {
            let result = if k == 4 { Err(stopped()) } else { Ok(10 * k) };
            send.send((k, result)).expect("it is received");
        }
        let mut taken = Vec::new();
        let mut take = |k, value| {
            taken.push((k, value));
            Ok(())
        };
        in_order(3, &done, &mut take).expect("three are there");
        send.send((1, Err(stopped()))).expect("it is received");
        send.send((0, Ok(7))).expect("it is received");
        assert!(in_order(3, &done, &mut take).is_err());
        drop(send);
        assert!(in_order(1, &done, &mut take).is_err());
        assert_eq!(taken, [(0, 0), (1, 10), (2, 20), (0, 7)]);
    }

    #[test]
    fn no_more_are_under_way_than_there_are_permits() {
        let (permits, now, most) = (Permits::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _permit = permits.take();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(2));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((now.into_inner(), most.into_inner()), (0, 2));
    }
}
