//! Why a submission is not taken, and the codes of failures. Each message names the thing, the
//! cause and the remedy.

use filecoin::CircuitId;
use store::Failure;

use super::config::Millis;

/// What the caller of a refused submission may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Try again later, here or elsewhere (gRPC `UNAVAILABLE`).
    Unavailable,
    /// Try again when there is less to do (gRPC `RESOURCE_EXHAUSTED`).
    Exhausted,
    /// The same submission is refused always (gRPC `INVALID_ARGUMENT` or `FAILED_PRECONDITION`).
    Never,
}

/// Why a submission is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The engine is about to end.
    #[error("the job is not accepted: the daemon is shutting down; submit again after its restart")]
    Draining,
    /// Too many open jobs.
    #[error(
        "the job is not accepted: {open} jobs are open and the limit is {limit}; submit again \
         later, or raise [limits] max_jobs"
    )]
    QueueFull {
        /// Open jobs.
        open: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many payload bytes.
    #[error(
        "the job is not accepted: with its {bytes} payload bytes the open jobs would hold more \
         than {limit}; submit again later, or raise [limits] max_payload_bytes"
    )]
    QueueBytesFull {
        /// Of this job.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// One unit is larger than the whole budget.
    #[error(
        "a unit of {circuit} needs {needed} bytes of host memory and the budget is {budget}; \
         raise [memory] total_budget or give the machine more memory"
    )]
    BudgetExceeded {
        /// Whose unit.
        circuit: CircuitId,
        /// What it takes.
        needed: u64,
        /// What there is.
        budget: u64,
    },
    /// No device serves the circuit.
    #[error(
        "no device can prove {circuit}: {cause}; `cuzk doctor` shows the devices and what they \
         lack"
    )]
    NoDevice {
        /// The circuit.
        circuit: CircuitId,
        /// Why.
        cause: &'static str,
    },
    /// The deadline has passed already.
    #[error("the job's deadline passed {late_ms} ms before it was submitted; check the clocks")]
    DeadlinePassed {
        /// By how much.
        late_ms: Millis,
    },
    /// The number of units is wrong.
    #[error("the job has {units} units, a job has 1 to {limit}; the request is malformed")]
    Units {
        /// Units.
        units: u32,
        /// The most that one job has.
        limit: u32,
    },
    /// The store does not work at present.
    #[error("the job could not be stored: {cause}")]
    NotStored {
        /// The store's message, with its remedy.
        cause: String,
    },
}

impl Refusal {
    /// Stable upper-case code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Draining => "SHUTTING_DOWN",
            Self::QueueFull { .. } => "QUEUE_FULL",
            Self::QueueBytesFull { .. } => "QUEUE_BYTES_FULL",
            Self::BudgetExceeded { .. } => code::BUDGET_EXCEEDED,
            Self::NoDevice { .. } => code::NO_DEVICE,
            Self::DeadlinePassed { .. } => code::DEADLINE_EXCEEDED,
            Self::Units { .. } => code::REQUEST_INVALID,
            Self::NotStored { .. } => "STORE_UNAVAILABLE",
        }
    }

    /// What the message names, for programs.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Draining => Vec::new(),
            Self::QueueFull { open, limit } => {
                vec![("open", open.to_string()), ("limit", limit.to_string())]
            }
            Self::QueueBytesFull { bytes, limit } => {
                vec![("bytes", bytes.to_string()), ("limit", limit.to_string())]
            }
            Self::BudgetExceeded {
                circuit,
                needed,
                budget,
            } => vec![
                ("circuit", circuit.name().to_owned()),
                ("needed", needed.to_string()),
                ("budget", budget.to_string()),
            ],
            Self::NoDevice { circuit, .. } => vec![("circuit", circuit.name().to_owned())],
            Self::DeadlinePassed { late_ms } => vec![("late_ms", late_ms.to_string())],
            Self::Units { units, limit } => {
                vec![("units", units.to_string()), ("limit", limit.to_string())]
            }
            Self::NotStored { cause } => vec![("cause", cause.clone())],
        }
    }

    /// What the caller may do.
    pub fn class(&self) -> Class {
        match self {
            Self::Draining | Self::NoDevice { .. } | Self::NotStored { .. } => Class::Unavailable,
            Self::QueueFull { .. } | Self::QueueBytesFull { .. } => Class::Exhausted,
            Self::BudgetExceeded { .. } | Self::DeadlinePassed { .. } | Self::Units { .. } => {
                Class::Never
            }
        }
    }
}

/// Codes of failures after acceptance.
pub mod code {
    /// The request cannot be proven: its content is wrong.
    pub const REQUEST_INVALID: &str = "REQUEST_INVALID";
    /// The circuit's parameter file cannot be used.
    pub const PARAMETERS_UNUSABLE: &str = "PARAMETERS_UNUSABLE";
    /// The stored request cannot be read back; submitting it again heals it.
    pub const PAYLOAD_DAMAGED: &str = "PAYLOAD_DAMAGED";
    /// A unit was tried as often as allowed.
    pub const UNIT_FAILED: &str = "UNIT_FAILED";
    /// Two devices made wrong proofs of the same unit.
    pub const PROOF_WRONG: &str = "PROOF_WRONG";
    /// The deadline passed.
    pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";
    /// There is no device for the circuit.
    pub const NO_DEVICE: &str = "NO_DEVICE";
    /// The memory budget shrank below one unit.
    pub const BUDGET_EXCEEDED: &str = "BUDGET_EXCEEDED";
    /// The unit proofs could not be joined.
    pub const ASSEMBLY_FAILED: &str = "ASSEMBLY_FAILED";
}

/// The longest message that is kept, bytes.
const MESSAGE_LIMIT: usize = 1_000;

/// A failure with a one-line, non-empty, bounded message.
pub(super) fn failure(code: &'static str, message: &str) -> Failure {
    let mut line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        "no cause was given; the log of the daemon may tell".clone_into(&mut line);
    }
    if line.len() > MESSAGE_LIMIT {
        let end = (0..=MESSAGE_LIMIT)
            .rev()
            .find(|&i| line.is_char_boundary(i))
            .unwrap_or(0);
        line.truncate(end);
    }
    Failure {
        code: code.to_owned(),
        message: line,
    }
}
