//! The search for the fastest pass that fits.

use std::cell::RefCell;
use std::collections::HashMap;

use super::super::fixed::{Fixed, Ledgers};
use super::super::per_sum::PerSum;
use super::super::plan::PlanTarget;
use super::super::search::{Sizes, Ways};
use super::RING;
use super::plan::{Cut, Cuts, StreamedSums, largest_chunk};
use crate::device::{Ledger, Phase};
use crate::msm::{Choice, FullSumLimits, G1, G2, SumCurve};

/// The most proofs of a pass. Sums take longer than the copies of their points from two or three on.
pub const PROOFS_MAX: usize = 4;

/// Logarithms of the sizes of a buffer that are tried, in bytes, largest first.
const SLOT_LOGS: std::ops::RangeInclusive<u32> = 14..=30;

/// Smaller chunks are tried until so many sizes in a row were slower than the best.
const SLOWER_MAX: usize = 3;

/// Shares of the memory that seems to be left for the work of the sums. It is an upper bound: buffers do
/// not always fill the gaps between others.
const SHARES: [f64; 7] = [1.0, 0.93, 0.85, 0.7, 0.5, 0.25, 0.0];

/// What there is to choose from.
pub struct StreamSearch<'a> {
    /// The buffers that are there whatever is chosen.
    pub ledgers: &'a Ledgers,
    pub fixed: &'a Fixed,
    pub sizes: &'a Sizes,
    pub target: PlanTarget,
    /// Choices by group, terms and work memory.
    pub chosen: RefCell<HashMap<(&'static str, usize, u64), Choice>>,
}

/// What was chosen.
pub struct StreamFound {
    /// Proofs of a pass.
    pub proofs: usize,
    pub cuts: Cuts,
    pub choices: PerSum<Choice>,
    /// The model's time for a proof's sums.
    pub ms: f64,
}

/// The faster of the two.
fn faster(found: Option<StreamFound>, next: StreamFound) -> Option<StreamFound> {
    match found {
        Some(found) if found.ms <= next.ms => Some(found),
        _ => Some(next),
    }
}

impl StreamFound {
    pub fn ways(&self) -> Ways {
        ways(&self.choices)
    }
}

fn ways(choices: &PerSum<Choice>) -> Ways {
    choices.by_ref().map(|choice| choice.chosen.clone())
}

