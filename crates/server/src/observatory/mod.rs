//! Watches the engine: progress of jobs, timelines, and the metrics that follow from them.
//!
//! The engine's loop tells every event; readers take copies under a short lock. What is kept is
//! bounded: ended jobs by number, spans by number and age.

mod changes;
mod model;
mod trace;
mod view;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::scheduler::{Action, Event, LeaseId, Millis, Write};
use engine::service::Observer;
use store::{JobId, Timings};

use crate::metrics::Metrics;
use changes::Changes;
pub(crate) use changes::Watch;
use model::State;
pub use model::UnitPhase;
pub(crate) use view::Progress;
pub use view::{JobName, PartitionState, PartitionView, PipelineView, SpanView};

/// The watcher. Give it to [`engine::Service::start_observed`] and to the server.
pub struct Observatory {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
    changes: Arc<Changes>,
}

impl Default for Observatory {
    fn default() -> Self {
        Self::new()
    }
}

impl Observatory {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            state: Mutex::new(State::new(Arc::clone(&metrics))),
            metrics,
            changes: Arc::default(),
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The client's name for a job, and its kind.
    pub fn name(&self, job: JobId) -> Option<JobName> {
        self.lock().name(job)
    }

    /// Where a job stands. `None` for jobs that have not been seen since the start, or too long
    /// ago.
    pub(crate) fn progress(&self, job: JobId) -> Option<Progress> {
        self.lock().progress(job)
    }

    /// Tells when something about a job changes, from now on.
    pub(crate) fn watch(&self, job: JobId) -> Watch {
        self.changes.watch(job)
    }

    /// Jobs at work, those ended in the last 30 seconds, and the first of those that wait.
    pub fn pipelines(&self, now: Millis) -> Vec<PipelineView> {
        self.lock().pipelines(now)
    }

    /// How many units are being prepared, proven and checked.
    pub fn at_work(&self) -> AtWork {
        self.lock().at_work()
    }

    /// What the devices did from `since` on, oldest first, with what they are doing.
    pub fn timeline(&self, since: Millis, now: Millis) -> Vec<SpanView> {
        self.lock().timeline(since, now)
    }

    /// A job's timeline as a trace that Perfetto and `chrome://tracing` show. `None` for jobs
    /// that have not been seen since the start, or too long ago.
    pub fn trace(&self, job: JobId, now: Millis) -> Option<serde_json::Value> {
        self.lock().trace(job, now)
    }

    /// What a worker did for a unit under a lease, for the job's trace. To be told before the engine hears
    /// that the unit is proven.
    pub fn phases(&self, lease: LeaseId, phases: Vec<UnitPhase>) {
        self.lock().phases(lease, phases);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units in each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtWork {
    /// Decoding, vanilla check and witness, beside the unit on the device.
    pub preparing: u32,
    /// On a device, or made into proofs beside it.
    pub proving: u32,
    /// Proven, not yet verified by the daemon.
    pub checking: u32,
}

impl Observer for Observatory {
    fn event(&self, now: Millis, event: &Event) {
        let mut state = self.lock();
        let job = match event {
            Event::UnitJudged { lease, .. }
            | Event::UnitFailed { lease, .. }
            | Event::UnitDiscarded { lease } => state.leased(*lease),
            _ => None,
        };
        state.event(now, event);
        drop(state);
        self.changes.note(job);
    }

    fn returned(&self, now: Millis, lease: LeaseId, timings: &Timings) {
        let mut state = self.lock();
        let job = state.leased(lease);
        state.returned(now, lease, timings);
        drop(state);
        self.changes.note(job);
    }

    fn action(&self, now: Millis, action: &Action) {
        self.lock().action(now, action);
        self.changes.note(match action {
            Action::Persist(write) => Some(written(write)),
            Action::Prepare { unit, .. } | Action::Start { unit, .. } => Some(unit.job),
            _ => None,
        });
    }
}

/// The job that a write is about.
fn written(write: &Write) -> JobId {
    match write {
        Write::Insert(record) => record.id,
        Write::Restart { job, .. } | Write::Join { job, .. } | Write::Finish { job, .. } => *job,
        Write::Claim { unit, .. } | Write::Release { unit, .. } | Write::Prove { unit, .. } => {
            unit.job
        }
    }
}
