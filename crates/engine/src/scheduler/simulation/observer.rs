//! Keeps its own books from the actions alone, and checks the promises against them.

use std::collections::BTreeMap;

use filecoin::ProofKind;
use store::{JobId, UnitKey};

use super::{BUDGET, LANE, Simulation};
use crate::scheduler::job::{self, Class};
use crate::scheduler::{
    Admitted, DeviceId, DeviceStatus, Event, LeaseId, Millis, Outcome, Reply, Submission, Ticket,
    Write,
};

/// The observer's own books, kept from actions alone.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Accepted attempts that have not ended.
    pub(super) open: BTreeMap<JobId, (Submission, Millis)>,
    pub(super) ended: u64,
    pub(super) accepted: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) outcomes: BTreeMap<String, u64>,
    /// Live leases: unit, device, bytes, whether the lane's.
    pub(super) leases: BTreeMap<LeaseId, (UnitKey, DeviceId, u64)>,
    pub(super) claimed: BTreeMap<UnitKey, LeaseId>,
    pub(super) memory_peak: u64,
    pub(super) starts: BTreeMap<DeviceId, u64>,
    pub(super) lane_starts: u64,
    /// The longest that a job of the lane waited while there was a device, or memory, to wait for.
    pub(super) lane_busy_max: Millis,
    pub(super) lane_wait_max: Millis,
    /// The same without the time in which units of the job had failed and waited again.
    pub(super) lane_first_wait_max: Millis,
    /// Of the jobs of the lane: why they waited since when they were accepted.
    pub(super) lane_waits: BTreeMap<JobId, BTreeMap<Reason, Millis>>,
    /// Those of the one that waited longest.
    pub(super) lane_worst: BTreeMap<Reason, Millis>,
    pub(super) looked: Millis,
    pub(super) wait_max: Millis,
    pub(super) quarantines: u64,
    /// Units a device took since each class last had its turn, or had nobody overdue.
    pub(super) since_turn: BTreeMap<(DeviceId, Class), u64>,
    pub(super) since_turn_max: u64,
}

/// Why a unit of the lane waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// It does not: it is on a device, or being checked.
    AtWork,
    /// It is prepared on a device that is busy.
    Prepared,
    /// No device serves it that is not quarantined.
    NoDevice,
    /// None of them is ready: starting, stopping, waiting to be started again.
    NoneReady,
    /// It failed on those that are ready, and another has not tried it.
    AnotherFirst,
    /// Those that may take it are busy, all of them with others of the lane.
    BusyWithLane,
    /// Those that may take it are busy, at least one with another kind.
    BusyWithOthers,
    /// One is free: memory is short.
    Memory,
}

