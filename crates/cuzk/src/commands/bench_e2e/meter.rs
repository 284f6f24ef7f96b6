//! What the process takes of the machine: processor time and memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::system_file;
use crate::phases::kibibytes;

/// Pause between looks at the process's memory.
const PERIOD: Duration = Duration::from_millis(20);

/// The processor time of the process at some moment.
#[derive(Clone, Copy)]
pub struct Cpu(Duration);

impl Cpu {
    /// Of all its threads, also of those that have ended.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanoseconds))
    }

    /// Core time since then.
    pub fn since(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// The most resident memory of the process at any look, bytes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Resident {
    /// Its own: what it has allocated, without files.
    pub own_bytes: u64,
    /// Pages of mapped files: the key's, which the system takes back when it must.
    pub file_bytes: u64,
    /// Shared memory: a key that lives in memory; and page-locked memory, where the driver's counts.
    pub shared_bytes: u64,
}

impl Resident {
    fn now() -> Option<Self> {
        let status = system_file("/proc/self/status")?;
        let bytes = |name| kibibytes(&status, name).unwrap_or_default();
        Some(Self {
            own_bytes: bytes("RssAnon:"),
            file_bytes: bytes("RssFile:"),
            shared_bytes: bytes("RssShmem:"),
        })
    }

    fn most(&mut self, other: Self) {
        self.own_bytes = self.own_bytes.max(other.own_bytes);
        self.file_bytes = self.file_bytes.max(other.file_bytes);
        self.shared_bytes = self.shared_bytes.max(other.shared_bytes);
    }
}

/// Watches the process's memory.
pub struct MemoryPeaks {
    over: Arc<AtomicBool>,
    most: Arc<Mutex<Option<Resident>>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryPeaks {
    /// Begins.
    pub fn watch() -> Self {
        let (over, most) = (Arc::<AtomicBool>::default(), Arc::<Mutex<_>>::default());
        let (is_over, seen) = (Arc::clone(&over), Arc::clone(&most));
        let look = move || {
            while !is_over.load(Ordering::Relaxed) {
                note(&seen);
                thread::sleep(PERIOD);
            }
        };
        // Without the thread only the end is seen.
        let thread = thread::Builder::new()
            .name("memory".to_owned())
            .spawn(look)
            .ok();
        Self { over, most, thread }
    }

    /// Ends; `None` where the system does not tell.
    pub fn end(self) -> Option<Resident> {
        self.over.store(true, Ordering::Relaxed);
        // It has nothing to tell.
        let _ = self.thread.map(JoinHandle::join);
        note(&self.most);
        *self.most.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(most: &Mutex<Option<Resident>>) {
    let Some(now) = Resident::now() else { return };
    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
    most.get_or_insert_default().most(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_seen_and_so_is_work() {
        let (cpu, peaks) = (Cpu::now(), MemoryPeaks::watch());
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        thread::sleep(3 * PERIOD);
        drop(block);
        thread::sleep(3 * PERIOD);
        let peak = peaks.end().expect("Linux tells");
        assert!(peak.own_bytes >= 64 << 20, "{peak:?}");
        assert!(cpu.since() > Duration::ZERO);
    }
}
