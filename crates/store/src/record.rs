//! What is stored: plain values, without policy. Times are milliseconds since the Unix epoch,
//! lengths and memory are bytes.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A job's internal identity, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(Uuid);

impl JobId {
    /// A fresh one from the operating system's randomness.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// SHA-256 of a payload: its name, and with the request id the identity of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A client's wish; the numbers are those of `cuzk.v1.Priority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Whenever there is nothing else.
    Low = 1,
    /// PoRep and SnapDeals.
    Normal = 2,
    /// WindowPoSt.
    High = 3,
    /// WinningPoSt.
    Critical = 4,
}

impl Priority {
    /// All, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The priority with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|&priority| priority as i64 == number)
    }
}

/// Where an attempt at a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Accepted and not ended: queued or being proven.
    Open = 0,
    /// There is a proof.
    Completed = 1,
    /// It ended with a [`Failure`].
    Failed = 2,
    /// A client cancelled it.
    Cancelled = 3,
}

impl JobState {
    /// The state with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Open, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|&state| state as i64 == number)
    }
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable upper-case code.
    pub code: String,
    /// One line, never empty, without payload bytes.
    pub message: String,
}

/// Milliseconds that the parts of a proof took; of a job, the sums over its units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Loading keys.
    pub load_ms: u64,
    /// Vanilla check and witness.
    pub witness_ms: u64,
    /// On the device.
    pub device_ms: u64,
}

impl std::ops::AddAssign for Timings {
    fn add_assign(&mut self, other: Self) {
        self.load_ms = self.load_ms.saturating_add(other.load_ms);
        self.witness_ms = self.witness_ms.saturating_add(other.witness_ms);
        self.device_ms = self.device_ms.saturating_add(other.device_ms);
    }
}

/// A job, without its payload and proof bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Internal identity.
    pub id: JobId,
    /// The client's `job_id`: unique among the stored jobs.
    pub name: String,
    /// The client's idempotency key; any text, empty for none.
    pub request_id: String,
    /// Digest of the payload.
    pub digest: Digest,
    /// On whose behalf, for fairness.
    pub client: String,
    /// Circuit name, for example `porep-32g`.
    pub circuit: String,
    /// Effective priority.
    pub priority: Priority,
    /// After this time nobody wants the proof.
    pub deadline_ms: Option<u64>,
    /// When the present attempt was accepted.
    pub accepted_ms: u64,
    /// When a client last submitted this request; the newest job of a request id is the one
    /// that the bare id means.
    pub submitted_ms: u64,
    /// Length of the payload.
    pub payload_bytes: u64,
    /// Host memory that one unit takes while it is worked on.
    pub unit_bytes: u64,
    /// How many units the job has, at least 1.
    pub units: u32,
    /// 1 for the first run, one more for each run after a failure or cancellation.
    pub attempt: u32,
    /// Where the present attempt stands.
    pub state: JobState,
    /// When its first unit was leased.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub finished_ms: Option<u64>,
    /// Why it failed, when it did.
    pub failure: Option<Failure>,
    /// Sums over the proven units.
    pub timings: Timings,
    /// Whether the proof was made with a test key.
    pub test_key: bool,
}

/// One unit of the present attempt of a job that has been touched: leased, failed or proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRecord {
    /// Partition number.
    pub index: u32,
    /// Failed tries so far.
    pub failures: u32,
    /// Who is at work on it.
    pub lease: Option<LeaseRecord>,
    /// Whether its proof is stored.
    pub proven: bool,
}

/// A claim on a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The holder's own number for the claim; with the holder it is unique.
    pub token: u64,
    /// Which engine (one per host) holds it.
    pub holder: String,
    /// From then on others may claim the unit.
    pub expires_ms: u64,
}

/// A unit of one attempt of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitKey {
    /// The job.
    pub job: JobId,
    /// The attempt, as in [`JobRecord::attempt`].
    pub attempt: u32,
    /// Partition number.
    pub index: u32,
}

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With the proof bytes that the client gets.
    Completed {
        /// All of them.
        proof: Vec<u8>,
        /// Whether a test key made them.
        test_key: bool,
    },
    /// With a reason.
    Failed(Failure),
    /// By a client's wish.
    Cancelled,
}

/// One conditional change. A batch is applied wholly or not at all; the conditions make each
/// a compare-and-set, so that several engines can share one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new job, if neither its id, nor its name, nor its (non-empty request id, digest) exists.
    Insert(Box<JobRecord>),
    /// A client submitted the request again: note when, raise the priority if it is higher.
    Join {
        /// The job.
        job: JobId,
        /// When.
        submitted_ms: u64,
        /// The priority that it has from now on at least.
        priority: Priority,
    },
    /// A new attempt, if the job has failed or was cancelled in the attempt before.
    Restart {
        /// The job.
        job: JobId,
        /// The new attempt's number.
        attempt: u32,
        /// When it was accepted.
        accepted_ms: u64,
        /// Its priority.
        priority: Priority,
        /// Its deadline.
        deadline_ms: Option<u64>,
    },
    /// A lease, if the job is open in this attempt and the unit neither proven nor held by an
    /// unexpired lease.
    Claim {
        /// Which unit.
        unit: UnitKey,
        /// The lease.
        lease: LeaseRecord,
        /// The time against which an older lease is judged.
        now_ms: u64,
    },
    /// The end of a lease without a proof, if it is the one that holds the unit.
    Release {
        /// Which unit.
        unit: UnitKey,
        /// The lease's token.
        token: u64,
        /// The lease's holder.
        holder: String,
        /// Whether the try counts as failed.
        failed: bool,
    },
    /// The end of a lease with a verified proof, if it is the one that holds the unit.
    Prove {
        /// Which unit.
        unit: UnitKey,
        /// The lease's token.
        token: u64,
        /// The lease's holder.
        holder: String,
        /// The unit's proof bytes.
        proof: Vec<u8>,
        /// What it took.
        timings: Timings,
    },
    /// The end of an attempt, if it is open.
    Finish {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// How.
        end: End,
        /// When.
        finished_ms: u64,
    },
}