impl Simulation {
    /// Adds the time since the last look to the reason that stood then: nothing has changed in
    /// between. Called before an event changes anything.
    pub(super) fn look_at_lane(&mut self) {
        let passed = self.now - std::mem::replace(&mut self.books.looked, self.now);
        if passed == 0 {
            return;
        }
        let lane = |(_, (submission, _)): &(&JobId, &(Submission, Millis))| {
            submission.circuit.kind == ProofKind::Winning
        };
        let waiting: Vec<_> = self
            .books
            .open
            .iter()
            .filter(lane)
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            let reason = self.reason(id);
            let waits = self.books.lane_waits.entry(id).or_default();
            *waits.entry(reason).or_default() += passed;
        }
    }

    fn reason(&self, id: JobId) -> Reason {
        let job = &self.scheduler.jobs[&id];
        if !job.is_queued() {
            let is_prepared = self.prepared_in_lane().any(|lease| {
                let unit = self.scheduler.leases[&lease].unit;
                unit.job == id
            });
            return match is_prepared {
                true => Reason::Prepared,
                false => Reason::AtWork,
            };
        }
        let devices = self.scheduler.devices.values();
        let usable: Vec<_> = devices
            .filter(|device| device.serves(job.circuit) && device.is_usable())
            .collect();
        if usable.is_empty() {
            return Reason::NoDevice;
        }
        let (mut ready, mut busy, mut with_others) = (false, false, false);
        for device in usable.into_iter().filter(|device| device.is_ready()) {
            ready = true;
            if self.scheduler.pick(device, id).is_none() {
                continue;
            }
            if self.scheduler.has_room_for_lane(device.id) {
                return Reason::Memory;
            }
            busy = true;
            let others = |lease: &LeaseId| self.class_of(*lease) != Some(Class::Lane);
            with_others |= device.running.iter().any(others);
        }
        match (ready, busy, with_others) {
            (false, ..) => Reason::NoneReady,
            (true, false, _) => Reason::AnotherFirst,
            (true, true, false) => Reason::BusyWithLane,
            (true, true, true) => Reason::BusyWithOthers,
        }
    }

    /// `None` if its job is forgotten.
    fn class_of(&self, lease: LeaseId) -> Option<Class> {
        let job = &self.scheduler.leases[&lease].unit.job;
        self.scheduler.jobs.get(job).map(job::Job::class)
    }

    pub(super) fn persist(&mut self, write: Write) {
        match write {
            Write::Insert(record) => self.store_answers(record.id),
            Write::Restart { job, .. } => self.store_answers(job),
            Write::Claim { unit, lease, .. } => {
                let before = self.books.claimed.insert(unit, lease);
                assert_eq!(before, None, "a unit is leased twice");
            }
            Write::Release { unit, lease, .. } | Write::Prove { unit, lease } => {
                assert_eq!(
                    self.books.claimed.remove(&unit),
                    Some(lease),
                    "not the holder"
                );
            }
            Write::Finish { job, .. } => self.books.claimed.retain(|unit, _| unit.job != job),
            Write::Join { .. } => {}
        }
    }

    pub(super) fn replied(&mut self, ticket: Ticket, reply: &Reply) {
        let submission = self.pending.remove(&ticket);
        match reply {
            Reply::Admitted {
                job,
                how: Admitted::New | Admitted::Again,
                ..
            } => {
                let submission = submission.expect("an answer to a question");
                let before = self.books.open.insert(*job, (submission, self.now));
                assert!(before.is_none(), "accepted twice without an end between");
                self.books.accepted += 1;
            }
            Reply::Admitted { .. } => {}
            Reply::Refused(refusal) => *self.books.refused.entry(refusal.code()).or_default() += 1,
            Reply::Cancelled { .. } => assert!(submission.is_none()),
        }
    }

    pub(super) fn ended(&mut self, job: JobId, outcome: &Outcome) {
        assert!(
            self.books.open.remove(&job).is_some(),
            "{job} ended, but was not open"
        );
        self.books.lane_waits.remove(&job);
        self.books.ended += 1;
        let name = match outcome {
            Outcome::Completed => "COMPLETED".to_owned(),
            Outcome::Failed(failure) => failure.code.clone(),
            Outcome::Cancelled => "CANCELLED".to_owned(),
        };
        *self.books.outcomes.entry(name).or_default() += 1;
        // Retention; a job that runs again meanwhile is not forgotten. Some go while a unit of theirs still runs.
        let most = if self.one_in(4) { 1_000 } else { 600_000 };
        let delay = self.below(most);
        self.later(delay, Event::Forget { job });
    }

    pub(super) fn process_gets(&mut self, device: DeviceId, lease: LeaseId) {
        let process = self.processes.get_mut(&device).expect("a known device");
        assert!(process.alive, "{device} has no process");
        process.held.insert(lease);
        let lease_view = self.scheduler.leases[&lease];
        self.books
            .leases
            .insert(lease, (lease_view.unit, device, lease_view.bytes));
    }

    /// The promise to those who have waited long: of every `4 · guard_every` units that a device
    /// takes, one is of the oldest overdue job of each class that has one for it.
    pub(super) fn taken(&mut self, id: DeviceId, unit: UnitKey) {
        let taken = &self.scheduler.jobs[&unit.job];
        if taken.class() == Class::Lane {
            return;
        }
        let device = &self.scheduler.devices[&id];
        for class in Class::BELOW_LANE {
            let oldest_overdue = self.scheduler.queue.class(class).and_then(|queue| {
                let jobs = queue.oldest().map(|job| &self.scheduler.jobs[&job]);
                let overdue =
                    |job: &&job::Job| self.now - job.accepted >= self.scheduler.config.patience_ms;
                jobs.take_while(overdue)
                    .find(|job| self.scheduler.pick(device, job.id).is_some())
            });
            let is_turn = oldest_overdue
                .is_none_or(|oldest| taken.class() == class && taken.sequence <= oldest.sequence);
            let since = self.books.since_turn.entry((id, class)).or_default();
            *since = if is_turn { 0 } else { *since + 1 };
            self.books.since_turn_max = self.books.since_turn_max.max(*since);
            let bound = 4 * self.scheduler.config.guard_every;
            assert!(
                *since < bound,
                "{id} took {since} units and {class:?} had no turn"
            );
        }
    }

    /// WinningPoSt goes first: a device that starts anything else could not have taken one.
    pub(super) fn check_lane(&self, id: DeviceId) {
        let (used, budget) = self.scheduler.memory();
        let device = &self.scheduler.devices[&id];
        // Memory is given in order: only the first one counts.
        let fits = |job: &job::Job| job.unit_bytes + used <= budget;
        if let Some(lane) = self.scheduler.queue.class(Class::Lane) {
            let jobs = lane.oldest().map(|job| &self.scheduler.jobs[&job]);
            let mut eligible = jobs.filter(|job| self.scheduler.pick(device, job.id).is_some());
            let next = eligible.next();
            let passed = next.filter(|job| fits(job));
            assert!(passed.is_none(), "{id} passed over {passed:?} of the lane");
            if next.is_some() {
                return;
            }
        }
        for lease in self.prepared_in_lane() {
            let unit = self.scheduler.leases[&lease].unit;
            let job = &self.scheduler.jobs[&unit.job];
            let failed = job.units[unit.index as usize].failed_on.contains(&id);
            let could_take = device.serves(job.circuit) && !failed && fits(job);
            assert!(!could_take, "{id} passed over {job:?}, prepared elsewhere");
        }
    }

    /// What busy devices have prepared of the lane.
    fn prepared_in_lane(&self) -> impl Iterator<Item = LeaseId> {
        let devices = self.scheduler.devices.values();
        let busy = devices.filter(|device| !device.running.is_empty());
        let prepared = busy.flat_map(|device| device.prepared.iter().copied());
        prepared.filter(|lease| self.class_of(*lease) == Some(Class::Lane))
    }

    pub(super) fn started(&mut self, device: DeviceId, lease: LeaseId, unit: UnitKey) {
        if !self.books.leases.contains_key(&lease) {
            self.taken(device, unit);
        }
        if self.scheduler.jobs[&unit.job].class() != Class::Lane {
            self.check_lane(device);
        }
        self.process_gets(device, lease);
        assert_eq!(
            self.books.claimed.get(&unit),
            Some(&lease),
            "started without a lease"
        );
        let process = self.processes.get_mut(&device).expect("a known device");
        assert!(process.running.insert(lease), "{device} has it already");
        let most = self.scheduler.devices[&device].places();
        assert!(process.running.len() <= most, "{device} is busy");
        *self.books.starts.entry(device).or_default() += 1;
        let (submission, accepted) = &self.books.open[&unit.job];
        let wait = self.now - accepted;
        if submission.circuit.kind == ProofKind::Winning {
            self.books.lane_starts += 1;
            let waits = self.books.lane_waits.entry(unit.job).or_default().clone();
            let busy = [
                Reason::Prepared,
                Reason::BusyWithLane,
                Reason::BusyWithOthers,
                Reason::Memory,
            ];
            let busy = busy.iter().filter_map(|reason| waits.get(reason)).sum();
            self.books.lane_busy_max = self.books.lane_busy_max.max(busy);
            if wait > self.books.lane_wait_max {
                (self.books.lane_wait_max, self.books.lane_worst) = (wait, waits.clone());
            }
            if !waits.contains_key(&Reason::AtWork) {
                self.books.lane_first_wait_max = self.books.lane_first_wait_max.max(wait);
            }
        } else {
            self.books.wait_max = self.books.wait_max.max(wait);
        }
        self.plan_end(device, lease, unit.job);
    }

    pub(super) fn check(&mut self) {
        let memory: u64 = self.books.leases.values().map(|(_, _, bytes)| bytes).sum();
        self.books.memory_peak = self.books.memory_peak.max(memory);
        assert!(
            memory <= BUDGET,
            "{memory} bytes are held, the budget is {BUDGET}"
        );
        self.check_idle();
        let (now, wake) = (self.now, self.scheduler.next_wake());
        assert!(
            wake.is_none_or(|wake| wake > now),
            "what is due at {now} has been done"
        );
    }

    /// No device that could work is idle while a unit that it may take waits and memory is free
    /// for the largest unit there is.
    pub(super) fn check_idle(&self) {
        let (used, budget) = self.scheduler.memory();
        if budget.saturating_sub(LANE) < used + 300 {
            return;
        }
        for view in self.scheduler.devices() {
            let device = &self.scheduler.devices[&view.id];
            if view.status != DeviceStatus::Ready || !device.has_room() {
                continue;
            }
            let waits = self
                .books
                .open
                .keys()
                .map(|id| &self.scheduler.jobs[id])
                .any(|job| {
                    let untouched = |unit: &job::Unit| {
                        unit.state == job::UnitState::Ready && unit.failed_on.is_empty()
                    };
                    job.is_queued() && device.serves(job.circuit) && job.units.iter().any(untouched)
                });
            assert!(!waits, "{} is idle while a unit waits for it", view.id);
        }
    }
}
