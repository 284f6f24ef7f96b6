//! At the start: what the store has becomes the scheduler's state.

use std::sync::Arc;

use store::{Change, End, Failure, OpenJob, UnitKey};

use super::device::{Device, JobInfo};
use super::run::Loop;
use crate::Error;
use crate::scheduler::{DeviceId, DeviceSpec, Event, code};

impl Loop {
    /// Adds the devices, takes up the stored jobs, gives back the leases of this engine's earlier
    /// life, and fails jobs whose circuit this program does not know.
    pub(super) fn recover(&mut self) -> Result<(), Error> {
        let spec = |(id, device): (u32, &Arc<dyn Device>)| DeviceSpec {
            id: DeviceId(id),
            circuits: device.circuits(),
            at_a_time: device.at_a_time(),
            lane_places: device.lane_places(),
            look_ahead: device.look_ahead(),
        };
        let specs: Vec<_> = (0..).zip(&self.devices).map(spec).collect();
        for job in self.store.ended_jobs()? {
            if let Some(info) = JobInfo::of(&job) {
                self.jobs.insert(job.id, Arc::new(info));
                self.step(Event::RestoreEnded(Box::new(job)));
            }
        }
        let open = self.store.open_jobs()?;
        let changes: Vec<_> = open.iter().flat_map(|open| self.old_leases(open)).collect();
        if !changes.is_empty() {
            self.store.apply(&changes)?;
        }
        for mut open in open {
            match JobInfo::of_open(&open) {
                Some(info) => {
                    self.jobs.insert(info.id, Arc::new(info));
                    open.units.iter_mut().for_each(|unit| unit.lease = None);
                    self.step(Event::Restore(Box::new(open)));
                }
                None => self.store.apply(&[self.unknown_circuit(&open)])?,
            }
        }
        for spec in specs {
            self.step(Event::DeviceAdded(spec));
        }
        self.settle();
        Ok(())
    }

    /// Leases that this engine held before it ended; nobody is at work on them now.
    fn old_leases(&self, open: &OpenJob) -> Vec<Change> {
        let (job, attempt) = (open.job.id, open.job.attempt);
        let mine = open.units.iter().filter_map(|unit| {
            let lease = unit
                .lease
                .as_ref()
                .filter(|lease| lease.holder == self.holder)?;
            Some(Change::Release {
                unit: UnitKey {
                    job,
                    attempt,
                    index: unit.index,
                },
                token: lease.token,
                holder: lease.holder.clone(),
                failed: false,
            })
        });
        mine.collect()
    }

    fn unknown_circuit(&self, open: &OpenJob) -> Change {
        let message = format!(
            "{}: this version does not know the circuit {}; install the version that accepted it",
            open.job.name, open.job.circuit
        );
        let failure = Failure {
            code: code::REQUEST_INVALID.to_owned(),
            message,
        };
        Change::Finish {
            job: open.job.id,
            attempt: open.job.attempt,
            end: End::Failed(failure),
            finished_ms: self.clock.now(),
        }
    }
}
