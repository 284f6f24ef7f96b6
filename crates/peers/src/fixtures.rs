//! The real vanilla proofs under `fixtures/`, as requests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use filecoin::{Request, decode::Hints};
use serde::Deserialize;
use serde_json::json;

/// One fixture: a folder with a vanilla proof and the public values it was made for.
#[derive(Debug)]
pub struct Fixture {
    /// Folder of the sector size and folder of the fixture, such as `2KiB/porep-v1`.
    pub name: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// Its public values.
    pub meta: Meta,
}

/// The public values of a fixture.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Meta {
    /// A sealed sector.
    Porep(PorepMeta),
    /// One sector drawn for a block.
    WinningPost(PostMeta),
    /// The sectors of a deadline.
    WindowPost(PostMeta),
    /// An updated sector.
    EmptySectorUpdate(UpdateMeta),
}

/// 32 bytes written in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bytes32(pub [u8; 32]);

impl TryFrom<String> for Bytes32 {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

/// Public values of a sealed sector.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct PorepMeta {
    pub registered_proof: String,
    pub sector_size: u64,
    pub miner_id: u64,
    pub prover_id: Bytes32,
    pub sector_id: u64,
    pub comm_r: Bytes32,
    pub comm_d: Bytes32,
    pub ticket: Bytes32,
    pub seed: Bytes32,
    /// Per partition, without the leading one.
    pub public_inputs: Vec<Vec<Bytes32>>,
}

/// Public values of a PoSt.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct PostMeta {
    pub registered_proof: String,
    pub sector_size: u64,
    pub miner_id: u64,
    pub prover_id: Bytes32,
    pub randomness: Bytes32,
    pub sectors: Vec<SectorMeta>,
}

/// Public values of one sector of a PoSt.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct SectorMeta {
    pub sector_id: u64,
    pub comm_r: Bytes32,
    pub vanilla_file: String,
}

/// Public values of an updated sector.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct UpdateMeta {
    pub registered_proof: String,
    pub sector_size: u64,
    pub sector_id: u64,
    pub comm_r_old: Bytes32,
    pub comm_r_new: Bytes32,
    pub comm_d_new: Bytes32,
    pub partition_proofs: Vec<FileMeta>,
}

/// A file of a fixture.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct FileMeta {
    pub file: String,
}

/// What `witness.json` says of one partition.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "named as in the fixtures' README")]
pub struct WitnessMeta {
    pub fixture: String,
    pub partition: usize,
    pub inputs_including_one: usize,
    pub aux: usize,
    pub inputs_sha256: Bytes32,
    pub aux_sha256: Bytes32,
    pub public_inputs: Vec<Bytes32>,
}

/// The checkout: the one this was built in, or the working directory where a program that was built
/// elsewhere runs in another.
#[must_use]
pub fn checkout() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if built.join("fixtures").is_dir() {
        built
    } else {
        PathBuf::new()
    }
}

/// The folder that holds the fixtures.
#[must_use]
pub fn root() -> PathBuf {
    checkout().join("fixtures")
}

/// All fixtures of the sector sizes named (folders of `fixtures/`, such as `2KiB`), by name.
///
/// # Errors
/// A folder or a meta file that cannot be read.
pub fn load(sizes: &[&str]) -> Result<Vec<Fixture>> {
    let mut fixtures = Vec::new();
    for size in sizes {
        let folder = root().join(size);
        for entry in
            fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                fixtures.push(Fixture::open(size, &path)?);
            }
        }
    }
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(fixtures)
}

/// The fixture called `name`, such as `2KiB/porep-v1`.
///
/// # Errors
/// No such fixture, or its meta file cannot be read.
pub fn find(name: &str) -> Result<Fixture> {
    let (size, _) = name
        .split_once('/')
        .context("a fixture is named SIZE/NAME")?;
    Fixture::open(size, &root().join(name))
}

/// The digests of the right witnesses, keyed by fixture name and partition.
///
/// # Errors
/// `witness.json` of a size cannot be read.
pub fn witnesses(sizes: &[&str]) -> Result<BTreeMap<(String, usize), WitnessMeta>> {
    let mut all = BTreeMap::new();
    for size in sizes {
        let path = root().join(size).join("witness.json");
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let list: Vec<WitnessMeta> = serde_json::from_slice(&text)?;
        for witness in list {
            all.insert(
                (format!("{size}/{}", witness.fixture), witness.partition),
                witness,
            );
        }
    }
    Ok(all)
}

