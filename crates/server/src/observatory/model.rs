//! The state that is kept, and how events change it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use engine::scheduler::{Action, DeviceId, Event, Fault, LeaseId, Millis, Outcome, Verdict, Write};
use filecoin::CircuitId;
use store::{JobId, JobRecord, OpenJob, Timings, UnitKey};

use crate::metrics::{Metrics, Phase as MetricPhase, UnitOutcome};

/// Ended jobs whose timeline is kept.
const ENDED_JOBS: usize = 1_000;
/// Spans kept of one job: several per unit, for every try.
const JOB_SPANS: usize = 2_048;
/// Phases kept of one job: a dozen per unit.
const JOB_PHASES: usize = 4_096;
/// Spans kept of the devices.
const DEVICE_SPANS: usize = 4_096;

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Waiting for its first device.
    Queued,
    /// Decoding, vanilla check and witness, beside another unit.
    Prepare,
    /// On the device.
    Prove,
    /// Assembled and verified by the worker, beside the next unit.
    Finish,
    /// Verified by the daemon.
    Check,
    /// The proofs are joined.
    Join,
}

impl Doing {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Prepare => "prepare",
            Self::Prove => "prove",
            Self::Finish => "finish",
            Self::Check => "check",
            Self::Join => "join",
        }
    }
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// As it should.
    Well,
    /// The unit failed.
    Failed,
    /// The proof was wrong.
    Wrong,
    /// Nobody wanted it any more.
    Dropped,
}

impl Ending {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Well => "done",
            Self::Failed => "failed",
            Self::Wrong => "wrong proof",
            Self::Dropped => "dropped",
        }
    }
}

/// A stretch of work.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) doing: Doing,
    pub(super) device: Option<DeviceId>,
    pub(super) job: JobId,
    pub(super) unit: Option<u32>,
    pub(super) start: Millis,
    pub(super) end: Millis,
    pub(super) ending: Ending,
    /// What the device said about a proven unit.
    pub(super) timings: Option<Timings>,
}

/// What a worker did for a unit, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitPhase {
    /// What was done.
    pub name: String,
    /// What it occupied, for people: phases of a kind are shown together.
    pub kind: &'static str,
    /// When it began: microseconds since the Unix epoch.
    pub start_us: u64,
    /// How long it took: microseconds.
    pub time_us: u64,
}

/// The phases of a unit in one of their kinds, on a device.
#[derive(Debug, Clone)]
pub(super) struct UnitPhases {
    pub(super) device: DeviceId,
    pub(super) unit: u32,
    pub(super) phases: Vec<UnitPhase>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum UnitState {
    #[default]
    Waiting,
    Preparing,
    Proving,
    Checking,
    Done,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unit {
    pub(super) state: UnitState,
    pub(super) timings: Option<Timings>,
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) circuit: CircuitId,
    pub(super) accepted: Millis,
    attempt: u32,
    pub(super) started: Option<Millis>,
    pub(super) ended: Option<(Millis, Outcome)>,
    pub(super) unit_count: u32,
    /// Empty until the first one is touched.
    pub(super) units: Vec<Unit>,
    pub(super) spans: Vec<Span>,
    pub(super) phases: Vec<UnitPhases>,
    joining: Option<Millis>,
}

impl Job {
    fn unit(&mut self, index: u32) -> Option<&mut Unit> {
        if self.units.is_empty() {
            self.units = vec![Unit::default(); self.unit_count as usize];
        }
        self.units.get_mut(index as usize)
    }

    fn set(&mut self, index: u32, state: UnitState) {
        if let Some(unit) = self.unit(index) {
            unit.state = state;
        }
    }

    fn keep(&mut self, span: Span) {
        if self.spans.len() < JOB_SPANS {
            self.spans.push(span);
        }
    }
}

/// A unit on a device, or being checked.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) device: DeviceId,
    pub(super) unit: UnitKey,
    pub(super) doing: Doing,
    pub(super) since: Millis,
}

