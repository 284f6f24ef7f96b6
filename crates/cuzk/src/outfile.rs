//! Output files that appear whole or not at all.
//!
//! A place for the bytes is taken before the long work starts, so that a folder
//! that is missing, read-only or full is an error in the first second. On Linux the
//! bytes go to an unnamed file (`O_TMPFILE`), which vanishes with the process
//! however that ends, and get their name only once they are on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Failure};

/// A file to be written in one piece.
#[derive(Debug)]
pub struct OutFile {
    target: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// An open unnamed file in the target's folder.
    Unnamed(File),
    /// The file system has no unnamed files: a named temporary file at the end.
    Named,
    /// A device or pipe: written through, never replaced.
    Special(File),
    /// `-`.
    Stdout,
}

impl OutFile {
    /// Takes a place for `target`; nothing is visible under that name before [`Self::commit`].
    ///
    /// # Errors
    /// `OUTPUT_UNWRITABLE` when nothing can be written there.
    pub fn reserve(target: &Path) -> Result<Self, Failure> {
        if is_stdout(target) {
            return Ok(Self {
                target: target.to_owned(),
                kind: Kind::Stdout,
            });
        }
        Self::open(target).map_err(|e| unwritable(target, &e))
    }

    fn open(target: &Path) -> io::Result<Self> {
        let kind = match fs::metadata(target) {
            Ok(meta) if meta.is_dir() => return Err(io::Error::other("it is a folder")),
            // Renaming over a device such as /dev/null would replace the device itself.
            Ok(meta) if !meta.is_file() => {
                Some(Kind::Special(OpenOptions::new().write(true).open(target)?))
            }
            Ok(_) => None,
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // A link to a file keeps being a link: the file it names is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let kind = match kind {
            Some(kind) => kind,
            None => unnamed(folder(&target))?.map_or(Kind::Named, Kind::Unnamed),
        };
        Ok(Self { target, kind })
    }

    /// Whether the bytes go to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Stdout)
    }

    /// Writes `bytes`, flushes them to disk and gives them the target's name, replacing what was there.
    ///
    /// # Errors
    /// `OUTPUT_UNWRITABLE`; the target is then as it was before.
    pub fn commit(self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { target, kind } = self;
        let result = match kind {
            Kind::Stdout => io::stdout()
                .lock()
                .write_all(bytes)
                .and_then(|()| io::stdout().lock().flush()),
            Kind::Special(mut file) => file.write_all(bytes),
            Kind::Unnamed(mut file) => file
                .write_all(bytes)
                .and_then(|()| file.sync_all())
                .and_then(|()| name(&file, &target)),
            Kind::Named => write_named(&target, bytes),
        };
        result.map_err(|e| unwritable(&target, &e))
    }
}

/// Whether `path` means standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|p| path == Path::new(p))
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The failure of a place that cannot be written.
pub fn unwritable(target: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Resources,
        "OUTPUT_UNWRITABLE",
        format!("cannot write {}", target.display()),
        "choose another place with --out, or make this one writable (folder exists, permission, free space)",
    )
    .because(error)
}

/// An unnamed file in `folder`; `None` where the file system has none.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    // Giving it a name later goes through /proc.
    if fs::metadata("/proc/self/fd").is_err() {
        return probe_named(folder).map(|()| None);
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => probe_named(folder).map(|()| None),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn unnamed(folder: &Path) -> io::Result<Option<File>> {
    probe_named(folder).map(|()| None)
}

/// Shows that a file can be made in `folder`.
fn probe_named(folder: &Path) -> io::Result<()> {
    tempfile::Builder::new()
        .prefix(".cuzk-")
        .tempfile_in(folder)
        .map(drop)
}

/// Links the unnamed `file` in as `target`. Only a target that exists already
/// needs the detour over a second name, since linking never replaces.
#[cfg(target_os = "linux")]
fn name(file: &File, target: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    use std::os::fd::AsRawFd;
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link =
        |to: &Path| rustix::fs::linkat(CWD, source.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(rustix::io::Errno::EXIST) => {}
        other => {
            return other
                .map_err(io::Error::from)
                .and_then(|()| sync_folder(target));
        }
    }
    let temporary = folder(target).join(format!(".cuzk-{}.tmp", std::process::id()));
    link(&temporary).map_err(io::Error::from)?;
    fs::rename(&temporary, target).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    sync_folder(target)
}

#[cfg(not(target_os = "linux"))]
fn name(_file: &File, _target: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

fn write_named(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cuzk-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder(target))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|e| e.error)?;
    sync_folder(target)
}

/// Makes the new name itself durable.
fn sync_folder(target: &Path) -> io::Result<()> {
    File::open(folder(target))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn nothing_is_visible_before_the_commit_and_nothing_else_after() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("proof");
        let out = OutFile::reserve(&target).unwrap();
        assert!(names(dir.path()).is_empty());
        out.commit(b"one").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one");
        OutFile::reserve(&target).unwrap().commit(b"two").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        drop(OutFile::reserve(&target).unwrap());
        assert_eq!(names(dir.path()), ["proof"]);
    }

    #[test]
    fn the_fallback_behaves_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("proof");
        for text in ["one", "two"] {
            let out = OutFile {
                target: target.clone(),
                kind: Kind::Named,
            };
            out.commit(text.as_bytes()).unwrap();
            assert_eq!(fs::read(&target).unwrap(), text.as_bytes());
        }
        assert_eq!(names(dir.path()), ["proof"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_survive() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        OutFile::reserve(&link).unwrap().commit(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        OutFile::reserve(Path::new("/dev/null"))
            .unwrap()
            .commit(b"x")
            .unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn impossible_places_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        for place in [dir.path().to_owned(), dir.path().join("absent/proof")] {
            let failure = OutFile::reserve(&place).unwrap_err();
            assert_eq!(
                (failure.exit, failure.code),
                (Exit::Resources, "OUTPUT_UNWRITABLE")
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_a_resource_failure() {
        let out = OutFile::reserve(Path::new("/dev/full")).unwrap();
        assert_eq!(out.commit(b"x").unwrap_err().exit, Exit::Resources);
    }
}
