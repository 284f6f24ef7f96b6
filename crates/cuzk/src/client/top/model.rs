//! What the daemon's documents say, as far as the screen shows it. What is missing or of another
//! type is empty: the daemon may be of another version.

use serde_json::Value;

/// The daemon at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    pub version: String,
    pub ready: bool,
    pub test_keys: bool,
    pub up_secs: f64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub memory_used: u64,
    pub memory_total: u64,
    pub store_error: Option<String>,
    pub devices: Vec<Device>,
    /// Kind, waiting, in progress.
    pub queues: Vec<(String, u64, u64)>,
    /// Circuit, where it is kept, bytes.
    pub keys: Vec<(String, String, u64)>,
    pub jobs: Vec<Job>,
    /// Newest first.
    pub events: Vec<Event>,
}

/// A device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    pub number: u64,
    pub name: String,
    pub state: String,
    pub job: String,
    pub unit: Option<u64>,
    pub secs: Option<f64>,
    pub prepared: u64,
    /// Ready and without a cause to worry.
    pub good: bool,
}

/// A job at work, waiting, or just ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Job {
    pub name: String,
    pub circuit: String,
    pub state: String,
    pub done: u64,
    pub running: u64,
    pub total: u64,
    pub secs: f64,
}

/// A unit that left a device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Seconds ago.
    pub ago: f64,
    pub device: u64,
    pub job: String,
    pub unit: u64,
    pub state: String,
    pub secs: f64,
}

impl Snapshot {
    /// Of `/status` and `/timeline`.
    pub fn new(status: &Value, timeline: &Value) -> Self {
        let counters = &status["counters"];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            version: text(&status["version"]),
            ready: status["ready"] == true,
            test_keys: status["test_keys"] == true,
            up_secs: status["uptime_secs"].as_f64().unwrap_or(0.0),
            completed: number(&counters["total_completed"]),
            failed: number(&counters["total_failed"]),
            cancelled: number(&counters["total_cancelled"]),
            memory_used: number(&status["memory"]["used_bytes"]),
            memory_total: number(&status["memory"]["total_bytes"]),
            store_error: status["store_error"]
                .as_str()
                .map(|_| text(&status["store_error"])),
            devices: list(&status["gpu_workers"]).map(device).collect(),
            queues: list(&status["queues"])
                .map(|queue| {
                    let counts = (number(&queue["pending"]), number(&queue["in_progress"]));
                    (text(&queue["proof_kind"]), counts.0, counts.1)
                })
                .collect(),
            keys: list(&status["allocations"]["srs"])
                .map(|key| {
                    (
                        text(&key["circuit_id"]),
                        text(&key["tier"]),
                        number(&key["bytes"]),
                    )
                })
                .collect(),
            jobs: list(&status["pipelines"]).map(job).collect(),
            events: events(timeline),
        }
    }
}

fn device(worker: &Value) -> Device {
    let condition = text(&worker["condition"]);
    let cause = text(&worker["cause"]);
    let good = condition == "ready" && cause.is_empty();
    let state = match (good, cause.as_str()) {
        (true, _) => text(&worker["state"]),
        (false, "") => condition,
        (false, cause) => format!("{condition}: {cause}"),
    };
    let model = text(&worker["model"]);
    Device {
        number: worker["worker_id"].as_u64().unwrap_or(0),
        name: if model.is_empty() {
            text(&worker["name"])
        } else {
            model
        },
        state,
        job: text(&worker["current_job"]),
        unit: worker["current_partition"].as_u64(),
        secs: worker["busy_secs"].as_f64(),
        prepared: worker["prepared"].as_u64().unwrap_or(0),
        good,
    }
}

fn job(pipeline: &Value) -> Job {
    let running = |unit: &&Value| {
        let state = unit["state"].as_str();
        matches!(state, Some("synthesizing" | "gpu" | "synth_done"))
    };
    Job {
        name: text(&pipeline["job_id"]),
        circuit: text(&pipeline["circuit"]),
        state: text(&pipeline["state"]),
        done: pipeline["partitions_done"].as_u64().unwrap_or(0),
        running: list(&pipeline["partitions"]).filter(running).count() as u64,
        total: pipeline["total_partitions"].as_u64().unwrap_or(0),
        secs: pipeline["started_secs_ago"].as_f64().unwrap_or(0.0),
    }
}

fn events(timeline: &Value) -> Vec<Event> {
    let now = timeline["now_ms"].as_f64().unwrap_or(0.0);
    let ended = list(&timeline["spans"]).filter_map(|span| {
        let (start, end) = (span["start_ms"].as_f64()?, span["end_ms"].as_f64()?);
        Some(Event {
            ago: (now - end).max(0.0) / 1000.0,
            device: span["device"].as_u64().unwrap_or(0),
            job: text(&span["job"]),
            unit: span["unit"].as_u64().unwrap_or(0),
            state: text(&span["state"]),
            secs: (end - start).max(0.0) / 1000.0,
        })
    });
    let mut events: Vec<Event> = ended.collect();
    events.sort_by(|a, b| a.ago.total_cmp(&b.ago));
    events
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// Text without control characters: names of jobs are any text.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").escape_debug().to_string()
}
