//! Which unit goes to which device, and when. See the rules in the [module](super).

use std::collections::BTreeSet;
use std::sync::Arc;

use filecoin::CircuitId;
use store::JobId;

use super::Scheduler;
use super::config::Millis;
use super::device::{Device, Lease, LeasePhase};
use super::event::{Action, DeviceId, LeaseId, Write};
use super::job::{Class, Job, Rank, UnitState};

/// A job whose deadline is nearer than so many times its expected remaining time is urgent.
const URGENCY: u64 = 2;

/// A choice that has not been made yet.
pub(super) struct Pick {
    pub(super) job: JobId,
    unit: usize,
    class: Class,
    /// It was the guard's turn.
    guarded: bool,
    /// The job that would have been next by the clients' shares.
    passed_over: Option<JobId>,
}

/// Whose memory a unit of a class takes. What is prepared ahead of the lane takes that of the others, so
/// that the lane's own is there for units that start.
fn memory_of(class: Class, start: bool) -> Class {
    match class {
        Class::Lane if !start => Class::BELOW_LANE[0],
        class => class,
    }
}

/// What became of the attempt to give a device work.
pub(super) enum Given {
    Unit,
    /// The next unit in order does not fit into memory.
    NoMemory,
    Nothing,
}

impl Scheduler {
    /// Gives work to every device that can take some.
    pub(super) fn dispatch(&mut self, out: &mut Vec<Action>) {
        if self.draining {
            return;
        }
        let ready: Vec<_> = self
            .devices
            .values()
            .filter(|d| d.is_ready())
            .map(|d| d.id)
            .collect();
        let mut blocked = false;
        // The second units when every device has had its first: work spreads before it piles up.
        let most = ready.iter().map(|id| self.devices[id].places()).max();
        for depth in 0..most.unwrap_or(0) {
            for &id in &ready {
                let device = &self.devices[&id];
                if device.running.len() == depth && self.has_room_for_lane(id) {
                    blocked |= self.start_something(id, blocked, out);
                }
            }
        }
        if blocked || ready.iter().any(|id| self.lane_lacks_memory(*id)) {
            return;
        }
        for &device in &ready {
            self.look_ahead_in_lane(device, out);
        }
        for &device in &ready {
            while self.wants_look_ahead_below_lane(device) {
                match self.take(device, false, out) {
                    Given::Unit => {}
                    Given::Nothing => break,
                    Given::NoMemory => return,
                }
            }
        }
    }

    /// Starts a unit on a device with room for one, or for one of the lane alone. Returns whether memory kept the
    /// next unit in order from starting; `blocked` says that this was so on another device already, so that only
    /// what has its memory, and the lane, may start.
    fn start_something(
        &mut self,
        device: DeviceId,
        mut blocked: bool,
        out: &mut Vec<Action>,
    ) -> bool {
        if self.start_of_lane(device, &mut blocked, out) || !self.devices[&device].has_room() {
            return blocked;
        }
        if let Some(&lease) = self.devices[&device].prepared.first() {
            self.start_prepared(device, lease, out);
        } else if !blocked {
            match self.take(device, true, out) {
                Given::Unit => {}
                Given::NoMemory => blocked = true,
                Given::Nothing => self.start_another_s_prepared(device, out),
            }
        }
        blocked
    }

    fn wants_look_ahead_below_lane(&self, id: DeviceId) -> bool {
        let device = &self.devices[&id];
        let prepared = device.prepared.len() - self.prepared_in_lane(id).count();
        !device.has_room() && device.prepares_more(prepared)
    }

    /// Leases the next unit below the lane in order, to start it now or to prepare it.
    fn take(&mut self, device: DeviceId, start: bool, out: &mut Vec<Action>) -> Given {
        match self.choose(&self.devices[&device]) {
            Some(pick) => self.give(device, &pick, start, out),
            None => Given::Nothing,
        }
    }

    /// The next unit below the lane for a device.
    fn choose(&self, device: &Device) -> Option<Pick> {
        let guards_turn = device.taken.is_multiple_of(self.config.guard_every.max(2));
        if let Some(pick) = guards_turn.then(|| self.guarded(device)).flatten() {
            return Some(pick);
        }
        Class::BELOW_LANE.into_iter().find_map(|class| {
            self.most_urgent(device, class)
                .or_else(|| self.by_shares(device, class))
        })
    }