impl StreamSearch<'_> {
    /// The fastest by the model, with up to as many proofs in a pass as callers ask for at a time.
    ///
    /// # Errors
    /// The least memory that would do.
    pub fn run(&self) -> Result<StreamFound, u64> {
        let vram = self.target.vram_bytes;
        let mut best: Option<StreamFound> = None;
        let mut slower = 0;
        for cuts in self.cuts().filter(|cuts| self.buffers_alone(cuts) <= vram) {
            let mut found = None;
            for proofs in 1..=self.target.callers.clamp(1, PROOFS_MAX) {
                let Ok(next) = self.fit(&cuts, proofs) else {
                    break;
                };
                found = faster(found, next);
            }
            let Some(found) = found else { continue };
            if best.as_ref().is_some_and(|best| best.ms <= found.ms) {
                slower += 1;
                if slower == SLOWER_MAX {
                    break;
                }
            } else {
                slower = 0;
                best = Some(found);
            }
        }
        best.ok_or_else(|| {
            let needed = self.cuts().map(|cuts| {
                let ways = ways(&self.choices(&cuts, |_| 0));
                self.bytes(&cuts, &ways, 1).0
            });
            needed.min().unwrap_or(u64::MAX)
        })
    }

    /// All sizes of chunks, largest first.
    fn cuts(&self) -> impl Iterator<Item = Cuts> {
        let logs = SLOT_LOGS.rev();
        logs.filter_map(|log| Cuts::new(self.sizes, self.fixed, 1 << log))
    }

    /// The memory that a proof takes with these chunks besides the sums' work; a lower bound, and quickly
    /// known.
    fn buffers_alone(&self, cuts: &Cuts) -> u64 {
        let ring = RING as u64 * largest_chunk(cuts);
        let held = self.ledgers.held.as_ref().map_or(0, Ledger::least_bytes);
        self.ledgers.resident.peak_bytes() + held + ring.max(self.ledgers.work.least_bytes())
    }

    /// Chunks of at most `slot_bytes`, `proofs` proofs in a pass.
    ///
    /// # Errors
    /// The least memory that would do; `u64::MAX` if such chunks would be too small or too many.
    #[cfg(test)]
    pub fn run_with(&self, slot_bytes: u64, proofs: usize) -> Result<StreamFound, u64> {
        let cuts = Cuts::new(self.sizes, self.fixed, slot_bytes).ok_or(u64::MAX)?;
        self.fit(&cuts, proofs)
    }

    /// The fastest ways of the sums that fit with these chunks.
    ///
    /// # Errors
    /// The least memory that would do.
    fn fit(&self, cuts: &Cuts, proofs: usize) -> Result<StreamFound, u64> {
        let nothing = self.choices(cuts, |_| 0);
        let (needed, ledgers) = self.bytes(cuts, &ways(&nothing), proofs);
        let vram = self.target.vram_bytes;
        if needed > vram {
            return Err(needed);
        }
        // What is alive beside the work of a phase's sum.
        let outside = needed - ledgers.work.peak_bytes();
        let alive = |phase: Phase| -> u64 {
            let entries = ledgers.work.entries().iter();
            let alive = entries.filter(|entry| entry.lifetime.contains(phase));
            alive.map(|entry| entry.bytes).sum()
        };
        let phases = self.sizes.by_ref().map(|size| size.phase);
        let smallest = nothing.by_ref().map(|choice| choice.chosen.work_bytes);
        let both = phases.as_array().into_iter().zip(smallest.as_array());
        let left: Vec<u64> = both
            .map(|(phase, work)| (vram + work).saturating_sub(outside + alive(*phase)))
            .collect();
        let tried = SHARES.iter().find_map(|share| {
            let choices = self.choices(cuts, |sum| (left[sum] as f64 * share) as u64);
            let (needed, _) = self.bytes(cuts, &ways(&choices), proofs);
            (needed <= vram).then_some(choices)
        });
        let choices = tried.unwrap_or(nothing);
        Ok(StreamFound {
            ms: self.model_ms(cuts, &choices, proofs),
            proofs,
            cuts: cuts.clone(),
            choices,
        })
    }

    /// The fastest way for the terms of a chunk of each sum with so much work memory; the smallest, if
    /// none does with it.
    fn choices(&self, cuts: &Cuts, work_bytes: impl Fn(usize) -> u64) -> PerSum<Choice> {
        PerSum {
            h: self.choice::<G1>(&cuts.h, work_bytes(0)),
            l: self.choice::<G1>(&cuts.l, work_bytes(1)),
            a: self.choice::<G1>(&cuts.a, work_bytes(2)),
            b_g1: self.choice::<G1>(&cuts.b_g1, work_bytes(3)),
            b_g2: self.choice::<G2>(&cuts.b_g2, work_bytes(4)),
        }
    }

    fn choice<C: SumCurve>(&self, cut: &Cut, work_bytes: u64) -> Choice {
        if work_bytes == 0 {
            return self.choice_within::<C>(cut.full_terms, 0);
        }
        // With memory for the fastest of all, the limit does not matter.
        let fastest = self.choice_within::<C>(cut.full_terms, u64::MAX);
        if fastest.chosen.work_bytes <= work_bytes {
            return fastest;
        }
        self.choice_within::<C>(cut.full_terms, work_bytes)
    }

    /// The choice with one copy of the bases. What was chosen before is remembered: most tails are of
    /// the same size whatever the chunks are.
    fn choice_within<C: SumCurve>(&self, terms: usize, work_bytes: u64) -> Choice {
        let limits = FullSumLimits {
            base_bytes: (terms * size_of::<C::Affine>()) as u64,
            work_bytes,
        };
        let mut chosen = self.chosen.borrow_mut();
        let choice = chosen
            .entry((C::NAME, terms, work_bytes))
            .or_insert_with(|| Choice::new::<C>(terms, terms, limits, self.target.multiprocessors));
        choice.clone()
    }

    /// Bytes of the whole plan, and its ledgers.
    fn bytes(&self, cuts: &Cuts, ways: &Ways, proofs: usize) -> (u64, Ledgers) {
        let mut ledgers = self.ledgers.clone();
        let sums = StreamedSums::new(
            self.sizes,
            self.fixed,
            cuts,
            ways,
            self.target,
            &mut ledgers,
        );
        let bytes = ledgers.resident.peak_bytes()
            + held_bytes(&ledgers, self.fixed, proofs)
            + ledgers.work.peak_bytes()
            + sums.driver_bytes();
        (bytes, ledgers)
    }

    /// Milliseconds of a proof's sums.
    fn model_ms(&self, cuts: &Cuts, choices: &PerSum<Choice>, proofs: usize) -> f64 {
        let n = self.target.multiprocessors;
        let g1 = [
            (&cuts.h, &choices.h),
            (&cuts.l, &choices.l),
            (&cuts.a, &choices.a),
            (&cuts.b_g1, &choices.b_g1),
        ];
        let g1 = g1.map(|(cut, choice)| cut.model_ms::<G1>(choice.chosen.ms, proofs, n));
        let g2 = cuts.b_g2.model_ms::<G2>(choices.b_g2.chosen.ms, proofs, n);
        (g1.iter().sum::<f64>() + g2) / proofs as f64
    }
}

/// Bytes of what `proofs` proofs keep, and of what the driver takes for their staged witnesses.
fn held_bytes(ledgers: &Ledgers, fixed: &Fixed, proofs: usize) -> u64 {
    let held = ledgers.held.as_ref().map_or(0, Ledger::peak_bytes);
    proofs as u64 * (held + fixed.staging_driver_bytes())
}
