//! What a run says: figures from its spans, as a document and as text.

use std::time::{Duration, Instant};

use cuda::MemoryUse;
use pipeline::{Lane, Spans, covered, packed_bytes};
use serde::Serialize;

use super::keys::KeyFacts;
use super::meter::Resident;
use super::{Subject, exact};
use crate::cli::BenchE2eArgs;
use crate::device::{DeviceDocument, VramDocument};
use crate::phases::peak_memory;
use crate::table::{self, Align, Table};

/// Phases of a backend that its host does, not the device.
const HOST_PHASES: [&str; 1] = ["combine"];

/// A proof of the measured run.
pub struct Made {
    /// Which circuit.
    pub subject: usize,
    /// Which of its requests.
    pub request: usize,
    /// What was done for it.
    pub spans: Spans,
    /// When it was verified and received.
    pub end: Instant,
}

/// A request that was proven while nothing else was.
pub struct Alone {
    /// Until all its proofs were verified.
    pub time: Duration,
    /// Of its units.
    pub spans: Vec<Spans>,
}

/// Bytes copied between the host and a GPU.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Traffic {
    /// Witnesses, and the points of a streamed key.
    pub to_device_bytes: u64,
    /// Partial sums.
    pub from_device_bytes: u64,
}

/// A whole run.
pub struct Measured {
    /// The first proof of each circuit.
    pub first: Vec<Alone>,
    /// When the requests were handed over.
    pub began: Instant,
    /// Until the last proof was verified.
    pub wall: Duration,
    /// Core time in between.
    pub cpu: Duration,
    /// Memory in between.
    pub memory: Option<Resident>,
    /// What went over the GPU's bus in between.
    pub traffic: Option<Traffic>,
    /// In the order in which they were made.
    pub proofs: Vec<Made>,
    /// Requests made alone, by circuit.
    pub alone: Vec<(usize, Alone)>,
}

/// The result in `--json`.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    device: DeviceDocument,
    threads: usize,
    seed: u64,
    circuits: Vec<CircuitDocument>,
    /// Making requests, finding or making keys.
    setup_seconds: f64,
    setup_core_seconds: f64,
    requests: usize,
    proofs: usize,
    verified: bool,
    /// From handing over the requests to the last verified proof.
    wall_seconds: f64,
    /// The wall time divided by the number of requests.
    request_seconds: f64,
    /// The mean time between proofs from the one with which the pipeline was full to the last.
    steady_proof_seconds: f64,
    /// Proofs that came before that one.
    steady_skipped: usize,
    gpu: Option<GpuDocument>,
    core_seconds_per_proof: f64,
    core_seconds_per_request: f64,
    resident: Option<Resident>,
    peak_memory_bytes: Option<u64>,
    vram: Option<VramDocument>,
    /// Of all proofs.
    traffic: Option<Traffic>,
    to_device_bytes_per_proof: Option<u64>,
    phases: Vec<PhaseDocument>,
}

#[derive(Serialize)]
struct CircuitDocument {
    circuit: &'static str,
    key: KeyFacts,
    partitions: usize,
    request_bytes: usize,
    witness_bytes: u64,
    /// The first proof, which loads the key.
    first_seconds: f64,
    /// Median of whole requests, from bytes to verified proofs, each alone.
    alone_seconds: Option<f64>,
    alone_requests: usize,
}

#[derive(Serialize)]
struct GpuDocument {
    /// Time that at least one unit was on the GPU, by its events.
    busy_seconds: f64,
    /// From the first unit's first phase on it to the last one's last.
    wall_seconds: f64,
    busy_share: f64,
}

#[derive(Serialize)]
struct PhaseDocument {
    circuit: &'static str,
    phase: String,
    stage: &'static str,
    median_ms: f64,
    /// Its largest and its sum over all proofs.
    most_ms: f64,
    total_seconds: f64,
}

