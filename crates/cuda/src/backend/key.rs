//! A key's points on the device.

use groth16::key::{KeyError, KeyForm, PointEncoding, ProvingKey, Section};
use groth16::points::Points;
use groth16::progress::Progress;

use super::BackendFailure;
use super::front::{Shared, Tail};
use super::search::Sums;
use super::sum::SumPlan;
use crate::device::{
    Arena, Device, DeviceSlice, Ledger, Lifetime, PinnedBuffer, Stream, copy_parallel,
};
use crate::msm::SumCurve;
use crate::points::{DecodePlan, DevicePoint, PointOrder, gather};

/// Bytes of the file that are on their way at a time, while those before are decoded.
const PIECE_BYTES: usize = 32 << 20;

/// Points of a piece of a section of `points`.
fn piece_points<P: DevicePoint>(points: usize) -> usize {
    points.min(PIECE_BYTES / P::BYTES)
}

/// Names what decoding a section of `points` takes.
fn plan_decoding<P: DevicePoint>(points: usize) -> (Ledger, DecodePlan<P>) {
    let mut ledger = Ledger::new("decoding points");
    let plan = DecodePlan::new(piece_points::<P>(points), Lifetime::RESIDENT, &mut ledger);
    (ledger, plan)
}

/// Device memory that decoding a section of `points` takes, besides the points' own place.
pub fn decoding_bytes<P: DevicePoint>(points: usize) -> u64 {
    plan_decoding::<P>(points).0.peak_bytes()
}

/// The order in which the points of h go to the device, where the values on the coset come out of the
/// transform in natural order: a prepared key has the points in bit-reversed order.
pub fn h_order(key: &ProvingKey) -> PointOrder {
    match key.form() {
        KeyForm::Published => PointOrder::Natural,
        KeyForm::Prepared => PointOrder::BitReversed,
    }
}

/// Copies all sections of `key` to the device, decodes or checks them there on the way to their places,
/// and makes the copies of them that the plan wants. `work` gives memory that nobody else uses meanwhile.
pub fn load(
    sums: &Sums,
    shared: &Shared,
    device: &Device,
    resident: &Arena,
    work: impl Fn(&Ledger) -> Arena,
    key: &ProvingKey,
    progress: &dyn Progress,
) -> Result<(), BackendFailure> {
    let points = sums.sizes().into_iter().map(|(_, size)| size.points as u64);
    progress.begin("load key", points.sum());
    let mut loader = Loader {
        device,
        resident,
        work,
        stream: device.stream()?,
        pieces: [device.pinned(PIECE_BYTES)?, device.pinned(PIECE_BYTES)?],
        progress,
    };
    let natural = PointOrder::Natural;
    // An input that occurs in no row of C has no point in a prepared key's l.
    let infinity_in_l = key.form() == KeyForm::Prepared;
    loader.section(&sums.h, key.h(), (h_order(key), false), None)?;
    loader.section(&sums.l, key.l(), (natural, infinity_in_l), Some(&shared.l))?;
    loader.section(&sums.a, key.a(), (natural, false), Some(&shared.a))?;
    loader.section(&sums.b_g1, key.b_g1(), (natural, false), Some(&shared.b))?;
    loader.section(&sums.b_g2, key.b_g2(), (natural, false), Some(&shared.b))?;
    Ok(loader.stream.synchronize()?)
}

struct Loader<'a, W> {
    device: &'a Device,
    resident: &'a Arena,
    work: W,
    stream: Stream,
    /// One is filled while the other is copied to the device.
    pieces: [PinnedBuffer; 2],
    progress: &'a dyn Progress,
}

impl<W: Fn(&Ledger) -> Arena> Loader<'_, W> {
    fn section<C: SumCurve>(
        &mut self,
        plan: &SumPlan<C>,
        section: &Section<C::Affine>,
        form: (PointOrder, bool),
        tail: Option<&Tail>,
    ) -> Result<(), BackendFailure>
    where
        C::Affine: DevicePoint,
    {
        let place = plan.bases(self.resident).slice(0..section.len());
        self.decode(place, section, form)?;
        if let (Some(points), Some(tail)) = (plan.tail(self.resident), tail)
            && let Some(indices) = tail.indices
        {
            let terms = plan.size().terms;
            let (indices, points) = (indices.points.slice(0..terms), points.slice(0..terms));
            gather(self.device, &self.stream, place, indices, points)?;
        }
        plan.make_copies(self.device, self.resident, &self.work, &self.stream)?;
        Ok(())
    }

    /// `form`: the points' order on the device, and whether some may be the point at infinity.
    fn decode<P: DevicePoint>(
        &mut self,
        place: DeviceSlice<P>,
        section: &Section<P>,
        (order, allow_infinity): (PointOrder, bool),
    ) -> Result<(), BackendFailure> {
        if section.is_empty() {
            return Ok(());
        }
        let (ledger, plan) = plan_decoding::<P>(section.len());
        let decoder = plan.bind(self.device, &(self.work)(&ledger))?;
        decoder.begin(&self.stream)?;
        let count = piece_points::<P>(section.len());
        for start in (0..section.len()).step_by(count) {
            let end = (start + count).min(section.len());
            let bytes = section.bytes(start, end - start)?;
            self.pieces.swap(0, 1);
            copy_parallel(&mut self.pieces[0].bytes_mut()?[..bytes.len()], bytes);
            let encoded = decoder.encoded().slice(0..bytes.len());
            self.stream.upload_pinned(encoded, &self.pieces[0], 0)?;
            let first = start as u64;
            match section.encoding() {
                PointEncoding::Published => {
                    decoder.decode(&self.stream, encoded, place.slice(start..end), first)?;
                }
                PointEncoding::Montgomery => {
                    let place = (place, order);
                    decoder.check(&self.stream, encoded, place, first, allow_infinity)?;
                }
            }
            self.progress.advance((end - start) as u64);
        }
        match decoder.fault(&self.stream)? {
            None => Ok(()),
            Some(fault) => Err(fault_error(section, fault).into()),
        }
    }
}

fn fault_error<P: DevicePoint>(section: &Section<P>, fault: crate::points::Fault) -> KeyError {
    section.fault(fault.index as usize, fault.fault)
}
