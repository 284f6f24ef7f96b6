//! What can be seen from outside: the state of jobs, devices and queues, by copy.

use filecoin::{CircuitId, ProofKind};
use store::{JobId, JobState, Priority, UnitKey};

use super::Scheduler;
use super::config::Millis;
use super::device::{DeviceState, LeasePhase};
use super::event::{DeviceId, LeaseId};
use super::job::{Job, Phase, Unit, UnitState};

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// No unit has been started.
    Queued,
    /// At least one has.
    Running,
    /// Over.
    Ended(JobState),
}

/// Where a unit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitView {
    /// It waits.
    Ready,
    /// It is being prepared.
    Preparing(DeviceId),
    /// It is on the device.
    Proving(DeviceId),
    /// Its proof is being checked.
    Judging,
    /// Its proof is stored.
    Proven,
}

/// A job by copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The client's name for it.
    pub name: String,
    /// Its circuit.
    pub circuit: CircuitId,
    /// On whose behalf.
    pub client: String,
    /// Its priority.
    pub priority: Priority,
    /// When the present attempt was accepted.
    pub accepted_ms: Millis,
    /// The present attempt.
    pub attempt: u32,
    /// Where it stands.
    pub phase: JobPhase,
    /// Its units; empty once it has ended.
    pub units: Vec<UnitView>,
}

/// A device's condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceStatus {
    /// Its process is being started, or will be.
    Starting,
    /// It takes units.
    Ready,
    /// Its process is being ended.
    Stopping,
    /// It gets no units, for this reason.
    Quarantined(String),
}

/// A device by copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceView {
    /// Its number.
    pub id: DeviceId,
    /// Its condition.
    pub status: DeviceStatus,
    /// The job and unit that is longest on it, and since when.
    pub running: Option<(JobId, u32, Millis)>,
    /// Units prepared or being prepared for it.
    pub prepared: usize,
    /// Circuits whose key it has loaded.
    pub loaded: Vec<CircuitId>,
}

/// Open jobs of a kind: each is counted once, in one of the two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// No unit has been started.
    pub pending: u32,
    /// The others.
    pub in_progress: u32,
}

impl KindCounts {
    pub(super) fn of(&mut self, started: bool) -> &mut u32 {
        if started {
            &mut self.in_progress
        } else {
            &mut self.pending
        }
    }
}

impl Scheduler {
    /// The job with this id, open or kept.
    pub fn job(&self, id: JobId) -> Option<JobView> {
        self.jobs.get(&id).map(|job| self.job_view(job))
    }

    /// All open jobs, in no particular order.
    pub fn open_jobs(&self) -> impl Iterator<Item = JobView> + '_ {
        self.jobs
            .values()
            .filter(|job| job.is_open())
            .map(|job| self.job_view(job))
    }

    fn job_view(&self, job: &Job) -> JobView {
        JobView {
            id: job.id,
            name: job.name.clone(),
            circuit: job.circuit,
            client: job.client.to_string(),
            priority: job.priority,
            accepted_ms: job.accepted,
            attempt: job.attempt,
            phase: match job.phase {
                Phase::Ended(state) => JobPhase::Ended(state),
                _ if job.started => JobPhase::Running,
                _ => JobPhase::Queued,
            },
            units: job.units.iter().map(|unit| self.unit_view(unit)).collect(),
        }
    }

    fn unit_view(&self, unit: &Unit) -> UnitView {
        match unit.state {
            UnitState::Ready => UnitView::Ready,
            UnitState::Proven => UnitView::Proven,
            UnitState::Leased(lease) => match self.leases[&lease].phase {
                LeasePhase::Judging { .. } => UnitView::Judging,
                LeasePhase::Running { .. } => UnitView::Proving(self.leases[&lease].device),
                _ => UnitView::Preparing(self.leases[&lease].device),
            },
        }
    }

    /// All devices.
    pub fn devices(&self) -> impl Iterator<Item = DeviceView> + '_ {
        self.devices.values().map(|device| DeviceView {
            id: device.id,
            status: match (&device.quarantine, device.state) {
                (Some(cause), _) => DeviceStatus::Quarantined(cause.clone()),
                (None, DeviceState::Ready) => DeviceStatus::Ready,
                (None, DeviceState::Stopping { .. } | DeviceState::Stuck) => DeviceStatus::Stopping,
                (None, _) => DeviceStatus::Starting,
            },
            running: device
                .running
                .iter()
                .chain(&device.finishing)
                .next()
                .map(|id| {
                    let lease = &self.leases[id];
                    (lease.unit.job, lease.unit.index, lease.started)
                }),
            prepared: device.prepared.len(),
            loaded: device.loaded.iter().copied().collect(),
        })
    }

    /// Open jobs by kind, in the order of [`ProofKind::ALL`].
    pub fn counts(&self) -> [(ProofKind, KindCounts); 4] {
        ProofKind::ALL.map(|kind| (kind, self.kinds.get(&kind).copied().unwrap_or_default()))
    }

    /// The unit whose returned proof is to be checked under this lease, if the result is wanted.
    pub fn judging(&self, lease: LeaseId) -> Option<UnitKey> {
        let lease = self.leases.get(&lease)?;
        let judging = matches!(lease.phase, LeasePhase::Judging { .. }) && !lease.orphan;
        judging.then_some(lease.unit)
    }

    /// Whether a circuit's key is needed by open work: it must not be evicted.
    pub fn is_circuit_in_use(&self, circuit: CircuitId) -> bool {
        self.leases.values().any(|lease| lease.circuit == circuit)
    }

    /// Jobs with a unit waiting.
    pub fn queued_jobs(&self) -> usize {
        self.queue.len()
    }

    /// Memory held by units at work, and the budget, bytes.
    pub fn memory(&self) -> (u64, u64) {
        (self.memory_used, self.config.budget_bytes)
    }
}
