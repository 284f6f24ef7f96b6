//! How far the work is: what heartbeats tell, and by what a prover that stands still is noticed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use groth16::progress::Progress;

/// The stage at work and how much of it is done. Given to whatever works as its [`Progress`].
#[derive(Debug, Default)]
pub struct Pulse {
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    /// Calls so far: changes whenever anything moves.
    steps: AtomicU64,
}

impl Pulse {
    /// Changes whenever something moves.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The stage, what of it is done, and of how much.
    pub fn now(&self) -> (&'static str, (u64, u64)) {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.done.load(Ordering::Relaxed);
        (stage, (done, self.total.load(Ordering::Relaxed)))
    }
}

impl Progress for Pulse {
    fn begin(&self, stage: &'static str, total: u64) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn advance(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}
