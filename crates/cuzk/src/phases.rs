//! Where the time went: named phases with durations and the process's peak memory.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::table::{self, Align, Table};

/// One finished phase.
#[derive(Debug, Clone)]
pub struct Phase {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub time: Duration,
    /// The process's peak resident memory up to the end of the phase, in bytes, where the
    /// system tells.
    pub peak: Option<u64>,
}

/// The phases of one command, in order.
#[derive(Debug)]
pub struct Phases {
    start: Instant,
    done: Vec<Phase>,
}

impl Phases {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            done: Vec::new(),
        }
    }

    /// Runs `work` as the phase `name`.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(name, start.elapsed());
        result
    }

    /// Adds `time` to the phase `name`, which is new or a repeated one.
    pub fn add(&mut self, name: &str, time: Duration) {
        let peak = peak_memory().max(self.peak());
        match self.done.iter_mut().find(|p| p.name == name) {
            Some(phase) => {
                phase.time += time;
                phase.peak = peak;
            }
            None => self.done.push(Phase {
                name: name.to_owned(),
                time,
                peak,
            }),
        }
    }

    /// The highest peak so far. The system's own figure wavers by a few pages.
    fn peak(&self) -> Option<u64> {
        self.done.iter().filter_map(|phase| phase.peak).max()
    }

    /// Time since the start.
    pub fn total(&self) -> Duration {
        self.start.elapsed()
    }

    /// The table, with a last row for the whole.
    pub fn render(&self) -> String {
        let mut table = Table::new(&[
            ("phase", Align::Left),
            ("time", Align::Right),
            ("peak memory so far", Align::Right),
        ]);
        let memory = |peak: Option<u64>| peak.map_or_else(|| "-".to_owned(), table::bytes);
        for phase in &self.done {
            table.row([
                phase.name.clone(),
                table::duration(phase.time),
                memory(phase.peak),
            ]);
        }
        table.row([
            "total".into(),
            table::duration(self.total()),
            memory(peak_memory().max(self.peak())),
        ]);
        table.render()
    }

    /// The JSON form.
    pub fn to_json(&self) -> PhasesDocument {
        PhasesDocument {
            phases: self
                .done
                .iter()
                .map(|p| PhaseDocument {
                    name: p.name.clone(),
                    seconds: seconds(p.time),
                    peak_memory_bytes: p.peak,
                })
                .collect(),
            total_seconds: seconds(self.total()),
            peak_memory_bytes: peak_memory().max(self.peak()),
        }
    }
}

/// The phases as `--json` prints them.
#[derive(Debug, Serialize)]
pub struct PhasesDocument {
    phases: Vec<PhaseDocument>,
    total_seconds: f64,
    peak_memory_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct PhaseDocument {
    name: String,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
}

/// Seconds, to the millisecond.
pub fn seconds(d: Duration) -> f64 {
    (d.as_secs_f64() * 1e3).round() / 1e3
}

/// Peak resident memory of this process in bytes (`VmHWM`); `None` where there is no `/proc`.
pub fn peak_memory() -> Option<u64> {
    kibibytes(
        &std::fs::read_to_string("/proc/self/status").ok()?,
        "VmHWM:",
    )
}

/// The value of a `Name:   123 kB` line of a `/proc` file, in bytes.
pub fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_phases_add_up() {
        let mut phases = Phases::start();
        phases.add("prove", Duration::from_millis(1500));
        phases.add("verify", Duration::from_millis(5));
        phases.add("prove", Duration::from_millis(500));
        assert_eq!(phases.done.len(), 2);
        assert_eq!(phases.done[0].time, Duration::from_secs(2));
        assert!(phases.render().contains("total"));
    }

    #[test]
    fn proc_lines() {
        assert_eq!(
            kibibytes("VmPeak:\t 9 kB\nVmHWM:\t    12 kB\n", "VmHWM:"),
            Some(12 * 1024)
        );
        assert_eq!(kibibytes("VmHWM: lots\n", "VmHWM:"), None);
        assert_eq!(kibibytes("", "VmHWM:"), None);
    }
}
