//! The proving key: a parameter file (`.params`), mapped and read in chunks.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use blstrs::{G1Affine, G2Affine};
use rayon::prelude::*;

use super::KeyError;
use super::counts::{COUNT_BYTES, KeyCounts, VK_FIXED_BYTES};
use super::encoding::{KeyPoint, PointFault};
use super::map::{FileStamp, MappedFile};
use super::verifying::{VerifyingKey, ic_count};
use crate::points::Points;

/// What the file is called in messages.
pub(crate) const PARAMETER: &str = "parameter";

/// What a proving key's vectors h and l hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyForm {
    /// What the network's parameter files hold.
    Published,
}

/// A mapped parameter file whose layout agrees with its circuit.
///
/// The bytes are those of the verifying key, then the vectors h, l, a, b (G1), b (G2), each a
/// big-endian u32 count and uncompressed points; the file ends with the last one. Cloning is
/// cheap and shares the map.
#[derive(Clone, Debug)]
pub struct ProvingKey {
    file: Arc<MappedFile>,
    counts: KeyCounts,
    vk: Arc<VerifyingKey>,
    h: Section<G1Affine>,
    l: Section<G1Affine>,
    a: Section<G1Affine>,
    b_g1: Section<G1Affine>,
    b_g2: Section<G2Affine>,
}

impl ProvingKey {
    /// Maps a parameter file, checks every count against the circuit's and against the file's
    /// length, and parses the verifying key at its head with full checks on its points.
    ///
    /// The vectors' points are not touched yet: reading decodes them, and
    /// whether they may be believed is decided by the key's digest or a full check.
    ///
    /// # Errors
    /// [`KeyError`] when the file cannot be mapped, is no parameter file, is another circuit's,
    /// is too short or too long, or has a bad point in its head.
    pub fn open(path: &Path, counts: &KeyCounts) -> Result<Self, KeyError> {
        Self::of(MappedFile::open(path, PARAMETER)?, counts)
    }

    /// The key in a mapped file, with the checks of [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of(file: MappedFile, counts: &KeyCounts) -> Result<Self, KeyError> {
        let file = Arc::new(file);
        let path = file.path();
        let found = {
            let head = file.slice(0, file.len().min(as_index(VK_FIXED_BYTES)))?;
            ic_count(head).map_err(|fault| fault.at(path, PARAMETER))?
        };
        let mut layout = Layout {
            file: &file,
            position: VK_FIXED_BYTES,
        };
        layout.check_count::<G1Affine>("ic", found, counts.inputs)?;
        layout.position = counts.vk_bytes();
        let h = layout.section("h", counts.h)?;
        let l = layout.section("l", counts.l)?;
        let a = layout.section("a", counts.a)?;
        let b_g1 = layout.section("b_g1", counts.b)?;
        let b_g2 = layout.section("b_g2", counts.b)?;
        layout.finish()?;

        let head = file.slice(0, as_index(counts.vk_bytes()))?;
        let vk = VerifyingKey::parse(head).map_err(|fault| fault.at(path, PARAMETER))?;
        Ok(ProvingKey {
            counts: *counts,
            vk: Arc::new(vk),
            h,
            l,
            a,
            b_g1,
            b_g2,
            file,
        })
    }

    /// What h and l hold.
    pub fn form(&self) -> KeyForm {
        KeyForm::Published
    }

    /// The verifying key at the file's head.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// h_i = [τ^i·Z(τ)/δ]₁ for i = 0 … n − 2.
    pub fn h(&self) -> &Section<G1Affine> {
        &self.h
    }

    /// [(β·u_j + α·v_j + w_j)(τ)/δ]₁ for every auxiliary variable.
    pub fn l(&self) -> &Section<G1Affine> {
        &self.l
    }

    /// [u_j(τ)]₁ for the inputs, then the auxiliary variables that occur in A.
    pub fn a(&self) -> &Section<G1Affine> {
        &self.a
    }

    /// [v_j(τ)]₁ for the inputs, then the auxiliary variables, that occur in B.
    pub fn b_g1(&self) -> &Section<G1Affine> {
        &self.b_g1
    }

    /// [v_j(τ)]₂, the same variables as [`Self::b_g1`].
    pub fn b_g2(&self) -> &Section<G2Affine> {
        &self.b_g2
    }

    /// Number of points in every vector.
    pub fn counts(&self) -> &KeyCounts {
        &self.counts
    }

    /// The file; for one in memory, what errors call it.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Size, times and inode of the file when it was opened.
    pub fn stamp(&self) -> FileStamp {
        self.file.stamp()
    }

    /// The mapped file.
    pub(crate) fn file(&self) -> &MappedFile {
        &self.file
    }
}

/// A vector of points inside a parameter file.
#[derive(Clone, Debug)]
pub struct Section<P> {
    file: Arc<MappedFile>,
    name: &'static str,
    /// Offset of the first point in the file.
    start: usize,
    len: usize,
    point: PhantomData<fn() -> P>,
}

impl<P: KeyPoint> Section<P> {
    /// Points decoded between two looks at the file's state: long enough to make the system
    /// call vanish, short enough to stay in the second-level cache.
    const CHUNK: usize = 4096;

    /// The vector's name in messages: "h", "l", "a", "b_g1", "b_g2".
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Decodes the points `start .. start + count` on all threads.
    ///
    /// # Errors
    /// As [`Points::read`].
    pub fn read_vec(&self, start: usize, count: usize) -> Result<Vec<P>, KeyError> {
        self.range(start, count)?;
        let mut out = vec![P::default(); count];
        out.par_chunks_mut(Self::CHUNK)
            .enumerate()
            .try_for_each(|(i, chunk)| self.read(start + i * Self::CHUNK, chunk))?;
        Ok(out)
    }

