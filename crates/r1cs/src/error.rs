//! What can go wrong with a circuit, its file, or an assignment for it.

use crate::Variable;

/// Errors of this crate. Every message names the thing, the cause and what to do.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum Error {
    /// The bytes do not begin with the magic of a compiled circuit.
    #[error(
        "not a compiled circuit: the file does not begin with `cuzkr1cs`; pass a file written by `recorder record`"
    )]
    NotACircuit,
    /// The file was written by another version of the format.
    #[error(
        "compiled circuit of format version {found}, this build reads version {supported}; record the circuit again with `recorder record`"
    )]
    UnsupportedVersion {
        /// Version in the file.
        found: u32,
        /// The one version that this build reads.
        supported: u32,
    },
    /// The body's SHA-256 differs from the header's.
    #[error(
        "compiled circuit is damaged: its SHA-256 is not the one in its header; restore the file or record the circuit again"
    )]
    DigestMismatch,
    /// The body is well-digested but not a circuit.
    #[error(
        "compiled circuit is malformed at {section}: {cause}; record the circuit again with `recorder record`"
    )]
    Malformed {
        /// Section of the file (see `format.rs`).
        section: &'static str,
        /// What is wrong there.
        cause: String,
    },
    /// A count is above what this crate supports.
    #[error("{what} {value} is above the supported {limit}; split the circuit")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// The count.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// `Builder::enforce` met a variable that was not allocated before.
    #[error(
        "row {row} uses {variable}, which is not allocated yet; allocate variables before the rows that use them"
    )]
    UnknownVariable {
        /// Row, counted from 0.
        row: u64,
        /// The variable.
        variable: Variable,
    },
    /// `Builder::end_block` without `begin_block`, or the reverse.
    #[error(
        "block ends do not match block starts ({open} left open, or one closed too many); pair begin_block and end_block"
    )]
    UnbalancedBlocks {
        /// Blocks still open.
        open: usize,
    },
    /// A slice has the wrong length for this circuit.
    #[error(
        "{what} has {found} elements, the circuit has {expected}; check that it belongs to this circuit"
    )]
    Length {
        /// Which slice.
        what: &'static str,
        /// Elements the circuit asks for.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// Input 0 is the constant one; the assignment says otherwise.
    #[error("input 0 of an assignment must be the constant one; put 1 before the public inputs")]
    FirstInputNotOne,
    /// A variable that the circuit forces to be 0 or 1 has another value.
    #[error(
        "{variable} must be 0 or 1 by row {row} (rule `{rule}`) but is neither; the assignment does not satisfy the circuit"
    )]
    NotABit {
        /// The variable.
        variable: Variable,
        /// The row that forces it to be a bit.
        row: u64,
        /// Name of the rule by which that row does so.
        rule: &'static str,
    },
    /// (A·w)(B·w) ≠ C·w.
    #[error(
        "row {row} is not satisfied: (A·w)(B·w) is not C·w; the assignment is wrong from here on"
    )]
    Unsatisfied {
        /// The first such row, counted from 0.
        row: u64,
    },
}

impl Error {
    pub(crate) fn malformed(section: &'static str, cause: impl Into<String>) -> Self {
        Self::Malformed {
            section,
            cause: cause.into(),
        }
    }
}
