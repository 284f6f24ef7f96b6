//! `GetStatus`: from copies only, so that it answers whatever the load.

use engine::scheduler::{DeviceStatus, DeviceView};

use crate::context::Context;
use crate::keys::{DeviceFacts, Tier};
use crate::proto::v1;

pub(super) fn response(context: &Context) -> v1::GetStatusResponse {
    let status = context.service.status();
    let facts = context.keys.devices();
    let devices = (0..).zip(&status.devices);
    let gpus = devices.map(|(i, (name, view))| {
        let facts = facts.get(i).cloned().unwrap_or_default();
        device(context, name, view, &facts)
    });
    let keys = context.keys.loaded().into_iter().map(|key| v1::SrsStatus {
        circuit_id: key.circuit.name().to_owned(),
        tier: tier(key.tier).into(),
        size_bytes: key.bytes,
        ref_count: key.references,
        test_key: key.test_key,
    });
    let queues = status.counts.iter().map(|(kind, counts)| v1::QueueStatus {
        proof_kind: kind.label().to_owned(),
        pending: counts.pending,
        in_progress: counts.in_progress,
    });
    let (pinned, limit) = context.keys.pinned();
    v1::GetStatusResponse {
        gpus: gpus.collect(),
        loaded_srs: keys.collect(),
        queues: queues.collect(),
        total_proofs_completed: status.totals.values().map(|t| t.completed).sum(),
        total_proofs_failed: status.totals.values().map(|t| t.failed).sum(),
        uptime_seconds: status.uptime_ms / 1000,
        pinned_memory_bytes: pinned,
        pinned_memory_limit_bytes: limit,
        test_keys: context.test_keys(),
        ready: context.is_ready(),
    }
}

fn device(context: &Context, name: &str, view: &DeviceView, facts: &DeviceFacts) -> v1::GpuStatus {
    let job = view
        .running
        .and_then(|(job, ..)| context.observatory.name(job));
    let (state, cause) = condition(&view.status);
    v1::GpuStatus {
        ordinal: facts.ordinal.unwrap_or(view.id.0),
        name: match facts.model.as_str() {
            "" => name.to_owned(),
            model => model.to_owned(),
        },
        vram_total_bytes: facts.memory_total,
        vram_free_bytes: facts.memory_free,
        current_proof_kind: job
            .as_ref()
            .map(|job| job.kind().label().to_owned())
            .unwrap_or_default(),
        current_job_id: job.map(|job| job.name).unwrap_or_default(),
        state: state.to_owned(),
        cause: cause.to_owned(),
    }
}

/// A device's condition in a word, and why.
pub(crate) fn condition(status: &DeviceStatus) -> (&'static str, &str) {
    match status {
        DeviceStatus::Starting => ("starting", ""),
        DeviceStatus::Ready => ("ready", ""),
        DeviceStatus::Stopping => ("stopping", ""),
        DeviceStatus::Quarantined(cause) => ("quarantined", cause),
    }
}

fn tier(tier: Tier) -> v1::srs_status::Tier {
    match tier {
        Tier::Hot => v1::srs_status::Tier::Hot,
        Tier::Warm => v1::srs_status::Tier::Warm,
        Tier::Cold => v1::srs_status::Tier::Cold,
    }
}
