//! Where the points of a multi-scalar sum come from: memory or a mapped parameter file.

use crate::key::KeyError;

/// A random-access sequence of affine points in Montgomery form.
///
/// Sums pull points chunk by chunk, so a sequence that lives in a file never has to fit in
/// memory. Slices and [`Section`](crate::key::Section)s implement it.
pub trait Points<P>: Sync {
    /// Number of points.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the points `start .. start + out.len()`.
    ///
    /// Runs on the calling thread; callers parallelise over chunks.
    ///
    /// # Errors
    /// [`KeyError`] when the range reaches past the end, or when the points come from a file
    /// that changed since it was opened or holds something that is not a canonical, finite
    /// pair of coordinates. A slice fails on the range alone.
    fn read(&self, start: usize, out: &mut [P]) -> Result<(), KeyError>;

    /// Fills `out[i]` with the point at `indices[i]`; both have the same length.
    ///
    /// Runs on the calling thread. Rising indices are kindest to a file.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn gather(&self, indices: &[u32], out: &mut [P]) -> Result<(), KeyError> {
        for (&index, out) in indices.iter().zip(out) {
            self.read(index as usize, std::slice::from_mut(out))?;
        }
        Ok(())
    }
}

impl<P: Copy + Sync> Points<P> for [P] {
    fn len(&self) -> usize {
        <[P]>::len(self)
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), KeyError> {
        let source = start
            .checked_add(out.len())
            .and_then(|end| self.get(start..end))
            .ok_or(KeyError::Range {
                start,
                count: out.len(),
                len: <[P]>::len(self),
            })?;
        out.copy_from_slice(source);
        Ok(())
    }
}

impl<P: Copy + Sync> Points<P> for Vec<P> {
    fn len(&self) -> usize {
        <[P]>::len(self)
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), KeyError> {
        self.as_slice().read(start, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_read_their_ranges_and_refuse_the_rest() {
        let points: Vec<u32> = (0..5).collect();
        let mut out = [0; 3];
        points.read(2, &mut out).unwrap();
        assert_eq!(out, [2, 3, 4]);
        points.gather(&[4, 0, 4], &mut out).unwrap();
        assert_eq!(out, [4, 0, 4]);
        assert!(points.gather(&[1, 5], &mut out[..2]).is_err());
        points.read(5, &mut []).unwrap();
        assert!(points.read(3, &mut out).is_err());
        assert!(points.read(usize::MAX, &mut out).is_err());
        assert!(!Points::is_empty(&points));
    }
}
