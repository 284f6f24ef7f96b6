//! The state as plain text, once: for pipes, files, and terminals that cannot redraw.

use serde_json::Value;

use crate::table::{Align, Table};

/// What there is to see, as tables.
pub fn screen(status: &Value) -> String {
    let counters = &status["counters"];
    let ready = status["ready"] == true;
    let mut text = format!(
        "cuzk {}  {}  up {} s  completed {}  failed {}{}\n\n",
        words(&status["version"]),
        if ready { "ready" } else { "not ready" },
        status["uptime_secs"].as_f64().unwrap_or(0.0).round(),
        counters["total_completed"],
        counters["total_failed"],
        if status["test_keys"] == true {
            "  test key"
        } else {
            ""
        },
    );
    let mut devices = Table::new(&[
        ("DEVICE", Align::Right),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("JOB", Align::Left),
        ("UNIT", Align::Right),
        ("SECONDS", Align::Right),
    ]);
    for worker in list(&status["gpu_workers"]) {
        let condition = words(&worker["condition"]);
        let state = match words(&worker["cause"]).as_str() {
            "" if condition == "ready" => words(&worker["state"]),
            "" => condition,
            cause => format!("{condition}: {cause}"),
        };
        devices.row([
            worker["worker_id"].to_string(),
            words(&worker["name"]),
            state,
            words(&worker["current_job"]),
            number(&worker["current_partition"]),
            seconds(&worker["busy_secs"]),
        ]);
    }
    let mut queues = Table::new(&[
        ("KIND", Align::Left),
        ("WAITING", Align::Right),
        ("IN PROGRESS", Align::Right),
    ]);
    for queue in list(&status["queues"]) {
        queues.row([
            words(&queue["proof_kind"]),
            queue["pending"].to_string(),
            queue["in_progress"].to_string(),
        ]);
    }
    let mut jobs = Table::new(&[
        ("JOB", Align::Left),
        ("CIRCUIT", Align::Left),
        ("STATE", Align::Left),
        ("UNITS", Align::Right),
        ("SECONDS", Align::Right),
    ]);
    for job in list(&status["pipelines"]).iter().take(20) {
        jobs.row([
            words(&job["job_id"]),
            words(&job["circuit"]),
            words(&job["state"]),
            format!("{}/{}", job["partitions_done"], job["total_partitions"]),
            seconds(&job["started_secs_ago"]),
        ]);
    }
    let tables = [devices.render(), queues.render(), jobs.render()];
    text.push_str(&tables.join("\n"));
    text
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Text without control characters: names of jobs are any text.
fn words(value: &Value) -> String {
    value.as_str().unwrap_or("").escape_debug().to_string()
}

fn number(value: &Value) -> String {
    value.as_u64().map_or(String::new(), |n| n.to_string())
}

fn seconds(value: &Value) -> String {
    value.as_f64().map_or(String::new(), |s| format!("{s:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_shows_devices_queues_and_jobs_and_no_control_characters() {
        let status = serde_json::json!({
            "version": "1", "ready": true, "test_keys": true, "uptime_secs": 5.4,
            "counters": {"total_completed": 3, "total_failed": 1},
            "gpu_workers": [{"worker_id": 0, "name": "gpu", "condition": "ready",
                "state": "proving", "cause": "", "current_job": "a\u{1b}[2J",
                "current_partition": 4, "busy_secs": 1.25}],
            "queues": [{"proof_kind": "porep-c2", "pending": 7, "in_progress": 1}],
            "pipelines": [{"job_id": "j", "circuit": "porep-32g", "state": "running",
                "partitions_done": 3, "total_partitions": 10, "started_secs_ago": 9.0}],
        });
        let text = screen(&status);
        for part in ["ready", "test key", "proving", "porep-c2", "3/10", "1.2"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains('\x1b'));
        // What is not there is left out, whatever it is.
        assert!(screen(&Value::Null).contains("not ready"));
    }
}
