//! One of the five sums: which way it is done, and its buffers.

use std::ops::Range;

use groth16::GroupSums;
use group::Group;
use rayon::prelude::*;

use super::key::decoding_bytes;
use super::per_sum::Five;
use crate::device::{Arena, Device, DeviceSlice, Ledger, Lifetime, Phase, Slot, Stream};
use crate::error::Result;
use crate::msm::{
    BitSelection, BitSum, BitSumPlan, Candidate, Choice, FullSum, FullSumLimits, FullSumPlan,
    FullSumTerms, G1, G2, MultiplesPlan, SumCurve, TermIndices,
};
use crate::points::DevicePoint;

/// What a sum is, whatever way it is done.
#[derive(Debug, Clone)]
pub struct SumSize {
    /// The section of the key, and the phase.
    pub name: &'static str,
    pub phase: Phase,
    /// Points of the section.
    pub points: usize,
    /// Terms with a full-size scalar.
    pub terms: usize,
    /// Aux variables; 0 for a sum without bits.
    pub variables: usize,
    /// Of them, those that are bits and have a point.
    pub selected: usize,
}

impl SumSize {
    /// The fastest way for each number of copies of the bases that `limits` allow, for one of
    /// `pieces` of the terms.
    pub fn choose<C: SumCurve>(
        &self,
        pieces: usize,
        limits: FullSumLimits,
        multiprocessors: u32,
    ) -> Choice {
        let (terms, points) = (self.piece_terms(pieces), self.piece_points(pieces));
        Choice::new::<C>(terms, points, limits, multiprocessors)
    }

    /// Bases that a piece reaches to.
    pub fn piece_points(&self, pieces: usize) -> usize {
        if self.is_indexed() && !self.has_tail() {
            self.points
        } else {
            self.piece_terms(pieces)
        }
    }

    /// Whether the terms' points are there once more, in order: where they are few, so that copies of
    /// them take a small part of what copies of all points would.
    pub fn has_tail(&self) -> bool {
        self.is_indexed() && 4 * self.terms <= self.points
    }

    /// Whether the terms' points are given by their indices; otherwise all points are terms.
    fn is_indexed(&self) -> bool {
        self.terms != self.points
    }

    /// Terms of each of `pieces`, the last of which may be padded.
    fn piece_terms(&self, pieces: usize) -> usize {
        self.terms.div_ceil(pieces)
    }

    /// Pieces that have terms.
    fn pieces(&self, pieces: usize) -> usize {
        self.terms.div_ceil(self.piece_terms(pieces).max(1)).max(1)
    }

    /// Terms, with those that the last piece is padded with.
    fn padded_terms(&self, pieces: usize) -> usize {
        self.pieces(pieces) * self.piece_terms(pieces)
    }

    /// Bases, with those that the last piece is padded with.
    fn padded_points(&self, pieces: usize) -> usize {
        if self.is_indexed() {
            self.points
        } else {
            self.points.max(self.padded_terms(pieces))
        }
    }
}

/// A way to do a sum, named in the plan's two ledgers.
pub struct SumPlan<C: SumCurve> {
    size: SumSize,
    candidate: Candidate,
    multiprocessors: u32,
    /// The terms are summed in so many pieces, one after the other in the same memory.
    pieces: usize,
    bases: Slot<C::Affine>,
    /// The points of the terms and their copies, if they are apart.
    tail: Slot<C::Affine>,
    full: FullSumPlan<C>,
    /// Partial sums of each piece, if there are several.
    results: Slot<[C::Affine; 2]>,
    bits: BitSumPlan<C>,
}

