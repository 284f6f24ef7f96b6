//! From a request's bytes, in any accepted form, to a checked [`Request`].

mod binary;
mod compression;
mod json;
mod partitions;
mod path;
pub mod payload;
mod phase1;
mod shape;
mod submit;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use crate::error::Error;
use crate::error::quote;
use crate::registry::ProofKind;
use crate::request::{PorepRequest, Request};

pub use compression::{Compression, REQUEST_LIMIT};
pub use phase1::{Phase1Output, VanillaSealProof};
pub use submit::SubmitProofRequest;

use json::Document;

/// What the caller knows beside the request: a C2 input or a phase-1 output does
/// not name its miner, and only sometimes its sector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// Actor id of the miner (`f01000` is 1000).
    pub miner_id: Option<u64>,
    /// Number of the sector.
    pub sector_number: Option<u64>,
}

/// The form that a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{SectorNum, Phase1Out, SectorSize}`.
    C2Input,
    /// The output of phase 1 of the seal commit alone.
    Phase1Output,
    /// JSON of `cuzk.v1.SubmitProofRequest`.
    RequestFile,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C2Input => "C2 input",
            Self::Phase1Output => "phase-1 output",
            Self::RequestFile => "request file",
        })
    }
}

/// Something odd that does not stop a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Bytes after the end of a binary vanilla proof.
    TrailingBytes {
        /// Which vanilla proof.
        field: String,
        /// How many bytes.
        bytes: usize,
    },
    /// A key that the form does not have.
    UnknownKey {
        /// The key, quoted.
        key: String,
    },
    /// A field that this kind of proof does not use.
    UnusedField {
        /// The field.
        field: &'static str,
        /// The kind.
        kind: ProofKind,
    },
    /// PoSt sectors that do not ascend.
    SectorOrder {
        /// The first entry that is not above the one before.
        index: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TrailingBytes { field, bytes } => {
                write!(f, "{field}: {bytes} bytes after its end are ignored")
            }
            Self::UnknownKey { key } => write!(f, "{key}: unknown key, ignored"),
            Self::UnusedField { field, kind } => {
                write!(f, "{field}: not used by {kind} proofs, ignored")
            }
            Self::SectorOrder { index } => write!(
                f,
                "vanilla_proofs[{index}].sector_id: not above the one before; the chain verifies \
                 sectors in ascending order"
            ),
        }
    }
}

/// A request with what decoding learned about it.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The request.
    pub request: Request,
    /// The form it came in.
    pub form: Form,
    /// The wrapper around it, if any.
    pub compression: Option<Compression>,
    /// The caller's id of the request, if it has one.
    pub request_id: Option<String>,
    /// Oddities, for the user.
    pub warnings: Vec<Warning>,
}

impl Request {
    /// Decodes a request in any accepted form, detected by its content: a C2
    /// input, a phase-1 output or the JSON of `cuzk.v1.SubmitProofRequest`, each
    /// plain, gzip or zstd.
    ///
    /// # Errors
    /// See [`Error`]; the field is named by its path.
    pub fn decode(bytes: &[u8], hints: Hints) -> Result<Decoded, Error> {
        Self::decode_limited(bytes, hints, REQUEST_LIMIT)
    }

    /// [`Request::decode`] with a limit in bytes on the request as given and as
    /// decompressed.
    ///
    /// # Errors
    /// As [`Request::decode`].
    pub fn decode_limited(bytes: &[u8], hints: Hints, limit: u64) -> Result<Decoded, Error> {
        let (plain, compression) = compression::unwrap(bytes, limit)?;
        let (form, keys) = detect(&plain)?;
        let mut warnings = unknown_keys(form, &keys);
        let mut request_id = None;
        let request = match form {
            Form::C2Input => Request::Porep(phase1::envelope(
                &plain,
                "",
                Named::default().hints(hints)?,
            )?),
            Form::Phase1Output => {
                Request::Porep(phase1::phase1(&plain, "", Named::default().hints(hints)?)?)
            }
            Form::RequestFile => {
                let submit = SubmitProofRequest::from_json(&plain)?;
                drop(plain);
                let request = submit.decode(hints, &mut warnings)?;
                request_id = Some(submit.request_id).filter(|id| !id.is_empty());
                request
            }
        };
        Ok(Decoded {
            request,
            form,
            compression,
            request_id,
            warnings,
        })
    }
}

impl SubmitProofRequest {
    /// Reads a request in any form that [`Request::decode`] accepts, as the message that asks a
    /// daemon for it. Only the outermost layer is looked at: whether the vanilla proof is well
    /// formed is the daemon's to say.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn from_any(bytes: &[u8], hints: Hints) -> Result<Self, Error> {
        let (plain, _) = compression::unwrap(bytes, REQUEST_LIMIT)?;
        let mut submit = match detect(&plain)?.0 {
            Form::RequestFile => Self::from_json(&plain)?,
            Form::C2Input | Form::Phase1Output => Self {
                proof_kind: ProofKind::Porep.number() as i32,
                vanilla_proof: plain.into_owned(),
                ..Self::default()
            },
        };
        // Only a request file may name them, and zero is "not named".
        if submit.miner_id == 0 {
            submit.miner_id = hints.miner_id.unwrap_or(0);
        }
        if submit.sector_number == 0 {
            submit.sector_number = hints.sector_number.unwrap_or(0);
        }
        Ok(submit)
    }
}

