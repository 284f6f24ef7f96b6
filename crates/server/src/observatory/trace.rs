//! A job's timeline in the trace event format of `chrome://tracing` and Perfetto: complete
//! events (`ph: X`, times in microseconds), one thread per lane with its name.

use std::collections::BTreeMap;

use engine::scheduler::{Millis, Outcome};
use serde_json::{Value, json};
use store::JobId;

use super::model::{Doing, Ending, Span, State};

/// Lanes: waiting and joining on the first, then two for each device and one for checks.
fn lane(span: &Span) -> (u32, String) {
    let device = span.device.map_or(0, |device| device.0);
    match span.doing {
        Doing::Queued | Doing::Join => (0, "job".to_owned()),
        Doing::Prepare => (1 + 3 * device, format!("device {device}: prepare")),
        Doing::Prove => (2 + 3 * device, format!("device {device}: prove")),
        Doing::Check => (3 + 3 * device, format!("check of device {device}")),
    }
}

impl State {
    pub(super) fn trace(&self, id: JobId, now: Millis) -> Option<Value> {
        let job = self.jobs.get(&id)?;
        let running = self.leases.values().filter(|lease| lease.unit.job == id);
        let running = running.map(|lease| Span {
            doing: lease.doing,
            device: Some(lease.device),
            job: id,
            unit: Some(lease.unit.index),
            start: lease.since,
            end: now,
            ending: Ending::Well,
            timings: None,
        });
        let mut lanes = BTreeMap::new();
        let mut events: Vec<Value> = Vec::new();
        let finished = job.spans.iter().map(|span| (span.clone(), false));
        for (span, open) in finished.chain(running.map(|span| (span, true))) {
            let (number, title) = lane(&span);
            lanes.insert(number, title);
            events.push(event(&span, number, open));
        }
        let names = lanes.iter().map(|(number, title)| {
            json!({"ph": "M", "pid": 1, "tid": number, "name": "thread_name",
                   "args": {"name": title}})
        });
        events.extend(names);
        let (state, cause) = match &job.ended {
            None => ("open", None),
            Some((_, Outcome::Completed)) => ("completed", None),
            Some((_, Outcome::Failed(failure))) => ("failed", Some(failure.message.as_str())),
            Some((_, Outcome::Cancelled)) => ("cancelled", None),
        };
        Some(json!({
            "displayTimeUnit": "ms",
            "otherData": {
                "job_id": job.name, "id": id.to_string(), "circuit": job.circuit.name(),
                "state": state, "cause": cause, "accepted_ms": job.accepted,
            },
            "traceEvents": events,
        }))
    }
}

fn event(span: &Span, lane: u32, open: bool) -> Value {
    let name = match span.unit {
        Some(unit) => format!("{} {unit}", span.doing.label()),
        None => span.doing.label().to_owned(),
    };
    let ending = if open { "running" } else { span.ending.label() };
    let mut args = json!({"ending": ending});
    if let Some(timings) = &span.timings {
        args["load_ms"] = timings.load_ms.into();
        args["witness_ms"] = timings.witness_ms.into();
        args["device_ms"] = timings.device_ms.into();
    }
    json!({
        "ph": "X", "pid": 1, "tid": lane, "cat": span.doing.label(), "name": name,
        "ts": span.start.saturating_mul(1000),
        "dur": span.end.saturating_sub(span.start).saturating_mul(1000),
        "args": args,
    })
}
