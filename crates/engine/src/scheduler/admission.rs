//! Submissions: limits, idempotency, and the two steps of being stored and then counted.

use std::sync::Arc;

use filecoin::ProofKind;
use store::{JobId, JobRecord, JobState, Priority, Timings};

use super::Scheduler;
use super::config::Millis;
use super::event::{Action, Admitted, Reply, Submission, Ticket, Write};
use super::job::{Class, Job, Phase, Unit};
use super::refusal::Refusal;

impl Scheduler {
    pub(super) fn submit(&mut self, ticket: Ticket, submission: Submission, out: &mut Vec<Action>) {
        let known = match submission.request_id.as_str() {
            "" => None,
            id => self
                .identities
                .get(&(id.to_owned(), submission.digest))
                .copied(),
        };
        match known {
            Some(job) => self.submit_known(ticket, job, &submission, out),
            None => self.submit_new(ticket, submission, out),
        }
    }

    /// The same request again: join it, return its proof, or run it again.
    fn submit_known(
        &mut self,
        ticket: Ticket,
        id: JobId,
        submission: &Submission,
        out: &mut Vec<Action>,
    ) {
        match self.jobs[&id].phase {
            Phase::Ended(JobState::Failed | JobState::Cancelled) => {
                return self.submit_again(ticket, id, submission, out);
            }
            Phase::Admitting { .. } => {
                self.touch(id);
                let job = self.jobs.get_mut(&id).expect("invariant: found above");
                job.tickets.push(ticket);
                return;
            }
            _ => {}
        }
        self.touch(id);
        let open = self.jobs[&id].is_open();
        if open {
            self.raise_priority(id, submission.priority);
        }
        let priority = self.jobs[&id].priority;
        let submitted_ms = self.now;
        out.push(Action::Persist(Write::Join {
            job: id,
            submitted_ms,
            priority,
        }));
        let how = if open {
            Admitted::Joined
        } else {
            Admitted::Completed
        };
        out.push(self.admitted(ticket, id, how));
    }

    fn submit_again(
        &mut self,
        ticket: Ticket,
        id: JobId,
        submission: &Submission,
        out: &mut Vec<Action>,
    ) {
        if let Err(refusal) = self.check_limits(submission) {
            out.push(Action::Reply {
                ticket,
                reply: Reply::Refused(refusal),
            });
            return;
        }
        self.touch(id);
        let sequence = self.sequence();
        let now = self.now;
        let job = self
            .jobs
            .get_mut(&id)
            .expect("invariant: identities name known jobs");
        let Phase::Ended(before) = job.phase else {
            return;
        };
        job.phase = Phase::Admitting {
            before: Some(before),
        };
        job.sequence = sequence;
        job.attempt += 1;
        job.accepted = now;
        job.priority = submission.priority;
        job.deadline = submission.deadline_ms;
        job.unit_bytes = submission.unit_bytes;
        job.payload_bytes = submission.payload_bytes;
        job.units = (0..job.unit_count).map(|_| Unit::new(0)).collect();
        job.ready = job.units.len();
        job.proven = 0;
        job.started = false;
        job.passed_over = 0;
        job.tickets = vec![ticket];
        out.push(Action::Persist(Write::Restart {
            job: id,
            attempt: job.attempt,
            accepted_ms: now,
            priority: job.priority,
            deadline_ms: job.deadline,
        }));
        self.enter(id);
    }

    fn submit_new(&mut self, ticket: Ticket, submission: Submission, out: &mut Vec<Action>) {
        if let Err(refusal) = self.check_limits(&submission) {
            out.push(Action::Reply {
                ticket,
                reply: Reply::Refused(refusal),
            });
            return;
        }
        let name = self.free_name(&submission);
        let sequence = self.sequence();
        let job = Job {
            id: submission.id,
            sequence,
            submitted: sequence,
            name,
            request_id: submission.request_id,
            digest: submission.digest,
            client: Arc::from(submission.client),
            circuit: submission.circuit,
            priority: submission.priority,
            deadline: submission.deadline_ms,
            accepted: self.now,
            payload_bytes: submission.payload_bytes,
            unit_bytes: submission.unit_bytes,
            unit_count: submission.units,
            attempt: 1,
            phase: Phase::Admitting { before: None },
            units: (0..submission.units).map(|_| Unit::new(0)).collect(),
            ready: submission.units as usize,
            proven: 0,
            started: false,
            passed_over: 0,
            tickets: vec![ticket],
        };
        out.push(Action::Persist(Write::Insert(Box::new(record(&job)))));
        let id = job.id;
        self.index(job);
        self.enter(id);
    }

    /// The limits, in the order in which a client can do least about them.
    fn check_limits(&self, submission: &Submission) -> Result<(), Refusal> {
        let config = &self.config;
        if self.draining {
            return Err(Refusal::Draining);
        }
        if submission.units == 0 || submission.units > config.max_units {
            let (units, limit) = (submission.units, config.max_units);
            return Err(Refusal::Units { units, limit });
        }
        if let Some(deadline) = submission
            .deadline_ms
            .filter(|&deadline| deadline <= self.now)
        {
            return Err(Refusal::DeadlinePassed {
                late_ms: self.now - deadline,
            });
        }
        let class = Class::of(submission.circuit.kind, submission.priority);
        let budget = self.budget(class);
        if submission.unit_bytes > budget {
            let (circuit, needed) = (submission.circuit, submission.unit_bytes);
            return Err(Refusal::BudgetExceeded {
                circuit,
                needed,
                budget,
            });
        }
        if !self
            .devices
            .values()
            .any(|d| d.is_usable() && d.serves(submission.circuit))
        {
            let serves = self.devices.values().any(|d| d.serves(submission.circuit));
            let cause = if serves {
                "those that could are quarantined"
            } else {
                "its key is not there, or none has the memory for it"
            };
            return Err(Refusal::NoDevice {
                circuit: submission.circuit,
                cause,
            });
        }
        self.check_queue(class, submission.payload_bytes)
    }

