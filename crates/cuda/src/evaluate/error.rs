//! Why a circuit has no program.

/// Why a circuit cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A count beyond what the program's 32-bit words hold.
    #[error("the circuit is too large for the GPU: {what} {value} exceeds {limit}")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        value: u64,
        /// How many there may be.
        limit: u64,
    },
}
