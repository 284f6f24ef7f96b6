//! A key's points in page-locked memory of the host, as the device wants them.

use groth16::key::{KeyError, Section};
use groth16::points::Points;
use groth16::progress::Progress;
use rayon::prelude::*;

use super::super::BackendFailure;
use super::super::query_bits::QueryBits;
use super::plan::StreamedSum;
use crate::device::{Device, PinnedBuffer, elements_mut};
use crate::msm::SumCurve;
use crate::points::{DevicePoint, PointOrder};

/// Points that a thread decodes at a time.
const PIECE_POINTS: usize = 4096;

/// Words of a bitmap whose points a thread sorts at a time.
const PIECE_WORDS: usize = 64;

/// The points of one query.
pub struct HostBases {
    /// Of the tail, or of the whole section; then points at infinity up to the last chunk's end.
    pub full: PinnedBuffer,
    /// Of the bits.
    pub bits: PinnedBuffer,
}

impl HostBases {
    /// Decodes a section on all threads. `bits`: which points belong to bits, if any do.
    ///
    /// # Errors
    /// Points that cannot be read; too little memory.
    pub fn load<C: SumCurve>(
        device: &Device,
        sum: &StreamedSum<C>,
        bits: Option<&QueryBits>,
        (section, order): (&Section<C::Affine>, PointOrder),
        progress: &dyn Progress,
    ) -> Result<Self, BackendFailure>
    where
        C::Affine: DevicePoint,
    {
        let point = size_of::<C::Affine>();
        // New memory is zero: points at infinity.
        let mut bases = HostBases {
            full: device.pinned(sum.full_points() * point)?,
            bits: device.pinned(sum.size.selected * point)?,
        };
        let full = elements_mut(bases.full.bytes_mut()?, sum.size.terms);
        let selected = elements_mut(bases.bits.bytes_mut()?, sum.size.selected);
        match bits {
            None if order == PointOrder::BitReversed => read_reversed(section, full, progress)?,
            None => read(section, 0, full, progress)?,
            Some(bits) => split(section, bits, full, selected, progress)?,
        }
        Ok(bases)
    }
}

fn read<P: DevicePoint>(
    section: &Section<P>,
    start: usize,
    out: &mut [P],
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let pieces = out.par_chunks_mut(PIECE_POINTS).enumerate();
    pieces.try_for_each(|(i, piece)| {
        section.read(start + i * PIECE_POINTS, piece)?;
        progress.advance(piece.len() as u64);
        Ok(())
    })
}

/// Reads all points of a section whose length is a power of two, each to the place of its number with the
/// bits reversed.
fn read_reversed<P: DevicePoint>(
    section: &Section<P>,
    out: &mut [P],
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let unused_bits = u64::BITS - section.len().ilog2();
    let reversed = |place: u64| place.reverse_bits().checked_shr(unused_bits).unwrap_or(0);
    let index = |place: usize| reversed(place as u64) as u32;
    let pieces = out.par_chunks_mut(PIECE_POINTS).enumerate();
    pieces.try_for_each_init(Vec::new, |indices, (i, piece)| {
        indices.clear();
        indices.extend((i * PIECE_POINTS..).take(piece.len()).map(index));
        section.gather(indices, piece)?;
        progress.advance(piece.len() as u64);
        Ok(())
    })
}

/// Some words of the bitmaps, and where their points go.
struct Piece<'a, P> {
    first_word: usize,
    words: usize,
    /// Its first point in the section, and how many it has.
    start: usize,
    points: usize,
    tail: &'a mut [P],
    bits: &'a mut [P],
}

/// Inputs and aux variables that are no bits go to `tail`, the others to `selected`, both in order.
fn split<P: DevicePoint>(
    section: &Section<P>,
    bits: &QueryBits,
    tail: &mut [P],
    selected: &mut [P],
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let (inputs, mut tail) = tail.split_at_mut(bits.inputs());
    read(section, 0, inputs, progress)?;
    let mut selected = selected;
    let mut start = bits.inputs();
    let mut pieces = Vec::new();
    for first_word in (0..bits.words().len()).step_by(PIECE_WORDS) {
        let end = (first_word + PIECE_WORDS).min(bits.words().len());
        let count = |words: &[u64]| -> usize {
            let words = words[first_word..end].iter();
            words.map(|word| word.count_ones() as usize).sum()
        };
        let (points, of_bits) = (count(bits.present()), count(bits.words()));
        let (piece_tail, rest) = tail.split_at_mut(points - of_bits);
        let (piece_bits, others) = selected.split_at_mut(of_bits);
        (tail, selected) = (rest, others);
        pieces.push(Piece {
            first_word,
            words: end - first_word,
            start,
            points,
            tail: piece_tail,
            bits: piece_bits,
        });
        start += points;
    }
    let sort = |points: &mut Vec<P>, piece: Piece<'_, P>| {
        points.resize(piece.points, P::default());
        section.read(piece.start, points)?;
        progress.advance(piece.points as u64);
        piece.fill(bits, points);
        Ok(())
    };
    pieces.into_par_iter().try_for_each_init(Vec::new, sort)
}

impl<P: DevicePoint> Piece<'_, P> {
    fn fill(self, bits: &QueryBits, points: &[P]) {
        let (mut tail, mut selected) = (self.tail.iter_mut(), self.bits.iter_mut());
        let mut points = points.iter();
        for word in self.first_word..self.first_word + self.words {
            let (mut present, is_bit) = (bits.present()[word], bits.words()[word]);
            while present != 0 {
                let lowest = present & present.wrapping_neg();
                present ^= lowest;
                let place = if is_bit & lowest != 0 {
                    selected.next()
                } else {
                    tail.next()
                };
                if let (Some(place), Some(point)) = (place, points.next()) {
                    *place = *point;
                }
            }
        }
    }
}
