//! What an operator can set, with the defaults.

use std::collections::BTreeMap;

use filecoin::ProofKind;

/// Milliseconds: a point in time since the Unix epoch, or a span (`_ms`).
pub type Millis = u64;

/// The scheduler's settings. All limits are hard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// This engine's name in leases; other engines on the same store have others.
    pub holder: String,
    /// How long a lease in the store stands without being renewed.
    pub lease_ms: Millis,
    /// The number of the first lease. Must be larger than any that this holder gave before:
    /// the start time in microseconds will do.
    pub first_lease: u64,
    /// Open jobs, WinningPoSt not counted.
    pub max_jobs: usize,
    /// Payload bytes of the open jobs, WinningPoSt not counted.
    pub max_payload_bytes: u64,
    /// Units of one job.
    pub max_units: u32,
    /// Host memory for the units at work, bytes.
    pub budget_bytes: u64,
    /// The part of it that only WinningPoSt may use, bytes.
    pub lane_bytes: u64,
    /// A job that has waited longer has a right to the guard's turns.
    pub patience_ms: Millis,
    /// Every so many units that a device takes, one is the guard's turn. At least 2.
    pub guard_every: u64,
    /// So many times a job may be passed over for one whose key the device has loaded.
    pub affinity_limit: u32,
    /// Clients' shares; 1 for those not named.
    pub weights: BTreeMap<String, u32>,
    /// How long a unit of each kind may run on a device.
    pub unit_limit_ms: PerKind,
    /// How long the check of a returned proof may take.
    pub judge_limit_ms: Millis,
    /// How long joining a job's proofs may take.
    pub assembly_limit_ms: Millis,
    /// A device that has been silent for longer is stopped.
    pub heartbeat_ms: Millis,
    /// How long a device may take to become ready.
    pub start_limit_ms: Millis,
    /// How long a device may take to end, once told to.
    pub stop_limit_ms: Millis,
    /// A device whose process ended so many times in a row before it was ready is quarantined.
    pub start_tries: u32,
    /// Waiting time before a lost device is started again: the first, and the largest.
    pub restart_ms: (Millis, Millis),
    /// Tries per unit, over all devices.
    pub unit_tries: u32,
    /// A device that fails so many different units in a row is quarantined.
    pub quarantine_after: usize,
    /// How long a job waits while no device can serve its circuit.
    pub no_device_ms: Millis,
}

/// One span per kind of proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerKind {
    /// PoRep.
    pub porep: Millis,
    /// SnapDeals.
    pub snap: Millis,
    /// WindowPoSt.
    pub window: Millis,
    /// WinningPoSt.
    pub winning: Millis,
}

impl PerKind {
    /// The span of this kind.
    pub fn get(&self, kind: ProofKind) -> Millis {
        match kind {
            ProofKind::Porep => self.porep,
            ProofKind::Snap => self.snap,
            ProofKind::Window => self.window,
            ProofKind::Winning => self.winning,
        }
    }
}

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;

impl Default for Config {
    fn default() -> Self {
        Self {
            holder: "local".to_owned(),
            lease_ms: MINUTE,
            first_lease: 1,
            max_jobs: 10_000,
            max_payload_bytes: 64 << 30,
            max_units: 256,
            budget_bytes: 8 << 30,
            lane_bytes: 512 << 20,
            patience_ms: 10 * MINUTE,
            guard_every: 4,
            affinity_limit: 16,
            weights: BTreeMap::new(),
            unit_limit_ms: PerKind {
                porep: 30 * MINUTE,
                snap: 30 * MINUTE,
                window: 30 * MINUTE,
                winning: 2 * MINUTE,
            },
            judge_limit_ms: MINUTE,
            assembly_limit_ms: 10 * MINUTE,
            heartbeat_ms: 15 * SECOND,
            start_limit_ms: 10 * MINUTE,
            stop_limit_ms: MINUTE,
            // With the pauses between them about four minutes: time for a driver to come back.
            start_tries: 9,
            restart_ms: (SECOND, 5 * MINUTE),
            unit_tries: 3,
            quarantine_after: 3,
            no_device_ms: 5 * MINUTE,
        }
    }
}
