//! What happens because time has passed.

use super::Scheduler;
use super::config::Millis;
use super::device::{DeviceState, LeasePhase};
use super::event::{Action, DeviceId, LeaseId};
use super::job::Phase;
use super::refusal::{Refusal, code};

/// A time in which the store failed, and nothing that was decided happened.
pub(super) struct Pause {
    length: Millis,
    /// Its end.
    now: Millis,
}

impl Pause {
    /// A limit after it: with as much time left as before, and what was set meanwhile with all the time
    /// that it is ever given.
    pub(super) fn put_off(&self, limit: Millis, most: Millis) -> Millis {
        let longest = self.now.saturating_add(most);
        match limit {
            Millis::MAX => Millis::MAX,
            limit => limit.saturating_add(self.length).min(longest),
        }
    }
}

impl Scheduler {
    /// When [`Event::Tick`](super::Event::Tick) is due, unless another event comes before.
    /// Never earlier than the time of the last event; never while the store fails.
    pub fn next_wake(&self) -> Option<Millis> {
        if self.still_since.is_some() {
            return None;
        }
        let devices = self
            .devices
            .values()
            .filter_map(|d| d.wake(self.config.heartbeat_ms));
        let leases = self.leases.values().filter_map(super::device::Lease::wake);
        let jobs = self.deadlines.first().map(|&(time, _)| time);
        let assembling = self.assembling.first().map(|&(time, _)| time);
        let unserved = self
            .unserved
            .values()
            .map(|&since| since + self.config.no_device_ms);
        let times = devices
            .chain(leases)
            .chain(jobs)
            .chain(assembling)
            .chain(unserved);
        times.min().map(|time| time.max(self.now))
    }

    /// The store has failed.
    pub(super) fn stand_still(&mut self) {
        self.still_since.get_or_insert(self.now);
    }

    /// The store works again: whatever has a limit has as much time left as when it failed.
    pub(super) fn go_on(&mut self) {
        let Some(since) = self.still_since.take() else {
            return;
        };
        let now = self.now;
        let (length, config) = (now - since, &self.config);
        let pause = Pause { length, now };
        for lease in self.leases.values_mut() {
            lease.put_off(&pause, config);
        }
        for device in self.devices.values_mut() {
            device.put_off(&pause, config);
        }
        for since in self.unserved.values_mut() {
            *since = pause.put_off(*since, 0);
        }
        for (limit, id) in std::mem::take(&mut self.assembling) {
            let limit = pause.put_off(limit, config.assembly_limit_ms);
            self.assembling.insert((limit, id));
            if let Some(job) = self.jobs.get_mut(&id) {
                job.phase = Phase::Assembling { limit };
            }
        }
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, out: &mut Vec<Action>) {
        if self.still_since.is_some() {
            return;
        }
        self.expire_jobs(out);
        self.expire_leases(out);
        self.expire_devices(out);
        self.expire_unserved(out);
    }

    fn expire_jobs(&mut self, out: &mut Vec<Action>) {
        while let Some(&(time, id)) = self.deadlines.first().filter(|(time, _)| *time <= self.now) {
            let name = &self.jobs[&id].name;
            let message = format!(
                "{name} was not proven by its deadline ({} ms ago); submit earlier, or add devices",
                self.now - time
            );
            self.fail(id, code::DEADLINE_EXCEEDED, &message, out);
        }
        while let Some(&(_, id)) = self
            .assembling
            .first()
            .filter(|(time, _)| *time <= self.now)
        {
            let name = &self.jobs[&id].name;
            let limit = self.config.assembly_limit_ms;
            let message = format!("joining the proofs of {name} took longer than {limit} ms");
            self.fail(id, code::ASSEMBLY_FAILED, &message, out);
        }
    }

    fn expire_leases(&mut self, out: &mut Vec<Action>) {
        let due = |phase| match phase {
            LeasePhase::Prepared => false,
            LeasePhase::Running { limit }
            | LeasePhase::Discarding { limit }
            | LeasePhase::Judging { limit } => limit <= self.now,
        };
        let due: Vec<LeaseId> = self
            .leases
            .iter()
            .filter(|(_, l)| due(l.phase))
            .map(|(&id, _)| id)
            .collect();
        for id in due {
            // An earlier one of the list may have ended this one.
            let Some(lease) = self.leases.get(&id).copied() else {
                continue;
            };
            match lease.phase {
                LeasePhase::Judging { .. } => {
                    self.leases.remove(&id);
                    if !lease.orphan {
                        let limit = self.config.judge_limit_ms;
                        let cause = format!("the check of its proof took longer than {limit} ms");
                        self.retry(id, &lease, &cause, out);
                    }
                }
                LeasePhase::Running { .. } if self.waits_for_a_load(id) => {
                    self.begin_limit_again(id);
                }
                _ => self.expire_on_device(id, lease.device, out),
            }
        }
    }

