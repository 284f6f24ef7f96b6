//! Where the points of a new key go: a file that is hashed, or memory.

use rayon::prelude::*;

use super::draft::Draft;
use super::multiplier::CHUNK;
use crate::key::{KeyError, KeyPoint, MemoryFile, PointEncoding};

/// Takes a key's bytes in order.
pub(super) trait Sink: Send {
    /// Appends bytes as they are.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), KeyError>;

    /// Appends the encodings of points, on all threads.
    fn points<P: KeyPoint>(
        &mut self,
        points: &[P],
        encoding: PointEncoding,
    ) -> Result<(), KeyError>;
}

/// Encodes points to `out`, which has room for exactly that many.
fn encode<P: KeyPoint>(points: &[P], encoding: PointEncoding, out: &mut [u8]) {
    out.par_chunks_mut(CHUNK * P::BYTES)
        .zip(points.par_chunks(CHUNK))
        .for_each(|(out, points)| {
            for (point, out) in points.iter().zip(out.chunks_exact_mut(P::BYTES)) {
                encoding.encode(point, out);
            }
        });
}

/// A draft, one batch behind: while a batch is encoded, the one before it is hashed and
/// written, by one thread.
pub(super) struct DraftSink<'d> {
    draft: &'d mut Draft,
    ready: Vec<u8>,
    spare: Vec<u8>,
}

impl<'d> DraftSink<'d> {
    pub fn new(draft: &'d mut Draft) -> Self {
        DraftSink {
            draft,
            ready: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<(), KeyError> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), KeyError> {
        self.draft.write(&self.ready)?;
        self.ready.clear();
        Ok(())
    }
}

impl Sink for DraftSink<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        self.flush()?;
        self.draft.write(bytes)
    }

    fn points<P: KeyPoint>(
        &mut self,
        points: &[P],
        encoding: PointEncoding,
    ) -> Result<(), KeyError> {
        self.spare.resize(points.len() * P::BYTES, 0);
        let DraftSink {
            draft,
            ready,
            spare,
        } = self;
        let ((), written) = rayon::join(|| encode(points, encoding, spare), || draft.write(ready));
        written?;
        std::mem::swap(ready, spare);
        Ok(())
    }
}

/// Memory: points are encoded to their place at once.
pub(super) struct MemorySink<'f> {
    rest: &'f mut [u8],
}

impl<'f> MemorySink<'f> {
    pub fn new(file: &'f mut MemoryFile) -> Self {
        MemorySink {
            rest: file.bytes_mut(),
        }
    }

    /// Bytes that nothing has been written to.
    pub fn missing(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, count: usize) -> &'f mut [u8] {
        let (now, later) = std::mem::take(&mut self.rest)
            .split_at_mut_checked(count)
            .expect("invariant: as many points are written as were counted");
        self.rest = later;
        now
    }
}

impl Sink for MemorySink<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        self.take(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn points<P: KeyPoint>(
        &mut self,
        points: &[P],
        encoding: PointEncoding,
    ) -> Result<(), KeyError> {
        encode(points, encoding, self.take(points.len() * P::BYTES));
        Ok(())
    }
}
