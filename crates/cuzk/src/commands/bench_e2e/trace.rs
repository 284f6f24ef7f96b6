//! All spans of a run as a trace in the format of chrome://tracing and ui.perfetto.dev.

use std::time::Instant;

use pipeline::{Lane, Spans};
use serde_json::{Value, json};

use super::report::Measured;

/// Lanes in the order of the stages. Spans that overlap in a lane get rows of their own.
const LANES: [(Lane, &str); 4] = [
    (Lane::Witness, "prepare"),
    (Lane::Load, "load key"),
    (Lane::Device, "device"),
    (Lane::Finish, "finish"),
];

/// The document's bytes.
pub fn document(measured: &Measured) -> Vec<u8> {
    let proofs = measured.proofs.iter();
    let mut units: Vec<(String, &Spans)> = proofs
        .enumerate()
        .map(|(k, made)| (format!("request {} unit {k}", made.request), &made.spans))
        .collect();
    let first = measured.first.iter().flat_map(|first| &first.spans);
    units.extend(first.map(|spans| ("first".to_owned(), spans)));
    let alone = measured.alone.iter().flat_map(|(_, alone)| &alone.spans);
    units.extend(alone.map(|spans| ("alone".to_owned(), spans)));
    let starts = units.iter().flat_map(|(_, spans)| spans.iter());
    let zero = starts.map(|span| span.start).min();
    let mut events = Vec::new();
    for (number, (lane, name)) in LANES.into_iter().enumerate() {
        lay(&units, zero, lane, (100 * (number + 1), name), &mut events);
    }
    let document = json!({ "displayTimeUnit": "ms", "traceEvents": events });
    document.to_string().into_bytes()
}

/// The events of one lane. The spans of a unit in a lane stay together in a row.
fn lay(
    units: &[(String, &Spans)],
    zero: Option<Instant>,
    lane: Lane,
    (base, name): (usize, &str),
    events: &mut Vec<Value>,
) {
    let Some(zero) = zero else { return };
    let us = |time: Instant| time.duration_since(zero).as_secs_f64() * 1e6;
    let mut blocks: Vec<_> = units
        .iter()
        .filter_map(|(unit, spans)| {
            let spans: Vec<_> = spans.iter().filter(|span| span.lane == lane).collect();
            let start = spans.iter().map(|span| span.start).min()?;
            let end = spans.iter().map(|span| span.end).max()?;
            Some((start, end, unit, spans))
        })
        .collect();
    blocks.sort_by_key(|block| block.0);
    let mut rows: Vec<Instant> = Vec::new();
    for (start, end, unit, spans) in blocks {
        let row = match rows.iter().position(|free| *free <= start) {
            Some(row) => {
                rows[row] = end;
                row
            }
            None => {
                rows.push(end);
                rows.len() - 1
            }
        };
        for span in spans {
            events.push(json!({
                "name": span.name, "cat": unit, "ph": "X", "pid": 1, "tid": base + row,
                "ts": us(span.start), "dur": us(span.end) - us(span.start),
                "args": { "unit": unit },
            }));
        }
    }
    for row in 0..rows.len() {
        events.push(json!({
            "name": "thread_name", "ph": "M", "pid": 1, "tid": base + row,
            "args": { "name": format!("{name} {row}") },
        }));
    }
}