    /// The encoded bytes of the points `start .. start + count`, for a reader that decodes them
    /// itself, with the checks of [`KeyPoint::decode`].
    ///
    /// # Errors
    /// [`KeyError`] when the range reaches past the end or the file changed since it was opened.
    pub fn bytes(&self, start: usize, count: usize) -> Result<&[u8], KeyError> {
        let offset = self.range(start, count)?;
        self.file.slice(offset, count * P::BYTES)
    }

    /// The error that one of the points is bad.
    pub fn fault(&self, index: usize, fault: PointFault) -> KeyError {
        KeyError::Point {
            path: self.file.path().to_path_buf(),
            section: self.name,
            index: index as u64,
            fault,
        }
    }

    /// The error that the file is no longer what it was.
    pub(crate) fn changed(&self) -> KeyError {
        KeyError::Changed {
            path: self.file.path().to_path_buf(),
        }
    }

    /// Decodes the bytes of point `index`.
    #[inline]
    fn decode(&self, index: usize, bytes: &[u8]) -> Result<P, KeyError> {
        P::decode(bytes).map_err(|fault| KeyError::Point {
            path: self.file.path().to_path_buf(),
            section: self.name,
            index: index as u64,
            fault,
        })
    }

    /// Checks a range and returns the offset of its first byte.
    fn range(&self, start: usize, count: usize) -> Result<usize, KeyError> {
        match start.checked_add(count) {
            Some(end) if end <= self.len => Ok(self.start + start * P::BYTES),
            _ => Err(KeyError::Range {
                start,
                count,
                len: self.len,
            }),
        }
    }
}

impl<P: KeyPoint> Points<P> for Section<P> {
    fn len(&self) -> usize {
        self.len
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), KeyError> {
        let offset = self.range(start, out.len())?;
        for (chunk_index, chunk) in out.chunks_mut(Self::CHUNK).enumerate() {
            let first = chunk_index * Self::CHUNK;
            let bytes = self
                .file
                .slice(offset + first * P::BYTES, chunk.len() * P::BYTES)?;
            for (i, (point, bytes)) in chunk
                .iter_mut()
                .zip(bytes.chunks_exact(P::BYTES))
                .enumerate()
            {
                *point = self.decode(start + first + i, bytes)?;
            }
        }
        Ok(())
    }

    fn gather(&self, indices: &[u32], out: &mut [P]) -> Result<(), KeyError> {
        let bytes = self.file.slice(self.start, self.len * P::BYTES)?;
        for (&index, point) in indices.iter().zip(out) {
            let index = index as usize;
            self.range(index, 1)?;
            *point = self.decode(index, &bytes[index * P::BYTES..][..P::BYTES])?;
        }
        Ok(())
    }
}

/// Walks over the file's sections, in 64-bit offsets that cannot overflow: every count comes
/// from a u32.
struct Layout<'f> {
    file: &'f Arc<MappedFile>,
    position: u64,
}

impl Layout<'_> {
    /// Fails unless `bytes` more fit between the position and the file's end.
    fn require(&self, section: &'static str, bytes: u64) -> Result<(), KeyError> {
        let end = self.position + bytes;
        let len = self.file.len() as u64;
        if end > len {
            return Err(self.malformed(format!(
                "{len} bytes long, but section {section} ends at byte {end}: it is cut short"
            )));
        }
        Ok(())
    }

    fn section<P: KeyPoint>(
        &mut self,
        name: &'static str,
        expected: u64,
    ) -> Result<Section<P>, KeyError> {
        self.require(name, COUNT_BYTES)?;
        let bytes = self
            .file
            .slice(as_index(self.position), as_index(COUNT_BYTES))?;
        let count: [u8; 4] = bytes
            .try_into()
            .expect("invariant: four bytes were asked for");
        let found = u64::from(u32::from_be_bytes(count));
        self.position += COUNT_BYTES;
        self.check_count::<P>(name, found, expected)?;
        let section = Section {
            file: Arc::clone(self.file),
            name,
            start: as_index(self.position),
            len: as_index(found),
            point: PhantomData,
        };
        self.position += found * P::BYTES as u64;
        Ok(section)
    }

    /// Compares a count with the circuit's and with the bytes that are left. A count that is
    /// wrong and does not fit either speaks of garbage rather than of another circuit.
    fn check_count<P: KeyPoint>(
        &self,
        section: &'static str,
        found: u64,
        expected: u64,
    ) -> Result<(), KeyError> {
        let bytes = found * P::BYTES as u64;
        if found == expected {
            return self.require(section, bytes);
        }
        if self.position + bytes > self.file.len() as u64 {
            return Err(self.malformed(format!(
                "section {section} announces {found} points, more than its {} bytes hold",
                self.file.len()
            )));
        }
        Err(KeyError::OtherCircuit {
            path: self.file.path().to_path_buf(),
            section,
            found,
            expected,
        })
    }

    fn finish(self) -> Result<(), KeyError> {
        let len = self.file.len() as u64;
        if self.position != len {
            return Err(self.malformed(format!(
                "{} bytes follow its last section, where it should end",
                len - self.position
            )));
        }
        Ok(())
    }

    fn malformed(&self, reason: String) -> KeyError {
        KeyError::Malformed {
            path: self.file.path().to_path_buf(),
            kind: PARAMETER,
            reason,
        }
    }
}

/// Offsets within a mapped file fit the address space.
fn as_index(offset: u64) -> usize {
    usize::try_from(offset).expect("invariant: offsets were checked against a mapped length")
}
