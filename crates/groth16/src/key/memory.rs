//! What earlier checks of key files found, remembered in our cache folder.
//!
//! Hashing 47 GB takes about a minute and checking every point of it longer, so both are done
//! once per file. An entry is believed only for the same path, size, modification time, inode
//! and device, if its own checksum holds, and if the entry belongs to this user (or root) and
//! nobody else may write to it. Whoever can forge such an entry can also replace the program,
//! so entries need no secret; anything else in their place is ignored and written anew.
//! Deleting the folder is always safe.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::KeyError;
use super::digest::KeyDigest;
use super::map::FileStamp;

/// Entries are some hundred bytes; anything longer is not one.
const MAX_ENTRY_BYTES: u64 = 64 << 10;
/// A file written this recently may be written again without a new modification time.
const SETTLING_NS: i64 = 2_000_000_000;

/// How far a file's points were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Points {
    /// Only the digest was taken.
    Unchecked,
    /// Every point is on its curve and in the subgroup.
    Sound,
}

/// What is known about the content of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    pub digest: KeyDigest,
    pub points: Points,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    format: u32,
    /// For people; the entry's name carries the exact path's hash.
    path: String,
    #[serde(flatten)]
    stamp: FileStamp,
    digest: String,
    points: Points,
    /// Digest over the entry with this field empty.
    checksum: String,
}

impl Entry {
    const FORMAT: u32 = 1;

    fn checksum(&self) -> Option<String> {
        let bare = Entry {
            checksum: String::new(),
            path: self.path.clone(),
            digest: self.digest.clone(),
            ..*self
        };
        let bytes = serde_json::to_vec(&bare).ok()?;
        Some(KeyDigest::of_bytes(&bytes).to_string())
    }
}

/// The folder of remembered findings; without one nothing is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    folder: Option<PathBuf>,
}

impl Memory {
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Memory {
            folder: cache.map(|cache| cache.join("keys")),
        }
    }

    /// The findings for the file that now has `stamp`, if there is a believable entry.
    pub(crate) fn recall(&self, path: &Path, stamp: &FileStamp) -> Option<Findings> {
        let mut file = File::open(self.entry_path(path)?).ok()?;
        let metadata = file.metadata().ok()?;
        let owner_ok = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
        let writable_by_others = metadata.mode() & 0o022 != 0;
        if !metadata.is_file()
            || !owner_ok
            || writable_by_others
            || metadata.size() > MAX_ENTRY_BYTES
        {
            return None;
        }
        let mut text = Vec::new();
        Read::by_ref(&mut file)
            .take(MAX_ENTRY_BYTES)
            .read_to_end(&mut text)
            .ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        if entry.format != Entry::FORMAT
            || entry.stamp != *stamp
            || entry.checksum()? != entry.checksum
        {
            return None;
        }
        Some(Findings {
            digest: entry.digest.parse().ok()?,
            points: entry.points,
        })
    }

    /// Remembers findings about the file that has `stamp`.
    ///
    /// Does nothing without a folder, and for a file that was modified within the last two
    /// seconds: a second modification could go unnoticed then.
    ///
    /// # Errors
    /// [`KeyError::Io`] when the entry cannot be written: worth a warning, nothing more.
    pub(crate) fn remember(
        &self,
        path: &Path,
        stamp: &FileStamp,
        findings: &Findings,
    ) -> Result<(), KeyError> {
        if now_ns().saturating_sub(stamp.mtime_ns) < SETTLING_NS {
            return Ok(());
        }
        self.store(path, stamp, findings)
    }

    /// Remembers findings whatever the file's age.
    fn store(&self, path: &Path, stamp: &FileStamp, findings: &Findings) -> Result<(), KeyError> {
        let (Some(folder), Some(target)) = (&self.folder, self.entry_path(path)) else {
            return Ok(());
        };
        let mut entry = Entry {
            format: Entry::FORMAT,
            path: path.display().to_string(),
            stamp: *stamp,
            digest: findings.digest.to_string(),
            points: findings.points,
            checksum: String::new(),
        };
        entry.checksum = entry
            .checksum()
            .expect("invariant: an entry of strings and numbers has a JSON form");
        let text = serde_json::to_vec_pretty(&entry)
            .expect("invariant: an entry of strings and numbers has a JSON form");

        std::fs::create_dir_all(folder).map_err(KeyError::io("create", folder))?;
        let mut draft =
            tempfile::NamedTempFile::new_in(folder).map_err(KeyError::io("write to", folder))?;
        draft
            .write_all(&text)
            .and_then(|()| draft.as_file().sync_all())
            .map_err(KeyError::io("write", &target))?;
        draft
            .persist(&target)
            .map_err(|error| error.error)
            .map_err(KeyError::io("write", &target))?;
        Ok(())
    }

    /// One entry for each absolute path, links resolved.
    fn entry_path(&self, path: &Path) -> Option<PathBuf> {
        let absolute = std::fs::canonicalize(path).ok()?;
        let name = KeyDigest::of_bytes(absolute.as_os_str().as_bytes());
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

/// Remembers that a file that was just generated has this digest and sound points: its next
/// user need not hash and check it. Best effort.
pub(crate) fn remember_sound(cache: Option<&Path>, path: &Path, digest: KeyDigest) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let findings = Findings {
            digest,
            points: Points::Sound,
        };
        let _ = Memory::new(cache).store(path, &FileStamp::of(&metadata), &findings);
    }
}

fn now_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|elapsed| i64::try_from(elapsed.as_nanos()).ok())
        .unwrap_or(i64::MAX)
}