impl Document {
    /// Of a run.
    pub fn new(
        subjects: &[Subject],
        args: &BenchE2eArgs,
        device: DeviceDocument,
        setup: (Duration, Duration),
        measured: &Measured,
        memory: Option<MemoryUse>,
    ) -> Self {
        let requests = args.count as usize * subjects.len();
        let proofs = measured.proofs.len();
        let ends: Vec<Instant> = measured.proofs.iter().map(|made| made.end).collect();
        let in_flight = memory.map_or(1, |memory| memory.proofs);
        let (steady, skipped) = steady(&ends, measured.began, in_flight);
        let each = |time: Duration, count: usize| exact(time.div_f64(count.max(1) as f64));
        let gpu = (device.device == "gpu").then(|| GpuDocument::of(measured));
        Self {
            schema: "cuzk.bench-e2e/1",
            gpu: gpu.flatten(),
            device,
            threads: rayon::current_num_threads(),
            seed: args.seed,
            circuits: circuits(subjects, measured),
            setup_seconds: exact(setup.0),
            setup_core_seconds: exact(setup.1),
            requests,
            proofs,
            verified: true,
            wall_seconds: exact(measured.wall),
            request_seconds: each(measured.wall, requests),
            steady_proof_seconds: exact(steady),
            steady_skipped: skipped,
            core_seconds_per_proof: each(measured.cpu, proofs),
            core_seconds_per_request: each(measured.cpu, requests),
            resident: measured.memory,
            peak_memory_bytes: peak_memory(),
            vram: memory.map(VramDocument::from),
            traffic: measured.traffic,
            to_device_bytes_per_proof: measured
                .traffic
                .map(|traffic| traffic.to_device_bytes / proofs.max(1) as u64),
            phases: phases(subjects, measured),
        }
    }

    /// As a table.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for circuit in &self.circuits {
            lines.extend(circuit.lines());
        }
        lines.push((
            "device",
            format!("{}, {} threads", self.device.name, self.threads),
        ));
        if let Some(vram) = &self.vram {
            lines.push(("GPU memory", vram.text()));
        }
        lines.push((
            "set-up",
            format!(
                "{:.2} s, {:.1} core-seconds",
                self.setup_seconds, self.setup_core_seconds
            ),
        ));
        lines.push((
            "proofs",
            format!(
                "{} of {} requests in {:.3} s, all verified; {:.4} s a request",
                self.proofs, self.requests, self.wall_seconds, self.request_seconds
            ),
        ));
        lines.push((
            "steady state",
            format!(
                "{:.4} s a proof, from proof {} to the last",
                self.steady_proof_seconds,
                self.steady_skipped + 1
            ),
        ));
        if let Some(gpu) = &self.gpu {
            lines.push((
                "GPU busy",
                format!(
                    "{:.1} % of {:.3} s",
                    100.0 * gpu.busy_share,
                    gpu.wall_seconds
                ),
            ));
        }
        lines.push((
            "core-seconds",
            format!(
                "{:.3} a proof, {:.3} a request",
                self.core_seconds_per_proof, self.core_seconds_per_request
            ),
        ));
        if let Some(resident) = &self.resident {
            lines.push((
                "memory",
                format!(
                    "at most {} of its own, {} of files, {} shared",
                    table::bytes(resident.own_bytes),
                    table::bytes(resident.file_bytes),
                    table::bytes(resident.shared_bytes)
                ),
            ));
        }
        if let Some(bytes) = self.to_device_bytes_per_proof {
            let text = format!("{} to the GPU for a proof", table::bytes(bytes));
            lines.push(("bus", text));
        }
        table::pairs(&lines) + "\n" + &self.table()
    }

    fn table(&self) -> String {
        let mut table = Table::new(&[
            ("circuit", Align::Left),
            ("stage", Align::Left),
            ("phase", Align::Left),
            ("median ms", Align::Right),
            ("most ms", Align::Right),
            ("all s", Align::Right),
        ]);
        for phase in &self.phases {
            table.row([
                phase.circuit.to_owned(),
                phase.stage.to_owned(),
                phase.phase.clone(),
                format!("{:.3}", phase.median_ms),
                format!("{:.3}", phase.most_ms),
                format!("{:.3}", phase.total_seconds),
            ]);
        }
        table.render()
    }
}

impl CircuitDocument {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            (
                "circuit",
                format!(
                    "{}: requests of {} with {} partitions, witnesses of {}",
                    self.circuit,
                    table::bytes(self.request_bytes as u64),
                    self.partitions,
                    table::bytes(self.witness_bytes)
                ),
            ),
            (
                "key",
                format!("{}, {}", table::bytes(self.key.bytes), self.key.words),
            ),
            (
                "first proof",
                format!("{:.3} s, with loading the key", self.first_seconds),
            ),
        ];
        lines.extend(self.alone_seconds.map(|seconds| {
            let text = format!(
                "{:.1} ms from request bytes to verified proofs, median of {}",
                1e3 * seconds,
                self.alone_requests
            );
            ("alone", text)
        }));
        lines
    }
}

