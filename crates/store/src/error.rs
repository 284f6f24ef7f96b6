//! What can go wrong with a store. Each message names the thing, the cause and the remedy.

use std::io;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::path::PathBuf;

use crate::record::{Digest, JobId};

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A condition of a change did not hold: somebody else was faster, or the caller's view
    /// is old. Nothing of the batch was written.
    #[error(
        "change {index} of the batch was not made: {cause}; read the job again and decide anew"
    )]
    Conflict {
        /// Position of the change in its batch.
        index: usize,
        /// Which condition.
        cause: Conflict,
    },

    /// There is no job with this id.
    #[error("job {0} is not in the store; it never was accepted, or its result has expired")]
    UnknownJob(JobId),

    /// Another process has the store open.
    #[error(
        "the store {} is in use by another process; stop that one, or give this one another \
         folder ([store] path)", .0.display()
    )]
    InUse(PathBuf),

    /// Another program holds a lock inside the database.
    #[error(
        "the database {} is locked by another program (waited {waited_ms} ms); close the program \
         that has it open, for example a sqlite3 shell", .path.display()
    )]
    Busy {
        /// The database file.
        path: PathBuf,
        /// How long it was tried.
        waited_ms: u64,
    },

    /// No room.
    #[error(
        "no space left for {} ({action}); free space on that file system, raise a quota or limit of \
         file sizes (ulimit -f), or lower [store] max_results or [limits] max_payload_bytes",
        .path.display()
    )]
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// Which step failed.
        action: &'static str,
    },

    /// The database is damaged.
    #[error(
        "the database {} is damaged: {cause}; restore it from a copy, or move the whole folder \
         away to start with an empty store (jobs in it are lost, clients submit them again)",
        .path.display()
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What the check found.
        cause: String,
    },

    /// The database was written by a newer version.
    #[error(
        "the database {} has schema {found}, this program knows {known}; use the newer program, \
         or give this one another folder ([store] path)", .path.display()
    )]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },

    /// The file is somebody else's database.
    #[error(
        "{} is an SQLite database of another program (application id {found:#x}); give the store \
         a folder of its own ([store] path)", .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its application id.
        found: i64,
    },

    /// A payload file is not what was written.
    #[error(
        "payload {digest} is damaged: its bytes hash to {found}; submit the request again, and \
         check the disk"
    )]
    DamagedPayload {
        /// Name of the payload.
        digest: Digest,
        /// What it hashes to now.
        found: Digest,
    },

    /// A payload file is gone.
    #[error("payload {0} is missing; submit the request again")]
    MissingPayload(Digest),

    /// The payload is too large.
    #[error("the payload is larger than {limit} bytes; a request of any kind is smaller")]
    PayloadTooLarge {
        /// The limit.
        limit: u64,
    },

    /// A stored value cannot be read back.
    #[error("job {job}: stored {field} is not valid ({cause}); the database was changed by hand")]
    InvalidRecord {
        /// The job, as far as it is known.
        job: String,
        /// The column.
        field: &'static str,
        /// What is wrong.
        cause: String,
    },

    /// The operating system refused.
    #[error("cannot {action} {}: {source}; check the path, its owner and its file system", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },

    /// Any other answer of the database.
    #[error("database {}: {cause}; this is a fault of the program or of the disk, please report it", .path.display())]
    Database {
        /// The database file.
        path: PathBuf,
        /// Its message.
        cause: String,
    },
}

/// Which condition of a change failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The id, name or (request id, digest) is taken.
    #[error("a job with this id, name or (request id, digest) exists")]
    JobExists,
    /// The job is absent, finished, unfinished or in another attempt, as the case may be.
    #[error("the job is not in the expected state or attempt")]
    JobState,
    /// Somebody holds the unit, or it is proven.
    #[error("the unit is leased to another holder or already proven")]
    UnitTaken,
    /// The lease token does not hold the unit.
    #[error("the lease does not hold the unit")]
    NotHolder,
}

impl Error {
    /// Stable upper-case code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "STORE_CONFLICT",
            Self::UnknownJob(_) => "JOB_NOT_FOUND",
            Self::InUse(_) => "STORE_IN_USE",
            Self::Busy { .. } => "STORE_BUSY",
            Self::DiskFull { .. } => "DISK_FULL",
            Self::Damaged { .. } | Self::InvalidRecord { .. } => "STORE_DAMAGED",
            Self::NewerSchema { .. } => "STORE_SCHEMA",
            Self::Foreign { .. } => "STORE_FOREIGN",
            Self::DamagedPayload { .. } | Self::MissingPayload(_) => "PAYLOAD_DAMAGED",
            Self::PayloadTooLarge { .. } => "PAYLOAD_TOO_LARGE",
            Self::Io { .. } => "STORE_IO",
            Self::Database { .. } => "STORE_DATABASE",
        }
    }

    /// Whether the same call may succeed later without any change by the caller.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::DiskFull { .. } | Self::Io { .. }
        )
    }

    /// Wraps an I/O error, telling a full disk (or quota) from the rest.
    #[cfg(feature = "sqlite")]
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            // The third is the limit of file sizes (ulimit -f).
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::DiskFull { path, action },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}
