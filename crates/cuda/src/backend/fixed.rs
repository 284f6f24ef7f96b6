//! What a proof takes however its sums are done: the evaluation, the transforms, the lists of the
//! queries.

use blstrs::Scalar;
use r1cs::CompiledCircuit;

use super::plan::{PINNED_PER_DRIVER_BYTE, PlanError};
use super::query_bits::QueryBits;
use super::search::{PIECES_MAX, Sizes};
use super::sum::SumSize;
use crate::device::{Ledger, Lifetime, Phase, Slot};
use crate::evaluate::{EvaluatorPlan, Program, Query, QueryPlan, WitnessPlan};
use crate::ntt::{QuotientForm, QuotientPlan};

/// The memory of a plan.
#[derive(Clone)]
pub struct Ledgers {
    /// What all proofs share.
    pub resident: Ledger,
    /// What a proof writes.
    pub work: Ledger,
    /// What a proof keeps there while others use the same work memory; `None`: work memory is not
    /// shared, and this is a part of it.
    pub held: Option<Ledger>,
}

impl Ledgers {
    /// For a key that stays on the device.
    pub fn resident(name: &str) -> Self {
        Ledgers {
            resident: Ledger::new(format!("proving {name}")),
            work: Ledger::new("a proof"),
            held: None,
        }
    }

    /// For a key that passes through.
    pub fn streamed(name: &str) -> Self {
        Ledgers {
            work: Ledger::new("a pass over the key"),
            held: Some(Ledger::new("a proof")),
            ..Self::resident(name)
        }
    }

    /// Whether the key passes through.
    pub fn is_streamed(&self) -> bool {
        self.held.is_some()
    }

    /// Where what a proof keeps is named.
    pub fn held(&mut self) -> &mut Ledger {
        self.held.as_mut().unwrap_or(&mut self.work)
    }
}

/// What does not depend on how the sums are done.
pub struct Fixed {
    pub domain: usize,
    pub evaluator: EvaluatorPlan,
    pub witness: WitnessPlan,
    pub quotient: QuotientPlan,
    pub a: Slot<Scalar>,
    /// As many elements as the domain, then room for the scalars that fill up the last chunk of a
    /// streamed sum.
    pub b: Slot<Scalar>,
    pub l_query: TailPlan,
    pub a_query: TailPlan,
    pub b_query: TailPlan,
    /// 0, 1, 2, …: the scalars of the longest tail in order.
    pub identity: Slot<u32>,
}

/// The terms of a query whose values are no bits.
pub struct TailPlan {
    pub query: QueryPlan,
    /// Indices of their points; empty if those are all points in order, or if the points of a tail
    /// come by themselves.
    pub points: Slot<u32>,
    pub scalars: Slot<[u32; 8]>,
    /// The aux variables that are bits and have a point.
    pub bits: QueryBits,
}

impl Fixed {
    pub fn new(
        circuit: &CompiledCircuit,
        form: QuotientForm,
        ledgers: &mut Ledgers,
    ) -> Result<Self, PlanError> {
        let domain = circuit.shape().domain();
        let evaluator = EvaluatorPlan::new(Program::new(circuit)?, &mut ledgers.resident);
        let witness = WitnessPlan::new(circuit, ledgers.held());
        let a = ledgers
            .work
            .reserve("a", domain, Phase::Evaluate.to(Phase::Transform));
        // The quotient's scalars end up in b's bytes.
        let padded = if ledgers.is_streamed() {
            padded(domain)
        } else {
            domain
        };
        let b = ledgers
            .held()
            .reserve("b", padded, Phase::Evaluate.to(Phase::SumH));
        let quotient = QuotientPlan::new(domain.ilog2(), form, &mut ledgers.work);
        let l_query = match form {
            QuotientForm::Monomial => Query::L,
            QuotientForm::Prepared => Query::PreparedL,
        };
        let l_query = TailPlan::new(l_query, circuit, Phase::SumL.into(), ledgers);
        let a_query = TailPlan::new(Query::A, circuit, Phase::SumA.into(), ledgers);
        let b_sums = Phase::SumBG1.to(Phase::SumBG2);
        let b_query = TailPlan::new(Query::B, circuit, b_sums, ledgers);
        let tails = [&l_query, &a_query, &b_query];
        let longest = tails.iter().map(|tail| tail.points.len()).max();
        Ok(Fixed {
            domain,
            identity: ledgers.resident.reserve(
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

    /// What the driver takes on the device for the host's memory that each proof's witness is staged in.
    pub fn staging_driver_bytes(&self) -> u64 {
        self.witness.staged_bytes().div_ceil(PINNED_PER_DRIVER_BYTE)
    }

    pub fn sizes(&self, circuit: &CompiledCircuit) -> Sizes {
        let h = match self.quotient.form() {
            // The quotient's last coefficient is zero and has no point.
            QuotientForm::Monomial => self.domain - 1,
            QuotientForm::Prepared => self.domain,
        };
        let query = |name, phase, tail: &TailPlan| SumSize {
            name,
            phase,
            points: tail.query.points(),
            terms: tail.query.terms(),
            variables: circuit.shape().aux,
            selected: tail.bits.count(),
        };
        Sizes {
            h: SumSize {
                name: "h",
                phase: Phase::SumH,
                points: h,
                terms: h,
                variables: 0,
                selected: 0,
            },
            l: query("l", Phase::SumL, &self.l_query),
            a: query("a", Phase::SumA, &self.a_query),
            b_g1: query("b_g1", Phase::SumBG1, &self.b_query),
            b_g2: query("b_g2", Phase::SumBG2, &self.b_query),
        }
    }
}

impl TailPlan {
    fn new(
        query: Query,
        circuit: &CompiledCircuit,
        lifetime: Lifetime,
        ledgers: &mut Ledgers,
    ) -> Self {
        let name = match query {
            Query::L | Query::PreparedL => "l",
            Query::A => "a",
            Query::B => "b",
        };
        let plan = QueryPlan::new(query, circuit, &mut ledgers.resident);
        let indexed = plan.terms() != plan.points() && !ledgers.is_streamed();
        TailPlan {
            points: ledgers.resident.reserve(
                format!("query {name}: tail points"),
                if indexed { padded(plan.terms()) } else { 0 },
                Lifetime::RESIDENT,
            ),
            scalars: ledgers.held().reserve(
                format!("{name}: tail scalars"),
                padded(plan.terms()),
                lifetime,
            ),
            bits: QueryBits::new(query, circuit),
            query: plan,
        }
    }
}

/// Room for terms that fill up the last piece or chunk of a sum.
fn padded(terms: usize) -> usize {
    terms + PIECES_MAX
}
