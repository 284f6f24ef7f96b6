//! A vector of points inside a mapped key file.

use std::marker::PhantomData;
use std::sync::Arc;

use rayon::prelude::*;

use super::KeyError;
use super::encoding::{KeyPoint, PointEncoding, PointFault};
use super::map::MappedFile;
use crate::points::Points;

/// A vector of points inside a key file.
#[derive(Clone, Debug)]
pub struct Section<P> {
    file: Arc<MappedFile>,
    name: &'static str,
    encoding: PointEncoding,
    /// Offset of the first point in the file.
    start: usize,
    len: usize,
    point: PhantomData<fn() -> P>,
}

impl<P: KeyPoint> Section<P> {
    /// Points decoded between two looks at the file's state: long enough to make the system
    /// call vanish, short enough to stay in the second-level cache.
    const CHUNK: usize = 4096;

    /// The `len` points from byte `start` of the file, which has that many bytes.
    pub(crate) fn new(
        file: &Arc<MappedFile>,
        name: &'static str,
        encoding: PointEncoding,
        start: usize,
        len: usize,
    ) -> Self {
        Section {
            file: Arc::clone(file),
            name,
            encoding,
            start,
            len,
            point: PhantomData,
        }
    }

    /// How the file holds the points.
    pub fn encoding(&self) -> PointEncoding {
        self.encoding
    }

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
    /// itself by [`Self::encoding`], with the checks of [`PointEncoding::decode`].
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
        self.encoding
            .decode(bytes)
            .map_err(|fault| self.fault(index, fault))
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
