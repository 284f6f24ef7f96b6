//! A read-only memory map that notices when its file changes.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::KeyError;

/// Identity of a file's content as far as the file system tells: if any of these differs, the
/// bytes may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Length in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Inode number.
    pub inode: u64,
    /// Device that the inode belongs to.
    pub device: u64,
}

impl FileStamp {
    /// From what the file system says of an open file.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        FileStamp {
            size: metadata.size(),
            mtime_ns: metadata
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(metadata.mtime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
}

/// A key file, mapped read-only.
///
/// # Files that change while mapped
/// Reading a map past the end of its file kills the process (SIGBUS), and bytes that change
/// would bypass the check made when the key was accepted. So the descriptor is kept, and
/// [`MappedFile::slice`] compares the file's size and times with those at opening before it
/// hands out bytes: a file that was cut or written to in place is an error ([`KeyError::Changed`]).
/// Replacing a file by rename or unlink is harmless, the map keeps the old inode. What stays
/// open is the moment between that comparison and the reads that follow it (a few thousand
/// points, well under a millisecond): nothing short of copying the file closes it, and nothing
/// writes parameter files in place at such a moment by design.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    file: File,
    map: Mmap,
    stamp: FileStamp,
}

impl MappedFile {
    /// Opens and maps a regular file.
    ///
    /// # Errors
    /// [`KeyError::Io`], and [`KeyError::Malformed`] for an empty file or one that is not a
    /// regular file.
    pub fn open(path: &Path, kind: &'static str) -> Result<Self, KeyError> {
        // A pipe or device would block or never end: look before opening.
        let before = std::fs::metadata(path).map_err(KeyError::io("open", path))?;
        if !before.is_file() {
            return Err(KeyError::Malformed {
                path: path.to_path_buf(),
                kind,
                reason: "it is not a regular file".to_owned(),
            });
        }
        let file = File::open(path).map_err(KeyError::io("open", path))?;
        Self::of(file, path, kind)
    }

    /// Maps an open regular file, which errors call `path`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of(file: File, path: &Path, kind: &'static str) -> Result<Self, KeyError> {
        let malformed = |reason: &str| KeyError::Malformed {
            path: path.to_path_buf(),
            kind,
            reason: reason.to_owned(),
        };
        let metadata = file.metadata().map_err(KeyError::io("read", path))?;
        if !metadata.is_file() {
            return Err(malformed("it is not a regular file"));
        }
        if metadata.size() == 0 {
            return Err(malformed("it is empty"));
        }
        // SAFETY: the map is read-only and private to this value. Changes of the file under it
        // are detected before bytes are handed out, as the type's documentation explains.
        let map = unsafe { Mmap::map(&file) }.map_err(KeyError::io("map", path))?;
        let stamp = FileStamp::of(&metadata);
        if map.len() as u64 != stamp.size {
            return Err(KeyError::Changed {
                path: path.to_path_buf(),
            });
        }
        Ok(MappedFile {
            path: path.to_path_buf(),
            file,
            map,
            stamp,
        })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size, times and inode at opening.
    pub fn stamp(&self) -> FileStamp {
        self.stamp
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// `count` bytes from `start`, after checking that the file is still the one opened.
    ///
    /// # Errors
    /// [`KeyError::Changed`] if it is not, or if the range reaches past the end (sections are
    /// laid out within the length when the file is opened, so no other cause is left).
    pub fn slice(&self, start: usize, count: usize) -> Result<&[u8], KeyError> {
        let changed = || KeyError::Changed {
            path: self.path.clone(),
        };
        let now = self
            .file
            .metadata()
            .map_err(KeyError::io("read", &self.path))?;
        if FileStamp::of(&now) != self.stamp {
            return Err(changed());
        }
        start
            .checked_add(count)
            .and_then(|end| self.map.get(start..end))
            .ok_or_else(changed)
    }
}
