//! Where a prepared key is put together: a draft on disk that can be gone on with, or memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;

use super::super::map::MappedFile;
use super::super::memory_file::MemoryFile;
use super::super::prepared::{ENCODING, PREPARED, unusable};
use super::super::{KeyDigest, KeyError, KeyPoint};

/// Points that a thread takes at a time.
const CHUNK: usize = 4096;

/// A file in the making, written at offsets in any order.
pub(super) enum Output {
    Disk(DiskDraft),
    Memory(MemoryFile, PathBuf),
}

impl Output {
    pub fn memory(label: &Path, bytes: u64) -> Result<Self, KeyError> {
        Ok(Output::Memory(
            MemoryFile::create(label, bytes)?,
            label.to_path_buf(),
        ))
    }

    fn file(&self) -> &File {
        match self {
            Output::Disk(draft) => &draft.file,
            Output::Memory(file, _) => file.file(),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Output::Disk(draft) => &draft.path,
            Output::Memory(_, label) => label,
        }
    }

    /// Writes bytes at an offset.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), KeyError> {
        self.file()
            .write_all_at(bytes, offset)
            .map_err(|error| match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => KeyError::NoSpace {
                    path: self.path().to_path_buf(),
                    bytes: bytes.len() as u64,
                },
                _ => KeyError::io("write", self.path())(error),
            })
    }

    /// Encodes and writes `count` points from `offset` on, on all threads; `points(i, out)` fills
    /// `out` with those from index i on.
    pub fn write_points<P: KeyPoint>(
        &self,
        offset: u64,
        count: usize,
        points: impl Fn(usize, &mut [P]) -> Result<(), KeyError> + Sync,
    ) -> Result<(), KeyError> {
        (0..count.div_ceil(CHUNK))
            .into_par_iter()
            .try_for_each_init(
                || (Vec::new(), Vec::new()),
                |(chunk, bytes), index| {
                    let start = index * CHUNK;
                    chunk.clear();
                    chunk.resize(CHUNK.min(count - start), P::default());
                    points(start, chunk)?;
                    bytes.resize(chunk.len() * P::BYTES, 0);
                    for (point, out) in chunk.iter().zip(bytes.chunks_exact_mut(P::BYTES)) {
                        ENCODING.encode(point, out);
                    }
                    self.write(offset + (start * P::BYTES) as u64, bytes)
                },
            )
    }

    /// Whether an earlier run finished this part.
    pub fn has(&self, part: &str) -> bool {
        match self {
            Output::Disk(draft) => draft.done.iter().any(|done| done == part),
            Output::Memory(..) => false,
        }
    }

    /// Makes a part durable and remembers that it is finished.
    pub fn finished(&mut self, part: &str) -> Result<(), KeyError> {
        match self {
            Output::Disk(draft) => draft.finished(part),
            Output::Memory(..) => Ok(()),
        }
    }

    /// The file as it is now, mapped.
    pub fn map(&self) -> Result<MappedFile, KeyError> {
        let file = self
            .file()
            .try_clone()
            .map_err(KeyError::io("read", self.path()))?;
        MappedFile::of(file, self.path(), PREPARED)
    }

    /// Deletes what there is: it is wrong.
    pub fn discard(self) {
        if let Output::Disk(draft) = self {
            let _ = std::fs::remove_file(&draft.state_path);
            let _ = std::fs::remove_file(&draft.path);
        }
    }

    /// The complete file: durable, under the name `target` if it is on a disk.
    pub fn complete(self, target: &Path) -> Result<MappedFile, KeyError> {
        match self {
            Output::Memory(file, _) => file.seal(PREPARED),
            Output::Disk(draft) => {
                let failed = |action| KeyError::io(action, target);
                draft.file.sync_all().map_err(failed("write"))?;
                std::fs::rename(&draft.path, target).map_err(failed("create"))?;
                let _ = std::fs::remove_file(&draft.state_path);
                if let Some(folder) = target.parent() {
                    File::open(folder)
                        .and_then(|folder| folder.sync_all())
                        .map_err(KeyError::io("write", folder))?;
                }
                MappedFile::open(target, PREPARED)
            }
        }
    }
}

