//! `cuzk.v1.SubmitProofRequest`: the message, its proto3 JSON, and what it asks for.

use serde::Deserialize;

use crate::decode::json::{self, Base64, Document, EnumValue, Text, Uint64};
use crate::decode::path::At;
use crate::decode::shape::{Expected, Shapes};
use crate::decode::{Hints, Named, Warning, binary, phase1, porep_document};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::error::{Error, quote};
use crate::registered::{RegisteredPostProof, RegisteredUpdateProof};
use crate::registry::{ProofKind, SectorSize};
use crate::request::{PorepRequest, PostRequest, Request, SnapRequest};

/// The message, with the fields of the wire. Zero and empty mean "not given".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitProofRequest {
    /// The caller's id for the request; any text.
    pub request_id: String,
    /// `ProofKind` number.
    pub proof_kind: i32,
    /// Bytes of a sector.
    pub sector_size: u64,
    /// Registered proof number in the kind's own numbering.
    pub registered_proof: u64,
    /// `Priority` number.
    pub priority: i32,
    /// PoRep: the C2 input.
    pub vanilla_proof: Vec<u8>,
    /// Others: one vanilla proof per sector or partition.
    pub vanilla_proofs: Vec<Vec<u8>>,
    /// Number of the sector.
    pub sector_number: u64,
    /// Actor id of the miner.
    pub miner_id: u64,
    /// PoSt: randomness of the challenges, 32 bytes.
    pub randomness: Vec<u8>,
    /// Window: number of the partition.
    pub partition_index: u32,
    /// Snap: commitment of the replica before.
    pub comm_r_old: Vec<u8>,
    /// Snap: commitment of the replica after.
    pub comm_r_new: Vec<u8>,
    /// Snap: commitment of the new data.
    pub comm_d_new: Vec<u8>,
}

/// The keys of the proto3 JSON form, in both spellings.
pub(super) const KEYS: [&str; 27] = [
    "requestId",
    "request_id",
    "proofKind",
    "proof_kind",
    "sectorSize",
    "sector_size",
    "registeredProof",
    "registered_proof",
    "priority",
    "vanillaProof",
    "vanilla_proof",
    "vanillaProofs",
    "vanilla_proofs",
    "sectorNumber",
    "sector_number",
    "minerId",
    "miner_id",
    "randomness",
    "partitionIndex",
    "partition_index",
    "commROld",
    "comm_r_old",
    "commRNew",
    "comm_r_new",
    "commDNew",
    "comm_d_new",
    "@type",
];

/// The JSON form; `null` is "not given".
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Json<'a> {
    #[serde(alias = "request_id", borrow)]
    request_id: Option<Text<'a>>,
    #[serde(alias = "proof_kind")]
    proof_kind: Option<EnumValue>,
    #[serde(alias = "sector_size")]
    sector_size: Option<Uint64>,
    #[serde(alias = "registered_proof")]
    registered_proof: Option<Uint64>,
    priority: Option<EnumValue>,
    #[serde(alias = "vanilla_proof")]
    vanilla_proof: Option<Base64>,
    #[serde(alias = "vanilla_proofs")]
    vanilla_proofs: Option<Vec<Base64>>,
    #[serde(alias = "sector_number")]
    sector_number: Option<Uint64>,
    #[serde(alias = "miner_id")]
    miner_id: Option<Uint64>,
    randomness: Option<Base64>,
    #[serde(alias = "partition_index")]
    partition_index: Option<Uint64>,
    #[serde(alias = "comm_r_old")]
    comm_r_old: Option<Base64>,
    #[serde(alias = "comm_r_new")]
    comm_r_new: Option<Base64>,
    #[serde(alias = "comm_d_new")]
    comm_d_new: Option<Base64>,
}

/// Names of `Priority`, by number.
const PRIORITIES: [&str; 5] = ["PRIORITY_UNSPECIFIED", "LOW", "NORMAL", "HIGH", "CRITICAL"];

