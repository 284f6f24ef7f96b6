//! From the scheduler's writes to the store's changes: the proof bytes come in here.

use std::collections::HashMap;

use store::{Change, End, JobId, LeaseRecord};

use super::device::UnitProof;
use super::judge::Joined;
use crate::scheduler::{LeaseId, Outcome, Write};

/// Proof bytes between device and store.
#[derive(Default)]
pub(super) struct Bytes {
    pub(super) units: HashMap<LeaseId, UnitProof>,
    pub(super) jobs: HashMap<(JobId, u32), Joined>,
}

impl Bytes {
    /// What the store is to do. `None` if the bytes for it are not there, which would be a fault
    /// of this program.
    pub(super) fn change(&self, holder: &str, write: &Write) -> Option<Change> {
        let holder = holder.to_owned();
        Some(match write {
            Write::Insert(job) => Change::Insert(job.clone()),
            &Write::Restart {
                job,
                attempt,
                accepted_ms,
                priority,
                deadline_ms,
            } => Change::Restart {
                job,
                attempt,
                accepted_ms,
                priority,
                deadline_ms,
            },
            &Write::Join {
                job,
                submitted_ms,
                priority,
            } => Change::Join {
                job,
                submitted_ms,
                priority,
            },
            &Write::Claim {
                unit,
                lease,
                expires_ms,
                now_ms,
            } => {
                let lease = LeaseRecord {
                    token: lease.0,
                    holder,
                    expires_ms,
                };
                Change::Claim {
                    unit,
                    lease,
                    now_ms,
                }
            }
            &Write::Release {
                unit,
                lease,
                failed,
            } => Change::Release {
                unit,
                token: lease.0,
                holder,
                failed,
            },
            &Write::Prove { unit, lease } => {
                let proof = self.units.get(&lease)?;
                let (timings, proof) = (proof.timings, proof.bytes.clone());
                Change::Prove {
                    unit,
                    token: lease.0,
                    holder,
                    proof,
                    timings,
                }
            }
            Write::Finish {
                job,
                attempt,
                outcome,
                finished_ms,
            } => {
                let end = self.end(*job, *attempt, outcome)?;
                Change::Finish {
                    job: *job,
                    attempt: *attempt,
                    end,
                    finished_ms: *finished_ms,
                }
            }
        })
    }

    fn end(&self, job: JobId, attempt: u32, outcome: &Outcome) -> Option<End> {
        Some(match outcome {
            Outcome::Completed => {
                let joined = self.jobs.get(&(job, attempt))?;
                End::Completed {
                    proof: joined.proof.clone(),
                    test_key: joined.test_key,
                }
            }
            Outcome::Failed(failure) => End::Failed(failure.clone()),
            Outcome::Cancelled => End::Cancelled,
        })
    }

    /// The write is done: its bytes are in the store.
    pub(super) fn done(&mut self, write: &Write) {
        match write {
            Write::Prove { lease, .. } => {
                self.units.remove(lease);
            }
            Write::Finish { job, attempt, .. } => {
                self.jobs.remove(&(*job, *attempt));
            }
            _ => {}
        }
    }
}
