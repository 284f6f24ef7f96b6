//! How leases end: proofs, their check, failures, and what follows for unit, job and device.

use store::{JobId, UnitKey};

use super::Scheduler;
use super::config::Millis;
use super::device::{Lease, LeasePhase};
use super::event::{Action, DeviceId, Fault, LeaseId, Outcome, Verdict, Write};
use super::job::{Phase, UnitState};
use super::refusal::code;

impl Scheduler {
    /// A device has done its part of a unit and is free.
    pub(super) fn unit_left_device(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let Some(device) = self.devices.get_mut(&lease.device) else {
            return;
        };
        if let Some(at) = device.running.iter().position(|&other| other == id) {
            device.running.remove(at);
            device.finishing.push(id);
            lease.left = Some(self.now);
        }
    }

    /// A process has handed over a proof.
    pub(super) fn unit_returned(&mut self, id: LeaseId) {
        let limit = self.now + self.config.judge_limit_ms;
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let LeasePhase::Running { .. } = lease.phase else {
            return;
        };
        let before = *lease;
        lease.phase = LeasePhase::Judging { limit };
        let lease = *lease;
        self.free_device(id, &lease);
        self.let_go(id);
        let used = self.time_used(&before).max(1);
        self.uncharge(&lease, used);
        let average = self.estimates.entry(lease.circuit).or_insert(used);
        *average = average.saturating_mul(3).saturating_add(used) / 4;
        if lease.orphan {
            // Nobody waits for the proof, so nobody checks it.
            self.leases.remove(&id);
        }
    }

    pub(super) fn unit_judged(&mut self, id: LeaseId, verdict: Verdict, out: &mut Vec<Action>) {
        let Some(lease) = self.leases.get(&id).copied() else {
            return;
        };
        let LeasePhase::Judging { .. } = lease.phase else {
            return;
        };
        self.leases.remove(&id);
        match verdict {
            Verdict::Right => self.right_proof(id, &lease, out),
            Verdict::Wrong => self.wrong_proof(id, &lease, out),
            Verdict::Unknown(cause) => {
                if !lease.orphan {
                    let cause = format!("the proof could not be checked: {cause}");
                    self.retry(id, &lease, &cause, out);
                }
            }
        }
    }

    fn right_proof(&mut self, id: LeaseId, lease: &Lease, out: &mut Vec<Action>) {
        if let Some(device) = self.devices.get_mut(&lease.device) {
            device.failed_units.clear();
            device.losses = 0;
        }
        if lease.orphan {
            return;
        }
        let unit = lease.unit;
        out.push(Action::Persist(Write::Prove { unit, lease: id }));
        let limit = self.now + self.config.assembly_limit_ms;
        let job = self.open_job(unit.job, unit.attempt);
        let job = job.expect("invariant: the leases of an ended attempt are orphans");
        job.units[unit.index as usize].state = UnitState::Proven;
        job.proven += 1;
        if job.proven == job.units.len() {
            job.phase = Phase::Assembling { limit };
            self.assembling.insert((limit, unit.job));
            out.push(Action::Assemble {
                job: unit.job,
                attempt: unit.attempt,
            });
        }
    }

    /// One wrong proof condemns the device, unless another device made one of the same unit:
    /// then the unit is condemned.
    fn wrong_proof(&mut self, id: LeaseId, lease: &Lease, out: &mut Vec<Action>) {
        let unit = lease.unit;
        let before: Vec<DeviceId> = match self.open_job(unit.job, unit.attempt) {
            Some(job) if !lease.orphan => job.units[unit.index as usize].wrong_on.clone(),
            _ => Vec::new(),
        };
        let name = self
            .jobs
            .get(&unit.job)
            .map_or_else(String::new, |job| job.name.clone());
        if before.iter().any(|&device| device != lease.device) {
            for &device in &before {
                self.release_device(device);
            }
            let message = format!(
                "unit {} of {name}: two devices made proofs that do not verify; check the vanilla \
                 proof and the parameter file",
                unit.index
            );
            self.fail(unit.job, code::PROOF_WRONG, &message, out);
            return;
        }
        let cause = format!("a proof of unit {} of {name} did not verify", unit.index);
        if !lease.orphan {
            if let Some(job) = self.open_job(unit.job, unit.attempt) {
                job.units[unit.index as usize].wrong_on.push(lease.device);
            }
            // Before the quarantine, which may end the job: it gives back the device's other units.
            self.retry(id, lease, &cause, out);
        }
        self.quarantine(lease.device, &cause, out);
    }