fn circuits(subjects: &[Subject], measured: &Measured) -> Vec<CircuitDocument> {
    let document = |(at, subject): (usize, &Subject)| {
        let of_subject = measured.alone.iter().filter(|(of, _)| *of == at);
        let mut times: Vec<Duration> = of_subject.map(|(_, alone)| alone.time).collect();
        times.sort_unstable();
        let first = measured.first.get(at);
        CircuitDocument {
            circuit: subject.id.name(),
            key: subject.facts.clone(),
            partitions: subject.units,
            request_bytes: subject.request.len(),
            witness_bytes: packed_bytes(&subject.key.circuit),
            first_seconds: first.map_or(0.0, |first| exact(first.time)),
            alone_seconds: times.get(times.len() / 2).copied().map(exact),
            alone_requests: times.len(),
        }
    };
    subjects.iter().enumerate().map(document).collect()
}

/// The mean time between completions from the `in_flight`-th on, which was the first that another had to
/// follow at once; and how many came before it. With too few proofs for that: their mean from the start.
fn steady(ends: &[Instant], began: Instant, in_flight: usize) -> (Duration, usize) {
    let skipped = in_flight.saturating_sub(1);
    match (ends.get(skipped), ends.last()) {
        (Some(from), Some(to)) if ends.len() > skipped + 1 => {
            let count = (ends.len() - 1 - skipped) as f64;
            (to.duration_since(*from).div_f64(count), skipped)
        }
        (_, Some(to)) => (to.duration_since(began).div_f64(ends.len() as f64), 0),
        _ => (Duration::ZERO, 0),
    }
}

impl GpuDocument {
    fn of(measured: &Measured) -> Option<Self> {
        let spans = measured.proofs.iter().flat_map(|made| made.spans.iter());
        let on_device = spans
            .filter(|span| span.lane == Lane::Device && !HOST_PHASES.contains(&span.name.as_ref()));
        let intervals: Vec<_> = on_device.map(|span| (span.start, span.end)).collect();
        let start = intervals.iter().map(|(start, _)| *start).min()?;
        let end = intervals.iter().map(|(_, end)| *end).max()?;
        let (busy, wall) = (covered(intervals), end.duration_since(start));
        Some(Self {
            busy_seconds: exact(busy),
            wall_seconds: exact(wall),
            busy_share: busy.as_secs_f64() / wall.as_secs_f64().max(f64::MIN_POSITIVE),
        })
    }
}

/// Every phase of each circuit, in the order of its first proof.
fn phases(subjects: &[Subject], measured: &Measured) -> Vec<PhaseDocument> {
    let mut documents = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        let made: Vec<&Made> = (measured.proofs.iter())
            .filter(|made| made.subject == at)
            .collect();
        let mut names: Vec<(Lane, &str)> = Vec::new();
        for span in made.iter().flat_map(|made| made.spans.iter()) {
            if !names.contains(&(span.lane, span.name.as_ref())) {
                names.push((span.lane, span.name.as_ref()));
            }
        }
        names.sort_by_key(|(lane, _)| order(*lane));
        for (lane, name) in names {
            // Of a proof a phase may have several spans.
            let of_proof = |made: &&Made| {
                let is = |span: &&pipeline::Span| span.lane == lane && span.name == name;
                let mut spans = made.spans.iter().filter(is).peekable();
                spans.peek()?;
                Some(spans.map(pipeline::Span::time).sum::<Duration>())
            };
            let mut times: Vec<Duration> = made.iter().filter_map(of_proof).collect();
            times.sort_unstable();
            let ms = |time: Duration| 1e3 * exact(time);
            documents.push(PhaseDocument {
                circuit: subject.id.name(),
                phase: name.to_owned(),
                stage: stage(lane),
                median_ms: times.get(times.len() / 2).copied().map_or(0.0, ms),
                most_ms: times.last().copied().map_or(0.0, ms),
                total_seconds: exact(times.iter().sum()),
            });
        }
    }
    documents
}

fn order(lane: Lane) -> usize {
    [Lane::Witness, Lane::Load, Lane::Device, Lane::Finish]
        .iter()
        .position(|other| *other == lane)
        .unwrap_or(usize::MAX)
}

fn stage(lane: Lane) -> &'static str {
    match lane {
        Lane::Witness => "prepare",
        Lane::Load => "load",
        Lane::Device => "device",
        Lane::Finish => "finish",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_state_begins_when_the_pipeline_is_full() {
        let zero = Instant::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let ends: Vec<_> = [100, 140, 150, 160, 170].map(at).into();
        let ms = |ms: u64| Duration::from_millis(ms);
        assert_eq!(steady(&ends, zero, 2), (ms(10), 1));
        assert_eq!(steady(&ends, zero, 1), (Duration::from_micros(17_500), 0));
        assert_eq!(steady(&ends[..1], zero, 2), (ms(100), 0));
        assert_eq!(steady(&[], zero, 2), (Duration::ZERO, 0));
    }
}
