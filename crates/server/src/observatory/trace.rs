//! A job's timeline in the trace event format of `chrome://tracing` and Perfetto: complete
//! events (`ph: X`, times in microseconds), one thread per lane with its name. What workers say they did
//! lies below, by device and kind; what overlaps there is in rows of its own.

use std::collections::BTreeMap;

use engine::scheduler::{Millis, Outcome};
use serde_json::{Value, json};
use store::JobId;

use super::model::{Doing, Ending, Job, Span, State, UnitPhase};

/// Lanes: waiting and joining on the first, then three for each device and one for checks.
fn lane(span: &Span) -> (u32, String) {
    let device = span.device.map_or(0, |device| device.0);
    match span.doing {
        Doing::Queued | Doing::Join => (0, "job".to_owned()),
        Doing::Prepare => (1 + 4 * device, format!("device {device}: prepare")),
        Doing::Prove => (2 + 4 * device, format!("device {device}: prove")),
        Doing::Finish => (3 + 4 * device, format!("device {device}: finish")),
        Doing::Check => (4 + 4 * device, format!("check of device {device}")),
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
        lay_phases(job, &mut lanes, &mut events);
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

/// Lanes of phases begin here: so many for each device and kind.
const FIRST_PHASE_LANE: u32 = 10_000;
const LANES_OF_DEVICE: u32 = 1_000;
const LANES_OF_KIND: u32 = 100;

/// The phases of a unit in one kind.
struct Block<'a> {
    start: u64,
    end: u64,
    unit: u32,
    phases: Vec<&'a UnitPhase>,
}

/// The phases of all units. Those of a unit and kind stay together in the first row that is free.
fn lay_phases(job: &Job, lanes: &mut BTreeMap<u32, String>, events: &mut Vec<Value>) {
    let mut blocks: BTreeMap<(u32, &str), Vec<Block<'_>>> = BTreeMap::new();
    for unit in &job.phases {
        let mut kinds: BTreeMap<&str, Vec<&UnitPhase>> = BTreeMap::new();
        for phase in &unit.phases {
            kinds.entry(phase.kind).or_default().push(phase);
        }
        for (kind, phases) in kinds {
            let ends = phases
                .iter()
                .map(|phase| phase.start_us.saturating_add(phase.time_us));
            let block = Block {
                start: phases.iter().map(|phase| phase.start_us).min().unwrap_or(0),
                end: ends.max().unwrap_or(0),
                unit: unit.unit,
                phases,
            };
            blocks.entry((unit.device.0, kind)).or_default().push(block);
        }
    }
    let mut kinds_of: BTreeMap<u32, u32> = BTreeMap::new();
    for ((device, kind), mut blocks) in blocks {
        let number = kinds_of.entry(device).or_default();
        let first = FIRST_PHASE_LANE + LANES_OF_DEVICE * device + LANES_OF_KIND * *number;
        *number += 1;
        blocks.sort_by_key(|block| block.start);
        let mut rows: Vec<u64> = Vec::new();
        for Block {
            start,
            end,
            unit,
            phases,
        } in blocks
        {
            let row = rows
                .iter()
                .position(|free| *free <= start)
                .unwrap_or(rows.len());
            rows.resize(rows.len().max(row + 1), 0);
            rows[row] = end;
            let lane = first
                + u32::try_from(row)
                    .unwrap_or(u32::MAX)
                    .min(LANES_OF_KIND - 1);
            lanes.insert(lane, format!("device {device}: {kind} {row}"));
            events.extend(phases.into_iter().map(|phase| {
                json!({
                    "ph": "X", "pid": 1, "tid": lane, "cat": kind, "name": phase.name,
                    "ts": phase.start_us, "dur": phase.time_us, "args": {"unit": unit},
                })
            }));
        }
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
