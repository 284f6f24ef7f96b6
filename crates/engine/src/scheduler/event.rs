//! What happens to the scheduler, and what it wants done.

use std::fmt;

use filecoin::CircuitId;
use store::{Digest, Failure, JobId, JobRecord, OpenJob, Priority, UnitKey};

use super::config::Millis;
use super::refusal::Refusal;

/// Number of a device, stable while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

/// Which of a device's successive processes; what an older one still says is ignored.
pub type Incarnation = u32;

/// Number of a lease: one unit on one device, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// Number by which the caller knows which question a [`Reply`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A decoded request whose payload is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The id that the job gets if it is a new one.
    pub id: JobId,
    /// The client's idempotency key; empty for none.
    pub request_id: String,
    /// Digest of the payload.
    pub digest: Digest,
    /// On whose behalf.
    pub client: String,
    /// The circuit of its units.
    pub circuit: CircuitId,
    /// The client's wish, already defaulted by kind.
    pub priority: Priority,
    /// After this time the proof is of no use.
    pub deadline_ms: Option<Millis>,
    /// Units, 1 or more.
    pub units: u32,
    /// Host memory that a unit takes while at work, bytes.
    pub unit_bytes: u64,
    /// Length of the payload, bytes.
    pub payload_bytes: u64,
}

/// What a device is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its number.
    pub id: DeviceId,
    /// The circuits that it can serve.
    pub circuits: Vec<CircuitId>,
    /// So many units run on it at a time, at least one, until it says otherwise.
    pub at_a_time: usize,
    /// And so many more of the lane, while it has the keys of all.
    pub lane_places: usize,
    /// So many units beside the running ones may be prepared, and as many of the lane.
    pub look_ahead: usize,
}

/// How bad a failed try was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request cannot be proven by anybody, for example its vanilla proof is wrong.
    Request,
    /// The circuit's parameter file is missing, damaged or not to be trusted: no device of this
    /// host can prove the job.
    Parameters,
    /// The job's payload is gone from the store, or damaged.
    Payload,
    /// This try failed; the device can go on.
    Try,
    /// This try failed and the device's process must be replaced, for example after a CUDA
    /// error that sticks to the context.
    Device,
}

/// What the check of a returned proof said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It verifies.
    Right,
    /// It does not.
    Wrong,
    /// It could not be checked, for this reason.
    Unknown(String),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An open job from the store, before anything else happens.
    Restore(Box<OpenJob>),
    /// An ended job from the store, before anything else happens.
    RestoreEnded(Box<JobRecord>),
    /// A client's request.
    Submit {
        /// For the reply.
        ticket: Ticket,
        /// The request.
        submission: Box<Submission>,
    },
    /// The store has the job (or new attempt) that [`Write::Insert`] or [`Write::Restart`] named.
    Stored {
        /// The job.
        job: JobId,
    },
    /// The store could not take it.
    NotStored {
        /// The job.
        job: JobId,
        /// Why.
        cause: String,
    },
    /// A client's wish to end a job.
    Cancel {
        /// For the reply.
        ticket: Ticket,
        /// Any form of the job's name.
        name: String,
    },
    /// The store has dropped an ended job.
    Forget {
        /// The job.
        job: JobId,
    },
    /// The memory budget changed, bytes.
    Budget {
        /// The new one.
        bytes: u64,
    },
    /// There is a device; it is to be started.
    DeviceAdded(DeviceSpec),
    /// A device's process is ready for units.
    DeviceReady {
        /// The device.
        device: DeviceId,
        /// The process.
        incarnation: Incarnation,
    },
    /// A device's process has ended, by itself or as told.
    DeviceStopped {
        /// The device.
        device: DeviceId,
        /// The process.
        incarnation: Incarnation,
        /// What it died of.
        cause: String,
    },
    /// An operator wants a quarantined device back.
    DeviceReleased {
        /// The device.
        device: DeviceId,
    },
    /// A sign of life.
    Heartbeat {
        /// The device.
        device: DeviceId,
        /// The process.
        incarnation: Incarnation,
    },
    /// A device has a circuit's key loaded, or no longer.
    KeyLoaded {
        /// The device.
        device: DeviceId,
        /// The circuit.
        circuit: CircuitId,
        /// Whether it is there now.
        loaded: bool,
    },
    /// A device can serve one more circuit from now on: its key has come.
    CircuitServed {
        /// The device.
        device: DeviceId,
        /// The circuit.
        circuit: CircuitId,
    },
    /// So many units run on a device at a time from now on, until its process ends: it depends on the keys that
    /// it has loaded, and how.
    DeviceTakes {
        /// The device.
        device: DeviceId,
        /// The process.
        incarnation: Incarnation,
        /// At least one.
        at_a_time: usize,
    },
    /// A device is done with a unit, whose proof is made without it: it is free for the next.
    UnitLeftDevice {
        /// The lease.
        lease: LeaseId,
    },
    /// A process has handed over a proof, not yet checked.
    UnitReturned {
        /// The lease.
        lease: LeaseId,
    },
    /// A returned proof has been checked.
    UnitJudged {
        /// The lease.
        lease: LeaseId,
        /// What came out.
        verdict: Verdict,
    },
    /// A device has given a unit up.
    UnitFailed {
        /// The lease.
        lease: LeaseId,
        /// How bad it is.
        fault: Fault,
        /// One line for the client and the log.
        cause: String,
    },
    /// A device has dropped a unit as [`Action::Discard`] told it.
    UnitDiscarded {
        /// The lease.
        lease: LeaseId,
    },
    /// The job's proofs have been joined (or could not be).
    Assembled {
        /// The job.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Whether it worked.
        result: Result<(), String>,
    },
    /// The store takes no writes: what is decided from now on does not happen. May be said again.
    StoreFails,
    /// The store takes writes again, and what was decided has happened.
    StoreWorks,
    /// Take no more jobs, let running units end.
    Drain,
    /// Time has passed; due at [`Scheduler::next_wake`](super::Scheduler::next_wake).
    Tick,
}