/// `<target>.draft`, with the names of its finished parts in `<target>.draft.state`.
pub(super) struct DiskDraft {
    path: PathBuf,
    state_path: PathBuf,
    file: File,
    state: File,
    done: Vec<String>,
}

impl DiskDraft {
    /// Goes on with the draft of `target`, if there is one of the same `header` (its bytes, which
    /// name circuit, source and layout); else begins one of `bytes` bytes.
    ///
    /// # Errors
    /// [`KeyError::NoSpace`], [`KeyError::Io`], and [`KeyError::Prepared`] while another process
    /// is at it.
    pub fn open(target: &Path, bytes: u64, header: &[u8]) -> Result<Self, KeyError> {
        let with = |end: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        let (path, state_path) = (with(".draft"), with(".draft.state"));
        let open = |path: &Path| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(KeyError::io("create", path))
        };
        let (file, state) = (open(&path)?, open(&state_path)?);
        // On a file system without locks nobody is kept out.
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        if locked == Err(Errno::WOULDBLOCK) {
            return Err(unusable(&path, "another process is making it".to_owned()));
        }
        let mut draft = DiskDraft {
            path,
            state_path,
            file,
            state,
            done: Vec::new(),
        };
        let first = KeyDigest::of_bytes(header).to_string();
        let length = draft.file.metadata().map(|metadata| metadata.len());
        let known = draft.read_state()?;
        // A line that was cut off says nothing.
        let known = known.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut lines = known.lines();
        if lines.next() == Some(&first) && length.is_ok_and(|length| length == bytes) {
            draft.done = lines.map(str::to_owned).collect();
            draft
                .state
                .set_len(known.len() as u64 + 1)
                .map_err(KeyError::io("write", &draft.state_path))?;
        } else {
            draft.begin(bytes, &first)?;
        }
        Ok(draft)
    }

    fn read_state(&self) -> Result<String, KeyError> {
        /// Far more than the names of all parts.
        const MAX: u64 = 4096;
        let failed = || KeyError::io("read", &self.state_path);
        if self.state.metadata().map_err(failed())?.len() > MAX {
            return Ok(String::new());
        }
        let bytes = std::fs::read(&self.state_path).map_err(failed())?;
        Ok(String::from_utf8(bytes).unwrap_or_default())
    }

    fn begin(&mut self, bytes: u64, first: &str) -> Result<(), KeyError> {
        let failed = |path: &Path| KeyError::io("write", path);
        self.state.set_len(0).map_err(failed(&self.state_path))?;
        self.file.set_len(0).map_err(failed(&self.path))?;
        let reserved = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes);
        if let Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) = reserved {
            let path = self.path.clone();
            let _ = std::fs::remove_file(&self.state_path);
            let _ = std::fs::remove_file(&self.path);
            return Err(KeyError::NoSpace { path, bytes });
        }
        // On a file system that cannot reserve space, writing will show.
        self.file.set_len(bytes).map_err(failed(&self.path))?;
        self.note(first)
    }

    fn finished(&mut self, part: &str) -> Result<(), KeyError> {
        self.file
            .sync_data()
            .map_err(KeyError::io("write", &self.path))?;
        self.note(part)?;
        self.done.push(part.to_owned());
        Ok(())
    }

    /// Appends a line to the state.
    fn note(&mut self, line: &str) -> Result<(), KeyError> {
        use io::Seek as _;
        let written = self.state.seek(io::SeekFrom::End(0)).and_then(|_| {
            self.state.write_all(format!("{line}\n").as_bytes())?;
            self.state.sync_all()
        });
        written.map_err(KeyError::io("write", &self.state_path))
    }
}