    fn check_queue(&self, class: Class, bytes: u64) -> Result<(), Refusal> {
        if class == Class::Lane {
            return Ok(());
        }
        let (open, limit) = (self.open_jobs_below_lane, self.config.max_jobs);
        if open >= limit {
            return Err(Refusal::QueueFull { open, limit });
        }
        let limit = self.config.max_payload_bytes;
        if self.open_bytes_below_lane.saturating_add(bytes) > limit {
            return Err(Refusal::QueueBytesFull { bytes, limit });
        }
        Ok(())
    }

    /// Whether a request of which only this is known could be taken now: asked before its
    /// payload is received, so that a full queue costs no disk. One whose request id is known
    /// may turn out to be a job that is there already, which a full queue does not refuse.
    pub fn check_early(
        &self,
        request_id: &str,
        kind: ProofKind,
        priority: Priority,
        payload_bytes: u64,
    ) -> Result<(), Refusal> {
        if self.draining {
            return Err(Refusal::Draining);
        }
        if self.requests.contains_key(request_id) {
            return Ok(());
        }
        self.check_queue(Class::of(kind, priority), payload_bytes)
    }

    /// Memory that units of a class may hold together.
    pub(super) fn budget(&self, class: Class) -> u64 {
        match class {
            Class::Lane => self.config.budget_bytes,
            _ => self
                .config
                .budget_bytes
                .saturating_sub(self.config.lane_bytes),
        }
    }

    pub(super) fn stored(&mut self, id: JobId, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Phase::Admitting { before } = job.phase else {
            return;
        };
        job.phase = Phase::Proving;
        if let Some(deadline) = job.deadline {
            self.deadlines.insert((deadline, id));
        }
        let tickets = std::mem::take(&mut job.tickets);
        let how = if before.is_some() {
            Admitted::Again
        } else {
            Admitted::New
        };
        for (i, ticket) in tickets.into_iter().enumerate() {
            out.push(self.admitted(ticket, id, if i == 0 { how } else { Admitted::Joined }));
        }
        self.requeue(id, |_| ());
    }

    /// Undoes an admission: the store could not take the job.
    pub(super) fn not_stored(&mut self, id: JobId, cause: &str, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Phase::Admitting { before } = job.phase else {
            return;
        };
        for ticket in std::mem::take(&mut job.tickets) {
            let refusal = Refusal::NotStored {
                cause: cause.to_owned(),
            };
            out.push(Action::Reply {
                ticket,
                reply: Reply::Refused(refusal),
            });
        }
        job.units = Vec::new();
        (job.ready, job.proven) = (0, 0);
        if let Some(before) = before {
            job.phase = Phase::Ended(before);
            job.attempt -= 1;
        }
        self.leave(id);
        if before.is_none() {
            self.unindex(id);
        }
    }

    fn raise_priority(&mut self, id: JobId, priority: Priority) {
        self.requeue(id, |job| job.priority = job.priority.max(priority));
    }

    /// Counts an attempt as open.
    pub(super) fn enter(&mut self, id: JobId) {
        let job = &self.jobs[&id];
        if job.class() != Class::Lane {
            self.open_jobs_below_lane += 1;
            self.open_bytes_below_lane += job.payload_bytes;
        }
        // While it is being stored nothing can be done about its deadline.
        if let Some(deadline) = job.deadline.filter(|_| !job.is_admitting()) {
            self.deadlines.insert((deadline, id));
        }
        if let Phase::Assembling { limit } = job.phase {
            self.assembling.insert((limit, id));
        }
        self.shares.enter(&job.client);
        let count = self.kinds.entry(job.circuit.kind).or_default();
        *count.of(job.started) += 1;
    }

    /// Counts an attempt as ended.
    pub(super) fn leave(&mut self, id: JobId) {
        let job = &self.jobs[&id];
        if job.class() != Class::Lane {
            self.open_jobs_below_lane -= 1;
            self.open_bytes_below_lane -= job.payload_bytes;
        }
        if let Some(deadline) = job.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        self.shares.leave(&job.client);
        let count = self.kinds.entry(job.circuit.kind).or_default();
        *count.of(job.started) -= 1;
    }

    fn admitted(&self, ticket: Ticket, id: JobId, how: Admitted) -> Action {
        let name = self.address(id);
        let job = &self.jobs[&id];
        let mut ahead = 0;
        if job.is_open() && !job.started {
            let queued = self.queue.count_up_to(job.class());
            ahead = queued - usize::from(self.queue.contains(job));
        }
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        Action::Reply {
            ticket,
            reply: Reply::Admitted {
                job: id,
                name,
                how,
                ahead,
            },
        }
    }
}

/// What the store gets of a new job.
fn record(job: &Job) -> JobRecord {
    let accepted_ms: Millis = job.accepted;
    JobRecord {
        id: job.id,
        name: job.name.clone(),
        request_id: job.request_id.clone(),
        digest: job.digest,
        client: job.client.to_string(),
        circuit: job.circuit.name().to_owned(),
        priority: job.priority,
        deadline_ms: job.deadline,
        accepted_ms,
        submitted_ms: accepted_ms,
        payload_bytes: job.payload_bytes,
        unit_bytes: job.unit_bytes,
        units: job.unit_count,
        attempt: job.attempt,
        state: JobState::Open,
        started_ms: None,
        finished_ms: None,
        failure: None,
        timings: Timings::default(),
        test_key: false,
    }
}
