//! Devices and leases as the scheduler sees them.

use std::collections::{BTreeMap, BTreeSet};

use filecoin::CircuitId;
use store::{JobId, UnitKey};

use super::config::{Config, Millis};
use super::event::{DeviceId, DeviceSpec, Incarnation, LeaseId};
use super::job::Class;
use super::timers::Pause;

/// What a device's process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceState {
    /// No process; one is started at `until`.
    Waiting { until: Millis },
    /// The process was started and has until `limit` to become ready.
    Starting { limit: Millis },
    /// It takes units.
    Ready,
    /// It was told to end and has until `limit` to do so.
    Stopping { limit: Millis },
    /// It was told to end and has not. Its memory stays counted; a new process is not started.
    Stuck,
    /// No process, and none is started.
    Off,
}

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) id: DeviceId,
    pub(super) circuits: BTreeSet<CircuitId>,
    pub(super) at_a_time: usize,
    /// So many more are for the lane.
    pub(super) lane_places: usize,
    /// Before its process has said how many.
    pub(super) at_a_time_first: usize,
    /// The largest that there has been.
    pub(super) at_a_time_most: usize,
    pub(super) look_ahead: usize,
    pub(super) state: DeviceState,
    pub(super) incarnation: Incarnation,
    /// Why it gets no units, if so.
    pub(super) quarantine: Option<String>,
    /// The units on the device, first come first.
    pub(super) running: Vec<LeaseId>,
    /// Running units that need only the process any more, not the device.
    pub(super) finishing: Vec<LeaseId>,
    /// Units being prepared, next first. Those told to be discarded are not in here.
    pub(super) prepared: Vec<LeaseId>,
    /// Prepared units that were told to be dropped and are not yet.
    pub(super) discarding: usize,
    /// Circuits whose key it has.
    pub(super) loaded: BTreeSet<CircuitId>,
    /// Last sign of life.
    pub(super) heard: Millis,
    /// Different units that failed since the last success.
    pub(super) failed_units: BTreeSet<(JobId, u32)>,
    /// Losses since the last success: the exponent of the waiting time.
    pub(super) losses: u32,
    /// Processes in a row that were never ready.
    pub(super) failed_starts: u32,
    /// Units taken, those of the lane not counted.
    pub(super) taken: u64,
    /// When (in units taken) each class last had a turn of the guard.
    pub(super) guarded: BTreeMap<Class, u64>,
}

impl Device {
    pub(super) fn new(spec: &DeviceSpec, now: Millis) -> Self {
        Self {
            id: spec.id,
            circuits: spec.circuits.iter().copied().collect(),
            at_a_time: spec.at_a_time.max(1),
            lane_places: spec.lane_places,
            at_a_time_first: spec.at_a_time.max(1),
            at_a_time_most: spec.at_a_time.max(1),
            look_ahead: spec.look_ahead,
            state: DeviceState::Waiting { until: now },
            incarnation: 0,
            quarantine: None,
            running: Vec::new(),
            finishing: Vec::new(),
            prepared: Vec::new(),
            discarding: 0,
            loaded: BTreeSet::new(),
            heard: now,
            failed_units: BTreeSet::new(),
            losses: 0,
            failed_starts: 0,
            taken: 0,
            guarded: BTreeMap::new(),
        }
    }

    /// Whether it may take units, now or after a restart.
    pub(super) fn is_usable(&self) -> bool {
        self.quarantine.is_none() && !matches!(self.state, DeviceState::Stuck | DeviceState::Off)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.quarantine.is_none() && self.state == DeviceState::Ready
    }

    /// Whether it may start any unit now.
    pub(super) fn has_room(&self) -> bool {
        self.running.len() < self.at_a_time
    }

    /// Units that may run on it at a time, if enough of them are of the lane.
    pub(super) fn places(&self) -> usize {
        self.at_a_time + self.lane_places
    }

    /// Whether one more may be prepared beside so many.
    pub(super) fn prepares_more(&self, prepared: usize) -> bool {
        prepared + self.discarding < self.look_ahead
    }

    pub(super) fn serves(&self, circuit: CircuitId) -> bool {
        self.circuits.contains(&circuit)
    }

    /// The time at which something must be done about it.
    pub(super) fn wake(&self, heartbeat_ms: Millis) -> Option<Millis> {
        match self.state {
            DeviceState::Waiting { until } => Some(until),
            DeviceState::Starting { limit } | DeviceState::Stopping { limit } => Some(limit),
            DeviceState::Ready => Some(self.heard.saturating_add(heartbeat_ms)),
            DeviceState::Stuck | DeviceState::Off => None,
        }
    }

    /// Nothing was done about it for a time.
    pub(super) fn put_off(&mut self, pause: &Pause, config: &Config) {
        self.heard = pause.put_off(self.heard, 0);
        match &mut self.state {
            DeviceState::Waiting { until } => *until = pause.put_off(*until, config.restart_ms.1),
            DeviceState::Starting { limit } => {
                *limit = pause.put_off(*limit, config.start_limit_ms);
            }
            DeviceState::Stopping { limit } => *limit = pause.put_off(*limit, config.stop_limit_ms),
            DeviceState::Ready | DeviceState::Stuck | DeviceState::Off => {}
        }
    }
}

/// What is done under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeasePhase {
    /// Decoding and witness, while the device is busy with another unit.
    Prepared,
    /// It is proven, on the device or, at the end, beside it; until then at the latest.
    Running { limit: Millis },
    /// The device was told to drop it; until then at the latest.
    Discarding { limit: Millis },
    /// The proof is being checked; until then at the latest.
    Judging { limit: Millis },
}

/// A unit on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) device: DeviceId,
    pub(super) unit: UnitKey,
    pub(super) circuit: CircuitId,
    /// Its memory is the lane's.
    pub(super) lane: bool,
    /// Host memory held, bytes.
    pub(super) bytes: u64,
    pub(super) phase: LeasePhase,
    /// Nobody wants the result: the job has ended or the unit was given to another device.
    pub(super) orphan: bool,
    /// When the device began.
    pub(super) started: Millis,
    /// When it was done, if the process has still to do something.
    pub(super) left: Option<Millis>,
    /// Device time charged to the client, until the time used is known.
    pub(super) charged: Option<Millis>,
}

impl Lease {
    pub(super) fn wake(&self) -> Option<Millis> {
        match self.phase {
            LeasePhase::Prepared => None,
            LeasePhase::Running { limit }
            | LeasePhase::Discarding { limit }
            | LeasePhase::Judging { limit } => Some(limit),
        }
    }

    /// Nothing was done about it for a time.
    pub(super) fn put_off(&mut self, pause: &Pause, config: &Config) {
        // What was leased meanwhile was not on the device.
        if let (LeasePhase::Running { .. }, None) = (self.phase, self.left) {
            self.started = pause.put_off(self.started, 0);
        }
        let (limit, most) = match &mut self.phase {
            LeasePhase::Prepared => return,
            LeasePhase::Running { limit } => (limit, config.unit_limit_ms.get(self.circuit.kind)),
            LeasePhase::Discarding { limit } => (limit, config.heartbeat_ms),
            LeasePhase::Judging { limit } => (limit, config.judge_limit_ms),
        };
        *limit = pause.put_off(*limit, most);
    }
}
