//! What the daemon and its workers take, as the system counts it.

use std::fs;
use std::path::{Path, PathBuf};

/// One measurement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Seconds since the beginning.
    pub at: f64,
    /// Resident memory of the daemon's own, mapped files not counted, bytes.
    pub memory: u64,
    /// The same of all workers.
    pub workers: u64,
    /// Open files of the daemon.
    pub handles: u64,
    /// Threads of the daemon.
    pub threads: u64,
    /// The store's folder, bytes.
    pub disk: u64,
}

/// Measures.
pub fn taken(at: f64, daemon: u32, folder: &Path) -> Taken {
    Taken {
        at,
        memory: status(daemon, "RssAnon:") << 10,
        workers: children(daemon)
            .map(|pid| status(pid, "RssAnon:") << 10)
            .sum(),
        handles: entries(&proc(daemon, "fd")).count() as u64,
        threads: status(daemon, "Threads:"),
        disk: size(folder),
    }
}

fn proc(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// A number of `/proc/PID/status`; 0 for a process that is gone.
fn status(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(proc(pid, "status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn children(pid: u32) -> impl Iterator<Item = u32> {
    let tasks = entries(&proc(pid, "task"));
    let lists = tasks.map(|task| fs::read_to_string(task.join("children")).unwrap_or_default());
    lists.flat_map(|list| {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<_>>()
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let listing = fs::read_dir(folder).into_iter().flatten();
    listing.flatten().map(|entry| entry.path())
}

/// Bytes of a folder's files. What goes while it is looked at is not counted.
fn size(folder: &Path) -> u64 {
    let sizes = entries(folder).map(|path| match fs::symlink_metadata(&path) {
        Ok(data) if data.is_dir() => size(&path),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
