//! Files that appear under their names complete, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::key::{
    KeyCounts, KeyDigest, KeyError, MappedFile, PREPARED, PreparedHeader, content_digest,
};
use crate::progress::Progress;

/// A file in the making: hashed while it is written, named at the end.
///
/// On most file systems it has no name until then, so that nothing is left behind even if the
/// process is killed. Where that is not supported it has a temporary name beside its target.
pub(crate) struct Draft {
    target: PathBuf,
    file: File,
    named: Option<TempPath>,
    hash: blake2b_simd::State,
    /// Bytes still to be written.
    missing: u64,
}

impl Draft {
    /// Starts a file of exactly `bytes` bytes that will be called `target`, and reserves the
    /// space for it.
    ///
    /// # Errors
    /// [`KeyError::Exists`] if there is something of that name, [`KeyError::NoSpace`] if the
    /// file would not fit, [`KeyError::Io`].
    pub fn create(target: &Path, bytes: u64) -> Result<Self, KeyError> {
        refuse_existing(target)?;
        let folder = target.parent().unwrap_or(Path::new("."));
        let (file, named) = match unnamed_file(folder) {
            Ok(file) => (file, None),
            Err(_) => named_file(folder).map_err(KeyError::io("create a file in", folder))?,
        };
        let reserved = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
        // On a file system that cannot reserve space, writing will show.
        if let Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) = reserved {
            return Err(KeyError::NoSpace {
                path: target.to_path_buf(),
                bytes,
            });
        }
        Ok(Draft {
            target: target.to_path_buf(),
            file,
            named,
            hash: blake2b_simd::State::new(),
            missing: bytes,
        })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`KeyError::NoSpace`], [`KeyError::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        self.hash.update(bytes);
        self.missing = self
            .missing
            .checked_sub(bytes.len() as u64)
            .expect("invariant: as many points are written as were counted");
        self.file
            .write_all(bytes)
            .map_err(|error| self.cause(error))
    }

    /// Makes the content durable and returns its digest; the file still has no name.
    ///
    /// # Errors
    /// [`KeyError::NoSpace`], [`KeyError::Io`].
    pub fn finish(self) -> Result<Finished, KeyError> {
        assert_eq!(self.missing, 0, "invariant: all counted points are written");
        self.file.sync_all().map_err(|error| self.cause(error))?;
        Ok(Finished {
            digest: KeyDigest::finish(&self.hash),
            target: self.target,
            file: self.file,
            named: self.named,
        })
    }

    /// Puts the content's digest into the header of a prepared key, makes it durable, and gives
    /// it the name `target`, which it will have.
    ///
    /// # Errors
    /// As [`Self::finish`], and [`KeyError::Exists`] if there is something of that name.
    pub fn finish_prepared(
        mut self,
        target: &Path,
        header: PreparedHeader,
        counts: &KeyCounts,
        progress: &dyn Progress,
    ) -> Result<Finished, KeyError> {
        refuse_existing(target)?;
        self.target = target.to_path_buf();
        let reader = self
            .file
            .try_clone()
            .map_err(KeyError::io("read", target))?;
        let content = content_digest(&MappedFile::of(reader, target, PREPARED)?, progress)?;
        let header = PreparedHeader {
            content: Some(content),
            ..header
        };
        self.file
            .write_all_at(&header.to_bytes(counts), 0)
            .map_err(|error| self.cause(error))?;
        Ok(Finished {
            digest: content,
            ..self.finish()?
        })
    }

    fn cause(&self, error: io::Error) -> KeyError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => KeyError::NoSpace {
                path: self.target.clone(),
                bytes: self.missing,
            },
            _ => KeyError::io("write", &self.target)(error),
        }
    }
}

/// A complete file that waits for its name.
pub(crate) struct Finished {
    pub digest: KeyDigest,
    target: PathBuf,
    file: File,
    named: Option<TempPath>,
}

impl Finished {
    /// Gives the files their names, in order; all of them or, on an error, none.
    ///
    /// # Errors
    /// [`KeyError::Exists`] if something took a name meanwhile, [`KeyError::Io`].
    pub fn publish(files: Vec<Finished>) -> Result<(), KeyError> {
        let mut done: Vec<PathBuf> = Vec::new();
        for file in files {
            let target = file.target.clone();
            if let Err(error) = file.name() {
                for path in done {
                    let _ = std::fs::remove_file(path);
                }
                return Err(error);
            }
            done.push(target);
        }
        if let Some(folder) = done.first().and_then(|path| path.parent()) {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(KeyError::io("write", folder))?;
        }
        Ok(())
    }

    fn name(self) -> Result<(), KeyError> {
        let result = match self.named {
            Some(temporary) => temporary
                .persist_noclobber(&self.target)
                .map_err(|error| error.error),
            None => {
                let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, open, CWD, &self.target, AtFlags::SYMLINK_FOLLOW)
                    .map_err(io::Error::from)
            }
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists {
                path: self.target.clone(),
            },
            _ => KeyError::io("create", &self.target)(error),
        })
    }
}

/// Fails if `path` names anything, be it a dangling link.
pub(crate) fn refuse_existing(path: &Path) -> Result<(), KeyError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(KeyError::Exists {
            path: path.to_path_buf(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(KeyError::io("look for", path)(error)),
    }
}

const MODE: Mode = Mode::from_raw_mode(0o644);

fn unnamed_file(folder: &Path) -> io::Result<File> {
    // Naming it later goes through /proc.
    std::fs::metadata("/proc/self/fd")?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, MODE)?;
    Ok(File::from(file))
}

fn named_file(folder: &Path) -> io::Result<(File, Option<TempPath>)> {
    let file = tempfile::Builder::new()
        .prefix(".cuzk-draft-")
        .tempfile_in(folder)?;
    rustix::fs::fchmod(file.as_file(), MODE)?;
    let (file, path) = file.into_parts();
    Ok((file, Some(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(path: &Path, named: bool) -> Draft {
        let mut draft = Draft::create(path, 5).unwrap();
        if named {
            (draft.file, draft.named) = named_file(path.parent().unwrap()).unwrap();
        }
        draft
    }

    fn names(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn files_appear_complete_or_not_at_all() {
        for named in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            let mut unfinished = draft(&path, named);
            unfinished.write(b"he").unwrap();
            drop(unfinished);
            assert_eq!(names(dir.path()), 0);

            let mut file = draft(&path, named);
            file.write(b"he").unwrap();
            file.write(b"llo").unwrap();
            let finished = file.finish().unwrap();
            assert_eq!(finished.digest, KeyDigest::of_bytes(b"hello"));
            assert!(!path.exists());
            Finished::publish(vec![finished]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"hello");
            assert_eq!(names(dir.path()), 1);
        }
    }

    #[test]
    fn nothing_is_overwritten_and_a_set_is_published_whole() {
        for named in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let paths = ["one", "two"].map(|name| dir.path().join(name));
            let finished: Vec<Finished> = paths
                .iter()
                .map(|path| {
                    let mut draft = draft(path, named);
                    draft.write(b"hello").unwrap();
                    draft.finish().unwrap()
                })
                .collect();
            std::fs::write(&paths[1], "mine").unwrap();
            let error = Finished::publish(finished).unwrap_err();
            assert!(matches!(error, KeyError::Exists { .. }));
            assert_eq!(std::fs::read(&paths[1]).unwrap(), b"mine");
            assert_eq!(names(dir.path()), 1);
            assert!(matches!(
                Draft::create(&paths[1], 1),
                Err(KeyError::Exists { .. })
            ));
        }
    }

    #[test]
    fn a_full_disk_is_named_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let error = Draft::create(&dir.path().join("file"), 1 << 60)
            .err()
            .unwrap();
        assert!(matches!(error, KeyError::NoSpace { .. }), "{error}");
        assert_eq!(names(dir.path()), 0);
    }
}
