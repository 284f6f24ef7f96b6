//! What the service shows of itself, without waiting for its loop.

use std::collections::BTreeMap;

use filecoin::ProofKind;

use crate::scheduler::{DeviceView, KindCounts, Millis, Outcome};

/// Jobs that have ended since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// With a proof.
    pub completed: u64,
    /// With a failure.
    pub failed: u64,
    /// By a client's wish.
    pub cancelled: u64,
}

impl Totals {
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Completed => self.completed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Cancelled => self.cancelled += 1,
        }
    }
}

/// The service at one moment. Every job that has been acknowledged and whose result is not yet
/// available is in exactly one of the counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Since the start.
    pub uptime_ms: Millis,
    /// Open jobs of each kind, all four kinds.
    pub counts: Vec<(ProofKind, KindCounts)>,
    /// Devices with their names.
    pub devices: Vec<(String, DeviceView)>,
    /// Ended jobs of each kind.
    pub totals: BTreeMap<ProofKind, Totals>,
    /// Jobs with a unit waiting.
    pub queued: usize,
    /// Host memory held by units, bytes.
    pub memory_used: u64,
    /// And the most that they may hold.
    pub memory_budget: u64,
    /// Set while the store does not take writes: the cause. Nothing is acknowledged meanwhile.
    pub store_error: Option<String>,
}
