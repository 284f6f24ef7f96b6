//! A key's points on the device.

use std::mem::size_of;

use groth16::key::{KeyError, ProvingKey};
use groth16::points::Points;
use rayon::prelude::*;

use super::BackendFailure;
use super::plan::ProofPlan;
use super::sum::SumPlan;
use crate::device::{Arena, Device, DeviceSlice, Ledger, PinnedBuffer, Pod, Stream};
use crate::msm::SumCurve;

/// Bytes of points that are read and checked while the ones before are copied.
const PIECE_BYTES: usize = 32 << 20;

/// Points that a thread reads at a time.
const READ_POINTS: usize = 1 << 12;

/// Copies all sections of `key` to their places and makes the copies of them that the plan
/// wants. `work` gives memory that nobody else uses meanwhile.
pub fn load(
    plan: &ProofPlan,
    device: &Device,
    resident: &Arena,
    work: impl Fn(&Ledger) -> Arena,
    key: &ProvingKey,
    progress: &dyn groth16::progress::Progress,
) -> Result<(), BackendFailure> {
    let sums = &plan.sums;
    let bytes = sums.sizes().into_iter().map(|(_, size)| size.points as u64);
    progress.begin("load key", bytes.sum());
    let mut loader = Loader {
        device,
        resident,
        stream: device.stream()?,
        pieces: [device.pinned(PIECE_BYTES)?, device.pinned(PIECE_BYTES)?],
        progress,
    };
    loader.section(&sums.h, key.h(), &work)?;
    loader.section(&sums.l, key.l(), &work)?;
    loader.section(&sums.a, key.a(), &work)?;
    loader.section(&sums.b_g1, key.b_g1(), &work)?;
    loader.section(&sums.b_g2, key.b_g2(), &work)?;
    Ok(loader.stream.synchronize()?)
}

struct Loader<'a> {
    device: &'a Device,
    resident: &'a Arena,
    stream: Stream,
    /// One is filled while the other is copied.
    pieces: [PinnedBuffer; 2],
    progress: &'a dyn groth16::progress::Progress,
}

impl Loader<'_> {
    fn section<C: SumCurve>(
        &mut self,
        plan: &SumPlan<C>,
        points: &(impl Points<C::Affine> + ?Sized),
        work: &impl Fn(&Ledger) -> Arena,
    ) -> Result<(), BackendFailure>
    where
        C::Affine: Send + Sync,
    {
        let place = plan.bases(self.resident).slice(0..points.len());
        self.copy(place, points)?;
        plan.make_copies(self.device, self.resident, work, &self.stream)?;
        Ok(())
    }

    fn copy<P: Pod + Send + Sync>(
        &mut self,
        place: DeviceSlice<P>,
        points: &(impl Points<P> + ?Sized),
    ) -> Result<(), BackendFailure> {
        let count = PIECE_BYTES / size_of::<P>();
        for start in (0..points.len()).step_by(count) {
            let end = (start + count).min(points.len());
            self.pieces.swap(0, 1);
            let piece = elements_mut(self.pieces[0].bytes_mut()?, end - start);
            read(points, start, piece)?;
            self.stream
                .upload_pinned(place.slice(start..end), &self.pieces[0], 0)?;
            self.progress.advance((end - start) as u64);
        }
        Ok(())
    }
}

/// Reads the points from `start` on with all threads; each is checked.
fn read<P: Send + Sync>(
    points: &(impl Points<P> + ?Sized),
    start: usize,
    out: &mut [P],
) -> Result<(), KeyError> {
    out.par_chunks_mut(READ_POINTS)
        .enumerate()
        .try_for_each(|(i, out)| points.read(start + i * READ_POINTS, out))
}

/// The first bytes of a page-aligned buffer as elements.
pub fn elements_mut<P: Pod>(bytes: &mut [u8], count: usize) -> &mut [P] {
    assert!(bytes.len() >= count * size_of::<P>());
    assert!(bytes.as_ptr().cast::<P>().is_aligned());
    // SAFETY: as many bytes, aligned, borrowed for as long; any bytes are values of P.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) }
}
