//! A circuit and a key, ready to prove with.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groth16::key::{FileStamp, ProvingKey};
use groth16::progress::Progress;
use groth16::{GroupSums, PhaseTimes};
use r1cs::PackedWitness;

use super::clock::Clock;
use super::front::Shared;
use super::plan::{ProofPlan, Way};
use super::pool::{Lent, Pool};
use super::streamed::{Batch, Held, NotDone, Pass, StreamedSums};
use super::unit::{Stages, Unit};
use super::{BackendFailure, key};
use crate::device::{Arena, Device, Ledger, Lifetime};
use crate::error::{CudaError, Result};

/// Which circuit and key are on the device.
#[derive(PartialEq, Eq)]
pub struct Identity {
    pub circuit: [u8; 32],
    pub key: FileStamp,
}

/// A circuit and a key on the device, with the memory of the proofs under way.
pub struct Loaded {
    pub identity: Identity,
    pub plan: ProofPlan,
    /// Free memory before the arena was taken.
    pub free_before: u64,
    shared: Shared,
    prover: Prover,
    /// Everything above lies in it.
    _arena: Arena,
    /// Closes its channel when all memory is free again: the last field to be dropped.
    _gone: Sender<()>,
}

enum Prover {
    /// The key is on the device: each proof goes its own way.
    Resident(Arc<Pool<Unit>>),
    /// The key passes through.
    Streamed(Box<Streamed>),
}

struct Streamed {
    held: Arc<Pool<Held>>,
    batch: Batch<Lent<Held>, Result<(GroupSums, PhaseTimes)>>,
    pass: Mutex<Pass>,
}

impl Loaded {
    /// Takes the memory and loads the key. The channel is closed when the memory is free again.
    ///
    /// # Errors
    /// A device that fails, points that cannot be read.
    pub fn new(
        device: &Device,
        plan: ProofPlan,
        identity: Identity,
        key: &ProvingKey,
        progress: &dyn Progress,
    ) -> std::result::Result<(Self, Receiver<()>), BackendFailure> {
        let ledgers = &plan.ledgers;
        let mut ledger = Ledger::new(ledgers.resident.name().to_owned());
        let lifetime = Lifetime::RESIDENT;
        let resident_room = ledger.reserve_ledger(&ledgers.resident, lifetime);
        let mut room = |name: String, bytes: u64| ledger.reserve(name, bytes as usize, lifetime);
        let unit_rooms: Vec<_> = (0..plan.units)
            .map(|unit| room(format!("proof {unit}"), plan.unit_bytes()))
            .collect();
        let work_room = room("a pass over the key".to_owned(), plan.work_bytes());
        let free_before = device.free_bytes()?;
        let arena = device.arena(&ledger)?;
        let resident = arena.within(resident_room, &ledgers.resident);
        let unit_ledger = ledgers.held.as_ref().unwrap_or(&ledgers.work);
        let units: Vec<Arena> = unit_rooms
            .iter()
            .map(|room| arena.within(*room, unit_ledger))
            .collect();
        let (shared, prover) = match &plan.way {
            Way::Resident { sums, .. } => {
                let work = |ledger: &Ledger| arena.within(unit_rooms[0], ledger);
                // Before the key, whose tails follow from its lists; the first proof's memory is then free again.
                let shared = Shared::bind(&plan.fixed, device, &resident, &units[0])?;
                key::load(sums, &shared, device, &resident, work, key, progress)?;
                let bind = |unit| Unit::bind(&plan.fixed, sums, device, &resident, unit);
                let units = units.iter().map(bind).collect::<Result<_>>()?;
                (shared, Prover::Resident(Pool::new(units)))
            }
            Way::Streamed(sums) => {
                let work = arena.within(work_room, &ledgers.work);
                let places = [&resident, &work];
                let pass = Pass::load(&plan.fixed, sums, device, places, key, progress)?;
                let shared = Shared::bind(&plan.fixed, device, &resident, &units[0])?;
                let bind = |held| Held::bind(&plan.fixed, sums, device, held, &work);
                let held = units.iter().map(bind).collect::<Result<_>>()?;
                let streamed = Streamed {
                    held: Pool::new(held),
                    batch: Batch::new(plan.units, gather(&plan)),
                    pass: Mutex::new(pass),
                };
                (shared, Prover::Streamed(Box::new(streamed)))
            }
        };
        let (sender, gone) = channel();
        let loaded = Loaded {
            identity,
            plan,
            free_before,
            shared,
            prover,
            _arena: arena,
            _gone: sender,
        };
        Ok((loaded, gone))
    }

    /// Proves with the next memory that is free, at the latest after `limit`.
    ///
    /// # Errors
    /// [`CudaError::Busy`] after that; a device that fails.
    pub fn prove(
        &self,
        witness: &PackedWitness,
        clock: &Clock,
        limit: Duration,
    ) -> Result<(GroupSums, PhaseTimes)> {
        match (&self.prover, &self.plan.way) {
            (Prover::Resident(units), Way::Resident { sums, .. }) => {
                let mut unit = take(units, limit)?;
                unit.prove(sums, &self.shared, witness, clock)
            }
            (Prover::Streamed(streamed), Way::Streamed(sums)) => {
                streamed.prove(sums, &self.shared, witness, (clock, limit))
            }
            _ => unreachable!("a prover is made after its plan"),
        }
    }

    /// Every stage of a proof, for comparisons.
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn stages(&self, witness: &PackedWitness, limit: Duration) -> Result<Stages> {
        match (&self.prover, &self.plan.way) {
            (Prover::Resident(units), Way::Resident { sums, .. }) => {
                let mut unit = take(units, limit)?;
                unit.stages(sums, &self.shared, witness)
            }
            (Prover::Streamed(streamed), Way::Streamed(sums)) => {
                let mut held = take(&streamed.held, limit)?;
                held.stage(witness)?;
                let mut pass = streamed.pass.lock().unwrap_or_else(PoisonError::into_inner);
                pass.stages(sums, &self.shared, &held)
            }
            _ => unreachable!("a prover is made after its plan"),
        }
    }
}

impl Streamed {
    fn prove(
        &self,
        sums: &StreamedSums,
        shared: &Shared,
        witness: &PackedWitness,
        (clock, limit): (&Clock, Duration),
    ) -> Result<(GroupSums, PhaseTimes)> {
        let mut held = take(&self.held, limit)?;
        held.stage(witness)?;
        let work = |jobs: &mut [Lent<Held>]| {
            let proofs: Vec<&Held> = jobs.iter().map(|held| &**held).collect();
            let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
            match pass.run(sums, shared, &proofs, clock) {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); proofs.len()],
            }
        };
        let done = self.batch.run(held, limit, work);
        let (_held, result) = done.map_err(|reason| match reason {
            NotDone::TimedOut => busy(limit),
            NotDone::Lost => CudaError::PassLost,
        })?;
        result
    }
}

/// How long a proof waits for others to share its pass with: a quarter of what a pass takes. A proof
/// that comes alone loses as much; one that finds company saves up to a whole pass.
fn gather(plan: &ProofPlan) -> Duration {
    if plan.units < 2 {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(plan.model_ms() * plan.units as f64 / 4e3)
}

fn take<T>(pool: &Arc<Pool<T>>, limit: Duration) -> Result<Lent<T>> {
    pool.take(limit).ok_or_else(|| busy(limit))
}

fn busy(limit: Duration) -> CudaError {
    CudaError::Busy {
        seconds: limit.as_secs(),
    }
}
