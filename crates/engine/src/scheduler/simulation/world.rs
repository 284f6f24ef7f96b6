//! The simulated processes: how they start, work, fail and end, and a store that is full at times.

use std::collections::BTreeSet;

use store::JobId;

use super::Simulation;
use crate::scheduler::{DeviceId, Event, Fault, Incarnation, LeaseId, Millis, Verdict};

/// The longest that a unit takes which ends by itself.
pub(super) const UNIT_MS_MAX: Millis = 4_100;

/// What one device's process is at.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) incarnation: Incarnation,
    pub(super) alive: bool,
    /// It has stopped answering.
    pub(super) hung: bool,
    pub(super) running: BTreeSet<LeaseId>,
    pub(super) held: BTreeSet<LeaseId>,
}

impl Simulation {
    pub(super) fn store_answers(&mut self, job: JobId) {
        let event = match self.one_in(100) {
            true => Event::NotStored {
                job,
                cause: "disk full".to_owned(),
            },
            false => Event::Stored { job },
        };
        let delay = self.below(3);
        self.later(delay, event);
    }

    pub(super) fn boot(&mut self, device: DeviceId, incarnation: Incarnation) {
        let process = self.processes.get_mut(&device).expect("a known device");
        assert!(!process.alive, "{device} has a process");
        *process = Process {
            incarnation,
            alive: true,
            ..Process::default()
        };
        if self.faults && self.one_in(20) {
            return; // never ready
        }
        let delay = self.below(2_000);
        self.later(
            delay,
            Event::DeviceReady {
                device,
                incarnation,
            },
        );
        self.later(
            delay,
            Event::Heartbeat {
                device,
                incarnation,
            },
        );
    }

    /// How the running unit will end.
    pub(super) fn plan_end(&mut self, device: DeviceId, lease: LeaseId, job: JobId) {
        let incarnation = self.processes[&device].incarnation;
        let time = 100 + self.below(UNIT_MS_MAX - 100);
        let cause = "broke".to_owned();
        // Some processes say that the device is free before the unit ends, however it does.
        if self.one_in(2) {
            let before = self.below(time);
            self.later(before, Event::UnitLeftDevice { lease });
        }
        if !self.calm && number(job).is_multiple_of(40) {
            // A job of which every try fails.
            let fault = Fault::Try;
            return self.later(
                time,
                Event::UnitFailed {
                    lease,
                    fault,
                    cause,
                },
            );
        }
        match if self.faults { self.below(300) } else { 299 } {
            0 => self.dies(device, incarnation, time),
            1 => {
                let process = self.processes.get_mut(&device);
                process.expect("a known device").hung = true;
            }
            2 => {} // never ends, but the heart beats
            3 => self.later(
                time,
                Event::UnitFailed {
                    lease,
                    fault: Fault::Device,
                    cause,
                },
            ),
            4 | 5 => self.later(
                time,
                Event::UnitFailed {
                    lease,
                    fault: Fault::Request,
                    cause,
                },
            ),
            6..=12 => self.later(
                time,
                Event::UnitFailed {
                    lease,
                    fault: Fault::Try,
                    cause,
                },
            ),
            _ => self.later(time, Event::UnitReturned { lease }),
        }
    }

    pub(super) fn dies(&mut self, device: DeviceId, incarnation: Incarnation, delay: Millis) {
        let cause = "gone".to_owned();
        self.later(
            delay,
            Event::DeviceStopped {
                device,
                incarnation,
                cause,
            },
        );
    }

    /// The world's side of an event that is about to be told. Returns whether it happens at all:
    /// a process that has died or hangs says nothing.
    pub(super) fn happens(&mut self, event: &Event) -> bool {
        match *event {
            Event::Heartbeat {
                device,
                incarnation,
            } => {
                let process = &self.processes[&device];
                let beats = process.alive && !process.hung && process.incarnation == incarnation;
                if beats {
                    self.later(
                        2_000,
                        Event::Heartbeat {
                            device,
                            incarnation,
                        },
                    );
                }
                beats
            }
            Event::DeviceReady {
                device,
                incarnation,
            } => {
                let process = &self.processes[&device];
                process.alive && process.incarnation == incarnation
            }
            Event::DeviceStopped {
                device,
                incarnation,
                ..
            } => {
                let process = self.processes.get_mut(&device).expect("a known device");
                let first = process.alive && process.incarnation == incarnation;
                if first {
                    process.alive = false;
                    process.running.clear();
                    let held = std::mem::take(&mut process.held);
                    self.books.leases.retain(|lease, _| !held.contains(lease));
                }
                first
            }
            Event::UnitReturned { lease } => {
                let unit = self.books.leases.get(&lease).map(|(unit, ..)| *unit);
                self.leaves_device(lease) && {
                    // A job of which every proof is wrong.
                    let poisoned =
                        !self.calm && unit.is_some_and(|unit| number(unit.job).is_multiple_of(41));
                    let delay = if self.one_in(200) {
                        5_000
                    } else {
                        self.below(100)
                    };
                    let verdict = match if self.faults { self.below(400) } else { 399 } {
                        _ if poisoned => Verdict::Wrong,
                        0 => Verdict::Wrong,
                        1 => Verdict::Unknown("no memory".to_owned()),
                        _ => Verdict::Right,
                    };
                    self.later(delay, Event::UnitJudged { lease, verdict });
                    true
                }
            }
            Event::UnitLeftDevice { lease } => {
                let held = |process: &&mut Process| process.held.contains(&lease) && !process.hung;
                let process = self.processes.values_mut().find(held);
                process.is_some_and(|process| process.running.remove(&lease))
            }
            Event::UnitFailed { lease, .. } | Event::UnitDiscarded { lease } => {
                self.leaves_device(lease)
            }
            _ => true,
        }
    }

    /// A unit's work on its device is over. Says no if the device's process is gone or hangs.
    pub(super) fn leaves_device(&mut self, lease: LeaseId) -> bool {
        let Some((_, device, _)) = self.books.leases.get(&lease).copied() else {
            return false;
        };
        let process = self.processes.get_mut(&device).expect("a known device");
        if !process.alive || process.hung || !process.held.remove(&lease) {
            return false;
        }
        process.running.remove(&lease);
        self.books.leases.remove(&lease);
        true
    }
}

/// The number that the simulation gave a job.
fn number(job: JobId) -> u128 {
    u128::from_be_bytes(*job.as_bytes())
}
