//! The five sums of a pass: their chunks, and their buffers.

use group::Group;
use rayon::prelude::*;

use super::super::fixed::{Fixed, Ledgers};
use super::super::per_sum::{Five, PerSum};
use super::super::plan::{PINNED_PER_DRIVER_BYTE, PlanTarget};
use super::super::query_bits::{BitChunk, QueryBits};
use super::super::search::{PIECES_MAX, Sizes, Ways};
use super::super::sum::{Combine, Combiners, PartialSums, SumSize};
use super::{BUS_BYTES_PER_MS, RING};
use crate::device::{Ledger, Lifetime, Phase, Slot};
use crate::evaluate::BitmapSlots;
use crate::msm::{BitSumPlan, Candidate, FullSumPlan, G1, G2, SumCurve};

/// The most chunks of a sum over bits: beyond it the launches take longer than the points.
const BIT_CHUNKS_MAX: usize = 1024;

/// Milliseconds of a sum over bits, besides its additions: its launches and its last round.
const BIT_SUM_MS: f64 = 0.2;

/// How a sum is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Chunks of the terms with scalars, and terms of each; the last one is filled up with points at
    /// infinity.
    pub full_chunks: usize,
    pub full_terms: usize,
    /// Chunks of the points that bits select.
    pub bits: Vec<BitChunk>,
}

impl Cut {
    /// Into chunks of at most `slot_bytes`; `None` if they would be too many, or hold too little.
    fn new<C: SumCurve>(size: &SumSize, bits: Option<&QueryBits>, slot_bytes: u64) -> Option<Self> {
        let most = slot_bytes as usize / size_of::<C::Affine>();
        if most < 64 {
            return None;
        }
        let full_chunks = size.terms.div_ceil(most);
        let bits = bits.map_or(Vec::new(), |bits| bits.chunks(most));
        (full_chunks <= PIECES_MAX && bits.len() <= BIT_CHUNKS_MAX).then(|| Cut {
            full_terms: size.terms.div_ceil(full_chunks.max(1)),
            full_chunks,
            bits,
        })
    }

    fn most_words(&self) -> usize {
        let words = self.bits.iter().map(|chunk| chunk.words.len());
        words.max().unwrap_or(0)
    }

    fn most_bits(&self) -> usize {
        let points = self.bits.iter().map(|chunk| chunk.points.len());
        points.max().unwrap_or(0)
    }

    /// Milliseconds of a pass with `proofs` proofs, of which each takes `full_ms` for the terms of a
    /// chunk: a chunk takes as long as its copy or as its sums, whichever is longer.
    pub fn model_ms<C: SumCurve>(&self, full_ms: f64, proofs: usize, multiprocessors: u32) -> f64 {
        let (proofs, point) = (proofs as f64, size_of::<C::Affine>() as f64);
        let copy_ms = |points: usize| points as f64 * point / BUS_BYTES_PER_MS;
        let full = copy_ms(self.full_terms).max(full_ms * proofs) * self.full_chunks as f64;
        let additions_per_ms = C::ADDITIONS_PER_MS * f64::from(multiprocessors) / 132.0;
        let bits = self.bits.iter().map(|chunk| {
            let sum_ms = BIT_SUM_MS + chunk.points.len() as f64 / 2.0 / additions_per_ms;
            copy_ms(chunk.points.len()).max(sum_ms * proofs)
        });
        full + bits.sum::<f64>()
    }
}

pub type Cuts = PerSum<Cut>;

impl Cuts {
    /// All five, in chunks of at most `slot_bytes`.
    pub fn new(sizes: &Sizes, fixed: &Fixed, slot_bytes: u64) -> Option<Self> {
        let [l, a, b] =
            [&fixed.l_query, &fixed.a_query, &fixed.b_query].map(|tail| Some(&tail.bits));
        Some(PerSum {
            h: Cut::new::<G1>(&sizes.h, None, slot_bytes)?,
            l: Cut::new::<G1>(&sizes.l, l, slot_bytes)?,
            a: Cut::new::<G1>(&sizes.a, a, slot_bytes)?,
            b_g1: Cut::new::<G1>(&sizes.b_g1, b, slot_bytes)?,
            b_g2: Cut::new::<G2>(&sizes.b_g2, b, slot_bytes)?,
        })
    }
}

/// One sum of a pass.
pub struct StreamedSum<C: SumCurve> {
    pub size: SumSize,
    pub cut: Cut,
    /// Of the terms of a chunk.
    pub full: FullSumPlan<C>,
    /// Of the bits of a chunk.
    pub bits: BitSumPlan<C>,
    /// Partial sums of all chunks, for each proof.
    pub full_results: Slot<[C::Affine; 2]>,
    pub bit_results: Slot<[C::Affine; 2]>,
}

impl<C: SumCurve> StreamedSum<C> {
    fn new(
        size: &SumSize,
        cut: &Cut,
        way: &Candidate,
        multiprocessors: u32,
        ledgers: &mut Ledgers,
    ) -> Self {
        let (name, phase) = (size.name, size.phase);
        let shape = way.shape.clone();
        let work = &mut ledgers.work;
        let full = FullSumPlan::new(name, shape, multiprocessors, work, phase);
        let bits = BitSumPlan::new(
            &format!("{name} bits"),
            64 * cut.most_words(),
            cut.most_bits(),
            multiprocessors,
            work,
            phase,
        );
        let mut results = |what: &str, len: usize| {
            let name = format!("{name}: {what}");
            ledgers.held().reserve(name, len, Lifetime::RESIDENT)
        };
        StreamedSum {
            full_results: results("sums of chunks", cut.full_chunks * full.sums_len()),
            bit_results: results("bit sums of chunks", cut.bits.len() * bits.sums_len()),
            size: size.clone(),
            cut: cut.clone(),
            full,
            bits,
        }
    }

