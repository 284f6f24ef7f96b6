//! PoRep: the C2 input envelope and the phase-1 output inside it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::decode::Named;
use crate::decode::json::{self, Document, Text};
use crate::decode::partitions;
use crate::decode::path::At;
use crate::decode::shape::{Expected, Shapes};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::error::{Error, quote};
use crate::porep;
use crate::registered::{RegisteredSealProof, vanilla_key};
use crate::registry::SectorSize;
use crate::request::PorepRequest;

/// The wrapper that sealing software puts around a phase-1 output.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "SectorNum", default)]
    sector_num: i64,
    #[serde(rename = "Phase1Out", borrow)]
    phase1_out: Text<'a>,
    #[serde(rename = "SectorSize", default)]
    sector_size: u64,
}

/// Output of phase 1 of the seal commit, as JSON in the reference's key order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase1Output<'a> {
    /// Name of the seal proof.
    #[serde(borrow)]
    pub registered_proof: Cow<'a, str>,
    /// All partitions.
    pub vanilla_proofs: VanillaSealProof,
    /// Commitment of the replica.
    pub comm_r: PoseidonDomain,
    /// Commitment of the data.
    pub comm_d: Sha256Domain,
    /// Replica id.
    pub replica_id: PoseidonDomain,
    /// Interactive randomness.
    pub seed: [u8; 32],
    /// Sealing randomness.
    pub ticket: [u8; 32],
}

/// The proofs of all partitions, keyed by the sector size's `StackedDrg<S>V1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VanillaSealProof {
    /// The size that the key names.
    pub size: SectorSize,
    /// Per partition, one proof per challenge.
    pub partitions: Vec<Vec<porep::Proof>>,
}

impl Serialize for VanillaSealProof {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(&vanilla_key(self.size), &self.partitions)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for VanillaSealProof {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneKey;

        impl<'de> Visitor<'de> for OneKey {
            type Value = VanillaSealProof;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one key, StackedDrg<size>V1")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let Some(Text(key)) = map.next_key()? else {
                    return Err(de::Error::invalid_length(0, &self));
                };
                let size = SectorSize::ALL
                    .into_iter()
                    .find(|&size| vanilla_key(size) == key)
                    .ok_or_else(|| {
                        let key = quote(&key);
                        de::Error::custom(format_args!(
                            "{key} is not a key of vanilla proofs, StackedDrg<size>V1"
                        ))
                    })?;
                let partitions = map.next_value()?;
                if map.next_key::<IgnoredAny>()?.is_some() {
                    return Err(de::Error::invalid_length(2, &self));
                }
                Ok(VanillaSealProof { size, partitions })
            }
        }

        deserializer.deserialize_map(OneKey)
    }
}

/// Decodes a C2 input (`prefix` is where it stands, empty at the top level).
///
/// # Errors
/// Those of the JSON, of the phase-1 output, and [`Error::Mismatch`] where the
/// envelope disagrees with its contents or with `named`.
pub(super) fn envelope(bytes: &[u8], prefix: &str, named: Named) -> Result<PorepRequest, Error> {
    let document = Document {
        name: if prefix.is_empty() {
            "C2 input"
        } else {
            prefix
        },
        prefix,
    };
    let prefixed = |name: &str| join(prefix, name);
    let envelope: Envelope<'_> = json::parse(document, bytes)?;
    let named = match u64::try_from(envelope.sector_num) {
        Ok(0) => named,
        Ok(number) => named.sector(number, "SectorNum of the C2 input")?,
        Err(_) => {
            return Err(Error::BadField {
                field: prefixed("SectorNum"),
                cause: format!("{} is negative", envelope.sector_num),
                remedy: "give the sector's number, or 0 if it is not known",
            });
        }
    };
    let inner = json::decode_base64(&envelope.phase1_out.0).map_err(|error| Error::BadField {
        field: prefixed("Phase1Out"),
        cause: format!("not base64: {}", json::base64_cause(&error)),
        remedy: "save the C2 input again",
    })?;
    let request = phase1(&inner, &prefixed("Phase1Out"), named)?;
    check_size(
        "SectorSize of the C2 input",
        envelope.sector_size,
        request.proof_type,
    )?;
    Ok(request)
}

fn join(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

/// Refuses a non-zero sector size that is not the proof type's.
pub(super) fn check_size(
    field: &str,
    bytes: u64,
    proof_type: RegisteredSealProof,
) -> Result<(), Error> {
    if bytes == 0 || bytes == proof_type.size.bytes() {
        return Ok(());
    }
    Err(Error::Mismatch {
        field: field.to_owned(),
        value: bytes.to_string(),
        other: "the sector size of the phase-1 output".to_owned(),
        other_value: format!("{} ({proof_type})", proof_type.size.bytes()),
        remedy: "correct the one that is wrong; 0 stands for unknown",
    })
}

/// Decodes a phase-1 output; its fields are named after `prefix`.
///
/// # Errors
/// Those of the JSON; counts, path lengths, zero values and keys that do not fit
/// the proof type.
pub(super) fn phase1(bytes: &[u8], prefix: &str, named: Named) -> Result<PorepRequest, Error> {
    let document = Document {
        name: if prefix.is_empty() {
            "phase-1 output"
        } else {
            prefix
        },
        prefix,
    };
    let output = match partitions::parse(bytes) {
        Some(output) => output,
        None => json::parse(document, bytes)?,
    };
    let prefixed = |name: &str| join(prefix, name);
    let proof_type = RegisteredSealProof::from_name(&output.registered_proof).ok_or_else(|| {
        Error::BadField {
            field: prefixed("registered_proof"),
            cause: format!("{} is not a seal proof", quote(&output.registered_proof)),
            remedy: "use a name such as StackedDrg32GiBV1_1",
        }
    })?;
    if output.vanilla_proofs.size != proof_type.size {
        return Err(Error::Mismatch {
            field: prefixed("vanilla_proofs"),
            value: vanilla_key(output.vanilla_proofs.size),
            other: prefixed("registered_proof"),
            other_value: proof_type.to_string(),
            remedy: "the two belong to different sector sizes: run phase 1 again",
        });
    }
    let zeros = [
        ("comm_r", output.comm_r.is_zero()),
        ("comm_d", output.comm_d.is_zero()),
        ("seed", output.seed == [0; 32]),
    ];
    if let Some((name, _)) = zeros.into_iter().find(|(_, zero)| *zero) {
        return Err(Error::AllZero {
            field: prefixed(name),
        });
    }
    let partitions = output.vanilla_proofs.partitions;
    let context = proof_type.to_string();
    let path = prefixed("vanilla_proofs");
    let key = proof_type.vanilla_key();
    Shapes::new(Expected {
        size: proof_type.size,
        context: &context,
    })
    .porep(
        &partitions,
        proof_type.partitions(),
        &At::root(&path).field(&key),
    )?;
    Ok(PorepRequest {
        proof_type,
        miner_id: named.miner_id,
        sector_number: named.sector_number,
        comm_r: output.comm_r,
        comm_d: output.comm_d,
        replica_id: output.replica_id,
        seed: output.seed,
        ticket: output.ticket,
        partitions,
    })
}