impl<C: SumCurve> SumPlan<C> {
    /// Names the bases in `resident` and the rest in `unit`.
    pub fn new(
        size: &SumSize,
        (candidate, pieces): (&Candidate, usize),
        multiprocessors: u32,
        resident: &mut Ledger,
        unit: &mut Ledger,
    ) -> Self {
        let shape = candidate.shape.clone();
        let copies = shape.windows.copies() as usize;
        assert!(
            pieces == 1 || copies == 1,
            "pieces have one copy of the bases"
        );
        let name = size.name;
        let lifetime = Lifetime::RESIDENT;
        let (base_copies, tail) = if size.has_tail() {
            (1, copies * size.padded_terms(pieces))
        } else {
            (copies, 0)
        };
        let points = base_copies * size.padded_points(pieces);
        let bases = resident.reserve(format!("key: {name}"), points, lifetime);
        let tail = resident.reserve(format!("key: tail of {name}"), tail, lifetime);
        let pieces = size.pieces(pieces);
        let full = FullSumPlan::new(name, shape, multiprocessors, unit, size.phase);
        let kept = if pieces > 1 {
            pieces * full.sums_len()
        } else {
            0
        };
        SumPlan {
            pieces,
            results: unit.reserve(format!("{name}: sums of pieces"), kept, lifetime),
            full,
            bits: BitSumPlan::new(
                &format!("{name} bits"),
                size.variables,
                size.selected,
                multiprocessors,
                unit,
                size.phase,
            ),
            size: size.clone(),
            candidate: candidate.clone(),
            multiprocessors,
            bases,
            tail,
        }
    }

    pub fn size(&self) -> &SumSize {
        &self.size
    }

    /// Where the key's points go, and their copies after them unless the terms' points are apart.
    pub fn bases(&self, resident: &Arena) -> DeviceSlice<C::Affine> {
        resident.get(self.bases)
    }

    /// Where the points of the terms go once more, if they do, and their copies after them.
    pub fn tail(&self, resident: &Arena) -> Option<DeviceSlice<C::Affine>> {
        let tail = resident.get(self.tail);
        (!tail.is_empty()).then_some(tail)
    }

    /// What is copied, and how many points.
    fn copied(&self, resident: &Arena) -> (DeviceSlice<C::Affine>, usize) {
        match self.tail(resident) {
            Some(tail) => (tail, self.size.terms),
            None => (self.bases(resident), self.size.points),
        }
    }

    /// Loads kernels and tables for one unit.
    pub fn bind(&self, device: &Device, resident: &Arena, unit: &Arena) -> Result<Sum<C>> {
        let bases = self.bases(resident);
        let (copied, points) = self.copied(resident);
        if copied.len() > points && self.pieces > 1 {
            // Infinity in the places that pad the last piece.
            let stream = device.stream()?;
            stream.zero(copied.slice(points..copied.len()))?;
            stream.synchronize()?;
        }
        Ok(Sum {
            bases,
            tail: self.tail(resident),
            pieces: self.pieces,
            results: unit.get(self.results),
            points: self.size.points,
            full: self.full.bind(device, unit)?,
            bits: self.bits.bind(device, unit)?,
        })
    }

    /// What decoding the bases, then making copies of them, takes besides their own place.
    pub fn load_bytes(&self) -> u64
    where
        C::Affine: DevicePoint,
    {
        let copies = self.plan_copies();
        let copies = copies.map_or(0, |(ledger, _)| ledger.peak_bytes());
        copies.max(decoding_bytes::<C::Affine>(self.size.points))
    }

    fn plan_copies(&self) -> Option<(Ledger, MultiplesPlan<C>)> {
        let copies = self.candidate.shape.windows.copies();
        let points = if self.size.has_tail() {
            self.size.terms
        } else {
            self.size.points
        };
        if copies < 2 || points == 0 {
            return None;
        }
        let mut ledger = Ledger::new("copies of bases");
        let n = self.multiprocessors;
        let plan = MultiplesPlan::new("copies", points, copies, n, &mut ledger, Phase::Upload);
        Some((ledger, plan))
    }

    /// Makes the copies of the key's points, or of the terms', which are in their place. `work` has at least
    /// [`Self::load_bytes`]; nobody else uses it.
    pub fn make_copies(
        &self,
        device: &Device,
        resident: &Arena,
        work: impl Fn(&Ledger) -> Arena,
        stream: &Stream,
    ) -> Result<()> {
        let Some((ledger, plan)) = self.plan_copies() else {
            return Ok(());
        };
        let multiples = plan.bind(device, &work(&ledger))?;
        let windows = &self.candidate.shape.windows;
        let (bases, points) = self.copied(resident);
        multiples.run(stream, bases, points, windows)
    }
}

impl<C: SumCurve> Combine<C> for SumPlan<C> {
    fn combine(&self, sums: &PartialSums<C>) -> C::Projective {
        let pieces = sums.full.par_chunks(self.full.sums_len().max(1));
        let pieces = pieces.map(|piece| self.full.combine(piece));
        let bits = BitSumPlan::<C>::combine(&sums.bits);
        pieces.reduce(C::Projective::identity, |x, y| x + y) + bits
    }
}

