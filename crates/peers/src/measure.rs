//! Timing one side in a process of its own.
//!
//! Peak memory is a property of a process, so each side of a comparison runs in a child that
//! measures itself and prints one JSON line: `{"wall_s":…}`.

use std::{
    ffi::OsStr,
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What one side took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Wall-clock seconds of the measured part.
    pub wall_s: f64,
    /// Core-seconds of the measured part, user and system, all threads.
    pub core_s: f64,
    /// Peak resident memory of the whole process in bytes, mapped files included.
    pub peak_bytes: u64,
    /// How far resident memory rose during the measured part, in bytes, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown_bytes: Option<u64>,
    /// Named parts of the wall time in seconds, where the side reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<(String, f64)>,
}

/// Measures the part of this process between [`Meter::start`] and [`Meter::stop`].
#[derive(Debug)]
pub struct Meter {
    start: Instant,
    core: Duration,
    /// Resident memory at the start, if its growth counts.
    resident: Option<u64>,
}

impl Meter {
    /// Starts the clocks.
    #[must_use]
    pub fn start() -> Self {
        Self {
            resident: None,
            core: core_time(),
            start: Instant::now(),
        }
    }

    /// Starts the clocks and watches how far memory rises from here: the peak so far is forgotten.
    ///
    /// # Errors
    /// `/proc` does not allow it.
    pub fn watching_memory() -> Result<Self> {
        fs::write("/proc/self/clear_refs", "5").context("resetting the peak of memory")?;
        Ok(Self {
            resident: Some(status("VmRSS:")?),
            ..Self::start()
        })
    }

    /// Stops the clocks.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn stop(self, phases: Vec<(String, f64)>) -> Result<Cost> {
        let (wall, core) = (self.start.elapsed(), core_time() - self.core);
        let peak_bytes = status("VmHWM:")?;
        Ok(Cost {
            wall_s: wall.as_secs_f64(),
            core_s: core.as_secs_f64(),
            peak_bytes,
            grown_bytes: self
                .resident
                .map(|before| peak_bytes.saturating_sub(before)),
            phases,
        })
    }
}

/// Runs this program again with `arguments` and reads the cost it prints last on its standard
/// output; its standard error is ours.
///
/// # Errors
/// The child fails, or prints something else.
pub fn in_child<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Cost> {
    let program = std::env::current_exe().context("finding this program")?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting a side")?;
    ensure!(output.status.success(), "a side failed ({})", output.status);
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().context("a side printed nothing")?;
    serde_json::from_str(line).with_context(|| format!("a side printed {line:?}"))
}

/// The run with the median wall time; the lower of the two middle ones of an even number.
#[must_use]
pub fn median(mut runs: Vec<Cost>) -> Option<Cost> {
    runs.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    let middle = runs.len().checked_sub(1)? / 2;
    Some(runs.swap_remove(middle))
}

/// Processor time, user and system, of this process and all the threads it has had.
fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("invariant: a processor time is not negative")
}

/// Bytes of a line of `/proc/self/status`: `VmRSS:` is resident memory, `VmHWM:` its peak.
fn status(name: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .with_context(|| format!("/proc/self/status has no {name}"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}

/// Bytes as mebibytes or gibibytes.
#[must_use]
pub fn bytes_text(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 {
        format!("{mebibytes:.0} MiB")
    } else {
        format!("{:.2} GiB", mebibytes / 1024.0)
    }
}

/// The processor's model name and the number of cores this process may use.
#[must_use]
pub fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|info| {
            let line = info.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{model}, {cores} cores")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(wall_s: f64) -> Cost {
        Cost {
            wall_s,
            core_s: 0.0,
            peak_bytes: 0,
            grown_bytes: None,
            phases: Vec::new(),
        }
    }

    #[test]
    fn median_is_a_run_of_the_middle() {
        assert!(median(Vec::new()).is_none());
        let pick = |list: &[f64]| {
            median(list.iter().map(|s| cost(*s)).collect())
                .unwrap()
                .wall_s
        };
        assert_eq!(pick(&[3.0]), 3.0);
        assert_eq!(pick(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(pick(&[4.0, 1.0, 3.0, 2.0]), 2.0);
    }

    #[test]
    fn a_busy_second_is_counted() {
        let meter = Meter::watching_memory().unwrap();
        let start = Instant::now();
        let mut x = 1u64;
        while start.elapsed().as_millis() < 200 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let filled = std::hint::black_box(vec![x; 1 << 20]);
        let cost = meter.stop(Vec::new()).unwrap();
        assert!(cost.wall_s >= 0.2, "{cost:?}");
        assert!(cost.grown_bytes >= Some(8 << 20), "{cost:?}");
        drop(filled);
        assert!(cost.core_s > 0.0 && cost.peak_bytes > 1 << 20, "{cost:?}");
    }
}