    /// The guard's choice: of the classes with an overdue job that the device may take, the one
    /// whose turn is longest ago; of that class the oldest job.
    fn guarded(&self, device: &Device) -> Option<Pick> {
        let mut classes = Class::BELOW_LANE;
        // Stable, so that among equals the highest class is first.
        classes.sort_by_key(|class| device.guarded.get(class).copied().unwrap_or(0));
        classes.into_iter().find_map(|class| {
            let overdue = |job: &Job| self.is_overdue(job);
            self.oldest_eligible(device, class, overdue)
                .map(|pick| Pick {
                    guarded: true,
                    ..pick
                })
        })
    }

    fn is_overdue(&self, job: &Job) -> bool {
        self.now.saturating_sub(job.accepted) >= self.config.patience_ms
    }

    /// The oldest job of a class with a unit for the device, as long as jobs, oldest first, are
    /// `wanted`.
    pub(super) fn oldest_eligible(
        &self,
        device: &Device,
        class: Class,
        wanted: impl Fn(&Job) -> bool,
    ) -> Option<Pick> {
        let oldest = self.queue.class(class)?.oldest();
        oldest
            .take_while(|id| wanted(&self.jobs[id]))
            .find_map(|id| self.pick(device, id))
    }

    /// The job with the nearest deadline among those whose deadline is near.
    fn most_urgent(&self, device: &Device, class: Class) -> Option<Pick> {
        let ranks = self.heads(device, class, &device.circuits);
        let urgent = ranks.into_iter().filter(|(_, rank)| self.is_urgent(rank));
        let (_, rank) = urgent.min_by_key(|(_, rank)| *rank)?;
        self.pick(device, rank.job)
    }

    fn is_urgent(&self, rank: &Rank) -> bool {
        if rank.deadline == Millis::MAX {
            return false;
        }
        let job = &self.jobs[&rank.job];
        let remaining = (job.units.len() - job.proven) as u64;
        let time = self
            .estimate(job.circuit)
            .saturating_mul(remaining)
            .saturating_mul(URGENCY);
        rank.deadline.saturating_sub(self.now) <= time
    }

    /// The first job of the client that is next by its share, or one that may pass it because
    /// the device has its key loaded.
    fn by_shares(&self, device: &Device, class: Class) -> Option<Pick> {
        let heads = self.heads(device, class, &device.circuits);
        let by_share =
            |(client, rank): &(Arc<str>, Rank)| (self.shares.virtual_time(client), *rank);
        let (_, next) = heads.iter().min_by_key(|head| by_share(head))?;
        let job = &self.jobs[&next.job];
        let may_be_passed = job.passed_over < self.config.affinity_limit
            && !self.is_overdue(job)
            && !device.loaded.contains(&job.circuit);
        if may_be_passed && !device.loaded.is_empty() {
            let loaded = self.heads(device, class, &device.loaded);
            if let Some((_, rank)) = loaded.iter().min_by_key(|head| by_share(head)) {
                let pick = self.pick(device, rank.job)?;
                return Some(Pick {
                    passed_over: Some(next.job),
                    ..pick
                });
            }
        }
        self.pick(device, next.job)
    }

    /// Of each client of a class: its first job for one of `circuits` with a unit for the device.
    fn heads(
        &self,
        device: &Device,
        class: Class,
        circuits: &BTreeSet<CircuitId>,
    ) -> Vec<(Arc<str>, Rank)> {
        let Some(queue) = self.queue.class(class) else {
            return Vec::new();
        };
        let eligible = |id| self.pick(device, id).is_some();
        let first = |client: &Arc<str>| {
            let rank = queue.first_of(client, circuits, eligible)?;
            Some((Arc::clone(client), rank))
        };
        queue.clients().filter_map(first).collect()
    }

    /// The first unit of a job that the device may take.
    pub(super) fn pick(&self, device: &Device, id: JobId) -> Option<Pick> {
        let job = &self.jobs[&id];
        if !device.serves(job.circuit) {
            return None;
        }
        let unit = (0..job.units.len()).find(|&unit| self.may_take(device, job, unit))?;
        Some(Pick {
            job: id,
            unit,
            class: job.class(),
            guarded: false,
            passed_over: None,
        })
    }