pub(super) struct State {
    pub(super) jobs: HashMap<JobId, Job>,
    /// Ended jobs, oldest first; a job may have been opened again.
    pub(super) ended: VecDeque<JobId>,
    pub(super) leases: HashMap<LeaseId, Lease>,
    pub(super) device_spans: VecDeque<Span>,
    /// Of each device that is busy: how many units are on it, and until when its time is counted.
    on_device: HashMap<DeviceId, (usize, Millis)>,
    metrics: Arc<Metrics>,
}

impl State {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            jobs: HashMap::new(),
            ended: VecDeque::new(),
            leases: HashMap::new(),
            device_spans: VecDeque::new(),
            on_device: HashMap::new(),
            metrics,
        }
    }

    /// What was done under a lease that is not over.
    pub(super) fn phases(&mut self, lease: LeaseId, phases: Vec<UnitPhase>) {
        let Some(lease) = self.leases.get(&lease) else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&lease.unit.job) else {
            return;
        };
        let kept: usize = job.phases.iter().map(|unit| unit.phases.len()).sum();
        if kept + phases.len() <= JOB_PHASES {
            job.phases.push(UnitPhases {
                device: lease.device,
                unit: lease.unit.index,
                phases,
            });
        }
    }

    /// The job of a unit that is on a device or being checked.
    pub(super) fn leased(&self, lease: LeaseId) -> Option<JobId> {
        self.leases.get(&lease).map(|lease| lease.unit.job)
    }

    pub(super) fn event(&mut self, now: Millis, event: &Event) {
        match event {
            Event::Restore(open) => self.restore(open),
            Event::Forget { job } => {
                self.jobs.remove(job);
            }
            Event::UnitJudged { lease, verdict } => {
                let (ending, outcome) = match verdict {
                    Verdict::Right => (Ending::Well, UnitOutcome::Proven),
                    Verdict::Wrong => (Ending::Wrong, UnitOutcome::Wrong),
                    Verdict::Unknown(_) => (Ending::Failed, UnitOutcome::Unchecked),
                };
                self.end_lease(now, *lease, ending, outcome);
            }
            Event::UnitFailed { lease, fault, .. } => {
                let outcome = match fault {
                    Fault::Request | Fault::Parameters | Fault::Payload => UnitOutcome::Refused,
                    Fault::Try => UnitOutcome::Failed,
                    Fault::Device => UnitOutcome::DeviceLost,
                };
                self.end_lease(now, *lease, Ending::Failed, outcome);
            }
            Event::UnitDiscarded { lease } => {
                self.end_lease(now, *lease, Ending::Dropped, UnitOutcome::Dropped);
            }
            Event::UnitLeftDevice { lease } => self.left_device(now, *lease),
            Event::DeviceStopped { device, .. } => {
                self.metrics.device_stopped(*device);
                self.end_what_nobody_wants(now, *device);
            }
            _ => {}
        }
    }

    pub(super) fn returned(&mut self, now: Millis, id: LeaseId, timings: &Timings) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let span = Span {
            doing: lease.doing,
            device: Some(lease.device),
            job: lease.unit.job,
            unit: Some(lease.unit.index),
            start: lease.since,
            end: now,
            ending: Ending::Well,
            timings: Some(*timings),
        };
        (lease.doing, lease.since) = (Doing::Check, now);
        let (key, device) = (lease.unit, lease.device);
        if span.doing == Doing::Prove {
            self.leave(now, device);
        }
        let is_wanted = self.is_wanted(&key);
        if !is_wanted {
            // Its job has ended meanwhile: nobody checks it.
            self.leases.remove(&id);
        }
        if let Some(job) = self.jobs.get_mut(&key.job) {
            let kind = job.circuit.kind;
            for (phase, ms) in [
                (MetricPhase::Load, timings.load_ms),
                (MetricPhase::Witness, timings.witness_ms),
                (MetricPhase::Device, timings.device_ms),
            ] {
                self.metrics.phase(kind, phase, ms);
            }
            if let Some(unit) = job.unit(key.index).filter(|_| is_wanted) {
                unit.state = UnitState::Checking;
                unit.timings = Some(*timings);
            }
            job.keep(span.clone());
        }
        if span.doing == Doing::Prove {
            self.keep_on_device(span);
        }
    }

    /// The device is free of a unit; its process makes the proof.
    fn left_device(&mut self, now: Millis, id: LeaseId) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        if lease.doing != Doing::Prove {
            return;
        }
        let before = lease.clone();
        (lease.doing, lease.since) = (Doing::Finish, now);
        self.leave(now, before.device);
        self.keep(&before, now, Ending::Well);
    }

    /// Counts a device's time until now, whatever is on it.
    fn count_busy(&mut self, now: Millis, device: DeviceId) {
        if let Some((_, until)) = self.on_device.get_mut(&device) {
            let since = std::mem::replace(until, now);
            self.metrics.device_busy(device, now.saturating_sub(since));
        }
    }

    fn enter(&mut self, now: Millis, device: DeviceId) {
        self.count_busy(now, device);
        self.on_device.entry(device).or_insert((0, now)).0 += 1;
    }

    fn leave(&mut self, now: Millis, device: DeviceId) {
        self.count_busy(now, device);
        if let Some((units, _)) = self.on_device.get_mut(&device) {
            *units -= 1;
            if *units == 0 {
                self.on_device.remove(&device);
            }
        }
    }

    /// With a process go its units. Those of open jobs are given back one by one; of those whose job has ended
    /// nothing more is heard.
    fn end_what_nobody_wants(&mut self, now: Millis, device: DeviceId) {
        self.end_leases(now, device, |state, lease| !state.is_wanted(&lease.unit));
    }

    /// Whether the attempt of a unit is open.
    fn is_wanted(&self, unit: &UnitKey) -> bool {
        let is_open = |job: &Job| job.ended.is_none() && job.attempt == unit.attempt;
        self.jobs.get(&unit.job).is_some_and(is_open)
    }

    /// Ends what a device's process has had, as far as it is over.
    fn end_leases(
        &mut self,
        now: Millis,
        device: DeviceId,
        is_over: impl Fn(&Self, &Lease) -> bool,
    ) {
        let gone: Vec<_> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.device == device && lease.doing != Doing::Check)
            .filter(|(_, lease)| is_over(self, lease))
            .map(|(id, _)| *id)
            .collect();
        for lease in gone {
            self.end_lease(now, lease, Ending::Dropped, UnitOutcome::Dropped);
        }
    }

    pub(super) fn action(&mut self, now: Millis, action: &Action) {
        match action {
            Action::Persist(write) => self.written(now, write),
            Action::Prepare {
                device,
                lease,
                unit,
            } => self.begin(now, *device, *lease, *unit, Doing::Prepare),
            Action::Start {
                device,
                lease,
                unit,
            } => self.begin(now, *device, *lease, *unit, Doing::Prove),
            Action::Assemble { job, .. } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.joining = Some(now);
                }
            }
            // What the last process got after its end goes nowhere.
            Action::StartDevice { device, .. } => self.end_leases(now, *device, |_, _| true),
            Action::Quarantined { device, .. } => self.metrics.quarantined(*device),
            _ => {}
        }
    }

    fn written(&mut self, now: Millis, write: &Write) {
        match write {
            Write::Insert(record) => drop(self.insert(record)),
            Write::Restart {
                job,
                attempt,
                accepted_ms,
                ..
            } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    (job.attempt, job.accepted) = (*attempt, *accepted_ms);
                    (job.started, job.ended, job.joining) = (None, None, None);
                    job.units.clear();
                    job.spans.clear();
                }
            }
            Write::Release { unit, lease, .. } => {
                self.end_lease(now, *lease, Ending::Dropped, UnitOutcome::Dropped);
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.set(unit.index, UnitState::Waiting);
                }
            }
            Write::Prove { unit, .. } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.set(unit.index, UnitState::Done);
                }
            }
            Write::Finish {
                job,
                outcome,
                finished_ms,
                ..
            } => self.finish(now, *job, outcome, *finished_ms),
            Write::Join { .. } | Write::Claim { .. } => {}
        }
    }

    fn insert(&mut self, record: &JobRecord) -> Option<&mut Job> {
        let job = Job {
            name: record.name.clone(),
            circuit: record.circuit.parse().ok()?,
            accepted: record.accepted_ms,
            attempt: record.attempt,
            started: record.started_ms,
            ended: None,
            unit_count: record.units,
            units: Vec::new(),
            spans: Vec::new(),
            phases: Vec::new(),
            joining: None,
        };
        self.jobs.insert(record.id, job);
        self.jobs.get_mut(&record.id)
    }

    fn restore(&mut self, open: &OpenJob) {
        if let Some(job) = self.insert(&open.job) {
            for unit in open.units.iter().filter(|unit| unit.proven) {
                job.set(unit.index, UnitState::Done);
            }
        }
    }

    fn begin(&mut self, now: Millis, device: DeviceId, id: LeaseId, unit: UnitKey, doing: Doing) {
        let fresh = Lease {
            device,
            unit,
            doing,
            since: now,
        };
        if doing == Doing::Prove {
            self.enter(now, device);
        }
        // A unit that was prepared goes on under the same lease.
        if let Some(before) = self.leases.insert(id, fresh) {
            self.keep(&before, now, Ending::Well);
        }
        let Some(job) = self.jobs.get_mut(&unit.job) else {
            return;
        };
        job.set(
            unit.index,
            match doing {
                Doing::Prepare => UnitState::Preparing,
                _ => UnitState::Proving,
            },
        );
        if job.started.is_none() {
            job.started = Some(now);
            let start = job.accepted;
            self.metrics
                .queue_wait(job.circuit.kind, now.saturating_sub(start));
            job.keep(Span {
                doing: Doing::Queued,
                device: None,
                job: unit.job,
                unit: None,
                start,
                end: now,
                ending: Ending::Well,
                timings: None,
            });
        }
    }

    fn end_lease(&mut self, now: Millis, id: LeaseId, ending: Ending, outcome: UnitOutcome) {
        let Some(lease) = self.leases.remove(&id) else {
            return;
        };
        self.metrics.unit(lease.device, outcome);
        let lasted = now.saturating_sub(lease.since);
        match lease.doing {
            Doing::Check => {
                if let Some(job) = self.jobs.get(&lease.unit.job) {
                    self.metrics
                        .phase(job.circuit.kind, MetricPhase::Check, lasted);
                }
            }
            Doing::Prove => self.leave(now, lease.device),
            _ => {}
        }
        self.keep(&lease, now, ending);
    }

    fn keep(&mut self, lease: &Lease, end: Millis, ending: Ending) {
        let span = Span {
            doing: lease.doing,
            device: Some(lease.device),
            job: lease.unit.job,
            unit: Some(lease.unit.index),
            start: lease.since,
            end,
            ending,
            timings: None,
        };
        if let Some(job) = self.jobs.get_mut(&lease.unit.job) {
            job.keep(span.clone());
        }
        if lease.doing == Doing::Prove {
            self.keep_on_device(span);
        }
    }

    fn keep_on_device(&mut self, span: Span) {
        if self.device_spans.len() == DEVICE_SPANS {
            self.device_spans.pop_front();
        }
        self.device_spans.push_back(span);
    }

    fn finish(&mut self, now: Millis, id: JobId, outcome: &Outcome, finished: Millis) {
        if let Some(job) = self.jobs.get_mut(&id) {
            if let Some(start) = job.joining.take() {
                job.keep(Span {
                    doing: Doing::Join,
                    device: None,
                    job: id,
                    unit: None,
                    start,
                    end: now,
                    ending: match outcome {
                        Outcome::Completed => Ending::Well,
                        _ => Ending::Failed,
                    },
                    timings: None,
                });
            }
            if *outcome == Outcome::Completed {
                let lasted = finished.saturating_sub(job.accepted);
                self.metrics.completed(job.circuit.kind, lasted);
            }
            job.ended = Some((finished, outcome.clone()));
            self.ended.push_back(id);
        }
        // What comes back for an ended job is not checked.
        self.leases
            .retain(|_, lease| lease.unit.job != id || lease.doing != Doing::Check);
        while self.ended.len() > ENDED_JOBS {
            let oldest = self.ended.pop_front();
            // Opened again, or ended again later, it stays.
            if let Some(id) = oldest.filter(|id| !self.ended.contains(id))
                && self.jobs.get(&id).is_some_and(|job| job.ended.is_some())
            {
                self.jobs.remove(&id);
            }
        }
    }
}