    /// Whether the device may still load the key of a unit of another circuit that it started earlier, until that
    /// unit's own limit.
    fn waits_for_a_load(&self, id: LeaseId) -> bool {
        let lease = &self.leases[&id];
        let device = &self.devices[&lease.device];
        lease.left.is_none()
            && device.running.iter().any(|other_id| {
                let other = &self.leases[other_id];
                let was_first = (other.started, *other_id) < (lease.started, id);
                let is_late =
                    matches!(other.phase, LeasePhase::Running { limit } if limit <= self.now);
                let loads =
                    other.circuit != lease.circuit && !device.loaded.contains(&other.circuit);
                was_first && loads && !is_late
            })
    }

    /// Gives a running unit its time once more.
    fn begin_limit_again(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            let limit = self.now + self.config.unit_limit_ms.get(lease.circuit.kind);
            lease.phase = LeasePhase::Running { limit };
        }
    }

    /// A device is over time with a unit. If it is being stopped already, nothing more can be
    /// done than to wait; the lease's limit moves on so that it is not looked at again and again.
    fn expire_on_device(&mut self, id: LeaseId, device: DeviceId, out: &mut Vec<Action>) {
        let lease = &self.leases[&id];
        let cause = match lease.phase {
            LeasePhase::Discarding { .. } => "did not drop a unit when told to".to_owned(),
            _ => format!(
                "no result of a {} unit within {} ms",
                lease.circuit,
                self.config.unit_limit_ms.get(lease.circuit.kind)
            ),
        };
        let culprit = match lease.phase {
            LeasePhase::Running { .. } => Some(lease.unit),
            _ => None,
        };
        self.stop_device(device, &cause, culprit, out);
        if let Some(lease) = self.leases.get_mut(&id) {
            let never = Millis::MAX;
            lease.phase = match lease.phase {
                LeasePhase::Running { .. } => LeasePhase::Running { limit: never },
                _ => LeasePhase::Discarding { limit: never },
            };
        }
    }

    fn expire_devices(&mut self, out: &mut Vec<Action>) {
        let heartbeat = self.config.heartbeat_ms;
        let due: Vec<DeviceId> = self
            .devices
            .values()
            .filter(|device| device.wake(heartbeat).is_some_and(|time| time <= self.now))
            .map(|device| device.id)
            .collect();
        for id in due {
            self.expire_device(id, out);
        }
    }

    fn expire_device(&mut self, id: DeviceId, out: &mut Vec<Action>) {
        let (now, config) = (self.now, &self.config);
        let device = self.devices.get_mut(&id).expect("invariant: listed above");
        match device.state {
            DeviceState::Waiting { .. } if self.draining => device.state = DeviceState::Off,
            DeviceState::Waiting { .. } => {
                device.incarnation += 1;
                device.state = DeviceState::Starting {
                    limit: now + config.start_limit_ms,
                };
                let incarnation = device.incarnation;
                out.push(Action::StartDevice {
                    device: id,
                    incarnation,
                });
            }
            DeviceState::Starting { .. } => {
                device.failed_starts += 1;
                let cause = format!("not ready within {} ms", config.start_limit_ms);
                self.stop_device(id, &cause, None, out);
            }
            DeviceState::Ready => {
                let cause = format!("silent for {} ms", config.heartbeat_ms);
                self.stop_device(id, &cause, None, out);
            }
            DeviceState::Stopping { .. } => {
                let limit = config.stop_limit_ms;
                device.state = DeviceState::Stuck;
                let cause = format!("its process did not end within {limit} ms; see `nvidia-smi`");
                self.quarantine(id, &cause, out);
            }
            DeviceState::Stuck | DeviceState::Off => {}
        }
    }

    fn expire_unserved(&mut self, out: &mut Vec<Action>) {
        let limit = self.config.no_device_ms;
        let due: Vec<_> = self
            .unserved
            .iter()
            .filter(|(_, since)| since.saturating_add(limit) <= self.now)
            .map(|(&circuit, _)| circuit)
            .collect();
        for circuit in due {
            if self.is_served(circuit) {
                continue;
            }
            let waiting = |job: &&super::job::Job| {
                job.circuit == circuit && job.phase == Phase::Proving && job.ready > 0
            };
            let jobs: Vec<_> = self
                .jobs
                .values()
                .filter(waiting)
                .map(|job| job.id)
                .collect();
            let cause = "none came back in time";
            let message = Refusal::NoDevice { circuit, cause }.to_string();
            for job in jobs {
                self.fail(job, code::NO_DEVICE, &message, out);
            }
        }
    }

    fn is_served(&self, circuit: filecoin::CircuitId) -> bool {
        self.devices
            .values()
            .any(|device| device.is_usable() && device.serves(circuit))
    }

    /// Brings up to date which circuits jobs wait for in vain, and since when.
    pub(super) fn note_unserved(&mut self) {
        let now = self.now;
        let unserved = std::mem::take(&mut self.unserved);
        self.unserved = self
            .queue
            .circuits()
            .filter(|&circuit| !self.is_served(circuit))
            .map(|circuit| (circuit, unserved.get(&circuit).copied().unwrap_or(now)))
            .collect();
    }
}
