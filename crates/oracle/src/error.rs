//! What can go wrong between a request and its witness.

/// Why a witness could not be synthesised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request has fewer partitions than asked for.
    #[error("partition {partition} does not exist: the request has {partitions}; ask for 0 to {}", .partitions.saturating_sub(1))]
    NoSuchPartition {
        /// The partition asked for, counted from 0.
        partition: usize,
        /// How many the request has.
        partitions: usize,
    },

    /// A PoSt request without sectors.
    #[error("vanilla_proofs is empty: a PoSt needs the vanilla proof of at least one sector")]
    NoSectors,

    /// A commitment or identifier is not the canonical form of a field element.
    #[error(
        "{name} is not below the modulus of the scalar field: the request is damaged, fetch it again"
    )]
    NotCanonical {
        /// The field of the request.
        name: &'static str,
    },

    /// The reference types do not take the bytes of ours.
    #[error(
        "{what} does not fit the reference types ({source}): its tree shape or counts are not those of the sector size"
    )]
    Conversion {
        /// The field of the request.
        what: &'static str,
        /// What the decoder said.
        source: bincode::Error,
    },

    /// The reference crates refused the values.
    #[error("the reference crates refuse the request ({cause}): check the vanilla proof")]
    Reference {
        /// What they said.
        cause: String,
    },

    /// The reference circuit could not compute a value.
    #[error("synthesis failed ({0}): the vanilla proof lacks a value; check it before proving")]
    Synthesis(#[from] bellpepper_core::SynthesisError),

    /// A witness is not the reference circuit's assignment.
    #[error(
        "the witness differs from the public circuit's: {0}; report this with the request, for one of the two is wrong"
    )]
    Differs(#[from] crate::Difference),

    /// The reference circuit panicked.
    #[error(
        "synthesis panicked ({message}): the vanilla proof has a shape that the reference circuit does not expect; check it before proving"
    )]
    Panicked {
        /// What it said.
        message: String,
    },
}

impl Error {
    pub(crate) fn reference(cause: impl std::fmt::Display) -> Self {
        Self::Reference {
            cause: format!("{cause:#}"),
        }
    }

    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message")
            .to_owned();
        Self::Panicked { message }
    }
}