/// A phase-1 output of any length gives the same in parts as in one piece, where it is parsed in parts.
#[cfg(any(test, feature = "test-support"))]
pub(crate) fn assert_parts_agree(bytes: &[u8]) {
    if let Some(parts) = partitions::parse_any(bytes) {
        let (name, prefix) = ("phase-1 output", "");
        let whole = json::parse::<Phase1Output<'_>>(Document { name, prefix }, bytes);
        assert!(whole.is_ok_and(|whole| whole == parts), "parts differ");
    }
}

/// Finds the form by the keys of the JSON object.
fn detect(bytes: &[u8]) -> Result<(Form, Vec<String>), Error> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => return Err(Error::EmptyInput),
        Some(b'{') => {}
        Some(b'[') => {
            return Err(Error::UnknownForm {
                cause: "it is a JSON array".to_owned(),
            });
        }
        Some(_) => {
            return Err(Error::UnknownForm {
                cause: "it is neither a JSON object nor compressed".to_owned(),
            });
        }
    }
    let document = Document {
        name: "request",
        prefix: "",
    };
    let keys: Vec<String> = json::top_level_keys(document, bytes)?
        .into_iter()
        .map(Cow::into_owned)
        .collect();
    let has = |names: &[&str]| keys.iter().any(|key| names.contains(&key.as_str()));
    let form = if has(&["Phase1Out"]) {
        Form::C2Input
    } else if has(&["proofKind", "proof_kind"]) {
        Form::RequestFile
    } else if has(&PHASE1_ONLY_KEYS) {
        Form::Phase1Output
    } else if has(&submit::KEYS) {
        Form::RequestFile
    } else {
        let listed: Vec<String> = keys.iter().take(5).map(|key| quote(key)).collect();
        return Err(Error::UnknownForm {
            cause: match listed.as_slice() {
                [] => "it is an empty JSON object".to_owned(),
                listed => format!("it is a JSON object with the keys {}", listed.join(", ")),
            },
        });
    };
    Ok((form, keys))
}

/// Keys of a phase-1 output that a request file does not have.
const PHASE1_ONLY_KEYS: [&str; 5] = ["comm_r", "comm_d", "replica_id", "seed", "ticket"];

fn unknown_keys(form: Form, keys: &[String]) -> Vec<Warning> {
    let known = |key: &str| match form {
        Form::C2Input => ["SectorNum", "Phase1Out", "SectorSize"].contains(&key),
        Form::Phase1Output => {
            PHASE1_ONLY_KEYS.contains(&key) || ["registered_proof", "vanilla_proofs"].contains(&key)
        }
        Form::RequestFile => submit::KEYS.contains(&key),
    };
    keys.iter()
        .filter(|key| !known(key))
        .map(|key| Warning::UnknownKey { key: quote(key) })
        .collect()
}

/// A PoRep inside a request: a C2 input or a bare phase-1 output.
fn porep_document(bytes: &[u8], field: &str, named: Named) -> Result<PorepRequest, Error> {
    let document = Document {
        name: field,
        prefix: field,
    };
    let keys = json::top_level_keys(document, bytes)?;
    if keys.iter().any(|key| PHASE1_ONLY_KEYS.contains(&&**key)) {
        phase1::phase1(bytes, field, named)
    } else {
        phase1::envelope(bytes, field, named)
    }
}

/// Reads one binary vanilla proof, of any shape, for tests of the reader alone.
#[cfg(test)]
pub(crate) fn read_vanilla<T: binary::Binary>(bytes: &[u8]) -> Result<T, Error> {
    binary::decode(bytes, &path::At::root("proof")).map(|(value, _)| value)
}

/// The miner and sector named so far, with who named them.
#[derive(Debug, Clone, Copy, Default)]
struct Named {
    miner_id: Option<u64>,
    sector_number: Option<u64>,
    miner_from: &'static str,
    sector_from: &'static str,
}

impl Named {
    /// Adds a miner, which must agree with one named before.
    fn miner(mut self, miner_id: u64, from: &'static str) -> Result<Self, Error> {
        agree(self.miner_id, self.miner_from, miner_id, from)?;
        if self.miner_id.is_none() {
            (self.miner_id, self.miner_from) = (Some(miner_id), from);
        }
        Ok(self)
    }

    /// Adds a sector, which must agree with one named before.
    fn sector(mut self, number: u64, from: &'static str) -> Result<Self, Error> {
        agree(self.sector_number, self.sector_from, number, from)?;
        if self.sector_number.is_none() {
            (self.sector_number, self.sector_from) = (Some(number), from);
        }
        Ok(self)
    }

    /// Adds what the caller knows.
    fn hints(self, hints: Hints) -> Result<Self, Error> {
        let mut named = self;
        if let Some(miner_id) = hints.miner_id {
            named = named.miner(miner_id, "the miner that the caller gave")?;
        }
        if let Some(number) = hints.sector_number {
            named = named.sector(number, "the sector that the caller gave")?;
        }
        Ok(named)
    }
}

fn agree(
    before: Option<u64>,
    before_from: &'static str,
    value: u64,
    from: &'static str,
) -> Result<(), Error> {
    match before {
        Some(other) if other != value => Err(Error::Mismatch {
            field: from.to_owned(),
            value: value.to_string(),
            other: before_from.to_owned(),
            other_value: other.to_string(),
            remedy: "correct the one that is wrong, or give the request of that sector",
        }),
        _ => Ok(()),
    }
}
