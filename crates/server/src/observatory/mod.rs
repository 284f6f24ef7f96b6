//! Watches the engine: progress of jobs, timelines, and the metrics that follow from them.
//!
//! The engine's loop tells every event; readers take copies under a short lock. What is kept is
//! bounded: ended jobs by number, spans by number and age.

mod model;
mod trace;
mod view;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::scheduler::{Action, Event, LeaseId, Millis};
use engine::service::Observer;
use store::{JobId, Timings};

use crate::metrics::Metrics;
use model::State;
pub use model::UnitPhase;
pub use view::{JobName, PartitionState, PartitionView, PipelineView, SpanView};

/// The watcher. Give it to [`engine::Service::start_observed`] and to the server.
pub struct Observatory {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
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
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The client's name for a job, and its kind.
    pub fn name(&self, job: JobId) -> Option<JobName> {
        self.lock().name(job)
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
    /// On a device.
    pub proving: u32,
    /// Proven, not yet verified by the daemon.
    pub checking: u32,
}

impl Observer for Observatory {
    fn event(&self, now: Millis, event: &Event) {
        self.lock().event(now, event);
    }

    fn returned(&self, now: Millis, lease: LeaseId, timings: &Timings) {
        self.lock().returned(now, lease, timings);
    }

    fn action(&self, now: Millis, action: &Action) {
        self.lock().action(now, action);
    }
}
