//! What proving a circuit on a GPU takes: every buffer, and the way of each sum, before anything is
//! allocated.
//!
//! A key *stays* on the device, or it is *streamed*: passes through it, chunk by chunk. In both cases the
//! buffers are in ledgers that share one arena: what all proofs of the circuit share, and what a proof
//! writes. The latter is there once for each proof that may be under way; while a key is streamed, only
//! what a proof keeps is, and the work memory is shared by the proofs of a pass.

use std::cell::RefCell;
use std::collections::BTreeMap;

use r1cs::CompiledCircuit;

use super::fixed::{Fixed, Ledgers};
use super::per_sum::PerSum;
use super::search::{Found, Search, Sizes, Sums, UNITS};
use super::streamed::{ChunkSummary, StreamFound, StreamSearch, StreamedSums};
use super::sum::SumSize;
use crate::device::{LedgerEntry, Phase};
use crate::error::CudaError;
use crate::evaluate::ProgramError;
use crate::msm::Choice;
use crate::ntt::QuotientForm;

/// What the driver takes besides the arena and no ledger knows of: the kernels' code, the rounding of the
/// arena to its pages of 2 MiB, and what launches need.
///
/// Measured on an H200 (driver 580.159): see `docs/gpu.md`.
pub const DRIVER_BYTES: u64 = 12 << 20;

/// Bytes of page-locked memory of the host for each byte that the device's page tables take for it: 8 for a
/// page of 4 KiB. Measured with the rest.
pub const PINNED_PER_DRIVER_BYTE: u64 = 512;

/// A device to plan for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanTarget {
    /// Memory that the plan may take.
    pub vram_bytes: u64,
    /// Whether the user set that limit, not the device.
    pub limited: bool,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Proofs that callers ask for at a time. A pass over a streamed key makes so many of them as pay.
    pub callers: usize,
}

/// A plan of all proofs of one circuit.
pub struct ProofPlan {
    pub(super) ledgers: Ledgers,
    pub(super) units: usize,
    pub(super) fixed: Fixed,
    pub(super) way: Way,
    choices: PerSum<Choice>,
    ms: f64,
    reason: String,
}

/// How the sums get at the key's points.
pub(super) enum Way {
    /// They are there.
    Resident { sums: Box<Sums>, pieces: usize },
    /// They come.
    Streamed(Box<StreamedSums>),
}

/// A plan of one of the two kinds, or the least memory that one would take.
pub(super) type Tried = Result<Result<ProofPlan, u64>, PlanError>;

impl ProofPlan {
    /// Plans the proofs of `circuit` with a key as published. A key that fits beside two proofs stays. One
    /// that fits beside one, which may leave the sums little memory to work in, stays if the model says
    /// that this is faster; otherwise it is streamed.
    ///
    /// # Errors
    /// [`PlanError::Device`] with `DoesNotFit`, naming the least memory that would do;
    /// [`PlanError::Program`] for a circuit beyond the device's 32-bit numbers.
    pub fn new(
        name: &str,
        circuit: &CompiledCircuit,
        target: PlanTarget,
    ) -> Result<Self, PlanError> {
        Self::of_form(name, circuit, QuotientForm::Monomial, target)
    }

