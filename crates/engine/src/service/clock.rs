//! Time for the scheduler: milliseconds since the Unix epoch, but never backwards.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::scheduler::Millis;

/// Wall-clock time at the start, and the monotonic clock from there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    epoch_ms: Millis,
    began: Instant,
}

impl Clock {
    /// Starts now.
    pub(super) fn new() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let epoch_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        Self {
            epoch_ms,
            began: Instant::now(),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> Millis {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.epoch_ms.saturating_add(elapsed)
    }
}