/// Adds up on the host what a device left apart.
pub trait Combine<C: SumCurve>: Sync {
    /// The sum, from what was downloaded.
    fn combine(&self, sums: &PartialSums<C>) -> C::Projective;
}

/// What was downloaded of the five sums.
pub type Partials = Five<PartialSums<G1>, PartialSums<G2>>;

/// Who adds it up.
pub type Combiners<'a> = Five<&'a dyn Combine<G1>, &'a dyn Combine<G2>>;

impl Partials {
    /// The five sums, on all threads.
    pub fn combine(&self, plans: &Combiners<'_>) -> GroupSums {
        let g1 = [
            (plans.h, &self.h),
            (plans.l, &self.l),
            (plans.a, &self.a),
            (plans.b_g1, &self.b_g1),
        ];
        let g1 = || {
            let sums = g1.into_par_iter().map(|(plan, sums)| plan.combine(sums));
            sums.collect::<Vec<_>>()
        };
        let (g1, b_g2) = rayon::join(g1, || plans.b_g2.combine(&self.b_g2));
        GroupSums {
            h: g1[0],
            l: g1[1],
            a: g1[2],
            b_g1: g1[3],
            b_g2,
        }
    }
}

/// A sum of one unit, ready to run.
pub struct Sum<C: SumCurve> {
    bases: DeviceSlice<C::Affine>,
    tail: Option<DeviceSlice<C::Affine>>,
    pieces: usize,
    results: DeviceSlice<[C::Affine; 2]>,
    points: usize,
    full: FullSum<C>,
    bits: BitSum<C>,
}

/// The partial sums of a run: of the terms with scalars, and of the bits.
pub struct PartialSums<C: SumCurve> {
    pub full: Vec<[C::Affine; 2]>,
    pub bits: Vec<[C::Affine; 2]>,
}

impl<C: SumCurve> Sum<C> {
    /// Queues the sum of the terms with scalars. Scalars and indices are padded up to whole pieces,
    /// with zeros. Where the terms' points are apart, indices are not looked at.
    pub fn run_full(
        &self,
        stream: &Stream,
        scalars: DeviceSlice<[u32; 8]>,
        indices: Option<TermIndices>,
    ) -> Result<()> {
        let (bases, indices) = match self.tail {
            Some(tail) => (tail, None),
            None => (self.bases, indices),
        };
        if self.pieces == 1 {
            let terms = FullSumTerms {
                bases,
                scalars,
                indices,
            };
            return self.full.run(stream, &terms);
        }
        let terms = self.full.plan().shape().terms;
        let sums = self.full.sums();
        for piece in 0..self.pieces {
            let range = piece * terms..(piece + 1) * terms;
            let terms = match indices {
                None => FullSumTerms {
                    bases: bases.slice(range.clone()),
                    scalars: scalars.slice(range),
                    indices: None,
                },
                Some(TermIndices {
                    points,
                    scalars: of,
                }) => FullSumTerms {
                    bases,
                    scalars,
                    indices: Some(TermIndices {
                        points: points.slice(range.clone()),
                        scalars: of.slice(range),
                    }),
                },
            };
            self.full.run(stream, &terms)?;
            let kept = piece * sums.len()..(piece + 1) * sums.len();
            stream.copy(self.results.slice(kept), sums)?;
        }
        Ok(())
    }

    /// Queues the sum of the points that the bits select.
    pub fn run_bits(&self, stream: &Stream, selection: &BitSelection) -> Result<()> {
        let points: Range<usize> = 0..self.points;
        self.bits.run(stream, selection, self.bases.slice(points))
    }

    /// Copies the results to the host; waits for them.
    pub fn partial_sums(&self, stream: &Stream) -> Result<PartialSums<C>> {
        let download = |from: DeviceSlice<[C::Affine; 2]>| {
            let mut sums = vec![[C::Affine::default(); 2]; from.len()];
            stream.download(from, &mut sums).map(|()| sums)
        };
        let full = if self.pieces > 1 {
            self.results
        } else {
            self.full.sums()
        };
        Ok(PartialSums {
            full: download(full)?,
            bits: download(self.bits.sums())?,
        })
    }
}
