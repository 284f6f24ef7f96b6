//! Which keys may be used: finding a circuit's files and deciding whether to believe them.
//!
//! Two kinds of key are used. A *production* key has the digest that the network publishes.
//! A *test* key was made by [`crate::setup`] and says so in a side file; it is refused unless
//! the caller allows test keys, because whoever knows its seed can forge proofs. Every other
//! file is refused.

use std::fmt;
use std::path::{Path, PathBuf};

use super::check;
use super::digest::KeyDigest;
use super::map::FileStamp;
use super::memory::{Findings, Memory, Points};
use super::side_file::SideFile;
use super::{KeyCounts, KeyError, MissingKey, ProvingKey, VerifyingKey};
use crate::progress::Progress;

/// The key that a circuit needs: names, sizes and, for official files, digests.
#[derive(Clone, Debug)]
pub struct KeySpec {
    /// Circuit, for example `porep-32g`.
    pub circuit: String,
    /// File name without extension.
    pub stem: String,
    /// Sector size as `fetch-params` commands spell it, for example `32GiB`.
    pub sector: String,
    /// Points in each vector.
    pub counts: KeyCounts,
    /// Digests of the official files; `None` for a circuit that has none.
    pub production: Option<ProductionDigests>,
}

/// Digests of a circuit's official files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductionDigests {
    /// Of the `.params` file.
    pub params: KeyDigest,
    /// Of the `.vk` file.
    pub vk: KeyDigest,
}

/// Why a key may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTrust {
    /// The file has the digest that the network publishes.
    Production {
        /// The digest.
        digest: KeyDigest,
    },
    /// A test key, allowed by the caller: every result must carry [`KeyTrust::notice`].
    Test {
        /// The seed that its secrets follow from.
        seed: u64,
        /// The digest, equal to the side file's.
        digest: KeyDigest,
    },
}

impl KeyTrust {
    /// What every result made with this key has to say.
    pub fn notice(&self) -> Option<&'static str> {
        match self {
            KeyTrust::Production { .. } => None,
            KeyTrust::Test { .. } => Some("test key: anyone could forge this"),
        }
    }

    /// The file's digest.
    pub fn digest(&self) -> KeyDigest {
        match *self {
            KeyTrust::Production { digest } | KeyTrust::Test { digest, .. } => digest,
        }
    }
}

impl fmt::Display for KeyTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTrust::Production { digest } => write!(f, "official key, digest {digest}"),
            KeyTrust::Test { seed, digest } => {
                write!(f, "test key of seed {seed}, digest {digest}")
            }
        }
    }
}

/// A key that may be used, and why.
#[derive(Clone, Debug)]
pub struct Trusted<K> {
    /// The key.
    pub key: K,
    /// Where it was found.
    pub path: PathBuf,
    /// Why it may be used.
    pub trust: KeyTrust,
}

/// Folders to search for keys, where to remember checks, and whether test keys will do.
#[derive(Clone, Debug, Default)]
pub struct KeyStore {
    /// Folders, searched in order; the first that holds the file decides.
    pub folders: Vec<PathBuf>,
    /// Our cache folder; without one every check is made anew.
    pub cache: Option<PathBuf>,
    /// Whether test keys may be used.
    pub allow_test_keys: bool,
}

impl KeyStore {
    /// Path of the circuit's `.params` file.
    ///
    /// # Errors
    /// [`KeyError::Missing`], or [`KeyError::Io`] for a folder that cannot be searched.
    pub fn locate_params(&self, spec: &KeySpec) -> Result<PathBuf, KeyError> {
        let digest = spec.production.map(|digests| digests.params);
        self.locate(spec, "params", spec.counts.params_bytes(), digest)
    }

    /// Path of the circuit's `.vk` file.
    ///
    /// # Errors
    /// As [`Self::locate_params`].
    pub fn locate_vk(&self, spec: &KeySpec) -> Result<PathBuf, KeyError> {
        let digest = spec.production.map(|digests| digests.vk);
        self.locate(spec, "vk", spec.counts.vk_bytes(), digest)
    }

    /// Finds, opens and checks the circuit's proving key.
    ///
    /// A prepared key is taken before the parameter file, if there is one beside it, in another
    /// of the folders or in the cache folder; the parameter file need not be there then.
    ///
    /// The first time a file is seen it is hashed (about a second per gigabyte), and if it is
    /// a test key every point of it is checked; the cache folder remembers the outcome. A
    /// `.vk` file beside it must hold the same verifying key.
    ///
    /// # Errors
    /// [`KeyError`]: missing, unreadable, damaged, another circuit's, or not to be trusted.
    pub fn proving_key(
        &self,
        spec: &KeySpec,
        progress: &dyn Progress,
    ) -> Result<Trusted<ProvingKey>, KeyError> {
        match self.prepared_key(spec, progress)? {
            Some(prepared) => Ok(prepared),
            None => self.published_key(spec, progress),
        }
    }

