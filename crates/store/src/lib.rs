//! Durable jobs, units, results and payloads.
//!
//! [`Store`] is what the engine needs of a store, written for more than one implementation: the
//! database inside is never visible, every change is a compare-and-set ([`Change`]), and a lease
//! names its holder, so that several engines can share one queue. [`SqliteStore`] (feature
//! `sqlite`) keeps everything of one host in one folder.
//!
//! The store knows no scheduling policy: it refuses what contradicts its content and nothing else.

#![forbid(unsafe_code)]

mod error;
mod record;

#[cfg(feature = "sqlite")]
mod payload;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::io::Read;

pub use error::{Conflict, Error};
pub use record::{
    Change, Digest, End, Failure, JobId, JobRecord, JobState, LeaseRecord, Priority, Timings,
    UnitKey, UnitRecord,
};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

/// Result of a store call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How much of what has ended is kept. What is beyond any of the limits goes, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Age since the end of the job.
    pub max_age_ms: u64,
    /// Number of ended jobs.
    pub max_results: u64,
    /// Proof bytes of ended jobs, all together.
    pub max_result_bytes: u64,
    /// A payload that no open job needs is kept this long after it was written: it may belong
    /// to a submission under way.
    pub payload_grace_ms: u64,
}

impl Default for Retention {
    /// 24 hours, 10 000 results, 256 MiB of proofs, five minutes for payloads: a submission is in
    /// the database seconds after its payload is written, and a large PoRep has 51 MB.
    fn default() -> Self {
        Self {
            max_age_ms: 24 * 3600 * 1000,
            max_results: 10_000,
            max_result_bytes: 256 << 20,
            payload_grace_ms: 5 * 60 * 1000,
        }
    }
}

/// What a sweep removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Ended jobs.
    pub jobs: Vec<JobId>,
    /// Payloads.
    pub payloads: u64,
    /// Their bytes.
    pub payload_bytes: u64,
}

/// An open job with the state of its touched units, as recovery wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenJob {
    /// The job.
    pub job: JobRecord,
    /// Its touched units, ascending.
    pub units: Vec<UnitRecord>,
}

/// How many jobs there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted and not ended.
    pub open: u64,
    /// With a proof.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Payload bytes of the open ones.
    pub open_payload_bytes: u64,
}

/// Which jobs a listing shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<JobState>,
}

/// Durable jobs, units, results and payloads.
///
/// Every call blocks until the change is durable or the answer is read; call it from a thread
/// that may block. A call that returned `Ok` survives the loss of power.
pub trait Store: Send + Sync {
    /// Stores a payload and returns its digest and length. A payload that is there already is
    /// replaced by the same bytes, which heals a damaged file.
    ///
    /// Errors: [`Error::PayloadTooLarge`] beyond `limit` bytes, [`Error::DiskFull`].
    fn put_payload(&self, source: &mut dyn Read, limit: u64) -> Result<(Digest, u64)>;

    /// The bytes of a payload, checked against its digest.
    ///
    /// Errors: [`Error::MissingPayload`], [`Error::DamagedPayload`].
    fn payload(&self, digest: &Digest) -> Result<Vec<u8>>;

    /// Keeps a payload from sweeps for another grace period: called before a submission that was
    /// long in preparing names it.
    ///
    /// Errors: [`Error::MissingPayload`].
    fn renew_payload(&self, digest: &Digest) -> Result<()>;

    /// Removes a payload that turned out to be no request, unless an open job names it. Says
    /// whether there was one to remove.
    fn discard_payload(&self, digest: &Digest) -> Result<bool>;

    /// Makes all of the changes, in order, or none of them.
    ///
    /// Errors: [`Error::Conflict`] with the first whose condition does not hold.
    fn apply(&self, changes: &[Change]) -> Result<()>;

    /// The job with this id.
    fn job(&self, id: JobId) -> Result<Option<JobRecord>>;

    /// The proof bytes of a completed job, `None` while or if there are none.
    fn proof(&self, id: JobId) -> Result<Option<Vec<u8>>>;

    /// The proofs of an open job's proven units, by partition number ascending.
    fn unit_proofs(&self, id: JobId) -> Result<Vec<(u32, Vec<u8>)>>;

    /// All open jobs, in the order in which they came.
    fn open_jobs(&self) -> Result<Vec<OpenJob>>;

    /// All ended jobs that are kept, in the order in which they came.
    fn ended_jobs(&self) -> Result<Vec<JobRecord>>;

    /// Up to `limit` jobs, newest first, `offset` skipped.
    fn list(&self, filter: Filter, offset: u64, limit: u64) -> Result<Vec<JobRecord>>;

    /// How many jobs there are.
    fn counts(&self) -> Result<Counts>;

    /// Prolongs all leases of a holder; returns how many.
    fn renew(&self, holder: &str, expires_ms: u64) -> Result<u64>;

    /// Removes what retention does not keep.
    fn sweep(&self, retention: &Retention, now_ms: u64) -> Result<Swept>;
}
