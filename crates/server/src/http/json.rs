//! The documents of `/status` and `/timeline`. The keys above the line are a contract with
//! monitoring that reads the earlier daemon; ours follow.

use std::collections::BTreeMap;

use engine::scheduler::Millis;
use engine::service::Totals;
use filecoin::ProofKind;
use serde::Serialize;

use crate::context::{Context, now};
use crate::grpc::condition;
use crate::observatory::{PipelineView, SpanView};

/// `/status`.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    uptime_secs: f64,
    memory: Memory,
    synthesis: Synthesis,
    pipelines: Vec<Pipeline>,
    gpu_workers: Vec<Worker>,
    allocations: Allocations,
    counters: Counters,
    buffers: Buffers,
    // Ours.
    version: &'static str,
    ready: bool,
    test_keys: bool,
    note: &'static str,
    store_error: Option<String>,
    queues: Vec<Queue>,
}

#[derive(Debug, Serialize)]
struct Memory {
    total_bytes: u64,
    used_bytes: u64,
    available_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Synthesis {
    max_concurrent: u32,
    active: u32,
}

#[derive(Debug, Serialize)]
struct Pipeline {
    job_id: String,
    proof_kind: &'static str,
    started_secs_ago: f64,
    total_partitions: u32,
    partitions_done: u32,
    partitions: Vec<Partition>,
    // Ours.
    id: String,
    circuit: &'static str,
    state: &'static str,
}

#[derive(Debug, Serialize)]
struct Partition {
    index: u32,
    state: &'static str,
    synth_ms: Option<u64>,
    gpu_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Worker {
    worker_id: u32,
    gpu_ordinal: u32,
    state: &'static str,
    current_job: Option<String>,
    current_partition: Option<u32>,
    busy_secs: Option<f64>,
    // Ours.
    name: String,
    model: String,
    condition: &'static str,
    cause: String,
    prepared: usize,
    loaded: Vec<&'static str>,
    memory_total_bytes: u64,
    memory_free_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Allocations {
    srs: Vec<Allocation>,
    pce: Vec<Allocation>,
}

#[derive(Debug, Serialize)]
struct Allocation {
    circuit_id: &'static str,
    bytes: u64,
    last_used_secs_ago: f64,
    evictable: bool,
    // Ours.
    tier: &'static str,
    references: u32,
    test_key: bool,
}

#[derive(Debug, Serialize)]
struct Counters {
    total_completed: u64,
    total_failed: u64,
    completed_by_kind: BTreeMap<&'static str, u64>,
    failed_by_kind: BTreeMap<&'static str, u64>,
    queue_depth: u32,
    // Ours.
    total_cancelled: u64,
}

/// What the earlier daemon kept in memory between its phases; here, units in each phase.
#[derive(Debug, Serialize)]
struct Buffers {
    synth_in_flight: u32,
    provers_in_flight: u32,
    aux_in_flight: u32,
    shells_in_flight: u32,
    pending_handles: u32,
}

#[derive(Debug, Serialize)]
struct Queue {
    proof_kind: &'static str,
    pending: u32,
    in_progress: u32,
}

#[allow(
    clippy::cast_precision_loss,
    reason = "spans in milliseconds fit 53 bits"
)]
fn secs(ms: Millis) -> f64 {
    ms as f64 / 1000.0
}

pub(super) fn status(context: &Context) -> Status {
    let status = context.service.status();
    let at_work = context.observatory.at_work();
    let test_keys = context.test_keys();
    let all = |pick: fn(&Totals) -> u64| status.totals.values().map(pick).sum();
    let by_kind = |pick: fn(&Totals) -> u64| {
        let of = |kind: ProofKind| status.totals.get(&kind).map_or(0, pick);
        let kinds = ProofKind::ALL.into_iter();
        kinds.map(|kind| (kind.label(), of(kind))).collect()
    };
    let pipelines = context.observatory.pipelines(now());
    let queues = status.counts.iter().map(|(kind, counts)| Queue {
        proof_kind: kind.label(),
        pending: counts.pending,
        in_progress: counts.in_progress,
    });
    Status {
        uptime_secs: secs(status.uptime_ms),
        memory: Memory {
            total_bytes: status.memory_budget,
            used_bytes: status.memory_used,
            available_bytes: status.memory_budget.saturating_sub(status.memory_used),
        },
        synthesis: Synthesis {
            max_concurrent: u32::try_from(status.devices.len()).unwrap_or(u32::MAX),
            active: at_work.preparing,
        },
        pipelines: pipelines.iter().map(pipeline).collect(),
        gpu_workers: workers(context, &status),
        allocations: Allocations {
            srs: allocations(context),
            pce: Vec::new(),
        },
        counters: Counters {
            total_completed: all(|totals| totals.completed),
            total_failed: all(|totals| totals.failed),
            completed_by_kind: by_kind(|totals| totals.completed),
            failed_by_kind: by_kind(|totals| totals.failed),
            queue_depth: status.counts.iter().map(|(_, counts)| counts.pending).sum(),
            total_cancelled: all(|totals| totals.cancelled),
        },
        buffers: Buffers {
            synth_in_flight: at_work.preparing,
            provers_in_flight: at_work.proving,
            aux_in_flight: 0,
            shells_in_flight: 0,
            pending_handles: at_work.checking,
        },
        version: env!("CARGO_PKG_VERSION"),
        ready: context.is_ready(),
        test_keys,
        note: if test_keys { "test key" } else { "" },
        queues: queues.collect(),
        store_error: status.store_error,
    }
}

fn pipeline(view: &PipelineView) -> Pipeline {
    let partitions = view.partitions.iter().map(|unit| Partition {
        index: unit.index,
        state: unit.state.label(),
        synth_ms: unit.synth_ms,
        gpu_ms: unit.gpu_ms,
    });
    Pipeline {
        job_id: view.job.name.clone(),
        proof_kind: view.job.kind().label(),
        started_secs_ago: view.started_secs_ago,
        total_partitions: view.total,
        partitions_done: view.done,
        partitions: partitions.collect(),
        id: view.id.to_string(),
        circuit: view.job.circuit.name(),
        state: view.state,
    }
}

fn workers(context: &Context, status: &engine::service::Status) -> Vec<Worker> {
    let facts = context.keys.devices();
    let now = now();
    let devices = (0..).zip(&status.devices);
    let worker = |(i, (name, view)): (usize, &(String, engine::scheduler::DeviceView))| {
        let facts = facts.get(i).cloned().unwrap_or_default();
        let job = view
            .running
            .and_then(|(job, ..)| context.observatory.name(job));
        let (condition, cause) = condition(&view.status);
        Worker {
            worker_id: view.id.0,
            gpu_ordinal: facts.ordinal.unwrap_or(view.id.0),
            state: if view.running.is_some() {
                "proving"
            } else {
                "idle"
            },
            current_job: job.map(|job| job.name),
            current_partition: view.running.map(|(_, unit, _)| unit),
            busy_secs: view
                .running
                .map(|(.., since)| secs(now.saturating_sub(since))),
            name: name.clone(),
            model: facts.model,
            condition,
            cause: cause.to_owned(),
            prepared: view.prepared,
            loaded: view.loaded.iter().map(|circuit| circuit.name()).collect(),
            memory_total_bytes: facts.memory_total,
            memory_free_bytes: facts.memory_free,
        }
    };
    devices.map(worker).collect()
}

fn allocations(context: &Context) -> Vec<Allocation> {
    let keys = context.keys.loaded().into_iter();
    keys.map(|key| Allocation {
        circuit_id: key.circuit.name(),
        bytes: key.bytes,
        last_used_secs_ago: key.idle_secs,
        evictable: key.references == 0,
        tier: key.tier.label(),
        references: key.references,
        test_key: key.test_key,
    })
    .collect()
}

/// `/timeline`: what the page draws.
#[derive(Debug, Serialize)]
pub(super) struct Timeline<'a> {
    now_ms: Millis,
    spans: Vec<TimelineSpan<'a>>,
}

#[derive(Debug, Serialize)]
struct TimelineSpan<'a> {
    device: u32,
    job: &'a str,
    circuit: Option<&'static str>,
    unit: u32,
    start_ms: Millis,
    end_ms: Option<Millis>,
    state: &'static str,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(now_ms: Millis, spans: &'a [SpanView]) -> Self {
        let spans = spans.iter().map(|span| TimelineSpan {
            device: span.device,
            job: &span.job,
            circuit: span.circuit,
            unit: span.unit,
            start_ms: span.start_ms,
            end_ms: span.end_ms,
            state: span.state,
        });
        Self {
            now_ms,
            spans: spans.collect(),
        }
    }
}
