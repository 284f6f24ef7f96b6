//! What proving a circuit on a GPU takes: every buffer, and the way of each sum, before anything is
//! allocated.
//!
//! Two ledgers share one arena. The *resident* one holds what all proofs of the circuit share: the
//! key's points, the compiled circuit, the constant lists. The *unit* one holds what one proof
//! writes; it is there once for each proof that may be under way at a time.

use std::collections::BTreeMap;

use blstrs::Scalar;
use r1cs::{Bitmap, CompiledCircuit};

use super::search::{Found, PIECES_MAX, PerSum, Search, Sizes, Sums};
use super::sum::SumSize;
use crate::device::{Ledger, LedgerEntry, Lifetime, Phase, Slot};
use crate::error::CudaError;
use crate::evaluate::{EvaluatorPlan, Program, ProgramError, Query, QueryPlan, WitnessPlan};
use crate::msm::Choice;
use crate::ntt::{QuotientForm, QuotientPlan};

/// A device to plan for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanTarget {
    /// Memory that the plan may take.
    pub vram_bytes: u64,
    /// Whether the user set that limit, not the device.
    pub limited: bool,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
}

/// A plan of all proofs of one circuit.
pub struct ProofPlan {
    pub(super) resident: Ledger,
    pub(super) unit: Ledger,
    pub(super) units: usize,
    pieces: usize,
    pub(super) fixed: Fixed,
    pub(super) sums: Sums,
    choices: PerSum<Choice>,
}

/// What does not depend on how the sums are done.
pub(super) struct Fixed {
    pub evaluator: EvaluatorPlan,
    pub witness: WitnessPlan,
    pub quotient: QuotientPlan,
    pub a: Slot<Scalar>,
    pub b: Slot<Scalar>,
    pub l_query: TailPlan,
    pub a_query: TailPlan,
    pub b_query: TailPlan,
    /// 0, 1, 2, …: the scalars of the longest tail in order.
    pub identity: Slot<u32>,
}

/// The terms of a query whose values are no bits.
pub(super) struct TailPlan {
    pub query: QueryPlan,
    /// Indices of their points; empty if those are all points in order.
    pub points: Slot<u32>,
    pub scalars: Slot<[u32; 8]>,
}

impl ProofPlan {
    /// Plans the proofs of `circuit` with a key as published.
    ///
    /// # Errors
    /// [`PlanError::Device`] with `DoesNotFit`, naming the least memory that would do;
    /// [`PlanError::Program`] for a circuit beyond the device's 32-bit numbers.
    pub fn new(
        name: &str,
        circuit: &CompiledCircuit,
        target: PlanTarget,
    ) -> std::result::Result<Self, PlanError> {
        let mut resident = Ledger::new(format!("proving {name}"));
        let mut unit = Ledger::new("a proof");
        let fixed = Fixed::new(circuit, &mut resident, &mut unit)?;
        let sizes = fixed.sizes(circuit);
        let search = Search {
            resident: &resident,
            unit: &unit,
            sizes: &sizes,
            target,
        };
        let Found {
            units,
            pieces,
            ways,
            choices,
        } = search.run()?;
        let both = (&ways, pieces);
        let sums = Sums::new(&sizes, both, target, &mut resident, &mut unit);
        Ok(ProofPlan {
            choices,
            units,
            pieces,
            resident,
            unit,
            fixed,
            sums,
        })
    }

    /// All buffers that stay: name, size, lifetime.
    pub fn resident_entries(&self) -> &[LedgerEntry] {
        self.resident.entries()
    }

    /// All buffers of one proof.
    pub fn unit_entries(&self) -> &[LedgerEntry] {
        self.unit.entries()
    }

    /// Bytes that stay.
    pub fn resident_bytes(&self) -> u64 {
        self.resident.peak_bytes()
    }

    /// Bytes of one proof, whose buffers share them.
    pub fn unit_bytes(&self) -> u64 {
        self.unit.peak_bytes().max(self.sums.load_bytes())
    }

    /// Proofs under way at a time.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Pieces that the terms of each sum are cut into, to spare memory.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Bytes in all: what the arena takes.
    pub fn bytes(&self) -> u64 {
        self.resident_bytes() + self.units as u64 * self.unit_bytes()
    }

