//! Finding prepared keys and deciding whether to believe them.
//!
//! A prepared key is bound to a verifying key, whose digest is in its name and is compared with
//! that of the verifying key inside: the official one, or the one that a test key's side file
//! names. Nobody publishes digests of prepared keys, so that every point of one is checked once,
//! as a test key's are. One that is made wrong cannot do harm beyond proofs that do not verify,
//! and such proofs are never returned.

use std::path::{Path, PathBuf};

use super::check::check_points;
use super::memory::{Findings, Memory, Points};
use super::prepared::{content_digest, prepared_name, unusable};
use super::{KeyDigest, KeyError, KeySpec, KeyStore, KeyTrust, ProvingKey, SideFile, Trusted};
use crate::progress::Progress;

/// A prepared key's file, and what it has to be.
struct FoundPrepared {
    path: PathBuf,
    /// Digest of its verifying key.
    vk: KeyDigest,
    /// The test key's seed, if it is one.
    seed: Option<u64>,
}

impl KeyStore {
    /// Our folder of prepared keys within the cache folder `cache`.
    pub fn prepared_folder(cache: &Path) -> PathBuf {
        cache.join("prepared")
    }

    /// Path of the file that the circuit's proving key comes from: its parameter file, or a prepared key
    /// that needs none. Neither is opened.
    ///
    /// # Errors
    /// [`KeyError::Missing`] if there is neither, [`KeyError::TestKeyNotAllowed`], or [`KeyError::Io`] for a
    /// folder that cannot be searched.
    pub fn locate_proving_key(&self, spec: &KeySpec) -> Result<PathBuf, KeyError> {
        match self.locate_params(spec) {
            Err(missing @ KeyError::Missing(_)) => match self.locate_prepared_alone(spec)? {
                Some(found) => Ok(found.path),
                None => Err(missing),
            },
            located => located,
        }
    }

    /// As [`Self::proving_key`], and takes a prepared key alone; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::proving_key`].
    pub fn prepared_key(
        &self,
        spec: &KeySpec,
        progress: &dyn Progress,
    ) -> Result<Option<Trusted<ProvingKey>>, KeyError> {
        let found = match self.locate_params(spec) {
            Ok(path) => {
                let side = self.side_file(spec, &path)?;
                self.locate_prepared(spec, &path, side.as_ref())?
            }
            Err(KeyError::Missing(_)) => self.locate_prepared_alone(spec)?,
            Err(error) => return Err(error),
        };
        found
            .map(|found| self.open_prepared(spec, found, progress))
            .transpose()
    }

    /// The prepared key of the parameter file `params`, if there is one.
    fn locate_prepared(
        &self,
        spec: &KeySpec,
        params: &Path,
        side: Option<&SideFile>,
    ) -> Result<Option<FoundPrepared>, KeyError> {
        let (vk, seed) = match side {
            Some(side) => match side.vk_digest.parse() {
                Ok(vk) => (vk, Some(side.seed)),
                // The side file is judged with the parameter file.
                Err(_) => return Ok(None),
            },
            None => match spec.production {
                Some(digests) => (digests.vk, None),
                None => return Ok(None),
            },
        };
        self.find_prepared(spec, params.parent(), vk, seed)
    }

    /// A prepared key without a parameter file: the official one, or a test key whose side file
    /// is in one of the folders.
    fn locate_prepared_alone(&self, spec: &KeySpec) -> Result<Option<FoundPrepared>, KeyError> {
        if let Some(digests) = spec.production
            && let Some(found) = self.find_prepared(spec, None, digests.vk, None)?
        {
            return Ok(Some(found));
        }
        for folder in &self.folders {
            let Some(side) = SideFile::read(folder, &spec.stem)? else {
                continue;
            };
            let Ok(vk) = side.vk_digest.parse() else {
                continue;
            };
            if let Some(found) = self.find_prepared(spec, Some(folder), vk, Some(side.seed))? {
                // Refuses it where test keys are not allowed.
                self.side_file(spec, &folder.join(SideFile::name(&spec.stem)))?;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn find_prepared(
        &self,
        spec: &KeySpec,
        first: Option<&Path>,
        vk: KeyDigest,
        seed: Option<u64>,
    ) -> Result<Option<FoundPrepared>, KeyError> {
        let name = prepared_name(&spec.circuit, vk);
        let cache = self.cache.as_deref().map(Self::prepared_folder);
        let folders = first
            .into_iter()
            .chain(self.folders.iter().map(PathBuf::as_path))
            .chain(cache.as_deref());
        for folder in folders {
            let path = folder.join(&name);
            match std::fs::metadata(&path) {
                Ok(_) => return Ok(Some(FoundPrepared { path, vk, seed })),
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => return Err(KeyError::io("look for", &path)(error)),
            }
        }
        Ok(None)
    }

    /// Opens and checks a prepared key; the digest and every point once per file.
    fn open_prepared(
        &self,
        spec: &KeySpec,
        found: FoundPrepared,
        progress: &dyn Progress,
    ) -> Result<Trusted<ProvingKey>, KeyError> {
        let FoundPrepared { path, vk, seed } = found;
        let key = ProvingKey::open(&path, &spec.counts)?;
        let bad = |reason: &str| unusable(&path, reason.to_owned());
        let header = *key
            .prepared()
            .ok_or_else(|| bad("it is a parameter file"))?;
        if KeyDigest::of_bytes(&key.vk().to_bytes()) != vk {
            return Err(bad("the verifying key in it is not the one in its name"));
        }
        if header.seed != seed {
            return Err(bad("its seed is not that of the test key's side file"));
        }
        let official = spec.production.map(|digests| digests.params);
        if seed.is_none() && header.source != official {
            return Err(bad("it was not made from the official parameter file"));
        }
        let recorded = header.content.ok_or_else(|| bad("it was never finished"))?;

        let memory = Memory::new(self.cache.as_deref());
        let sound = Findings {
            digest: recorded,
            points: Points::Sound,
        };
        if memory.recall(&path, &key.stamp()) != Some(sound) {
            if content_digest(key.file(), progress)? != recorded {
                return Err(bad("its content does not have the digest in its header"));
            }
            check_points(&key, progress)?;
            // A cache that cannot be written costs time on the next run, nothing else.
            let _ = memory.remember(&path, &key.stamp(), &sound);
        }
        let digest = header.source.unwrap_or(recorded);
        let trust = match seed {
            None => KeyTrust::Production { digest },
            Some(seed) => KeyTrust::Test { seed, digest },
        };
        Ok(Trusted { key, path, trust })
    }
}
