//! Jobs at the ends of their lives: taken up from the store, cancelled, ended, forgotten.

use std::sync::Arc;

use store::{JobId, JobRecord, JobState, OpenJob};

use super::Scheduler;
use super::device::LeasePhase;
use super::event::{Action, Outcome, Reply, Ticket, Write};
use super::job::{Job, Phase, Unit, UnitState};
use super::refusal::{Refusal, code, failure};

impl Scheduler {
    pub(super) fn restore(&mut self, open: &OpenJob, out: &mut Vec<Action>) {
        let mut job = self.recovered(&open.job);
        if self.jobs.contains_key(&job.id) {
            return;
        }
        job.units = (0..job.unit_count).map(|_| Unit::new(0)).collect();
        for unit in &open.units {
            if let Some(slot) = job.units.get_mut(unit.index as usize) {
                slot.failures = unit.failures;
                slot.state = if unit.proven {
                    UnitState::Proven
                } else {
                    UnitState::Ready
                };
            }
        }
        job.proven = job
            .units
            .iter()
            .filter(|unit| unit.state == UnitState::Proven)
            .count();
        job.ready = job.units.len() - job.proven;
        job.started = open.job.started_ms.is_some();
        let (id, attempt) = (job.id, job.attempt);
        let whole = job.ready == 0;
        if whole {
            job.phase = Phase::Assembling {
                limit: self.now + self.config.assembly_limit_ms,
            };
        }
        self.index(job);
        self.enter(id);
        self.requeue(id, |_| ());
        if whole {
            out.push(Action::Assemble { job: id, attempt });
        } else if self.jobs[&id].unit_bytes > self.budget(self.jobs[&id].class()) {
            self.end_over_budget(id, out);
        }
    }

    pub(super) fn restore_ended(&mut self, record: &JobRecord) {
        let mut job = self.recovered(record);
        if record.state == JobState::Open || self.jobs.contains_key(&job.id) {
            return;
        }
        job.phase = Phase::Ended(record.state);
        self.index(job);
    }

    fn recovered(&mut self, record: &JobRecord) -> Job {
        let sequence = self.sequence();
        Job {
            id: record.id,
            sequence,
            submitted: sequence,
            name: record.name.clone(),
            request_id: record.request_id.clone(),
            digest: record.digest,
            client: Arc::from(record.client.as_str()),
            circuit: record
                .circuit
                .parse()
                .expect("invariant: the caller checks the circuit"),
            priority: record.priority,
            deadline: record.deadline_ms,
            accepted: record.accepted_ms,
            payload_bytes: record.payload_bytes,
            unit_bytes: record.unit_bytes,
            unit_count: record.units,
            attempt: record.attempt,
            phase: Phase::Proving,
            units: Vec::new(),
            ready: 0,
            proven: 0,
            started: false,
            passed_over: 0,
            tickets: Vec::new(),
        }
    }

    pub(super) fn cancel(&mut self, ticket: Ticket, name: &str, out: &mut Vec<Action>) {
        let found = self.lookup(name).filter(|id| {
            // A job that is being stored is not known to anybody yet.
            matches!(
                self.jobs[id].phase,
                Phase::Proving | Phase::Assembling { .. }
            )
        });
        let was_running = found.is_some_and(|id| self.is_running(id));
        if let Some(id) = found {
            self.end(id, Outcome::Cancelled, out);
        }
        out.push(Action::Reply {
            ticket,
            reply: Reply::Cancelled {
                job: found,
                was_running,
            },
        });
    }

    fn is_running(&self, id: JobId) -> bool {
        self.jobs[&id].units.iter().any(|unit| match unit.state {
            UnitState::Leased(lease) => !matches!(
                self.leases[&lease].phase,
                LeasePhase::Prepared | LeasePhase::Discarding { .. }
            ),
            _ => false,
        })
    }

    /// Ends the open attempt of a job.
    pub(super) fn end(&mut self, id: JobId, outcome: Outcome, out: &mut Vec<Action>) {
        let units = std::mem::take(
            &mut self
                .jobs
                .get_mut(&id)
                .expect("invariant: callers name a known job")
                .units,
        );
        self.queue.remove(&self.jobs[&id]);
        for unit in &units {
            if let UnitState::Leased(lease) = unit.state {
                self.abandon(lease, out);
            }
        }
        let finished_ms = self.now;
        let job = self.jobs.get_mut(&id).expect("invariant: known above");
        if let Phase::Assembling { limit } = job.phase {
            self.assembling.remove(&(limit, id));
        }
        job.phase = Phase::Ended(match outcome {
            Outcome::Completed => JobState::Completed,
            Outcome::Failed(_) => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
        });
        (job.ready, job.proven) = (0, 0);
        let attempt = job.attempt;
        self.leave(id);
        let write = Write::Finish {
            job: id,
            attempt,
            outcome: outcome.clone(),
            finished_ms,
        };
        out.push(Action::Persist(write));
        out.push(Action::Ended { job: id, outcome });
    }

    /// Ends a job with a failure.
    pub(super) fn fail(
        &mut self,
        id: JobId,
        code: &'static str,
        message: &str,
        out: &mut Vec<Action>,
    ) {
        self.end(id, Outcome::Failed(failure(code, message)), out);
    }

    pub(super) fn set_budget(&mut self, bytes: u64, out: &mut Vec<Action>) {
        self.config.budget_bytes = bytes;
        let too_large: Vec<_> = self
            .jobs
            .values()
            .filter(|job| job.phase == Phase::Proving)
            .filter(|job| job.unit_bytes > self.budget(job.class()))
            .map(|job| job.id)
            .collect();
        for id in too_large {
            self.end_over_budget(id, out);
        }
    }

    pub(super) fn end_over_budget(&mut self, id: JobId, out: &mut Vec<Action>) {
        let job = &self.jobs[&id];
        let refusal = Refusal::BudgetExceeded {
            circuit: job.circuit,
            needed: job.unit_bytes,
            budget: self.budget(job.class()),
        };
        self.fail(id, code::BUDGET_EXCEEDED, &refusal.to_string(), out);
    }

    pub(super) fn forget(&mut self, id: JobId) {
        if self.jobs.get(&id).is_some_and(|job| !job.is_open()) {
            self.unindex(id);
        }
    }
}
