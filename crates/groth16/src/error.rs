//! What can go wrong between a witness and a verified proof.

/// Why a proof cannot be made, read or checked.
///
/// What is wrong with a key file is a [`KeyError`](crate::key::KeyError), carried here whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not one proof.
    #[error(
        "a proof is {expected} bytes long, these are {found}. Pass the bytes of exactly one proof"
    )]
    ProofLength {
        /// Bytes given.
        found: usize,
        /// Bytes of a proof.
        expected: usize,
    },

    /// One of the proof's three points cannot belong to a proof.
    #[error(
        "the proof's element {element} is not a usable point: {reason}. The proof is corrupt or was cut from the wrong offset"
    )]
    ProofPoint {
        /// "A", "B" or "C".
        element: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The verifying key belongs to a circuit with another number of public inputs.
    #[error(
        "{found} public inputs were given, the verifying key takes {expected}. The key belongs to another circuit, or the inputs to another statement"
    )]
    InputCount {
        /// Inputs given, without the constant one.
        found: usize,
        /// Inputs the key takes, without the constant one.
        expected: usize,
    },

    /// No transform of this size exists.
    #[error(
        "{size} is not a domain's size: it must be a power of two up to 2^31. The circuit is too large, or not a circuit of this field"
    )]
    DomainSize {
        /// The size asked for.
        size: usize,
    },
}