impl Fixture {
    fn open(size: &str, folder: &Path) -> Result<Self> {
        let base = folder
            .file_name()
            .and_then(|name| name.to_str())
            .with_context(|| format!("{} has no name", folder.display()))?;
        let meta = fs::read_dir(folder)
            .with_context(|| format!("listing {}", folder.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.to_string_lossy().ends_with(".meta.json"))
            .with_context(|| format!("{} has no meta file", folder.display()))?;
        let text = fs::read(&meta)?;
        let meta = serde_json::from_slice(&text)
            .with_context(|| format!("decoding {}", meta.display()))?;
        Ok(Self {
            name: format!("{size}/{base}"),
            folder: folder.to_owned(),
            meta,
        })
    }

    /// The requests a client would send for it, in order; each one's partitions follow those of
    /// the one before. More than one only for a window PoSt of several partitions.
    ///
    /// # Errors
    /// A file of the fixture cannot be read, or the request does not decode.
    pub fn requests(&self) -> Result<Vec<Request>> {
        self.wire()?
            .into_iter()
            .map(|request| {
                let decoded = Request::decode(request.to_string().as_bytes(), Hints::default())
                    .with_context(|| format!("decoding the request of {}", self.name))?;
                Ok(decoded.request)
            })
            .collect()
    }

    /// The requests in the JSON form of `SubmitProofRequest`.
    fn wire(&self) -> Result<Vec<serde_json::Value>> {
        Ok(match &self.meta {
            Meta::Porep(meta) => {
                let phase1 = BASE64_STANDARD.encode(self.read("c1.json")?);
                let envelope = json!({
                    "SectorNum": meta.sector_id,
                    "Phase1Out": phase1,
                    "SectorSize": meta.sector_size,
                });
                vec![json!({
                    "proofKind": "POREP_SEAL_COMMIT",
                    "sectorSize": meta.sector_size.to_string(),
                    "vanillaProof": BASE64_STANDARD.encode(envelope.to_string()),
                    "sectorNumber": meta.sector_id.to_string(),
                    "minerId": meta.miner_id.to_string(),
                })]
            }
            Meta::WinningPost(meta) => {
                vec![self.post("WINNING_POST", 0, meta, 0, &meta.sectors)?]
            }
            Meta::WindowPost(meta) => {
                let first = if meta.registered_proof.ends_with("V1_2") {
                    10
                } else {
                    5
                };
                meta.sectors
                    .chunks(WINDOW_SECTORS)
                    .enumerate()
                    .map(|(index, sectors)| {
                        self.post("WINDOW_POST_PARTITION", first, meta, index, sectors)
                    })
                    .collect::<Result<_>>()?
            }
            Meta::EmptySectorUpdate(meta) => {
                let proofs = meta
                    .partition_proofs
                    .iter()
                    .map(|proof| Ok(BASE64_STANDARD.encode(self.read(&proof.file)?)))
                    .collect::<Result<Vec<_>>>()?;
                vec![json!({
                    "proofKind": "SNAP_DEALS_UPDATE",
                    "sectorSize": meta.sector_size.to_string(),
                    "registeredProof": size_number(meta.sector_size)?.to_string(),
                    "vanillaProofs": proofs,
                    "sectorNumber": meta.sector_id.to_string(),
                    "commROld": BASE64_STANDARD.encode(meta.comm_r_old.0),
                    "commRNew": BASE64_STANDARD.encode(meta.comm_r_new.0),
                    "commDNew": BASE64_STANDARD.encode(meta.comm_d_new.0),
                })]
            }
        })
    }

    fn post(
        &self,
        kind: &str,
        first_number: u64,
        meta: &PostMeta,
        partition_index: usize,
        sectors: &[SectorMeta],
    ) -> Result<serde_json::Value> {
        let proofs = sectors
            .iter()
            .map(|sector| Ok(BASE64_STANDARD.encode(self.read(&sector.vanilla_file)?)))
            .collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "proofKind": kind,
            "sectorSize": meta.sector_size.to_string(),
            "registeredProof": (first_number + size_number(meta.sector_size)?).to_string(),
            "vanillaProofs": proofs,
            "minerId": meta.miner_id.to_string(),
            "randomness": BASE64_STANDARD.encode(meta.randomness.0),
            "partitionIndex": partition_index,
        }))
    }

    fn read(&self, file: &str) -> Result<Vec<u8>> {
        let path = self.folder.join(file);
        fs::read(&path).with_context(|| format!("reading {}", path.display()))
    }
}

/// Sectors in a window partition at the fixtures' sizes.
const WINDOW_SECTORS: usize = 2;

/// The sector size's number, which a registered proof's number ends in (modulo 5).
fn size_number(bytes: u64) -> Result<u64> {
    let sizes: [u64; 5] = [1 << 11, 1 << 23, 1 << 29, 1 << 35, 1 << 36];
    let number = sizes.iter().position(|size| *size == bytes);
    ensure!(number.is_some(), "{bytes} bytes is no sector size");
    Ok(number.map_or(0, |number| number as u64))
}
