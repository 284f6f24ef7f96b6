//! The errors of this crate. Each names the thing, the cause and the remedy, in
//! one line, and never contains payload bytes beyond a short quoted word.

use crate::registry::{CircuitId, ProofKind};

/// What went wrong with a request, a vanilla proof, proof bytes or a circuit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was given.
    #[error("the request is empty (0 bytes); give a C2 input, a phase-1 output or a request file")]
    EmptyInput,

    /// The bytes are none of the accepted forms.
    #[error(
        "the request is not in a known form: {cause}; accepted are the C2 input {{SectorNum, \
         Phase1Out, SectorSize}}, a phase-1 output and the JSON of cuzk.v1.SubmitProofRequest, \
         each plain, gzip or zstd"
    )]
    UnknownForm {
        /// What was found instead.
        cause: String,
    },

    /// A gzip or zstd wrapper cannot be undone.
    #[error(
        "the request starts like {format} but does not decompress: {cause}; compress it again or \
         give it uncompressed"
    )]
    Compression {
        /// `gzip` or `zstd`.
        format: &'static str,
        /// The decompressor's complaint.
        cause: String,
    },

    /// The request is larger than the limit.
    #[error(
        "the request is larger than {limit} bytes{}; a request of any kind is below 256 MiB, so \
         this is not one",
        if *decompressed { " when decompressed" } else { "" }
    )]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// Whether the limit was met while decompressing.
        decompressed: bool,
    },

    /// The text is not JSON, or a value has the wrong type.
    #[error(
        "{field}: {cause} (line {line}, column {column}); make the request again with the tool that wrote it"
    )]
    Json {
        /// Path of the value, or the document's name.
        field: String,
        /// The parser's complaint.
        cause: String,
        /// Line, first line 1.
        line: usize,
        /// Column, first column 1.
        column: usize,
    },

    /// A field's text cannot be decoded.
    #[error("{field}: {cause}; {remedy}")]
    BadField {
        /// Path of the field.
        field: String,
        /// What is wrong with it.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },

    /// A field that this kind of request needs is absent or empty.
    #[error("{field}: missing; {remedy}")]
    MissingField {
        /// Path of the field.
        field: String,
        /// What to do.
        remedy: &'static str,
    },

    /// A binary vanilla proof ends early, or claims more items than it has bytes for.
    #[error(
        "{field}: {cause} (at byte {offset}); the vanilla proof is cut short or not of this kind: \
         generate it again"
    )]
    Binary {
        /// Path of the value.
        field: String,
        /// What is wrong.
        cause: String,
        /// Where in the field's bytes.
        offset: usize,
    },

    /// 32 bytes are not a node of the tree they belong to.
    #[error("{field}: {cause}; the vanilla proof or commitment is damaged: generate it again")]
    NotANode {
        /// Path of the value.
        field: String,
        /// Which rule is broken.
        cause: crate::domain::DomainError,
    },

    /// A list has the wrong number of items for this proof type.
    #[error(
        "{field}: {actual} {what}, expected {expected} for {context}; generate the vanilla proof \
         again, for this proof type"
    )]
    WrongCount {
        /// Path of the list.
        field: String,
        /// What is counted.
        what: &'static str,
        /// How many there are.
        actual: usize,
        /// How many there must be, in words.
        expected: String,
        /// Proof type and size.
        context: String,
    },

    /// A commitment, seed or randomness is all zero.
    #[error("{field}: all zero; take the value from the sector's sealing output")]
    AllZero {
        /// Path of the field.
        field: String,
    },

    /// Two places of the request, or the request and the command line, disagree.
    #[error("{field} is {value}, but {other} is {other_value}; {remedy}")]
    Mismatch {
        /// Path or name of the one.
        field: String,
        /// Its value.
        value: String,
        /// Path or name of the other.
        other: String,
        /// Its value.
        other_value: String,
        /// What to do.
        remedy: &'static str,
    },

    /// A proof kind outside 1..=4.
    #[error(
        "proof_kind: {value} is not a kind of proof; use POREP_SEAL_COMMIT (1), SNAP_DEALS_UPDATE \
         (2), WINDOW_POST_PARTITION (3) or WINNING_POST (4)"
    )]
    UnknownKind {
        /// The value given.
        value: String,
    },

    /// A registered proof number that this kind does not have.
    #[error(
        "registered_proof: {number} is not a {kind} type; use {allowed} (the sector size is the \
         remainder by 5)"
    )]
    UnknownProofNumber {
        /// Kind of proof asked for.
        kind: ProofKind,
        /// The number given.
        number: u64,
        /// The numbers that this kind has.
        allowed: &'static str,
    },

    /// The vanilla proof does not hold against its public values.
    #[error(transparent)]
    CheckFailed(#[from] Box<crate::check::Failure>),

    /// A partition that the request does not have.
    #[error("partition {partition} does not exist: this request has {partitions}; use 0 to {}", partitions.saturating_sub(1))]
    NoSuchPartition {
        /// The partition asked for.
        partition: usize,
        /// How many there are.
        partitions: usize,
    },

    /// Proof bytes of an impossible length.
    #[error(
        "the proof is {actual} bytes, expected {expected} for {context}; give the whole proof of this request"
    )]
    ProofLength {
        /// Bytes given.
        actual: usize,
        /// Bytes expected.
        expected: usize,
        /// Which proof.
        context: String,
    },

    /// Proof bytes of the right length that are not a proof.
    #[error("proof of partition {partition}: {source}")]
    ProofPoint {
        /// Partition, counted from 0.
        partition: usize,
        /// Which point, and what is wrong with it.
        source: groth16::Error,
    },

    /// No circuit has this name.
    #[error("no circuit is called {name}; `cuzk circuit list` lists all (for example porep-32g)")]
    UnknownCircuit {
        /// The name given, quoted.
        name: String,
    },

    /// The build's circuit cannot be read.
    #[error(
        "circuit {circuit} of this build is damaged: {source}; build again from a clean checkout"
    )]
    CircuitDamaged {
        /// Which one.
        circuit: CircuitId,
        /// The reader's complaint.
        source: r1cs::Error,
    },
}

