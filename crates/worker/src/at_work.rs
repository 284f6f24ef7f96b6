//! The units that a worker process has, as the daemon has given them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::scheduler::LeaseId;
use filecoin::CircuitId;

/// The units that the process has, prepared ones too.
#[derive(Default)]
pub(crate) struct AtWork(Mutex<BTreeMap<LeaseId, CircuitId>>);

impl AtWork {
    pub(crate) fn units(&self) -> MutexGuard<'_, BTreeMap<LeaseId, CircuitId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
