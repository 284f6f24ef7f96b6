//! What is shown, by copy.

use engine::scheduler::{Millis, Outcome};
use filecoin::{CircuitId, ProofKind};
use store::JobId;

use super::AtWork;
use super::model::{Doing, Ending, Job, Span, State, UnitState};

/// How long an ended job stays among the pipelines.
const SHOWN_MS: Millis = 30_000;
/// So many waiting jobs are shown.
const WAITING_SHOWN: usize = 100;

/// A job's name and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// The client's name for it.
    pub name: String,
    /// Its circuit.
    pub circuit: CircuitId,
}

impl JobName {
    /// What it proves.
    pub fn kind(&self) -> ProofKind {
        self.circuit.kind
    }
}

/// Where a unit stands, in the words of the status endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionState {
    /// It waits.
    Pending,
    /// Decoding, vanilla check and witness.
    Synthesizing,
    /// Proven, being checked.
    SynthDone,
    /// On a device.
    Gpu,
    /// Its proof is stored.
    Done,
    /// Its job failed before it was done.
    Failed,
}

impl PartitionState {
    /// The word.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Synthesizing => "synthesizing",
            Self::SynthDone => "synth_done",
            Self::Gpu => "gpu",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Its number.
    pub index: u32,
    /// Where it stands.
    pub state: PartitionState,
    /// Milliseconds of vanilla check and witness, once it is proven.
    pub synth_ms: Option<u64>,
    /// Milliseconds on the device, once it is proven.
    pub gpu_ms: Option<u64>,
}

/// A job at work, just ended, or waiting.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineView {
    /// Its name and kind.
    pub job: JobName,
    /// Its identity.
    pub id: JobId,
    /// Seconds since its first unit was started, or, for a waiting one, since it was accepted.
    pub started_secs_ago: f64,
    /// `waiting`, `running`, `completed`, `failed` or `cancelled`.
    pub state: &'static str,
    /// Units.
    pub total: u32,
    /// Of those, proven.
    pub done: u32,
    /// Each of them.
    pub partitions: Vec<PartitionView>,
}

/// A stretch of a device's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanView {
    /// Which device.
    pub device: u32,
    /// Which job, by the client's name; empty if it is no longer known.
    pub job: String,
    /// Its circuit, if the job is known.
    pub circuit: Option<&'static str>,
    /// Which unit.
    pub unit: u32,
    /// From when.
    pub start_ms: Millis,
    /// Until when; `None` while it goes on.
    pub end_ms: Option<Millis>,
    /// How it ended; `running` while it goes on.
    pub state: &'static str,
}

/// Where a job stands, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Its circuit.
    pub(crate) circuit: CircuitId,
    /// When it was accepted.
    pub(crate) accepted: Millis,
    /// When its first unit was started.
    pub(crate) started: Option<Millis>,
    /// Units.
    pub(crate) units: u32,
    /// Of those, stored.
    pub(crate) proven: u32,
    /// Of those, prepared, on a device, or being checked.
    pub(crate) running: u32,
    /// It has ended, and its result is in the store.
    pub(crate) ended: bool,
}

impl State {
    pub(super) fn progress(&self, id: JobId) -> Option<Progress> {
        let job = self.jobs.get(&id)?;
        let count = |wanted: fn(UnitState) -> bool| {
            let units = job.units.iter().filter(|unit| wanted(unit.state));
            u32::try_from(units.count()).unwrap_or(u32::MAX)
        };
        Some(Progress {
            circuit: job.circuit,
            accepted: job.accepted,
            started: job.started,
            units: job.unit_count,
            proven: count(|state| state == UnitState::Done),
            running: count(|state| !matches!(state, UnitState::Done | UnitState::Waiting)),
            ended: job.ended.is_some(),
        })
    }

    pub(super) fn name(&self, id: JobId) -> Option<JobName> {
        self.jobs.get(&id).map(name)
    }