impl Error {
    /// A short constant name of the variant, for machines. Part of the interface.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyInput => "EMPTY_INPUT",
            Self::UnknownForm { .. } => "UNKNOWN_FORM",
            Self::Compression { .. } => "BAD_COMPRESSION",
            Self::TooLarge { .. } => "TOO_LARGE",
            Self::Json { .. } => "BAD_JSON",
            Self::BadField { .. } => "BAD_FIELD",
            Self::MissingField { .. } => "MISSING_FIELD",
            Self::Binary { .. } => "BAD_VANILLA_PROOF",
            Self::NotANode { .. } => "NOT_CANONICAL",
            Self::WrongCount { .. } => "WRONG_COUNT",
            Self::AllZero { .. } => "ALL_ZERO",
            Self::Mismatch { .. } => "MISMATCH",
            Self::UnknownKind { .. } => "UNKNOWN_KIND",
            Self::UnknownProofNumber { .. } => "UNKNOWN_PROOF_NUMBER",
            Self::CheckFailed(_) => "CHECK_FAILED",
            Self::NoSuchPartition { .. } => "NO_SUCH_PARTITION",
            Self::ProofLength { .. } => "PROOF_LENGTH",
            Self::ProofPoint { .. } => "PROOF_POINT",
            Self::UnknownCircuit { .. } => "UNKNOWN_CIRCUIT",
            Self::CircuitDamaged { .. } => "CIRCUIT_DAMAGED",
        }
    }

    /// Whether the fault is ours (a broken build) and not the input's.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::CircuitDamaged { .. })
    }
}

/// Longest quotation of foreign text in a message, in characters.
const QUOTE: usize = 60;

/// Foreign text for a message: escaped, in quotes, cut to a line's length.
pub(crate) fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Foreign text as one line of at most `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line: String = text
        .chars()
        .take(limit)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.len() < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_one_short_line() {
        assert_eq!(quote("a\nb"), r#""a\nb""#);
        let long = quote(&"é".repeat(1000));
        assert_eq!(long.chars().count(), QUOTE + 3);
    }
}
