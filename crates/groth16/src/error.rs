//! What can go wrong between a witness and a verified proof.

use crate::backend::BackendError;

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

    /// The backend could not compute the sums.
    #[error(transparent)]
    Backend(#[from] BackendError),

    /// The witness breaks one of the circuit's rows.
    #[error("the witness does not satisfy the circuit, no proof was made: {0}")]
    Unsatisfied(r1cs::Error),

    /// The proof was made from a satisfying witness and still does not verify.
    #[error(
        "the proof does not verify and was discarded, although the witness satisfies the circuit: the parameter file does not belong to the verifying key or the circuit, or the device computed wrongly. Check the parameter file's digest, then the machine"
    )]
    ProofRejected,

    /// The operating system's randomness is not available.
    #[error(
        "the operating system gave no randomness for the proof's blinding: {0}. Proofs cannot be made without it"
    )]
    NoRandomness(rand_core::Error),
}