    /// Bytes of one proof in use in each phase.
    pub fn phase_bytes(&self) -> BTreeMap<Phase, u64> {
        let bytes = |phase: Phase| {
            let entries = self.unit.entries().iter();
            let alive = entries.filter(|entry| entry.lifetime.contains(phase));
            alive.map(|entry| entry.bytes).sum()
        };
        Phase::ALL
            .into_iter()
            .map(|phase| (phase, bytes(phase)))
            .collect()
    }

    /// How each sum is done, and why.
    pub fn sums(&self) -> impl Iterator<Item = SumChoice<'_>> {
        let sizes = self.sums.sizes();
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

impl Fixed {
    fn new(
        circuit: &CompiledCircuit,
        resident: &mut Ledger,
        unit: &mut Ledger,
    ) -> std::result::Result<Self, PlanError> {
        let domain = circuit.shape().domain();
        let evaluator = EvaluatorPlan::new(Program::new(circuit)?, resident);
        let witness = WitnessPlan::new(circuit, unit);
        // The quotient's scalars end up in b's bytes.
        let a = unit.reserve("a", domain, Phase::Evaluate.to(Phase::Transform));
        let b = unit.reserve("b", domain, Phase::Evaluate.to(Phase::SumH));
        let quotient = QuotientPlan::new(domain.ilog2(), QuotientForm::Monomial, unit);
        let mut tail = |query, lifetime| TailPlan::new(query, circuit, lifetime, resident, unit);
        let l_query = tail(Query::L, Phase::SumL.into());
        let a_query = tail(Query::A, Phase::SumA.into());
        let b_query = tail(Query::B, Phase::SumBG1.to(Phase::SumBG2));
        let tails = [&l_query, &a_query, &b_query];
        let longest = tails.iter().map(|tail| tail.points.len()).max();
        Ok(Fixed {
            identity: resident.reserve(
                "query: 0, 1, 2, …",
                longest.unwrap_or(0),
                Lifetime::RESIDENT,
            ),
            evaluator,
            witness,
            quotient,
            a,
            b,
            l_query,
            a_query,
            b_query,
        })
    }

    fn sizes(&self, circuit: &CompiledCircuit) -> Sizes {
        let density = circuit.density();
        let h = circuit.shape().domain() - 1;
        let query = |name, phase, tail: &TailPlan, present: Option<&Bitmap>| SumSize {
            name,
            phase,
            points: tail.query.points(),
            terms: tail.query.terms(),
            variables: circuit.shape().aux,
            selected: bits_with_point(circuit, present),
        };
        let b = |name, phase| query(name, phase, &self.b_query, Some(&density.b_aux));
        Sizes {
            h: SumSize {
                name: "h",
                phase: Phase::SumH,
                points: h,
                terms: h,
                variables: 0,
                selected: 0,
            },
            l: query("l", Phase::SumL, &self.l_query, None),
            a: query("a", Phase::SumA, &self.a_query, Some(&density.a_aux)),
            b_g1: b("b_g1", Phase::SumBG1),
            b_g2: b("b_g2", Phase::SumBG2),
        }
    }
}

impl TailPlan {
    fn new(
        query: Query,
        circuit: &CompiledCircuit,
        lifetime: Lifetime,
        resident: &mut Ledger,
        unit: &mut Ledger,
    ) -> Self {
        let name = match query {
            Query::L => "l",
            Query::A => "a",
            Query::B => "b",
        };
        let plan = QueryPlan::new(query, circuit, resident);
        let indexed = plan.terms() != plan.points();
        TailPlan {
            points: resident.reserve(
                format!("query {name}: tail points"),
                if indexed { padded(plan.terms()) } else { 0 },
                Lifetime::RESIDENT,
            ),
            scalars: unit.reserve(
                format!("{name}: tail scalars"),
                padded(plan.terms()),
                lifetime,
            ),
            query: plan,
        }
    }
}

/// Room for terms that fill up the last piece of a sum.
fn padded(terms: usize) -> usize {
    terms + PIECES_MAX
}

/// Bits among the aux variables that are present; `None`: all are.
fn bits_with_point(circuit: &CompiledCircuit, present: Option<&Bitmap>) -> usize {
    let is_bit = circuit.layout().bitmap().words().iter().enumerate();
    let both = is_bit.map(|(k, word)| word & present.map_or(u64::MAX, |bits| bits.words()[k]));
    both.map(|word| word.count_ones() as usize).sum()
}