impl SubmitProofRequest {
    /// Reads the proto3 JSON form: camelCase or original names, enums by name or
    /// number, 64-bit integers as string or number, bytes in either base64
    /// alphabet. Unknown keys are ignored.
    ///
    /// # Errors
    /// Those of the JSON, with the field's path.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let document = Document {
            name: "request",
            prefix: "",
        };
        let json: Json<'_> = json::parse(document, bytes)?;
        let partition_index = json.partition_index.unwrap_or_default().0;
        Ok(Self {
            request_id: json.request_id.unwrap_or_default().0.into_owned(),
            proof_kind: match json.proof_kind {
                Some(value) => kind_number(value)?,
                None => 0,
            },
            sector_size: json.sector_size.unwrap_or_default().0,
            registered_proof: json.registered_proof.unwrap_or_default().0,
            priority: match json.priority {
                Some(value) => priority_number(value)?,
                None => 0,
            },
            vanilla_proof: json.vanilla_proof.unwrap_or_default().0,
            vanilla_proofs: json
                .vanilla_proofs
                .unwrap_or_default()
                .into_iter()
                .map(|bytes| bytes.0)
                .collect(),
            sector_number: json.sector_number.unwrap_or_default().0,
            miner_id: json.miner_id.unwrap_or_default().0,
            randomness: json.randomness.unwrap_or_default().0,
            partition_index: u32::try_from(partition_index).map_err(|_| Error::BadField {
                field: "partition_index".to_owned(),
                cause: format!("{partition_index} does not fit 32 bits"),
                remedy: "give the partition's number in its deadline",
            })?,
            comm_r_old: json.comm_r_old.unwrap_or_default().0,
            comm_r_new: json.comm_r_new.unwrap_or_default().0,
            comm_d_new: json.comm_d_new.unwrap_or_default().0,
        })
    }

    /// Writes the proto3 JSON form: camelCase names, 64-bit integers as strings,
    /// padded standard base64, defaults left out.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::Map::new();
        let mut put = |key: &str, given: bool, value: serde_json::Value| {
            if given {
                json.insert(key.to_owned(), value);
            }
        };
        let bytes = |bytes: &[u8]| serde_json::Value::from(json::encode_base64(bytes));
        let number = |number: u64| serde_json::Value::from(number.to_string());
        put(
            "requestId",
            !self.request_id.is_empty(),
            self.request_id.as_str().into(),
        );
        let kind = self.kind().map(ProofKind::enum_name);
        let kind = kind.map_or(self.proof_kind.into(), serde_json::Value::from);
        put("proofKind", self.proof_kind != 0, kind);
        put(
            "sectorSize",
            self.sector_size != 0,
            number(self.sector_size),
        );
        put(
            "registeredProof",
            self.registered_proof != 0,
            number(self.registered_proof),
        );
        let name = usize::try_from(self.priority)
            .ok()
            .and_then(|n| PRIORITIES.get(n));
        let priority = name.map_or(self.priority.into(), |&name| serde_json::Value::from(name));
        put("priority", self.priority != 0, priority);
        put(
            "vanillaProof",
            !self.vanilla_proof.is_empty(),
            bytes(&self.vanilla_proof),
        );
        let proofs: Vec<_> = self
            .vanilla_proofs
            .iter()
            .map(|proof| bytes(proof))
            .collect();
        put("vanillaProofs", !proofs.is_empty(), proofs.into());
        put(
            "sectorNumber",
            self.sector_number != 0,
            number(self.sector_number),
        );
        put("minerId", self.miner_id != 0, number(self.miner_id));
        put(
            "randomness",
            !self.randomness.is_empty(),
            bytes(&self.randomness),
        );
        put(
            "partitionIndex",
            self.partition_index != 0,
            self.partition_index.into(),
        );
        put(
            "commROld",
            !self.comm_r_old.is_empty(),
            bytes(&self.comm_r_old),
        );
        put(
            "commRNew",
            !self.comm_r_new.is_empty(),
            bytes(&self.comm_r_new),
        );
        put(
            "commDNew",
            !self.comm_d_new.is_empty(),
            bytes(&self.comm_d_new),
        );
        serde_json::Value::Object(json).to_string().into_bytes()
    }

    /// The kind of proof asked for.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] outside 1..=4.
    pub fn kind(&self) -> Result<ProofKind, Error> {
        ProofKind::ALL
            .into_iter()
            .find(|kind| i64::from(kind.number()) == i64::from(self.proof_kind))
            .ok_or_else(|| Error::UnknownKind {
                value: self.proof_kind.to_string(),
            })
    }

    /// Decodes what the message asks for. Bytes that the format tolerates and
    /// fields that this kind does not use are told in `warnings`.
    ///
    /// # Errors
    /// Any that names a field of the message, or `hints` that disagree with it.
    pub fn decode(&self, hints: Hints, warnings: &mut Vec<Warning>) -> Result<Request, Error> {
        let kind = self.kind()?;
        self.warn_of_unused(kind, warnings);
        let named = self.named(kind, hints)?;
        match kind {
            ProofKind::Porep => self.porep(named).map(Request::Porep),
            ProofKind::Snap => self.snap(named, warnings).map(Request::Snap),
            ProofKind::Window => self.post(kind, named, warnings).map(Request::Window),
            ProofKind::Winning => self.post(kind, named, warnings).map(Request::Winning),
        }
    }

    /// Miner and sector as the message and the caller name them. No miner has
    /// id 0, so a zero `miner_id` is "not given"; sector 0 exists, so a zero
    /// `sector_number` is given when the miner is.
    fn named(&self, kind: ProofKind, hints: Hints) -> Result<Named, Error> {
        let mut named = Named::default();
        if self.miner_id != 0 {
            named = named.miner(self.miner_id, "miner_id of the request")?;
        }
        let has_sector = matches!(kind, ProofKind::Porep | ProofKind::Snap);
        if has_sector && (self.miner_id != 0 || self.sector_number != 0) {
            named = named.sector(self.sector_number, "sector_number of the request")?;
        }
        named.hints(hints)
    }

    fn warn_of_unused(&self, kind: ProofKind, warnings: &mut Vec<Warning>) {
        let (porep, snap) = (kind == ProofKind::Porep, kind == ProofKind::Snap);
        let window = kind == ProofKind::Window;
        let post = window || kind == ProofKind::Winning;
        let fields = [
            ("vanilla_proof", porep, !self.vanilla_proof.is_empty()),
            ("vanilla_proofs", !porep, !self.vanilla_proofs.is_empty()),
            ("sector_number", !post, self.sector_number != 0),
            ("randomness", post, !self.randomness.is_empty()),
            ("partition_index", window, self.partition_index != 0),
            ("comm_r_old", snap, !self.comm_r_old.is_empty()),
            ("comm_r_new", snap, !self.comm_r_new.is_empty()),
            ("comm_d_new", snap, !self.comm_d_new.is_empty()),
        ];
        for (field, used, given) in fields {
            if given && !used {
                warnings.push(Warning::UnusedField { field, kind });
            }
        }
    }

    fn porep(&self, named: Named) -> Result<PorepRequest, Error> {
        if self.vanilla_proof.is_empty() {
            return Err(Error::MissingField {
                field: "vanilla_proof".to_owned(),
                remedy: "put the C2 input {SectorNum, Phase1Out, SectorSize} there",
            });
        }
        let request = porep_document(&self.vanilla_proof, "vanilla_proof", named)?;
        let proof_type = request.proof_type;
        if self.registered_proof != 0 && self.registered_proof != proof_type.number() {
            return Err(Error::Mismatch {
                field: "registered_proof".to_owned(),
                value: self.registered_proof.to_string(),
                other: "registered_proof of the phase-1 output".to_owned(),
                other_value: proof_type.to_string(),
                remedy: "correct the one that is wrong; the phase-1 output's is what is proven",
            });
        }
        phase1::check_size("sector_size", self.sector_size, proof_type)?;
        Ok(request)
    }

    fn snap(&self, named: Named, warnings: &mut Vec<Warning>) -> Result<SnapRequest, Error> {
        let proof_type = RegisteredUpdateProof::from_number(self.registered_proof)?;
        self.check_sector_size(proof_type.size)?;
        let comm_r_old = node::<PoseidonDomain>("comm_r_old", &self.comm_r_old)?;
        let comm_r_new = node::<PoseidonDomain>("comm_r_new", &self.comm_r_new)?;
        let comm_d_new = node::<Sha256Domain>("comm_d_new", &self.comm_d_new)?;
        let context = format!("update {proof_type}");
        let shapes = Shapes::new(Expected {
            size: proof_type.size,
            context: &context,
        });
        let at = At::root("vanilla_proofs");
        let expected = proof_type.size.snap().partitions;
        let given = self.vanilla_proofs.len();
        shapes.count(&at, "partition proofs", given, expected)?;
        let mut partitions = Vec::with_capacity(expected);
        for (k, bytes) in self.vanilla_proofs.iter().enumerate() {
            let at = at.index(k);
            let partition = read(bytes, &at, warnings)?;
            shapes.snap(&partition, &at)?;
            partitions.push(partition);
        }
        Ok(SnapRequest {
            proof_type,
            miner_id: named.miner_id,
            sector_number: named.sector_number,
            comm_r_old,
            comm_r_new,
            comm_d_new,
            partitions,
        })
    }

    fn post(
        &self,
        kind: ProofKind,
        named: Named,
        warnings: &mut Vec<Warning>,
    ) -> Result<PostRequest, Error> {
        let proof_type = RegisteredPostProof::from_number(kind, self.registered_proof)?;
        self.check_sector_size(proof_type.size)?;
        let randomness = self.post_randomness()?;
        let context = proof_type.to_string();
        let shapes = Shapes::new(Expected {
            size: proof_type.size,
            context: &context,
        });
        let at = At::root("vanilla_proofs");
        let (given, most) = match kind {
            ProofKind::Winning => (self.vanilla_proofs.len(), 1),
            _ => (self.vanilla_proofs.len(), proof_type.size.window().sectors),
        };
        if !(1..=most).contains(&given) {
            let expected = if most == 1 {
                "1".to_owned()
            } else {
                format!("1 to {most}")
            };
            return Err(shapes.wrong_count(&at, "sectors", given, expected));
        }
        let mut sectors: Vec<crate::post::FallbackPoStSectorProof> = Vec::with_capacity(given);
        for (i, bytes) in self.vanilla_proofs.iter().enumerate() {
            let at = at.index(i);
            let entry = read(bytes, &at, warnings)?;
            shapes.post(kind, &entry, &at)?;
            sectors.push(entry);
        }
        if let Some(i) = (1..given).find(|&i| sectors[i - 1].sector_id >= sectors[i].sector_id) {
            warnings.push(Warning::SectorOrder { index: i });
        }
        Ok(PostRequest {
            proof_type,
            miner_id: named.miner_id,
            randomness,
            partition_index: match kind {
                ProofKind::Window => self.partition_index,
                _ => 0,
            },
            sectors,
        })
    }

    fn post_randomness(&self) -> Result<PoseidonDomain, Error> {
        let bytes = bytes32("randomness", &self.randomness)?;
        PoseidonDomain::from_bytes(bytes).map_err(|cause| Error::BadField {
            field: "randomness".to_owned(),
            cause: format!("Invalid commitment (randomness): {cause}"),
            remedy: "clear the two top bits of its last byte, as the chain's rules say",
        })
    }

    fn check_sector_size(&self, size: SectorSize) -> Result<(), Error> {
        if self.sector_size == 0 || self.sector_size == size.bytes() {
            return Ok(());
        }
        Err(Error::Mismatch {
            field: "sector_size".to_owned(),
            value: self.sector_size.to_string(),
            other: "the sector size of registered_proof".to_owned(),
            other_value: format!("{} ({size})", size.bytes()),
            remedy: "correct the one that is wrong; 0 leaves it to registered_proof",
        })
    }
}

