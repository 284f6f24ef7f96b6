//! The scheduler: a pure state machine `(state, event, now) → actions`.
//!
//! It has no thread, no clock and no I/O of its own, and it is deterministic: the same events at
//! the same times give the same actions. Whoever drives it feeds [`Event`]s to
//! [`Scheduler::step`], carries out the [`Action`]s in order, and sends [`Event::Tick`] at
//! [`Scheduler::next_wake`].
//!
//! # Rules
//!
//! *Order.* WinningPoSt goes before everything (the lane): the next device that has room takes it,
//! before what that device has prepared, and also when another has prepared it. The oldest is first, but
//! a younger one may pass it while it waits for the device that has prepared it, for as long as such a
//! unit takes. A device may have places for it beside those of the others ([`DeviceSpec::lane_places`]), so
//! that it need not wait for them to end: where the device has told of the keys of all of them. Then come
//! the priorities; inside a priority first jobs whose deadline is near, then the client that had the least
//! device time for its weight; of one client the earliest deadline, then first come.
//!
//! *Nobody starves.* A job that has waited for longer than [`Config::patience_ms`] has a right to
//! the guard's turns: of every [`Config::guard_every`] units that a device takes (the lane not
//! counted), one goes to the oldest such job of the class whose turn is longest ago. With four
//! classes below the lane, a job that is overdue, with `b` units of older jobs of its class
//! waiting, starts before a device that serves it has taken `4 · guard_every · (b + 1)` more
//! units.
//!
//! *Keys.* Among jobs of one class, one whose key the device has loaded may pass others, each of
//! them at most [`Config::affinity_limit`] times and never an overdue one.
//!
//! *Memory.* Units at work never hold more than the budget. When the next unit in order does not
//! fit, nothing behind it starts until it does. A unit larger than the whole budget is refused.
//! [`Config::lane_bytes`] are for units of the lane that start; one that is prepared ahead takes the
//! memory that all may have.
//!
//! *Failure.* A unit that failed goes to another device if there is one, and has
//! [`Config::unit_tries`] tries. A unit's limit begins again while the device may still be loading
//! the key of a unit of another circuit that it started earlier. A device that made a wrong proof is
//! quarantined at once; if a second device makes a wrong proof of the same unit, the unit is at fault and the
//! first device is restored. A device that failed [`Config::quarantine_after`] different units in a row, or
//! whose process was [`Config::start_tries`] times in a row never ready, is quarantined. The end of
//! a process is one failure, however many units it had.
//!
//! *Store.* While it takes no writes no limit runs but clients' deadlines, and these are looked at when it
//! does again: nothing is late for what could not happen.
//!
//! *Ends.* An accepted attempt ends exactly once: completed, failed or cancelled. What still runs
//! for an ended job runs to the end of its unit, and its result is dropped.

mod admission;
mod config;
mod device;
mod devices;
mod dispatch;
mod ending;
mod event;
mod job;
mod lane;
mod names;
mod outcome;
mod queue;
mod refusal;
mod shares;
mod timers;
mod view;

#[cfg(test)]
mod audit;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use filecoin::{CircuitId, ProofKind};
use store::{Digest, JobId};

pub use config::{Config, Millis, PerKind};
pub use event::{
    Action, Admitted, DeviceId, DeviceSpec, Event, Fault, Incarnation, LeaseId, Outcome, Reply,
    Submission, Ticket, Verdict, Write,
};
pub use refusal::{Class as RefusalClass, Refusal, code};
pub use view::{DeviceStatus, DeviceView, JobPhase, JobView, KindCounts, UnitView};

use device::{Device, Lease};
use job::{Job, Phase};
use queue::Queue;
use shares::Shares;

/// Device time assumed of a circuit's unit before one was measured.
const FIRST_ESTIMATE_MS: Millis = 10_000;

/// Jobs, devices and leases. See the [module](self).
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    now: Millis,
    jobs: BTreeMap<JobId, Job>,
    names: BTreeMap<String, JobId>,
    /// Of each request id: jobs by the order of their last submission.
    requests: BTreeMap<String, BTreeSet<(u64, JobId)>>,
    identities: BTreeMap<(String, Digest), JobId>,
    deadlines: BTreeSet<(Millis, JobId)>,
    assembling: BTreeSet<(Millis, JobId)>,
    queue: Queue,
    shares: Shares,
    /// Open jobs.
    kinds: BTreeMap<ProofKind, KindCounts>,
    devices: BTreeMap<DeviceId, Device>,
    leases: BTreeMap<LeaseId, Lease>,
    /// Since when no device can serve a circuit that jobs wait for.
    unserved: BTreeMap<CircuitId, Millis>,
    /// Device time of a unit, by circuit: moving average.
    estimates: BTreeMap<CircuitId, Millis>,
    memory_used: u64,
    /// Of that, by units that are not of the lane.
    memory_used_below_lane: u64,
    open_jobs_below_lane: usize,
    open_bytes_below_lane: u64,
    next_lease: u64,
    next_sequence: u64,
    /// Since when the store has failed.
    still_since: Option<Millis>,
    draining: bool,
    drained: bool,
}

