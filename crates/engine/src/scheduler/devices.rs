//! The life of devices: start, heartbeat, loss, restart with growing pauses, quarantine.

use filecoin::CircuitId;
use store::UnitKey;

use super::Scheduler;
use super::config::Millis;
use super::device::{Device, DeviceState, LeasePhase};
use super::event::{Action, DeviceId, DeviceSpec, Incarnation, LeaseId};

/// The waiting time doubles at most so often.
const MAX_DOUBLINGS: u32 = 16;
/// The most units that a device may say it takes: each holds host memory.
const AT_A_TIME_MAX: usize = 16;

impl Scheduler {
    pub(super) fn add_device(&mut self, spec: &DeviceSpec) {
        let now = self.now;
        self.devices
            .entry(spec.id)
            .or_insert_with(|| Device::new(spec, now));
    }

    /// The device, if this is its present process.
    fn process(&mut self, id: DeviceId, incarnation: Incarnation) -> Option<&mut Device> {
        self.devices
            .get_mut(&id)
            .filter(|device| device.incarnation == incarnation)
    }

    pub(super) fn device_ready(&mut self, id: DeviceId, incarnation: Incarnation) {
        let now = self.now;
        let Some(device) = self.process(id, incarnation) else {
            return;
        };
        if let DeviceState::Starting { .. } = device.state {
            device.state = DeviceState::Ready;
            device.failed_starts = 0;
            device.heard = now;
        }
    }

    pub(super) fn heartbeat(&mut self, id: DeviceId, incarnation: Incarnation) {
        let now = self.now;
        if let Some(device) = self.process(id, incarnation) {
            device.heard = now;
        }
    }

    pub(super) fn key_loaded(&mut self, id: DeviceId, circuit: CircuitId, loaded: bool) {
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        if loaded {
            device.loaded.insert(circuit);
        } else {
            device.loaded.remove(&circuit);
        }
    }