/// One bincode value; what follows it is tolerated and told.
fn read<T: binary::Binary>(
    bytes: &[u8],
    at: &At<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<T, Error> {
    let (value, rest) = binary::decode(bytes, at)?;
    if rest > 0 {
        warnings.push(Warning::TrailingBytes {
            field: at.to_string(),
            bytes: rest,
        });
    }
    Ok(value)
}

fn bytes32(field: &'static str, bytes: &[u8]) -> Result<[u8; 32], Error> {
    if bytes.is_empty() {
        return Err(Error::MissingField {
            field: field.to_owned(),
            remedy: "this kind of proof needs its 32 bytes",
        });
    }
    bytes.try_into().map_err(|_| Error::BadField {
        field: field.to_owned(),
        cause: format!("{} bytes, expected 32", bytes.len()),
        remedy: "give the raw 32-byte digest (not a CID, not hex) in base64",
    })
}

/// A commitment: 32 bytes, a node, not all zero.
fn node<D: Domain>(field: &'static str, bytes: &[u8]) -> Result<D, Error> {
    let node = D::from_bytes(bytes32(field, bytes)?).map_err(|cause| Error::NotANode {
        field: field.to_owned(),
        cause,
    })?;
    if node.is_zero() {
        return Err(Error::AllZero {
            field: field.to_owned(),
        });
    }
    Ok(node)
}

fn kind_number(value: EnumValue) -> Result<i32, Error> {
    match value {
        EnumValue::Number(number) => i32::try_from(number).map_err(|_| Error::UnknownKind {
            value: number.to_string(),
        }),
        EnumValue::Name(name) if name == "PROOF_KIND_UNSPECIFIED" => Ok(0),
        EnumValue::Name(name) => ProofKind::ALL
            .into_iter()
            .find(|kind| kind.enum_name() == name)
            .map(|kind| kind.number() as i32)
            .ok_or_else(|| Error::UnknownKind {
                value: quote(&name),
            }),
    }
}

/// Any number is accepted, as on the wire; a name must be one of the five.
fn priority_number(value: EnumValue) -> Result<i32, Error> {
    match value {
        EnumValue::Number(number) => Ok(i32::try_from(number).unwrap_or(0)),
        EnumValue::Name(name) => PRIORITIES
            .iter()
            .position(|known| *known == name)
            .map(|number| number as i32)
            .ok_or_else(|| Error::BadField {
                field: "priority".to_owned(),
                cause: format!("{} is not a priority", quote(&name)),
                remedy: "use LOW, NORMAL, HIGH or CRITICAL, or leave it out",
            }),
    }
}
