//! Which GPUs there are, found out by a worker: the daemon never opens one itself, so that no
//! driver's fault is its own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::commands::worker::{GpuDocument, GpuList};

/// A driver that has to wake up eight GPUs takes about 20 s without persistence mode.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// The list of a host is a few kilobytes.
const LIST_BYTES: u64 = 4 << 20;

/// The GPUs that can be used, of those with these numbers, or all for none. What cannot be used is
/// said in the log. An error says why none can.
pub fn find(command: &mut Command, wanted: &[u32]) -> Result<Vec<GpuDocument>, String> {
    let list = list(command)?;
    if let Some(absent) = list.absent {
        return Err(absent);
    }
    for number in wanted {
        if !list.gpus.iter().any(|gpu| gpu.ordinal == *number) {
            tracing::error!(gpu = number, "[gpus] devices names a GPU that is not there");
        }
    }
    let is_wanted = |gpu: &GpuDocument| wanted.is_empty() || wanted.contains(&gpu.ordinal);
    let mut usable = Vec::new();
    for gpu in list.gpus.into_iter().filter(is_wanted) {
        match &gpu.failure {
            None => usable.push(gpu),
            Some(cause) => {
                tracing::error!(gpu = gpu.ordinal, name = gpu.name, cause, "GPU not usable");
            }
        }
    }
    if usable.is_empty() {
        return Err("none of the GPUs can be used; the log says why".to_owned());
    }
    Ok(usable)
}

fn list(command: &mut Command) -> Result<GpuList, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|e| format!("the worker that lists them cannot be started: {e}"))?;
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|output| output.take(LIST_BYTES).read_to_string(&mut text));
        read.and_then(Result::ok).map(|_| text)
    });
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if began.elapsed() < LIMIT => thread::sleep(POLL),
            Ok(None) | Err(_) => {
                // Whatever it waits for, the daemon does not.
                let _ = child.kill();
                let seconds = LIMIT.as_secs();
                return Err(format!("the driver did not list them within {seconds} s"));
            }
        }
    }
    let text = reader.join().ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).map_err(|e| format!("the worker's list of them is no list: {e}"))
}
