//! Where the terms of a sum come from.

use blstrs::Scalar;

use crate::curve::AffinePoint;
use crate::key::KeyError;
use crate::points::Points;

/// Most terms of a chunk. Larger chunks fill the buckets in longer runs; 2^16 points of G1 are
/// 6 MiB, so that they stay in the last-level cache while every window goes over them.
const CHUNK_MAX: usize = 1 << 16;
/// Least terms of a chunk: batches of additions should not get short.
const CHUNK_MIN: usize = 1 << 10;
/// Chunks that each thread should get at least, to even out their work.
const CHUNKS_PER_THREAD: usize = 8;

/// A part of the terms, loaded.
#[derive(Clone, Debug, Default)]
pub struct Chunk<P> {
    /// Points whose scalar is one.
    pub ones: Vec<P>,
    /// Points with the scalars of the same positions.
    pub points: Vec<P>,
    /// Scalars, any values.
    pub scalars: Vec<Scalar>,
}

impl<P> Chunk<P> {
    /// An empty chunk.
    pub fn new() -> Self {
        Chunk {
            ones: Vec::new(),
            points: Vec::new(),
            scalars: Vec::new(),
        }
    }

    /// Removes all terms and keeps the memory.
    pub fn clear(&mut self) {
        self.ones.clear();
        self.points.clear();
        self.scalars.clear();
    }
}

/// Terms of a sum, in chunks that can be loaded in any order by any thread.
pub trait Terms<P>: Sync {
    /// Number of chunks.
    fn chunks(&self) -> usize;

    /// Terms whose scalar is not known to be one, in all chunks together.
    fn scalars(&self) -> usize;

    /// Appends the terms of chunk `index` to an empty `chunk`.
    ///
    /// # Errors
    /// Whatever reading the points fails with.
    fn load(&self, index: usize, chunk: &mut Chunk<P>) -> Result<(), KeyError>;
}

/// A size for chunks of `terms` terms that keeps every thread of the current pool busy.
pub fn chunk_len(terms: usize) -> usize {
    let pieces = CHUNKS_PER_THREAD * rayon::current_num_threads();
    terms.div_ceil(pieces).clamp(CHUNK_MIN, CHUNK_MAX)
}

/// The first points of a sequence, each with a scalar.
pub struct Dense<'a, S: ?Sized> {
    points: &'a S,
    scalars: &'a [Scalar],
    chunk_len: usize,
}

impl<'a, S: ?Sized> Dense<'a, S> {
    /// Point i with scalar i.
    pub fn new(points: &'a S, scalars: &'a [Scalar]) -> Self {
        Dense {
            points,
            scalars,
            chunk_len: chunk_len(scalars.len()),
        }
    }
}

impl<P: AffinePoint, S: Points<P> + ?Sized> Terms<P> for Dense<'_, S> {
    fn chunks(&self) -> usize {
        self.scalars.len().div_ceil(self.chunk_len)
    }

    fn scalars(&self) -> usize {
        self.scalars.len()
    }

    fn load(&self, index: usize, chunk: &mut Chunk<P>) -> Result<(), KeyError> {
        let start = index * self.chunk_len;
        let end = (start + self.chunk_len).min(self.scalars.len());
        chunk.points.resize(end - start, P::identity());
        self.points.read(start, &mut chunk.points)?;
        chunk.scalars.extend_from_slice(&self.scalars[start..end]);
        Ok(())
    }
}