    /// Points of the host's copy of the tail, or of the whole section if it has no bits, with those
    /// at infinity that fill up the last chunk.
    pub fn full_points(&self) -> usize {
        self.cut.full_chunks * self.cut.full_terms
    }

    fn summary(&self) -> ChunkSummary {
        let points = self.full_points() + self.size.selected;
        ChunkSummary {
            name: self.size.name,
            chunks: self.cut.full_chunks + self.cut.bits.len(),
            chunk_points: self.cut.full_terms.max(self.cut.most_bits()),
            bytes: (points * size_of::<C::Affine>()) as u64,
        }
    }
}

impl<C: SumCurve> Combine<C> for StreamedSum<C> {
    fn combine(&self, sums: &PartialSums<C>) -> C::Projective {
        let full = sums.full.par_chunks(self.full.sums_len().max(1));
        let full = full.map(|chunk| self.full.combine(chunk));
        let bits = BitSumPlan::<C>::combine(&sums.bits);
        full.reduce(C::Projective::identity, |x, y| x + y) + bits
    }
}

/// How much of a section comes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSummary {
    /// Section of the key.
    pub name: &'static str,
    /// Chunks that it comes in.
    pub chunks: usize,
    /// Points of the largest.
    pub chunk_points: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// The five sums of a pass.
pub struct StreamedSums {
    pub slot_bytes: u64,
    pub ring: [Slot<u8>; RING],
    pub h: StreamedSum<G1>,
    pub l: StreamedSum<G1>,
    pub a: StreamedSum<G1>,
    pub b_g1: StreamedSum<G1>,
    pub b_g2: StreamedSum<G2>,
    /// The bits that have a point, of each query.
    pub l_bits: BitmapSlots,
    pub a_bits: BitmapSlots,
    pub b_bits: BitmapSlots,
}

impl StreamedSums {
    /// Names the buffers. `ways`: for the terms of a chunk of each sum.
    pub fn new(
        sizes: &Sizes,
        fixed: &Fixed,
        cuts: &Cuts,
        ways: &Ways,
        target: PlanTarget,
        ledgers: &mut Ledgers,
    ) -> Self {
        // No more than the largest chunk takes.
        let slot_bytes = largest_chunk(cuts);
        let ring_life = Phase::SumH.to(Phase::SumBG2);
        let n = target.multiprocessors;
        let words = fixed.l_query.bits.words().len();
        let mut mask = |name| BitmapSlots::reserve(&mut ledgers.resident, name, words);
        StreamedSums {
            l_bits: mask("query l: bits"),
            a_bits: mask("query a: bits"),
            b_bits: mask("query b: bits"),
            slot_bytes,
            ring: std::array::from_fn(|i| {
                let work: &mut Ledger = &mut ledgers.work;
                work.reserve(format!("key: chunk {i}"), slot_bytes as usize, ring_life)
            }),
            h: StreamedSum::new(&sizes.h, &cuts.h, &ways.h, n, ledgers),
            l: StreamedSum::new(&sizes.l, &cuts.l, &ways.l, n, ledgers),
            a: StreamedSum::new(&sizes.a, &cuts.a, &ways.a, n, ledgers),
            b_g1: StreamedSum::new(&sizes.b_g1, &cuts.b_g1, &ways.b_g1, n, ledgers),
            b_g2: StreamedSum::new(&sizes.b_g2, &cuts.b_g2, &ways.b_g2, n, ledgers),
        }
    }

    /// What each section comes in.
    pub fn chunks(&self) -> [ChunkSummary; 5] {
        [
            self.h.summary(),
            self.l.summary(),
            self.a.summary(),
            self.b_g1.summary(),
            self.b_g2.summary(),
        ]
    }

    /// Bytes of all chunks.
    pub fn pass_bytes(&self) -> u64 {
        self.chunks().iter().map(|section| section.bytes).sum()
    }

    /// What the driver takes on the device for the host's memory that they lie in.
    pub fn driver_bytes(&self) -> u64 {
        self.pass_bytes().div_ceil(PINNED_PER_DRIVER_BYTE)
    }

    /// For adding up.
    pub fn as_five(&self) -> Combiners<'_> {
        Five {
            h: &self.h,
            l: &self.l,
            a: &self.a,
            b_g1: &self.b_g1,
            b_g2: &self.b_g2,
        }
    }

    /// Group and size of each.
    pub fn sizes(&self) -> [(&'static str, &SumSize); 5] {
        [
            (G1::NAME, &self.h.size),
            (G1::NAME, &self.l.size),
            (G1::NAME, &self.a.size),
            (G1::NAME, &self.b_g1.size),
            (G2::NAME, &self.b_g2.size),
        ]
    }
}

/// Bytes of the largest chunk.
pub fn largest_chunk(cuts: &Cuts) -> u64 {
    let points = |cut: &Cut| cut.full_terms.max(cut.most_bits());
    let g1 = [&cuts.h, &cuts.l, &cuts.a, &cuts.b_g1].map(points);
    let g1 = g1.into_iter().max().unwrap_or(0) * size_of::<<G1 as SumCurve>::Affine>();
    g1.max(points(&cuts.b_g2) * size_of::<<G2 as SumCurve>::Affine>()) as u64
}