    pub(super) fn unit_failed(
        &mut self,
        id: LeaseId,
        fault: Fault,
        cause: &str,
        out: &mut Vec<Action>,
    ) {
        let Some(lease) = self.leases.get(&id).copied() else {
            return;
        };
        if matches!(lease.phase, LeasePhase::Judging { .. }) {
            return;
        }
        self.free_device(id, &lease);
        self.let_go(id);
        self.leases.remove(&id);
        self.uncharge(&lease, self.time_used(&lease));
        // What no device could do is no device's fault.
        let hopeless = match fault {
            Fault::Request => Some(code::REQUEST_INVALID),
            Fault::Parameters => Some(code::PARAMETERS_UNUSABLE),
            Fault::Payload => Some(code::PAYLOAD_DAMAGED),
            Fault::Try | Fault::Device => None,
        };
        if let Some(code) = hopeless {
            if !lease.orphan {
                self.fail(lease.unit.job, code, cause, out);
            }
            return;
        }
        if !lease.orphan {
            self.retry(id, &lease, cause, out);
        }
        if fault == Fault::Device {
            self.stop_device(lease.device, cause, Some(lease.unit), out);
        } else if self.is_going_on(lease.device) {
            self.blame(lease.device, lease.unit, cause, out);
        }
    }

    pub(super) fn unit_discarded(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get(&id).copied() else {
            return;
        };
        let LeasePhase::Discarding { .. } = lease.phase else {
            return;
        };
        self.free_device(id, &lease);
        self.let_go(id);
        self.leases.remove(&id);
    }

    /// Device time of a lease until now.
    pub(super) fn time_used(&self, lease: &Lease) -> Millis {
        match lease.phase {
            LeasePhase::Running { .. } => {
                let until = lease.left.unwrap_or(self.now);
                until.saturating_sub(lease.started)
            }
            _ => 0,
        }
    }

    /// The lease no longer occupies its device.
    fn free_device(&mut self, id: LeaseId, lease: &Lease) {
        let Some(device) = self.devices.get_mut(&lease.device) else {
            return;
        };
        match lease.phase {
            LeasePhase::Discarding { .. } => device.discarding -= 1,
            _ => {
                device.running.retain(|&other| other != id);
                device.finishing.retain(|&other| other != id);
                device.prepared.retain(|&other| other != id);
            }
        }
    }

    /// A try failed: the unit goes back into the queue, or the job fails.
    pub(super) fn retry(&mut self, id: LeaseId, lease: &Lease, cause: &str, out: &mut Vec<Action>) {
        let tries = self.config.unit_tries;
        let UnitKey {
            job: job_id,
            attempt,
            index,
        } = lease.unit;
        let job = self.open_job(job_id, attempt);
        let job = job.expect("invariant: the leases of an ended attempt are orphans");
        let name = job.name.clone();
        let unit = &mut job.units[index as usize];
        unit.failures += 1;
        if !unit.failed_on.contains(&lease.device) {
            unit.failed_on.push(lease.device);
        }
        let failures = unit.failures;
        self.ready_again(lease);
        let (unit, failed) = (lease.unit, true);
        out.push(Action::Persist(Write::Release {
            unit,
            lease: id,
            failed,
        }));
        if failures >= tries {
            let message = format!("unit {index} of {name} failed {failures} times, last: {cause}");
            self.fail(job_id, code::UNIT_FAILED, &message, out);
        }
    }

    /// The job of a lease has ended. A prepared unit is dropped, a running one runs to its end.
    pub(super) fn abandon(&mut self, id: LeaseId, out: &mut Vec<Action>) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        lease.orphan = true;
        match lease.phase {
            LeasePhase::Prepared => self.discard(id, false, out),
            LeasePhase::Judging { .. } => {
                // The verdict still says whether the device is sound.
            }
            LeasePhase::Running { .. } | LeasePhase::Discarding { .. } => {}
        }
    }

    pub(super) fn assembled(
        &mut self,
        id: JobId,
        attempt: u32,
        result: Result<(), String>,
        out: &mut Vec<Action>,
    ) {
        let Some(job) = self.open_job(id, attempt) else {
            return;
        };
        let Phase::Assembling { .. } = job.phase else {
            return;
        };
        let name = job.name.clone();
        match result {
            Ok(()) => self.end(id, Outcome::Completed, out),
            Err(cause) => {
                let message = format!("the proofs of {name} could not be joined: {cause}");
                self.fail(id, code::ASSEMBLY_FAILED, &message, out);
            }
        }
    }
}