    /// Whether a unit is ready, and the device may try it.
    fn may_take(&self, device: &Device, job: &Job, index: usize) -> bool {
        let unit = &job.units[index];
        if unit.state != UnitState::Ready {
            return false;
        }
        self.may_try(device, job, index)
    }

    /// Whether a unit has not failed on this device while there is another that has not tried it.
    /// WinningPoSt has no time for one that is not there at the moment.
    fn may_try(&self, device: &Device, job: &Job, index: usize) -> bool {
        let unit = &job.units[index];
        let is_there = match job.class() {
            Class::Lane => Device::is_ready,
            _ => Device::is_usable,
        };
        let untried = |other: &Device| {
            is_there(other) && other.serves(job.circuit) && !unit.failed_on.contains(&other.id)
        };
        !unit.failed_on.contains(&device.id) || !self.devices.values().any(untried)
    }

    /// Leases a chosen unit, if its memory can be had.
    pub(super) fn give(
        &mut self,
        device: DeviceId,
        pick: &Pick,
        start: bool,
        out: &mut Vec<Action>,
    ) -> Given {
        let memory = memory_of(pick.class, start);
        if !self.fits(self.jobs[&pick.job].unit_bytes, memory) {
            return Given::NoMemory;
        }
        if let Some(passed) = pick.passed_over {
            self.jobs
                .get_mut(&passed)
                .expect("invariant: picked from the queue")
                .passed_over += 1;
        }
        if pick.class != Class::Lane {
            let device = self
                .devices
                .get_mut(&device)
                .expect("invariant: a ready device");
            device.taken += 1;
            if pick.guarded {
                device.guarded.insert(pick.class, device.taken);
            }
        }
        self.lease(device, pick.job, pick.unit, start, out);
        Given::Unit
    }

    /// Whether so much more memory can be had.
    pub(super) fn fits(&self, bytes: u64, class: Class) -> bool {
        let all = self.memory_used.saturating_add(bytes) <= self.config.budget_bytes;
        let below = self.memory_used_below_lane.saturating_add(bytes) <= self.budget(class);
        all && (class == Class::Lane || below)
    }

    fn lease(
        &mut self,
        device: DeviceId,
        id: JobId,
        index: usize,
        start: bool,
        out: &mut Vec<Action>,
    ) {
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        if !self.jobs[&id].started {
            let count = self.kinds.entry(self.jobs[&id].circuit.kind).or_default();
            *count.of(false) -= 1;
            *count.of(true) += 1;
        }
        let (unit, circuit, bytes, client, lane) = self.requeue(id, |job| {
            job.units[index].state = UnitState::Leased(lease);
            job.ready -= 1;
            job.started = true;
            let lane = memory_of(job.class(), start) == Class::Lane;
            (
                job.key(index),
                job.circuit,
                job.unit_bytes,
                Arc::clone(&job.client),
                lane,
            )
        });
        let charged = self.estimate(circuit);
        self.shares.charge(&client, charged);
        self.hold(bytes, lane);
        let (now, expires_ms) = (self.now, self.now + self.config.lease_ms);
        let phase = if start {
            self.running(circuit)
        } else {
            LeasePhase::Prepared
        };
        let started = now;
        let entry = Lease {
            device,
            unit,
            circuit,
            lane,
            bytes,
            phase,
            orphan: false,
            started,
            left: None,
            charged: Some(charged),
        };
        self.leases.insert(lease, entry);
        out.push(Action::Persist(Write::Claim {
            unit,
            lease,
            expires_ms,
            now_ms: now,
        }));
        let device = self
            .devices
            .get_mut(&device)
            .expect("invariant: a ready device");
        if start {
            device.running.push(lease);
            out.push(Action::Start {
                device: device.id,
                lease,
                unit,
            });
        } else {
            device.prepared.push(lease);
            out.push(Action::Prepare {
                device: device.id,
                lease,
                unit,
            });
        }
    }

    fn running(&self, circuit: CircuitId) -> LeasePhase {
        LeasePhase::Running {
            limit: self.now + self.config.unit_limit_ms.get(circuit.kind),
        }
    }