    pub(super) fn at_work(&self) -> AtWork {
        let count = |doing| {
            let leases = self.leases.values().filter(|lease| lease.doing == doing);
            u32::try_from(leases.count()).unwrap_or(u32::MAX)
        };
        AtWork {
            preparing: count(Doing::Prepare),
            proving: count(Doing::Prove) + count(Doing::Finish),
            checking: count(Doing::Check),
        }
    }

    pub(super) fn pipelines(&self, now: Millis) -> Vec<PipelineView> {
        let (mut waiting, mut shown) = (Vec::new(), Vec::new());
        for (id, job) in &self.jobs {
            match (&job.ended, job.started) {
                (Some((at, _)), _) if now.saturating_sub(*at) > SHOWN_MS => {}
                (None, None) => waiting.push((job.accepted, *id)),
                _ => shown.push((job.started.unwrap_or(job.accepted), *id)),
            }
        }
        shown.sort_unstable();
        if waiting.len() > WAITING_SHOWN {
            waiting.select_nth_unstable(WAITING_SHOWN);
            waiting.truncate(WAITING_SHOWN);
        }
        waiting.sort_unstable();
        let all = shown.into_iter().chain(waiting);
        all.map(|(since, id)| pipeline(id, &self.jobs[&id], now.saturating_sub(since)))
            .collect()
    }

    pub(super) fn timeline(&self, since: Millis, now: Millis) -> Vec<SpanView> {
        let past = self.device_spans.iter().filter(|span| span.end >= since);
        let mut views: Vec<SpanView> = past
            .map(|span| self.span(span, Some(span.end), span.ending.label()))
            .collect();
        let running = self.leases.values().filter(|l| l.doing == Doing::Prove);
        views.extend(running.map(|lease| {
            let span = Span {
                doing: lease.doing,
                device: Some(lease.device),
                job: lease.unit.job,
                unit: Some(lease.unit.index),
                start: lease.since.min(now),
                end: now,
                ending: Ending::Well,
                timings: None,
            };
            self.span(&span, None, "running")
        }));
        views.sort_by_key(|span| span.start_ms);
        views
    }

    fn span(&self, span: &Span, end_ms: Option<Millis>, state: &'static str) -> SpanView {
        let job = self.jobs.get(&span.job);
        SpanView {
            device: span.device.map_or(0, |device| device.0),
            job: job.map(|job| job.name.clone()).unwrap_or_default(),
            circuit: job.map(|job| job.circuit.name()),
            unit: span.unit.unwrap_or(0),
            start_ms: span.start,
            end_ms,
            state,
        }
    }
}

fn name(job: &Job) -> JobName {
    JobName {
        name: job.name.clone(),
        circuit: job.circuit,
    }
}

fn pipeline(id: JobId, job: &Job, age: Millis) -> PipelineView {
    let over = job.ended.is_some();
    let partitions: Vec<PartitionView> = (0..)
        .zip(&job.units)
        .map(|(index, unit)| PartitionView {
            index,
            state: match unit.state {
                UnitState::Done => PartitionState::Done,
                _ if over => PartitionState::Failed,
                UnitState::Waiting => PartitionState::Pending,
                UnitState::Preparing => PartitionState::Synthesizing,
                UnitState::Proving => PartitionState::Gpu,
                UnitState::Checking => PartitionState::SynthDone,
            },
            synth_ms: unit.timings.map(|timings| timings.witness_ms),
            gpu_ms: unit.timings.map(|timings| timings.device_ms),
        })
        .collect();
    let done = partitions
        .iter()
        .filter(|unit| unit.state == PartitionState::Done);
    PipelineView {
        job: name(job),
        id,
        #[allow(
            clippy::cast_precision_loss,
            reason = "an age in milliseconds fits 53 bits"
        )]
        started_secs_ago: age as f64 / 1000.0,
        state: match (&job.ended, job.started) {
            (Some((_, Outcome::Completed)), _) => "completed",
            (Some((_, Outcome::Failed(_))), _) => "failed",
            (Some((_, Outcome::Cancelled)), _) => "cancelled",
            (None, Some(_)) => "running",
            (None, None) => "waiting",
        },
        total: job.unit_count,
        done: u32::try_from(done.count()).unwrap_or(u32::MAX),
        partitions,
    }
}
