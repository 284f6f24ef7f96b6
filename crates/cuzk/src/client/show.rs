//! `cuzk status`, `cuzk trace` and `cuzk metrics`.

use serde_json::json;
use server::client::{http_get, percent_encoded};
use server::proto::v1::GetStatusResponse;

use super::args::{ServerArgs, TraceArgs};
use super::{connect, failure, http_address};
use crate::Context;
use crate::cli::Global;
use crate::failure::Failure;
use crate::outfile::OutFile;
use crate::table::{Align, Table};

/// Devices, queues, keys.
pub fn status(context: &Context, global: &Global, args: &ServerArgs) -> Result<(), Failure> {
    let status = connect(global, args)?.status().map_err(failure)?;
    context.output.show(&document(&status), &text(&status))
}

/// The metrics.
pub fn metrics(context: &Context, global: &Global, args: &ServerArgs) -> Result<(), Failure> {
    let text = connect(global, args)?.metrics().map_err(failure)?;
    let document = json!({"schema": "cuzk.metrics/1", "prometheus_text": text});
    context.output.show(&document, &text)
}

/// A job's timeline.
pub fn trace(context: &Context, global: &Global, args: &TraceArgs) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutFile::reserve).transpose()?;
    let address = http_address(global, &args.http)?;
    let path = format!("/jobs/{}/trace", percent_encoded(&args.job));
    let trace = http_get(&address, &path).map_err(failure)?;
    match out {
        Some(out) => {
            out.commit(&trace)?;
            context
                .output
                .remark("open it in ui.perfetto.dev or chrome://tracing");
            Ok(())
        }
        None => {
            let text = String::from_utf8_lossy(&trace).into_owned() + "\n";
            let document: serde_json::Value =
                serde_json::from_slice(&trace).unwrap_or(serde_json::Value::Null);
            context.output.show(&document, &text)
        }
    }
}

fn document(status: &GetStatusResponse) -> serde_json::Value {
    json!({
        "schema": "cuzk.status/1",
        "ready": status.ready,
        "test_keys": status.test_keys,
        "uptime_seconds": status.uptime_seconds,
        "completed": status.total_proofs_completed,
        "failed": status.total_proofs_failed,
        "pinned_memory_bytes": status.pinned_memory_bytes,
        "devices": status.gpus.iter().map(|gpu| json!({
            "ordinal": gpu.ordinal, "name": gpu.name, "state": gpu.state, "cause": gpu.cause,
            "memory_total_bytes": gpu.vram_total_bytes, "memory_free_bytes": gpu.vram_free_bytes,
            "current_job": gpu.current_job_id, "current_kind": gpu.current_proof_kind,
        })).collect::<Vec<_>>(),
        "queues": status.queues.iter().map(|queue| json!({
            "kind": queue.proof_kind, "pending": queue.pending, "in_progress": queue.in_progress,
        })).collect::<Vec<_>>(),
        "keys": status.loaded_srs.iter().map(|key| json!({
            "circuit": key.circuit_id, "tier": key.tier().as_str_name().to_lowercase(),
            "bytes": key.size_bytes, "references": key.ref_count, "test_key": key.test_key,
        })).collect::<Vec<_>>(),
    })
}

fn text(status: &GetStatusResponse) -> String {
    let mut text = format!(
        "{}, up {} s, {} completed, {} failed{}\n\n",
        if status.ready { "ready" } else { "not ready" },
        status.uptime_seconds,
        status.total_proofs_completed,
        status.total_proofs_failed,
        if status.test_keys { ", test key" } else { "" },
    );
    let mut devices = Table::new(&[
        ("DEVICE", Align::Right),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("JOB", Align::Left),
    ]);
    for gpu in &status.gpus {
        let state = match gpu.cause.as_str() {
            "" => gpu.state.clone(),
            cause => format!("{}: {cause}", gpu.state),
        };
        devices.row([
            gpu.ordinal.to_string(),
            gpu.name.clone(),
            state,
            gpu.current_job_id.escape_debug().to_string(),
        ]);
    }
    let mut queues = Table::new(&[
        ("KIND", Align::Left),
        ("WAITING", Align::Right),
        ("IN PROGRESS", Align::Right),
    ]);
    for queue in &status.queues {
        queues.row([
            queue.proof_kind.clone(),
            queue.pending.to_string(),
            queue.in_progress.to_string(),
        ]);
    }
    let mut keys = Table::new(&[
        ("KEY", Align::Left),
        ("WHERE", Align::Left),
        ("BYTES", Align::Right),
        ("IN USE", Align::Right),
    ]);
    for key in &status.loaded_srs {
        let mark = if key.test_key { " (test key)" } else { "" };
        keys.row([
            format!("{}{mark}", key.circuit_id),
            key.tier().as_str_name().to_lowercase(),
            key.size_bytes.to_string(),
            key.ref_count.to_string(),
        ]);
    }
    let tables = [devices.render(), queues.render(), keys.render()];
    text.push_str(&tables.join("\n"));
    text
}