    pub(super) fn start_prepared(
        &mut self,
        device: DeviceId,
        lease: LeaseId,
        out: &mut Vec<Action>,
    ) {
        let phase = self.running(self.leases[&lease].circuit);
        let now = self.now;
        let entry = self
            .leases
            .get_mut(&lease)
            .expect("invariant: prepared units are leased");
        entry.phase = phase;
        entry.started = now;
        let unit = entry.unit;
        let device = self
            .devices
            .get_mut(&device)
            .expect("invariant: a ready device");
        device.prepared.retain(|&other| other != lease);
        device.running.push(lease);
        out.push(Action::Start {
            device: device.id,
            lease,
            unit,
        });
    }

    /// An idle device without anything to do takes what another, busy, device has prepared.
    fn start_another_s_prepared(&mut self, device: DeviceId, out: &mut Vec<Action>) {
        // The other device holds its memory until it has dropped it.
        let fits = |lease: &LeaseId| {
            let lease = &self.leases[lease];
            self.fits(lease.bytes, self.jobs[&lease.unit.job].class())
        };
        let next = self.prepared_elsewhere(device).find(fits);
        if let Some(lease) = next {
            self.take_over(device, lease, out);
        }
    }

    /// What other, busy, devices have prepared and this one may prove.
    pub(super) fn prepared_elsewhere(&self, id: DeviceId) -> impl Iterator<Item = LeaseId> {
        let device = &self.devices[&id];
        let others = self.devices.values().filter(move |other| other.id != id);
        let busy = others.filter(|other| !other.running.is_empty());
        let prepared = busy.flat_map(|other| other.prepared.iter().copied());
        prepared.filter(move |lease| {
            let lease = &self.leases[lease];
            let job = &self.jobs[&lease.unit.job];
            device.serves(lease.circuit) && self.may_try(device, job, lease.unit.index as usize)
        })
    }

    /// Drops a unit that another device has prepared, and starts it on this one, if there is memory for both
    /// until it is dropped. Says whether it is started.
    pub(super) fn take_over(
        &mut self,
        device: DeviceId,
        lease: LeaseId,
        out: &mut Vec<Action>,
    ) -> bool {
        let (unit, bytes) = (self.leases[&lease].unit, self.leases[&lease].bytes);
        let fits = self.fits(bytes, self.jobs[&unit.job].class());
        self.discard(lease, true, out);
        if fits {
            self.lease(device, unit.job, unit.index as usize, true, out);
        }
        fits
    }

    /// Drops a prepared unit; if `wanted`, it waits again for a device.
    pub(super) fn discard(&mut self, id: LeaseId, wanted: bool, out: &mut Vec<Action>) {
        let limit = self.now + self.config.heartbeat_ms;
        let lease = self
            .leases
            .get_mut(&id)
            .expect("invariant: prepared units are leased");
        lease.phase = LeasePhase::Discarding { limit };
        lease.orphan = true;
        let before = *lease;
        lease.charged = None;
        let lease = before;
        let device = self
            .devices
            .get_mut(&lease.device)
            .expect("invariant: leases name devices");
        device.prepared.retain(|&other| other != id);
        device.discarding += 1;
        self.uncharge(&lease, 0);
        if wanted {
            self.ready_again(&lease);
            let (unit, failed) = (lease.unit, false);
            out.push(Action::Persist(Write::Release {
                unit,
                lease: id,
                failed,
            }));
        }
        out.push(Action::Discard {
            device: lease.device,
            lease: id,
        });
    }

    /// Puts the unit of a lease back into the queue.
    pub(super) fn ready_again(&mut self, lease: &Lease) {
        self.requeue(lease.unit.job, |job| {
            job.units[lease.unit.index as usize].state = UnitState::Ready;
            job.ready += 1;
        });
    }

    /// Corrects what the client was charged for a lease to the device time used.
    pub(super) fn uncharge(&mut self, lease: &Lease, used: Millis) {
        let (Some(charged), Some(job)) = (lease.charged, self.jobs.get(&lease.unit.job)) else {
            return;
        };
        self.shares.correct(&job.client, charged, used);
    }

    pub(super) fn hold(&mut self, bytes: u64, lane: bool) {
        self.memory_used += bytes;
        if !lane {
            self.memory_used_below_lane += bytes;
        }
    }

    /// Gives back the memory of a lease.
    pub(super) fn let_go(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let bytes = std::mem::take(&mut lease.bytes);
        self.memory_used -= bytes;
        if !lease.lane {
            self.memory_used_below_lane -= bytes;
        }
    }
}
