//! The side file that marks a test key: `<stem>.test-key.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::KeyError;
use super::digest::KeyDigest;

/// Side files are some hundred bytes; anything longer is not one.
const MAX_BYTES: u64 = 64 << 10;

/// What a test key's side file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// Version of this form: 1.
    pub format: u32,
    /// For whoever opens the file.
    pub warning: String,
    /// Circuit, for example `porep-2k`.
    pub circuit: String,
    /// Digest of the compiled circuit that the key was made from, in hex.
    pub circuit_digest: String,
    /// The seed: every secret of the set-up follows from it.
    pub seed: u64,
    /// Digest of the `.params` file; empty for a key that was made in prepared form alone.
    pub params_digest: String,
    /// Digest of the `.vk` file.
    pub vk_digest: String,
}

impl SideFile {
    /// The version written and read.
    pub const FORMAT: u32 = 1;
    /// What every side file says of its key.
    pub const WARNING: &'static str = "test key: anyone could forge proofs for it";

    /// The side file's name for a key's stem.
    pub fn name(stem: &str) -> String {
        format!("{stem}.test-key.json")
    }

    /// Reads the side file of a key in `folder`, `None` if there is none.
    ///
    /// # Errors
    /// [`KeyError::Io`] and, for a file that is not of this form, [`KeyError::Malformed`].
    pub(crate) fn read(folder: &Path, stem: &str) -> Result<Option<Self>, KeyError> {
        let path: PathBuf = folder.join(Self::name(stem));
        let malformed = |reason: String| KeyError::Malformed {
            path: path.clone(),
            kind: "test key side",
            reason,
        };
        let metadata = match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(KeyError::io("open", &path))?,
        };
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Err(malformed(format!(
                "a JSON file of at most {MAX_BYTES} bytes is expected"
            )));
        }
        let text = std::fs::read(&path).map_err(KeyError::io("read", &path))?;
        let side: SideFile =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if side.format != Self::FORMAT {
            return Err(malformed(format!(
                "its format is {}, this version reads {}",
                side.format,
                Self::FORMAT
            )));
        }
        Ok(Some(side))
    }

    /// The file's text.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self)
            .expect("invariant: a record of strings and numbers has a JSON form");
        text.push(b'\n');
        text
    }

    /// Checks circuit and digest of one of the key's files.
    pub(crate) fn check(
        &self,
        path: &Path,
        circuit: &str,
        recorded: &str,
        found: KeyDigest,
    ) -> Result<(), KeyError> {
        let mismatch = |reason: String| KeyError::TestKeyMismatch {
            path: path.to_path_buf(),
            reason,
        };
        if self.circuit != circuit {
            return Err(mismatch(format!(
                "it was made for circuit {}, not {circuit}",
                self.circuit
            )));
        }
        if recorded.parse() != Ok(found) {
            return Err(mismatch(format!(
                "its digest is {found}, the side file says {recorded}"
            )));
        }
        Ok(())
    }
}
