//! The real proofs under `fixtures/`: their files, public values and requests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::decode::{Decoded, Hints, SubmitProofRequest};
use crate::registered::RegisteredPostProof;
use crate::registry::{ProofKind, SectorSize};
use crate::request::Request;

/// The files of `examples/requests/` and the fixtures that they are made from.
pub const EXAMPLES: [(&str, &str); 4] = [
    ("porep.json", "2KiB/porep-v1_1-a"),
    ("snap.json", "2KiB/empty-sector-update-a"),
    ("window.json", "2KiB/window-post-1-partition"),
    ("winning.json", "2KiB/winning-post-a"),
];

/// One fixture: a folder with a vanilla proof and its public values.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// `<size>/<name>`, for example `2KiB/porep-v1`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Contents of its `*.meta.json`.
    pub meta: Value,
}

/// The repository's fixture folder.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// All fixtures, by name.
///
/// # Panics
/// If the folder cannot be read.
pub fn all() -> Vec<Fixture> {
    let mut names = Vec::new();
    for size in ["2KiB", "8MiB"] {
        for entry in fs::read_dir(folder().join(size)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                names.push(format!("{size}/{}", entry.file_name().to_str().unwrap()));
            }
        }
    }
    names.sort();
    names.iter().map(|name| fixture(name)).collect()
}

/// The fixture with this name.
///
/// # Panics
/// If there is none.
pub fn fixture(name: &str) -> Fixture {
    let folder = folder().join(name);
    let meta = [
        "porep",
        "winning-post",
        "window-post",
        "empty-sector-update",
    ]
    .iter()
    .map(|kind| folder.join(format!("{kind}.meta.json")))
    .find(|path| path.exists())
    .unwrap_or_else(|| panic!("no fixture {name}"));
    Fixture {
        name: name.to_owned(),
        meta: serde_json::from_slice(&fs::read(meta).unwrap()).unwrap(),
        folder,
    }
}

impl Fixture {
    /// What it proves.
    pub fn kind(&self) -> ProofKind {
        match self.meta["kind"].as_str().unwrap() {
            "porep" => ProofKind::Porep,
            "empty-sector-update" => ProofKind::Snap,
            "window-post" => ProofKind::Window,
            "winning-post" => ProofKind::Winning,
            other => panic!("{}: kind {other}", self.name),
        }
    }

    /// A file of its folder.
    pub fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.folder.join(file)).unwrap()
    }

    /// The bytes of a hex string of its public values.
    pub fn hex(&self, key: &str) -> Vec<u8> {
        hex::decode(self.meta[key].as_str().unwrap()).unwrap()
    }

    /// A number of its public values.
    pub fn number(&self, key: &str) -> u64 {
        self.meta[key].as_u64().unwrap()
    }

    /// Miner and sector, as a caller would give them beside the request.
    pub fn hints(&self) -> Hints {
        Hints {
            miner_id: self.meta["miner_id"].as_u64(),
            sector_number: self.meta["sector_id"].as_u64(),
        }
    }

    /// The envelope that sealing software saves around a phase-1 output.
    pub fn c2_input(&self) -> Vec<u8> {
        use base64::Engine;
        let phase1 = base64::engine::general_purpose::STANDARD.encode(self.read("c1.json"));
        let (sector, size) = (self.number("sector_id"), self.number("sector_size"));
        format!(r#"{{"SectorNum":{sector},"Phase1Out":"{phase1}","SectorSize":{size}}}"#)
            .into_bytes()
    }

    /// The messages that ask for its proofs as Curio sends them: one, or one per
    /// partition for a window PoSt.
    pub fn submits(&self) -> Vec<SubmitProofRequest> {
        let kind = self.kind();
        let base = SubmitProofRequest {
            request_id: self.name.clone(),
            proof_kind: kind.number() as i32,
            sector_size: self.number("sector_size"),
            priority: 2,
            miner_id: self.meta["miner_id"].as_u64().unwrap_or(0),
            ..SubmitProofRequest::default()
        };
        match kind {
            ProofKind::Porep => vec![SubmitProofRequest {
                registered_proof: u64::from(self.hex("porep_id")[0]),
                sector_number: self.number("sector_id"),
                vanilla_proof: self.c2_input(),
                ..base
            }],
            ProofKind::Snap => vec![SubmitProofRequest {
                registered_proof: SectorSize::from_bytes(base.sector_size).unwrap() as u64,
                sector_number: self.number("sector_id"),
                miner_id: 1000,
                vanilla_proofs: (0..self.number("partitions"))
                    .map(|k| self.read(&format!("partition-{k}.bin")))
                    .collect(),
                comm_r_old: self.hex("comm_r_old"),
                comm_r_new: self.hex("comm_r_new"),
                comm_d_new: self.hex("comm_d_new"),
                ..base
            }],
            ProofKind::Window | ProofKind::Winning => self.post_submits(&base),
        }
    }

    fn post_submits(&self, base: &SubmitProofRequest) -> Vec<SubmitProofRequest> {
        let name = self.meta["registered_proof"].as_str().unwrap();
        let proof = RegisteredPostProof::all()
            .find(|proof| proof.name() == name)
            .unwrap();
        let files: Vec<Vec<u8>> = (0..self.meta["sectors"].as_array().unwrap().len())
            .map(|i| self.read(&format!("vanilla-{i}.bin")))
            .collect();
        let per_partition = match proof.kind() {
            ProofKind::Winning => 1,
            _ => proof.size.window().sectors,
        };
        files
            .chunks(per_partition)
            .map(|sectors| SubmitProofRequest {
                registered_proof: proof.number(),
                vanilla_proofs: sectors.to_vec(),
                randomness: self.hex("randomness"),
                ..base.clone()
            })
            .collect()
    }

    /// Its decoded requests, one per [`Fixture::submits`].
    pub fn requests(&self) -> Vec<Request> {
        self.decoded().into_iter().map(|d| d.request).collect()
    }

    /// As [`Fixture::requests`], with what decoding tells about them.
    pub fn decoded(&self) -> Vec<Decoded> {
        self.submits()
            .iter()
            .map(|submit| Request::decode(&submit.to_json(), Hints::default()).unwrap())
            .collect()
    }
}
