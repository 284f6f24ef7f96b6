//! One of the five sums: which way it is done, and its buffers.

use std::ops::Range;

use super::key::decoding_bytes;
use crate::device::{Arena, Device, DeviceSlice, Ledger, Phase, Slot, Stream};
use crate::error::Result;
use crate::msm::{
    BitSelection, BitSum, BitSumPlan, Candidate, Choice, FullSum, FullSumLimits, FullSumPlan,
    FullSumTerms, MultiplesPlan, SumCurve,
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
    /// The fastest way for each number of copies of the bases that `limits` allow.
    pub fn choose<C: SumCurve>(&self, limits: FullSumLimits, multiprocessors: u32) -> Choice {
        Choice::new::<C>(self.terms, self.points, limits, multiprocessors)
    }
}

/// A way to do a sum, named in the plan's two ledgers.
pub struct SumPlan<C: SumCurve> {
    size: SumSize,
    candidate: Candidate,
    multiprocessors: u32,
    bases: Slot<C::Affine>,
    full: FullSumPlan<C>,
    bits: BitSumPlan<C>,
}

impl<C: SumCurve> SumPlan<C> {
    /// Names the bases in `resident` and the rest in `unit`.
    pub fn new(
        size: &SumSize,
        candidate: &Candidate,
        multiprocessors: u32,
        resident: &mut Ledger,
        unit: &mut Ledger,
    ) -> Self {
        let shape = candidate.shape.clone();
        let copies = shape.windows.copies() as usize;
        let name = size.name;
        let lifetime = crate::Lifetime::RESIDENT;
        let bases = resident.reserve(format!("key: {name}"), copies * size.points, lifetime);
        SumPlan {
            full: FullSumPlan::new(name, shape, multiprocessors, unit, size.phase),
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
        }
    }

    pub fn size(&self) -> &SumSize {
        &self.size
    }

    /// Where the key's points go, and their copies after them.
    pub fn bases(&self, resident: &Arena) -> DeviceSlice<C::Affine> {
        resident.get(self.bases)
    }

    /// Loads kernels and tables for one unit.
    pub fn bind(&self, device: &Device, resident: &Arena, unit: &Arena) -> Result<Sum<C>> {
        Ok(Sum {
            bases: self.bases(resident),
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
        if copies < 2 || self.size.points == 0 {
            return None;
        }
        let mut ledger = Ledger::new("copies of bases");
        let (points, n) = (self.size.points, self.multiprocessors);
        let plan = MultiplesPlan::new("copies", points, copies, n, &mut ledger, Phase::Upload);
        Some((ledger, plan))
    }

    /// Makes the copies of the key's points, which are in their place. `work` has at least
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
        multiples.run(stream, self.bases(resident), self.size.points, windows)
    }

    /// The sum, from what [`Sum::partial_sums`] have downloaded.
    pub fn combine(&self, full: &[[C::Affine; 2]], bits: &[[C::Affine; 2]]) -> C::Projective {
        self.full.combine(full) + BitSumPlan::<C>::combine(bits)
    }
}

/// A sum of one unit, ready to run.
pub struct Sum<C: SumCurve> {
    bases: DeviceSlice<C::Affine>,
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
    /// Queues the sum of the terms with scalars.
    pub fn run_full(
        &self,
        stream: &Stream,
        scalars: DeviceSlice<[u32; 8]>,
        indices: Option<crate::msm::TermIndices>,
    ) -> Result<()> {
        let terms = FullSumTerms {
            bases: self.bases,
            scalars,
            indices,
        };
        self.full.run(stream, &terms)
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
        Ok(PartialSums {
            full: download(self.full.sums())?,
            bits: download(self.bits.sums())?,
        })
    }
}
