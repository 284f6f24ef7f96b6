//! A job as the scheduler sees it.

use std::sync::Arc;

use filecoin::{CircuitId, ProofKind};
use store::{Digest, JobId, JobState, Priority, UnitKey};

use super::config::Millis;
use super::event::{DeviceId, LeaseId, Ticket};

/// Where a unit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitState {
    /// Waits for a device.
    Ready,
    /// A device has it, or its proof is being checked.
    Leased(LeaseId),
    /// Its proof is stored.
    Proven,
}

/// One unit of an open job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) state: UnitState,
    pub(super) failures: u32,
    /// Devices on which a try failed.
    pub(super) failed_on: Vec<DeviceId>,
    /// Devices that made a wrong proof of it.
    pub(super) wrong_on: Vec<DeviceId>,
}

impl Unit {
    pub(super) fn new(failures: u32) -> Self {
        Self {
            state: UnitState::Ready,
            failures,
            failed_on: Vec::new(),
            wrong_on: Vec::new(),
        }
    }
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Being stored; no unit may start. Holds the state to return to if that fails.
    Admitting {
        /// `None` for a new job.
        before: Option<JobState>,
    },
    /// Units wait or run.
    Proving,
    /// All units are proven, the proofs are being joined; until then at the latest.
    Assembling {
        /// When that is given up.
        limit: Millis,
    },
    /// Over.
    Ended(JobState),
}

/// The order of the queue: classes first, lower value first.
///
/// `Lane` is WinningPoSt, whatever its priority. The rest are the priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Lane,
    Critical,
    High,
    Normal,
    Low,
}

impl Class {
    /// The classes below the lane, highest first.
    pub(super) const BELOW_LANE: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    pub(super) fn of(kind: ProofKind, priority: Priority) -> Self {
        match (kind, priority) {
            (ProofKind::Winning, _) => Self::Lane,
            (_, Priority::Critical) => Self::Critical,
            (_, Priority::High) => Self::High,
            (_, Priority::Normal) => Self::Normal,
            (_, Priority::Low) => Self::Low,
        }
    }
}

/// A job, open or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) id: JobId,
    /// Order of acceptance of the present attempt.
    pub(super) sequence: u64,
    /// Order of the last submission.
    pub(super) submitted: u64,
    pub(super) name: String,
    pub(super) request_id: String,
    pub(super) digest: Digest,
    pub(super) client: Arc<str>,
    pub(super) circuit: CircuitId,
    pub(super) priority: Priority,
    pub(super) deadline: Option<Millis>,
    pub(super) accepted: Millis,
    pub(super) payload_bytes: u64,
    pub(super) unit_bytes: u64,
    pub(super) unit_count: u32,
    pub(super) attempt: u32,
    pub(super) phase: Phase,
    /// Empty once the attempt has ended.
    pub(super) units: Vec<Unit>,
    /// Units in state `Ready`.
    pub(super) ready: usize,
    /// Units in state `Proven`.
    pub(super) proven: usize,
    /// Whether a unit has been leased.
    pub(super) started: bool,
    /// How often it was passed over for a job whose key was loaded.
    pub(super) passed_over: u32,
    /// Questions to answer once the job is stored.
    pub(super) tickets: Vec<Ticket>,
}

impl Job {
    pub(super) fn class(&self) -> Class {
        Class::of(self.circuit.kind, self.priority)
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_))
    }

    pub(super) fn is_admitting(&self) -> bool {
        matches!(self.phase, Phase::Admitting { .. })
    }

    /// Whether its units may be leased.
    pub(super) fn is_queued(&self) -> bool {
        self.phase == Phase::Proving && self.ready > 0
    }

    pub(super) fn key(&self, index: usize) -> UnitKey {
        UnitKey {
            job: self.id,
            attempt: self.attempt,
            index: u32::try_from(index).expect("invariant: a job's units are counted in u32"),
        }
    }

    /// Position in its client's queue: earliest deadline first, then first come.
    pub(super) fn rank(&self) -> Rank {
        Rank {
            deadline: self.deadline.unwrap_or(Millis::MAX),
            sequence: self.sequence,
            job: self.id,
        }
    }
}

/// See [`Job::rank`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) deadline: Millis,
    pub(super) sequence: u64,
    pub(super) job: JobId,
}