    pub(super) fn circuit_served(&mut self, id: DeviceId, circuit: CircuitId) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.circuits.insert(circuit);
        }
    }

    /// Units that run already stay when there are fewer from now on.
    pub(super) fn device_takes(
        &mut self,
        id: DeviceId,
        incarnation: Incarnation,
        at_a_time: usize,
    ) {
        if let Some(device) = self.process(id, incarnation) {
            device.at_a_time = at_a_time.clamp(1, AT_A_TIME_MAX);
            device.at_a_time_most = device.at_a_time_most.max(device.at_a_time);
        }
    }

    /// The process is gone, and what it held with it.
    pub(super) fn device_stopped(
        &mut self,
        id: DeviceId,
        incarnation: Incarnation,
        cause: &str,
        out: &mut Vec<Action>,
    ) {
        let Some(device) = self.process(id, incarnation) else {
            return;
        };
        let expected = match device.state {
            DeviceState::Waiting { .. } | DeviceState::Off => return,
            DeviceState::Stopping { .. } | DeviceState::Stuck => true,
            DeviceState::Starting { .. } | DeviceState::Ready => false,
        };
        if let DeviceState::Starting { .. } = device.state {
            device.failed_starts += 1;
        }
        let failed_starts = device.failed_starts;
        // From here on there is nobody to be told to stop.
        device.state = DeviceState::Waiting { until: Millis::MAX };
        if !expected {
            self.lose_units(id, cause, None, out);
        }
        self.drop_leases(id);
        if failed_starts >= self.config.start_tries {
            let cause = format!("its process failed to start {failed_starts} times, last: {cause}");
            self.quarantine(id, &cause, out);
        }
        let (first, largest) = self.config.restart_ms;
        let now = self.now;
        let device = self.devices.get_mut(&id).expect("invariant: found above");
        device.losses = device.losses.saturating_add(1);
        let doublings = (device.losses - 1).min(MAX_DOUBLINGS);
        let pause = first.saturating_mul(1 << doublings).min(largest);
        device.state = match device.quarantine {
            Some(_) => DeviceState::Off,
            None => DeviceState::Waiting { until: now + pause },
        };
        device.loaded.clear();
        device.at_a_time = device.at_a_time_first;
    }

    /// Tells a device to end. Its units go back at once; their memory stays counted until the
    /// process is gone.
    pub(super) fn stop_device(
        &mut self,
        id: DeviceId,
        cause: &str,
        culprit: Option<UnitKey>,
        out: &mut Vec<Action>,
    ) {
        let limit = self.now + self.config.stop_limit_ms;
        if !self.is_going_on(id) {
            return;
        }
        let device = self.devices.get_mut(&id).expect("invariant: it goes on");
        device.state = DeviceState::Stopping { limit };
        let incarnation = device.incarnation;
        out.push(Action::StopDevice {
            device: id,
            incarnation,
            cause: cause.to_owned(),
        });
        self.lose_units(id, cause, culprit, out);
    }

    /// Whether it has a process that nobody has told to end.
    pub(super) fn is_going_on(&self, id: DeviceId) -> bool {
        let state = self.devices.get(&id).map(|device| device.state);
        matches!(
            state,
            Some(DeviceState::Ready | DeviceState::Starting { .. })
        )
    }

    /// What a device was at work on goes back into the queue. Only running units count as
    /// tried: the prepared ones had no part in the device's end. Of `culprit` it is known that it
    /// had.
    fn lose_units(
        &mut self,
        id: DeviceId,
        cause: &str,
        culprit: Option<UnitKey>,
        out: &mut Vec<Action>,
    ) {
        let device = &self.devices[&id];
        let prepared = device.prepared.clone();
        let running = [&device.running[..], &device.finishing].concat();
        for lease in prepared {
            self.discard(lease, true, out);
        }
        let running: Vec<_> = running
            .into_iter()
            .map(|id| {
                let lease = self
                    .leases
                    .get_mut(&id)
                    .expect("invariant: what runs is leased");
                let was_orphan = std::mem::replace(&mut lease.orphan, true);
                let before = *lease;
                lease.charged = None;
                (id, before, was_orphan)
            })
            .collect();
        let first = culprit.or(running.first().map(|(_, lease, _)| lease.unit));
        // One of them may end a job of which another one is: all are orphans before.
        for (id, lease, was_orphan) in running {
            self.uncharge(&lease, self.time_used(&lease));
            if !was_orphan && self.open_job(lease.unit.job, lease.unit.attempt).is_some() {
                let cause = format!("{}: {cause}", lease.device);
                self.retry(id, &lease, &cause, out);
            }
        }
        // It ended once, however many units it had.
        if let Some(unit) = first {
            self.blame(id, unit, cause, out);
        }
    }

    /// Forgets the leases of a process that is gone. A proof it has handed over is still checked.
    fn drop_leases(&mut self, id: DeviceId) {
        let of_process = |lease: &super::device::Lease| {
            lease.device == id && !matches!(lease.phase, LeasePhase::Judging { .. })
        };
        let leases: Vec<LeaseId> = self
            .leases
            .iter()
            .filter(|(_, l)| of_process(l))
            .map(|(&id, _)| id)
            .collect();
        for lease in leases {
            self.let_go(lease);
            self.leases.remove(&lease);
        }
        let device = self
            .devices
            .get_mut(&id)
            .expect("invariant: callers name a known device");
        device.running.clear();
        device.finishing.clear();
        device.prepared.clear();
        device.discarding = 0;
    }

    /// Counts a failure against a device.
    pub(super) fn blame(
        &mut self,
        id: DeviceId,
        unit: UnitKey,
        cause: &str,
        out: &mut Vec<Action>,
    ) {
        let limit = self.config.quarantine_after;
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        device.failed_units.insert((unit.job, unit.index));
        if device.failed_units.len() >= limit {
            let cause = format!("{limit} different units failed in a row, last: {cause}");
            self.quarantine(id, &cause, out);
        }
    }

    /// Gives a device no more units.
    pub(super) fn quarantine(&mut self, id: DeviceId, cause: &str, out: &mut Vec<Action>) {
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        if device.quarantine.is_some() {
            return;
        }
        device.quarantine = Some(cause.to_owned());
        if let DeviceState::Waiting { .. } = device.state {
            device.state = DeviceState::Off;
        }
        out.push(Action::Quarantined {
            device: id,
            cause: cause.to_owned(),
        });
        self.stop_device(id, cause, None, out);
    }

    /// Lifts a quarantine: the device is started anew.
    pub(super) fn release_device(&mut self, id: DeviceId) {
        let now = self.now;
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        if device.quarantine.take().is_none() {
            return;
        }
        device.failed_units.clear();
        device.losses = 0;
        device.failed_starts = 0;
        if device.state == DeviceState::Off {
            device.state = DeviceState::Waiting { until: now };
        }
    }
}