impl Scheduler {
    /// An empty one. Devices and stored jobs come as events.
    pub fn new(config: Config, now: Millis) -> Self {
        let next_lease = config.first_lease;
        let shares = Shares::new(config.weights.clone());
        Self {
            config,
            now,
            jobs: BTreeMap::new(),
            names: BTreeMap::new(),
            requests: BTreeMap::new(),
            identities: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            assembling: BTreeSet::new(),
            queue: Queue::default(),
            shares,
            kinds: BTreeMap::new(),
            devices: BTreeMap::new(),
            leases: BTreeMap::new(),
            unserved: BTreeMap::new(),
            estimates: BTreeMap::new(),
            memory_used: 0,
            memory_used_below_lane: 0,
            open_jobs_below_lane: 0,
            open_bytes_below_lane: 0,
            next_lease,
            next_sequence: 0,
            still_since: None,
            draining: false,
            drained: false,
        }
    }

    /// Takes one event at time `now` and adds what is to be done to `out`. A `now` before that of
    /// an earlier event counts as the earlier one: time does not run backwards.
    pub fn step(&mut self, now: Millis, event: Event, out: &mut Vec<Action>) {
        self.now = self.now.max(now);
        match event {
            Event::Restore(open) => self.restore(&open, out),
            Event::RestoreEnded(job) => self.restore_ended(&job),
            Event::Submit { ticket, submission } => self.submit(ticket, *submission, out),
            Event::Stored { job } => self.stored(job, out),
            Event::NotStored { job, cause } => self.not_stored(job, &cause, out),
            Event::Cancel { ticket, name } => self.cancel(ticket, &name, out),
            Event::Forget { job } => self.forget(job),
            Event::Budget { bytes } => self.set_budget(bytes, out),
            Event::DeviceAdded(spec) => self.add_device(&spec),
            Event::DeviceReady {
                device,
                incarnation,
            } => self.device_ready(device, incarnation),
            Event::DeviceStopped {
                device,
                incarnation,
                cause,
            } => {
                self.device_stopped(device, incarnation, &cause, out);
            }
            Event::DeviceReleased { device } => self.release_device(device),
            Event::Heartbeat {
                device,
                incarnation,
            } => self.heartbeat(device, incarnation),
            Event::KeyLoaded {
                device,
                circuit,
                loaded,
            } => {
                self.key_loaded(device, circuit, loaded);
            }
            Event::CircuitServed { device, circuit } => self.circuit_served(device, circuit),
            Event::DeviceTakes {
                device,
                incarnation,
                at_a_time,
            } => self.device_takes(device, incarnation, at_a_time),
            Event::UnitLeftDevice { lease } => self.unit_left_device(lease),
            Event::UnitReturned { lease } => self.unit_returned(lease),
            Event::UnitJudged { lease, verdict } => self.unit_judged(lease, verdict, out),
            Event::UnitFailed {
                lease,
                fault,
                cause,
            } => {
                self.unit_failed(lease, fault, &cause, out);
            }
            Event::UnitDiscarded { lease } => self.unit_discarded(lease),
            Event::Assembled {
                job,
                attempt,
                result,
            } => self.assembled(job, attempt, result, out),
            Event::StoreFails => self.stand_still(),
            Event::StoreWorks => self.go_on(),
            Event::Drain => self.draining = true,
            Event::Tick => {}
        }
        self.expire(out);
        self.dispatch(out);
        self.note_unserved();
        self.finish_drain(out);
    }

    fn sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence
    }

    /// Expected device time of a circuit's unit.
    fn estimate(&self, circuit: CircuitId) -> Millis {
        self.estimates
            .get(&circuit)
            .copied()
            .unwrap_or(FIRST_ESTIMATE_MS)
    }

    /// The job, if it is open in this attempt.
    fn open_job(&mut self, id: JobId, attempt: u32) -> Option<&mut Job> {
        self.jobs
            .get_mut(&id)
            .filter(|job| job.is_open() && job.attempt == attempt)
    }

    /// Takes a job out of the queue, changes it, and puts it back if it still belongs there.
    fn requeue<T>(&mut self, id: JobId, change: impl FnOnce(&mut Job) -> T) -> T {
        let job = self
            .jobs
            .get_mut(&id)
            .expect("invariant: callers name a known job");
        self.queue.remove(job);
        let value = change(job);
        if job.is_queued() {
            self.queue.insert(job);
        }
        value
    }

    /// Once draining: prepared units are dropped; when nothing runs any more, says so once.
    fn finish_drain(&mut self, out: &mut Vec<Action>) {
        if !self.draining || self.drained {
            return;
        }
        let prepared: Vec<_> = self
            .devices
            .values()
            .flat_map(|device| device.prepared.clone())
            .collect();
        for lease in prepared {
            self.discard(lease, true, out);
        }
        let stopped_work = self.leases.is_empty();
        let storing = |job: &Job| {
            matches!(
                job.phase,
                Phase::Admitting { .. } | Phase::Assembling { .. }
            )
        };
        if stopped_work && !self.jobs.values().any(storing) {
            self.drained = true;
            out.push(Action::Drained);
        }
    }
}