/// Something to do. Actions are carried out in order; none before the writes in front of it
/// are durable, but for the start of a unit whose claim is: nothing else depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Make this durable.
    Persist(Write),
    /// Answer a client.
    Reply {
        /// The question.
        ticket: Ticket,
        /// The answer.
        reply: Reply,
    },
    /// Get a unit ready (decode, witness) while the device works on another.
    Prepare {
        /// On which device.
        device: DeviceId,
        /// Under which lease.
        lease: LeaseId,
        /// Which unit.
        unit: UnitKey,
    },
    /// Prove a unit now, prepared or not.
    Start {
        /// On which device.
        device: DeviceId,
        /// Under which lease.
        lease: LeaseId,
        /// Which unit.
        unit: UnitKey,
    },
    /// Drop a prepared unit.
    Discard {
        /// On which device.
        device: DeviceId,
        /// Which lease.
        lease: LeaseId,
    },
    /// Join the proofs of a job whose units are all proven.
    Assemble {
        /// The job.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// A job has ended and the store knows: tell those who wait.
    Ended {
        /// The job.
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// Start a device's process.
    StartDevice {
        /// The device.
        device: DeviceId,
        /// The number of the process.
        incarnation: Incarnation,
    },
    /// End a device's process.
    StopDevice {
        /// The device.
        device: DeviceId,
        /// The number of the process.
        incarnation: Incarnation,
        /// Why.
        cause: String,
    },
    /// A device gets no more units until it is released: tell the operator.
    Quarantined {
        /// The device.
        device: DeviceId,
        /// Why.
        cause: String,
    },
    /// Draining is complete.
    Drained,
}

/// A change for the store; the caller adds proof bytes, which the scheduler never sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new job; answered by [`Event::Stored`] or [`Event::NotStored`].
    Insert(Box<JobRecord>),
    /// A new attempt; answered by [`Event::Stored`] or [`Event::NotStored`].
    Restart {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// When it was accepted.
        accepted_ms: Millis,
        /// Its priority.
        priority: Priority,
        /// Its deadline.
        deadline_ms: Option<Millis>,
    },
    /// A client submitted an open or completed job again.
    Join {
        /// The job.
        job: JobId,
        /// When.
        submitted_ms: Millis,
        /// Its priority from now on.
        priority: Priority,
    },
    /// A unit is leased.
    Claim {
        /// The unit.
        unit: UnitKey,
        /// The lease.
        lease: LeaseId,
        /// Until when, unless renewed.
        expires_ms: Millis,
        /// Since when.
        now_ms: Millis,
    },
    /// A lease ended without a proof.
    Release {
        /// The unit.
        unit: UnitKey,
        /// The lease.
        lease: LeaseId,
        /// Whether that counts as a failed try.
        failed: bool,
    },
    /// A lease ended with a verified proof: the caller has its bytes.
    Prove {
        /// The unit.
        unit: UnitKey,
        /// The lease.
        lease: LeaseId,
    },
    /// An attempt ended; of a completed one the caller has the bytes.
    Finish {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// When.
        finished_ms: Millis,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a proof.
    Completed,
    /// With a reason.
    Failed(Failure),
    /// By a client's wish.
    Cancelled,
}

/// How a submission was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// As a new job.
    New,
    /// As a new attempt of a job that had failed or was cancelled.
    Again,
    /// It is the same request as an open job.
    Joined,
    /// It is the same request as a completed job whose proof is kept.
    Completed,
}

/// An answer to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The submission is stored.
    Admitted {
        /// The job.
        job: JobId,
        /// The client's name for it.
        name: String,
        /// How it was taken.
        how: Admitted,
        /// Open jobs before it.
        ahead: u32,
    },
    /// The submission is not taken.
    Refused(Refusal),
    /// The job, if there is such an open one, is cancelled.
    Cancelled {
        /// Which.
        job: Option<JobId>,
        /// Whether a unit of it was running.
        was_running: bool,
    },
}
