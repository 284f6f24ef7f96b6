//! Payload files: `payloads/<first two digits>/<SHA-256>`, written to a temporary name, synced,
//! renamed, and the folder synced. A file under its final name is therefore whole; what was
//! being written when the power went is in `payloads/incoming` and is removed at the next start.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::record::Digest;
use crate::{Error, Result};

/// Folder of files that are being written.
const INCOMING: &str = "incoming";
/// Bytes per read and write.
const CHUNK: usize = 1 << 20;

/// The payload files of one store.
pub(crate) struct Payloads {
    root: PathBuf,
    /// Held while a file gets its name and while files are removed, so that a payload that has
    /// just been stored again is not swept as an old one.
    naming: Mutex<()>,
}

impl Payloads {
    /// Opens (or makes) the folder and removes what was left half-written.
    pub(crate) fn open(root: PathBuf) -> Result<Self> {
        let incoming = root.join(INCOMING);
        make_folder(&incoming)?;
        for file in entries(&incoming)? {
            fs::remove_file(&file).map_err(|e| Error::io("remove", &file, e))?;
        }
        Ok(Self {
            root,
            naming: Mutex::new(()),
        })
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.root.join(&name[..2]).join(name)
    }

    /// Stores what `source` gives, at most `limit` bytes.
    pub(crate) fn put(&self, source: &mut dyn Read, limit: u64) -> Result<(Digest, u64)> {
        let incoming = self.root.join(INCOMING);
        let mut file = tempfile::NamedTempFile::new_in(&incoming)
            .map_err(|e| Error::io("create a file in", &incoming, e))?;
        let (digest, bytes) = copy(source, file.as_file_mut(), &incoming, limit)?;
        file.as_file()
            .sync_all()
            .map_err(|e| Error::io("sync", file.path(), e))?;
        let path = self.path(&digest);
        let folder = path
            .parent()
            .expect("invariant: a payload lies in a folder");
        make_folder(folder)?;
        let naming = self
            .naming
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.persist(&path)
            .map_err(|e| Error::io("name", &path, e.error))?;
        drop(naming);
        sync_folder(folder)?;
        Ok((digest, bytes))
    }

    /// Reads a payload and checks it.
    pub(crate) fn get(&self, digest: &Digest) -> Result<Vec<u8>> {
        let path = self.path(digest);
        let bytes = fs::read(&path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::MissingPayload(*digest),
            _ => Error::io("read", &path, e),
        })?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(Error::DamagedPayload {
                digest: *digest,
                found,
            });
        }
        Ok(bytes)
    }

    /// Makes a payload as new for sweeps.
    pub(crate) fn renew(&self, digest: &Digest) -> Result<()> {
        let path = self.path(digest);
        let _naming = self
            .naming
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let renewed = File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        renewed.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::MissingPayload(*digest),
            _ => Error::io("renew", &path, e),
        })
    }

    /// Removes this payload unless it is `needed`. Says whether it was there and is gone.
    pub(crate) fn discard(
        &self,
        digest: &Digest,
        needed: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let path = self.path(digest);
        if !path.exists() {
            return Ok(false);
        }
        let removed = self.remove_if(&path, Duration::ZERO, needed)?;
        Ok(removed.is_some())
    }

    /// Removes payloads older than `grace` that `needed` does not name. Returns number and bytes.
    pub(crate) fn sweep(
        &self,
        grace: Duration,
        mut needed: impl FnMut(&Digest) -> Result<bool>,
    ) -> Result<(u64, u64)> {
        let (mut files, mut bytes) = (0, 0);
        for folder in entries(&self.root)? {
            if folder.ends_with(INCOMING) {
                continue;
            }
            for path in entries(&folder)? {
                let Some(digest) = digest_of_name(&path) else {
                    continue;
                };
                if let Some(length) = self.remove_if(&path, grace, || needed(&digest))? {
                    files += 1;
                    bytes += length;
                }
            }
        }
        Ok((files, bytes))
    }

    fn remove_if(
        &self,
        path: &Path,
        grace: Duration,
        needed: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<u64>> {
        let _naming = self
            .naming
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let data = fs::metadata(path).map_err(|e| Error::io("inspect", path, e))?;
        let written = data.modified().map_err(|e| Error::io("inspect", path, e))?;
        // A file from the future (the clock was set back) counts as new.
        let age = SystemTime::now()
            .duration_since(written)
            .unwrap_or_default();
        if age < grace || needed()? {
            return Ok(None);
        }
        fs::remove_file(path).map_err(|e| Error::io("remove", path, e))?;
        Ok(Some(data.len()))
    }
}

/// Copies and hashes. `path` is only for messages.
fn copy(
    source: &mut dyn Read,
    target: &mut dyn Write,
    path: &Path,
    limit: u64,
) -> Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut total: u64 = 0;
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::io("receive the payload for", path, e)),
        };
        total += count as u64;
        if total > limit {
            return Err(Error::PayloadTooLarge { limit });
        }
        hasher.update(&buffer[..count]);
        target
            .write_all(&buffer[..count])
            .map_err(|e| Error::io("write a payload in", path, e))?;
    }
    Ok((Digest::new(hasher.finalize().into()), total))
}

fn digest_of_name(path: &Path) -> Option<Digest> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(path.file_name()?.to_str()?, &mut bytes).ok()?;
    Some(Digest::new(bytes))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)
        .and_then(|listing| listing.map(|entry| entry.map(|e| e.path())).collect())
        .map_err(|e| Error::io("list", folder, e))
}

/// Makes a folder with its parents, and makes the names durable.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).map_err(|e| Error::io("create", path, e))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| Error::io("sync", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_is_told_from_other_errors() {
        let path = Path::new("/dev/full");
        let mut full = File::options().write(true).open(path).unwrap();
        let error = copy(&mut &b"bytes"[..], &mut full, path, 100).unwrap_err();
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        assert_eq!(error.code(), "DISK_FULL");
        assert!(error.is_temporary());
    }

    #[test]
    fn the_limit_is_inclusive() {
        let mut sink = Vec::new();
        let path = Path::new("payload");
        assert_eq!(copy(&mut &b"12345"[..], &mut sink, path, 5).unwrap().1, 5);
        let error = copy(&mut &b"123456"[..], &mut sink, path, 5).unwrap_err();
        assert!(
            matches!(error, Error::PayloadTooLarge { limit: 5 }),
            "{error}"
        );
    }
}
