//! WinningPoSt, which goes before everything: the lane. See the rules in the [module](super).

use filecoin::{CircuitId, ProofKind};

use super::Scheduler;
use super::dispatch::{Given, Pick};
use super::event::{Action, DeviceId, LeaseId};
use super::job::Class;

/// Where the next unit of the lane for a device is.
enum Next {
    /// On the device.
    Prepared(LeaseId),
    /// In the queue.
    Ready(Pick),
    /// On another device, which is busy.
    PreparedElsewhere(LeaseId),
}

impl Scheduler {
    /// Starts a unit of the lane on a device with room for one, if there is one. Says whether nothing else
    /// may start there now; sets `blocked` if memory kept the next of them from starting.
    pub(super) fn start_of_lane(
        &mut self,
        device: DeviceId,
        blocked: &mut bool,
        out: &mut Vec<Action>,
    ) -> bool {
        match self.next_of_lane(device) {
            None => return false,
            Some(Next::Prepared(lease)) => self.start_prepared(device, lease, out),
            // Without the memory for both it starts as soon as the other device has dropped it: nothing
            // may take what comes free then.
            Some(Next::PreparedElsewhere(lease)) => *blocked |= !self.take_over(device, lease, out),
            Some(Next::Ready(pick)) => {
                if matches!(self.give(device, &pick, true, out), Given::Unit) {
                    return true;
                }
                *blocked = true;
                // What is prepared has its memory.
                let Some(lease) = self.oldest_prepared_in_lane(device) else {
                    return false;
                };
                self.start_prepared(device, lease, out);
            }
        }
        true
    }

    /// The oldest that the device has prepared or that waits for any; or one that another has prepared, if
    /// there is none, or if that is older and has waited for as long as such a unit takes.
    fn next_of_lane(&self, device: DeviceId) -> Option<Next> {
        let prepared = self.oldest_prepared_in_lane(device);
        let ready = self.next_in_lane(device);
        let ready_since = ready.as_ref().map(|pick| self.jobs[&pick.job].sequence);
        let prepared_since = prepared.map(|lease| self.order(lease));
        let here_since = [prepared_since, ready_since].into_iter().flatten().min();
        let elsewhere = self.prepared_elsewhere(device);
        let elsewhere = elsewhere.filter(|lease| self.is_of_lane(*lease));
        let elsewhere = elsewhere.min_by_key(|lease| self.order(*lease));
        // Not for a moment's difference between devices that are as quick.
        let goes_first = |lease: &LeaseId| {
            here_since.is_none_or(|since| self.order(*lease) < since && self.has_waited(*lease))
        };
        if let Some(lease) = elsewhere.filter(goes_first) {
            return Some(Next::PreparedElsewhere(lease));
        }
        match prepared.filter(|_| prepared_since == here_since) {
            Some(lease) => Some(Next::Prepared(lease)),
            None => ready.map(Next::Ready),
        }
    }

    /// Whether a prepared unit has been that for longer than the device needs for one.
    fn has_waited(&self, lease: LeaseId) -> bool {
        let lease = &self.leases[&lease];
        self.now.saturating_sub(lease.started) > self.estimate(lease.circuit)
    }

    fn next_in_lane(&self, device: DeviceId) -> Option<Pick> {
        self.oldest_eligible(&self.devices[&device], Class::Lane, |_| true)
    }

    /// Whether a unit of the lane would not find its memory on this device, were it free.
    pub(super) fn lane_lacks_memory(&self, device: DeviceId) -> bool {
        let next = self.next_in_lane(device);
        next.is_some_and(|pick| !self.fits(self.jobs[&pick.job].unit_bytes, Class::Lane))
    }

    /// Prepares units of the lane ahead, beside what else is: they take no other unit's place.
    pub(super) fn look_ahead_in_lane(&mut self, device: DeviceId, out: &mut Vec<Action>) {
        while self.wants_look_ahead_in_lane(device)
            && let Some(pick) = self.next_in_lane(device)
            && matches!(self.give(device, &pick, false, out), Given::Unit)
        {}
    }

    /// Whether a device may start a unit of the lane now. Its places beside the others' are closed while a key is not
    /// told of as loaded, of a unit there or of the lane itself: a unit that has to wait for a load, or for another's
    /// key to leave, would do so on a device that it can no longer leave.
    pub(super) fn has_room_for_lane(&self, id: DeviceId) -> bool {
        let device = &self.devices[&id];
        let is_loaded = |lease: &LeaseId| device.loaded.contains(&self.leases[lease].circuit);
        device.has_room()
            || (device.running.len() < device.places()
                && device.loaded.iter().any(is_lane)
                && device.running.iter().all(is_loaded))
    }

    fn wants_look_ahead_in_lane(&self, id: DeviceId) -> bool {
        let prepared = self.prepared_in_lane(id).count();
        !self.has_room_for_lane(id) && self.devices[&id].prepares_more(prepared)
    }

    /// What a device has prepared of the lane.
    pub(super) fn prepared_in_lane(&self, device: DeviceId) -> impl Iterator<Item = LeaseId> {
        let prepared = self.devices[&device].prepared.iter().copied();
        prepared.filter(|lease| self.is_of_lane(*lease))
    }

    fn oldest_prepared_in_lane(&self, device: DeviceId) -> Option<LeaseId> {
        let prepared = self.prepared_in_lane(device);
        prepared.min_by_key(|lease| self.order(*lease))
    }

    /// Known by its circuit: the job of a unit that still runs may have been forgotten.
    pub(super) fn is_of_lane(&self, lease: LeaseId) -> bool {
        is_lane(&self.leases[&lease].circuit)
    }

    /// When its job was accepted, in order.
    fn order(&self, lease: LeaseId) -> u64 {
        self.jobs[&self.leases[&lease].unit.job].sequence
    }
}

/// Whether units of a circuit are of the lane, as [`Class::Lane`] says of jobs.
fn is_lane(circuit: &CircuitId) -> bool {
    circuit.kind == ProofKind::Winning
}