    /// As [`Self::proving_key`], and leaves prepared keys out.
    ///
    /// # Errors
    /// As [`Self::proving_key`].
    pub fn published_key(
        &self,
        spec: &KeySpec,
        progress: &dyn Progress,
    ) -> Result<Trusted<ProvingKey>, KeyError> {
        let path = self.locate_params(spec)?;
        let side = self.side_file(spec, &path)?;
        let key = ProvingKey::open(&path, &spec.counts)?;
        check_pair(&key)?;

        let memory = Memory::new(self.cache.as_deref());
        let recalled = memory.recall(&path, &key.stamp());
        let digest = match recalled {
            Some(findings) => findings.digest,
            None => KeyDigest::of_file(key.file(), progress)?,
        };
        let official = spec.production.map(|digests| digests.params);
        let verdict = judge(spec, &path, side.as_ref(), official, digest, |side| {
            &side.params_digest
        });
        let mut points = recalled.map_or(Points::Unchecked, |findings| findings.points);
        if let Ok(KeyTrust::Test { .. }) = verdict
            && points == Points::Unchecked
        {
            check::check_points(&key, progress)?;
            points = Points::Sound;
        }
        let findings = Findings { digest, points };
        if recalled != Some(findings) {
            // A cache that cannot be written costs time on the next run, nothing else.
            let _ = memory.remember(&path, &key.stamp(), &findings);
        }
        Ok(Trusted {
            key,
            trust: verdict?,
            path,
        })
    }

    /// Finds, reads and checks the circuit's verifying key.
    ///
    /// # Errors
    /// As [`Self::proving_key`].
    pub fn verifying_key(&self, spec: &KeySpec) -> Result<Trusted<VerifyingKey>, KeyError> {
        let path = self.locate_vk(spec)?;
        let side = self.side_file(spec, &path)?;
        let key = VerifyingKey::read(&path, spec.counts.inputs)?;
        // Encodings are unique, so these are the file's bytes.
        let digest = KeyDigest::of_bytes(&key.to_bytes());
        let official = spec.production.map(|digests| digests.vk);
        let trust = judge(spec, &path, side.as_ref(), official, digest, |side| {
            &side.vk_digest
        })?;
        Ok(Trusted { key, path, trust })
    }

    /// Whether the file at `path` has been read through by an earlier check and is as it was then.
    pub fn remembers(&self, path: &Path) -> bool {
        let stamp = std::fs::metadata(path).map(|data| FileStamp::of(&data));
        let memory = Memory::new(self.cache.as_deref());
        stamp.is_ok_and(|stamp| memory.recall(path, &stamp).is_some())
    }

    /// The side file beside `path`. A key that has one is refused at once, before gigabytes
    /// are read, unless test keys are allowed.
    pub(super) fn side_file(
        &self,
        spec: &KeySpec,
        path: &Path,
    ) -> Result<Option<SideFile>, KeyError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let side = SideFile::read(folder, &spec.stem)?;
        if side.is_some() && !self.allow_test_keys {
            return Err(KeyError::TestKeyNotAllowed {
                path: path.to_path_buf(),
                side_file: SideFile::name(&spec.stem),
            });
        }
        Ok(side)
    }

    fn locate(
        &self,
        spec: &KeySpec,
        extension: &str,
        bytes: u64,
        digest: Option<KeyDigest>,
    ) -> Result<PathBuf, KeyError> {
        let name = format!("{}.{extension}", spec.stem);
        for folder in &self.folders {
            let path = folder.join(&name);
            match std::fs::metadata(&path) {
                Ok(_) => return Ok(path),
                // A folder that is missing, or is no folder, holds no key.
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => return Err(KeyError::io("look for", &path)(error)),
            }
        }
        Err(KeyError::Missing(Box::new(MissingKey {
            circuit: spec.circuit.clone(),
            name,
            bytes,
            digest,
            sector: spec.sector.clone(),
            searched: self.folders.clone(),
        })))
    }
}

/// Decides on a file by its digest: official, a test key with a matching side file, or refused.
fn judge(
    spec: &KeySpec,
    path: &Path,
    side: Option<&SideFile>,
    official: Option<KeyDigest>,
    found: KeyDigest,
    recorded: impl Fn(&SideFile) -> &String,
) -> Result<KeyTrust, KeyError> {
    if official == Some(found) {
        return Ok(KeyTrust::Production { digest: found });
    }
    let Some(side) = side else {
        return Err(KeyError::Untrusted {
            path: path.to_path_buf(),
            found,
            expected: official,
            side_file: SideFile::name(&spec.stem),
        });
    };
    side.check(path, &spec.circuit, recorded(side), found)?;
    Ok(KeyTrust::Test {
        seed: side.seed,
        digest: found,
    })
}

/// The `.vk` file beside a parameter file, if there is one, equals the parameter file's head.
fn check_pair(key: &ProvingKey) -> Result<(), KeyError> {
    let vk = key.path().with_extension("vk");
    let bytes = match std::fs::metadata(&vk) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(KeyError::io("open", &vk)(error)),
        Ok(metadata) if !metadata.is_file() || metadata.len() != key.counts().vk_bytes() => {
            Vec::new()
        }
        Ok(_) => std::fs::read(&vk).map_err(KeyError::io("read", &vk))?,
    };
    if bytes != key.vk().to_bytes() {
        return Err(KeyError::PairMismatch {
            vk,
            params: key.path().to_path_buf(),
        });
    }
    Ok(())
}