    /// The same with a key of either form.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_form(
        name: &str,
        circuit: &CompiledCircuit,
        form: QuotientForm,
        target: PlanTarget,
    ) -> Result<Self, PlanError> {
        let arena = PlanTarget {
            vram_bytes: target.vram_bytes.saturating_sub(DRIVER_BYTES),
            ..target
        };
        let resident = Self::resident(name, circuit, form, arena)?;
        match resident {
            Ok(plan) if plan.units > 1 => Ok(plan),
            resident => Self::of_both(resident, Self::streamed(name, circuit, form, arena)?)
                .map_err(|needed| {
                    PlanError::Device(CudaError::DoesNotFit {
                        what: format!("proving {name}"),
                        needed: needed + DRIVER_BYTES,
                        available: target.vram_bytes,
                        limited: target.limited,
                    })
                }),
        }
    }

    /// The better of the two, with the reason.
    fn of_both(resident: Result<Self, u64>, streamed: Result<Self, u64>) -> Result<Self, u64> {
        match (resident, streamed) {
            (Ok(resident), Ok(streamed)) => {
                let (stays, passes) = (resident.ms, streamed.ms);
                let better = |ms: f64, other: &str, other_ms: f64| {
                    format!("sums of {ms:.1} ms by the model, {other_ms:.1} ms if it {other}")
                };
                Ok(if passes < stays {
                    let reason = better(passes, "stayed", stays);
                    ProofPlan { reason, ..streamed }
                } else {
                    let reason = better(stays, "were streamed", passes);
                    ProofPlan { reason, ..resident }
                })
            }
            (Ok(plan), Err(_)) => {
                let reason = "it fits".to_owned();
                Ok(ProofPlan { reason, ..plan })
            }
            (Err(needed), Ok(plan)) => {
                let mib = (needed + DRIVER_BYTES).div_ceil(1 << 20);
                let reason = format!("to stay it would need at least {mib} MiB");
                Ok(ProofPlan { reason, ..plan })
            }
            (Err(resident), Err(streamed)) => Err(resident.min(streamed)),
        }
    }

    fn resident(
        name: &str,
        circuit: &CompiledCircuit,
        form: QuotientForm,
        target: PlanTarget,
    ) -> Tried {
        let mut ledgers = Ledgers::resident(name);
        let fixed = Fixed::new(circuit, form, &mut ledgers)?;
        let sizes = fixed.sizes(circuit);
        let search = Search {
            resident: &ledgers.resident,
            unit: &ledgers.work,
            unit_driver_bytes: fixed.staging_driver_bytes(),
            sizes: &sizes,
            target,
        };
        let Found {
            units,
            pieces,
            ways,
            choices,
        } = match search.run() {
            Ok(found) => found,
            Err(needed) => return Ok(Err(needed)),
        };
        let (resident, unit) = (&mut ledgers.resident, &mut ledgers.work);
        let sums = Sums::new(&sizes, (&ways, pieces), target, resident, unit);
        let ms = choices.as_array().map(|choice| choice.chosen.ms);
        Ok(Ok(ProofPlan {
            ledgers,
            units,
            fixed,
            way: Way::Resident {
                sums: Box::new(sums),
                pieces,
            },
            choices,
            ms: ms.iter().sum::<f64>() * pieces as f64,
            reason: beside(units),
        }))
    }

    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method by its name is one of a single lifetime"
    )]
    fn streamed(
        name: &str,
        circuit: &CompiledCircuit,
        form: QuotientForm,
        target: PlanTarget,
    ) -> Tried {
        Self::streamed_as(name, circuit, form, target, |search| search.run())
    }

    /// Streamed in the way that `choose` takes.
    pub(super) fn streamed_as(
        name: &str,
        circuit: &CompiledCircuit,
        form: QuotientForm,
        target: PlanTarget,
        choose: impl FnOnce(&StreamSearch<'_>) -> Result<StreamFound, u64>,
    ) -> Tried {
        let mut ledgers = Ledgers::streamed(name);
        let fixed = Fixed::new(circuit, form, &mut ledgers)?;
        let sizes: Sizes = fixed.sizes(circuit);
        let search = StreamSearch {
            ledgers: &ledgers,
            fixed: &fixed,
            sizes: &sizes,
            target,
            chosen: RefCell::default(),
        };
        let found = match choose(&search) {
            Ok(found) => found,
            Err(needed) => return Ok(Err(needed)),
        };
        let (cuts, ways) = (&found.cuts, found.ways());
        let sums = StreamedSums::new(&sizes, &fixed, cuts, &ways, target, &mut ledgers);
        Ok(Ok(ProofPlan {
            units: found.proofs,
            way: Way::Streamed(Box::new(sums)),
            choices: found.choices,
            ms: found.ms,
            reason: String::new(),
            ledgers,
            fixed,
        }))
    }

    /// All buffers that stay: name, size, lifetime.
    pub fn resident_entries(&self) -> &[LedgerEntry] {
        self.ledgers.resident.entries()
    }

    /// All buffers that are there for each proof under way.
    pub fn unit_entries(&self) -> &[LedgerEntry] {
        let held = self.ledgers.held.as_ref();
        held.unwrap_or(&self.ledgers.work).entries()
    }

    /// All buffers that the proofs of a pass share; none if the key stays.
    pub fn work_entries(&self) -> &[LedgerEntry] {
        match self.ledgers.held {
            Some(_) => self.ledgers.work.entries(),
            None => &[],
        }
    }

    /// Bytes that stay.
    pub fn resident_bytes(&self) -> u64 {
        self.ledgers.resident.peak_bytes()
    }

    /// Bytes of one proof under way, whose buffers share them.
    pub fn unit_bytes(&self) -> u64 {
        match (&self.way, &self.ledgers.held) {
            (_, Some(held)) => held.peak_bytes(),
            (Way::Resident { sums, .. }, None) => {
                self.ledgers.work.peak_bytes().max(sums.load_bytes())
            }
            (Way::Streamed(_), None) => self.ledgers.work.peak_bytes(),
        }
    }

    /// Bytes that the proofs of a pass share.
    pub fn work_bytes(&self) -> u64 {
        match self.ledgers.held {
            Some(_) => self.ledgers.work.peak_bytes(),
            None => 0,
        }
    }

    /// Whether it takes no more than that. If it would without the third of three proofs, it does without from now on.
    pub fn fit(&mut self, vram_bytes: u64) -> bool {
        let third = self.unit_bytes() + self.fixed.staging_driver_bytes();
        let may_do_without = self.streaming().is_none() && self.units == UNITS + 1;
        let without = self.bytes() - third;
        if self.bytes() > vram_bytes && may_do_without && without <= vram_bytes {
            self.units = UNITS;
            self.reason = beside(UNITS);
        }
        self.bytes() <= vram_bytes
    }

    /// Bytes that the driver takes besides.
    pub fn driver_bytes(&self) -> u64 {
        let streamed = match &self.way {
            Way::Resident { .. } => 0,
            Way::Streamed(sums) => sums.driver_bytes(),
        };
        DRIVER_BYTES + self.units as u64 * self.fixed.staging_driver_bytes() + streamed
    }

    /// The form of the key.
    pub fn form(&self) -> QuotientForm {
        self.fixed.quotient.form()
    }

    /// Proofs under way at a time; of a streamed key, proofs of a pass.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Pieces that the terms of each sum over a key that stays are cut into, to spare memory.
    pub fn pieces(&self) -> usize {
        match self.way {
            Way::Resident { pieces, .. } => pieces,
            Way::Streamed(_) => 1,
        }
    }

    /// How a key that does not stay is streamed.
    pub fn streaming(&self) -> Option<Streaming> {
        let Way::Streamed(sums) = &self.way else {
            return None;
        };
        let sections = sums.chunks();
        Some(Streaming {
            chunk_bytes: sums.slot_bytes,
            buffers: sums.ring.len(),
            sections,
            pass_bytes: sums.pass_bytes(),
        })
    }

    /// Why the key stays, or why it does not.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The model's time for the sums of a proof, in milliseconds.
    pub fn model_ms(&self) -> f64 {
        self.ms
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> u64 {
        self.resident_bytes() + self.units as u64 * self.unit_bytes() + self.work_bytes()
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.arena_bytes() + self.driver_bytes()
    }

    /// Bytes that one proof has in use in each phase, those that it shares included.
    pub fn phase_bytes(&self) -> BTreeMap<Phase, u64> {
        let bytes = |phase: Phase| {
            let entries = self.unit_entries().iter().chain(self.work_entries());
            let alive = entries.filter(|entry| entry.lifetime.contains(phase));
            alive.map(|entry| entry.bytes).sum()
        };
        Phase::ALL
            .into_iter()
            .map(|phase| (phase, bytes(phase)))
            .collect()
    }

    /// How each sum is done, and why; of a streamed key, the sum over a chunk.
    pub fn sums(&self) -> impl Iterator<Item = SumChoice<'_>> {
        let sizes: [(&'static str, &SumSize); 5] = match &self.way {
            Way::Resident { sums, .. } => sums.sizes(),
            Way::Streamed(sums) => sums.sizes(),
        };
        let both = sizes.into_iter().zip(self.choices.as_array());
        both.map(|((group, size), choice)| SumChoice {
            name: size.name,
            points: size.points,
            terms: size.terms,
            selected: size.selected,
            group,
            choice,
        })
    }
}

/// Why a key stays that does.
fn beside(units: usize) -> String {
    format!("it fits beside {units} proofs")
}

/// How a key is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streaming {
    /// Bytes of a buffer of the ring.
    pub chunk_bytes: u64,
    /// Buffers of the ring.
    pub buffers: usize,
    /// Chunks of each section.
    pub sections: [ChunkSummary; 5],
    /// Bytes that a pass copies to the device, whatever number of proofs it makes.
    pub pass_bytes: u64,
}

/// A sum, and the way chosen for it.
#[derive(Debug, Clone, Copy)]
pub struct SumChoice<'a> {
    /// Section of the key.
    pub name: &'static str,
    /// Its points.
    pub points: usize,
    /// Terms with a full-size scalar.
    pub terms: usize,
    /// Points that bits may select.
    pub selected: usize,
    /// `G1` or `G2`.
    pub group: &'static str,
    /// The choice.
    pub choice: &'a Choice,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It does not fit.
    #[error(transparent)]
    Device(#[from] CudaError),
    /// The circuit has no program.
    #[error(transparent)]
    Program(#[from] ProgramError),
}
