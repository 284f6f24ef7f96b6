//! What can go wrong with a call to the service.

use crate::scheduler::Refusal;

/// Why a call was not answered as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The submission is not taken.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no such job.
    #[error("job not found: {0}")]
    UnknownJob(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The service has ended.
    #[error("the engine has stopped; start the daemon again")]
    Stopped,
    /// A thread could not be started.
    #[error("cannot start the thread {name}: {source}; raise the limit of processes (ulimit -u)")]
    Thread {
        /// Its name.
        name: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// Stable upper-case code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::UnknownJob(_) => "JOB_NOT_FOUND",
            Self::Store(error) => error.code(),
            Self::Stopped => "SHUTTING_DOWN",
            Self::Thread { .. } => "THREAD",
        }
    }
}
