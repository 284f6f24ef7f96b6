//! A key's file that lives in memory.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use super::KeyError;
use super::map::MappedFile;

/// A file without a name or a disk (memfd) in the making. [`Self::seal`] makes it one that
/// nobody can change any more, which is mapped and read as every other key file is.
pub(crate) struct MemoryFile {
    label: PathBuf,
    file: File,
    map: MmapMut,
}

impl MemoryFile {
    /// `bytes` zeros, which takes that much memory at once; errors call the file `label`.
    ///
    /// # Errors
    /// [`KeyError::NoMemory`], [`KeyError::Io`].
    pub fn create(label: &Path, bytes: u64) -> Result<Self, KeyError> {
        let none = || KeyError::NoMemory {
            path: label.to_path_buf(),
            bytes,
        };
        let failed = |error: rustix::io::Errno| match error {
            rustix::io::Errno::NOMEM | rustix::io::Errno::NOSPC => none(),
            error => KeyError::io("create", label)(error.into()),
        };
        // The kernel would rather end a process than refuse it these pages.
        if available().is_some_and(|available| available < bytes) {
            return Err(none());
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("cuzk-key", flags).map_err(failed)?);
        // All pages now: one that could not be had later would end the process.
        rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        })
        .map_err(failed)?;
        // SAFETY: the file was made here and has no name; nobody else maps or changes it while
        // this value lives.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(KeyError::io("map", label))?;
        Ok(MemoryFile {
            label: label.to_path_buf(),
            file,
            map,
        })
    }

    /// The content.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Forbids every change from now on, also by this process, and maps the file for reading.
    ///
    /// # Errors
    /// [`KeyError::Io`].
    pub fn seal(self, kind: &'static str) -> Result<MappedFile, KeyError> {
        let MemoryFile { label, file, map } = self;
        // A file that is mapped for writing cannot be sealed against it.
        drop(map);
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)
            .map_err(|error| KeyError::io("seal", &label)(error.into()))?;
        // Before Linux 6.7 a sealed file can be mapped only if it was opened for reading alone.
        let readable = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(KeyError::io("open", &label))?;
        MappedFile::of(readable, &label, kind)
    }
}

/// Bytes that the machine can still give, where the system tells.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn sealed(label: &str, bytes: &[u8]) -> MappedFile {
        let mut file = MemoryFile::create(Path::new(label), bytes.len() as u64).unwrap();
        assert!(file.bytes_mut().iter().all(|byte| *byte == 0));
        file.bytes_mut().copy_from_slice(bytes);
        file.seal("test").unwrap()
    }

    #[test]
    fn sealed_files_hold_what_was_written_and_differ_from_each_other() {
        let (one, two) = (
            sealed("memory:one", b"hello"),
            sealed("memory:two", b"hello"),
        );
        assert_eq!(one.slice(0, 5).unwrap(), b"hello");
        assert_eq!(one.path(), Path::new("memory:one"));
        assert_ne!(one.stamp(), two.stamp());
    }

    #[test]
    fn a_sealed_file_cannot_be_changed() {
        let mut file = MemoryFile::create(Path::new("memory:one"), 5).unwrap();
        file.bytes_mut().copy_from_slice(b"hello");
        let writable = file.file.try_clone().unwrap();
        writable.write_all_at(b"J", 0).unwrap();
        file.seal("test").unwrap();
        assert!(writable.write_all_at(b"j", 0).is_err());
        assert!(writable.set_len(4).is_err());
        assert!(writable.set_len(6).is_err());
        let mut content = [0; 5];
        writable.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"Jello");
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        let error = MemoryFile::create(Path::new("memory:big"), 1 << 62).err();
        assert!(matches!(error, Some(KeyError::NoMemory { .. })));
    }
}
