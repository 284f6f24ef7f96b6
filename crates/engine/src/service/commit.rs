//! What the scheduler wants done: first made durable, then carried out.

use std::collections::HashSet;

use store::JobId;

use super::run::Loop;
use crate::scheduler::{Action, Admitted, Event, Fault, LeaseId, Millis, Refusal, Reply, Write};

/// A write that takes longer counts as a store that fails meanwhile: the loop hears no heartbeats.
const SLOW_MS: Millis = 500;
/// Pause after the store has failed.
const RETRY_MS: Millis = 1_000;

impl Loop {
    /// Commits and carries out until nothing is left to do, or the store fails.
    pub(super) fn settle(&mut self) {
        self.start_claimed();
        if self.retry_at.is_some_and(|time| self.clock.now() < time) {
            self.refuse();
            return self.publish();
        }
        self.retry_at = None;
        // When all that failed has been refused, nothing is left to try the store with: it counts as
        // working until the next write.
        while !self.backlog.is_empty() || self.store_works() {
            let began = self.clock.now();
            match self.commit() {
                Ok(events) => self.committed(began, events),
                Err(error) => return self.store_fails(&error),
            }
        }
        self.publish();
    }

    /// Carries out what is durable now.
    fn committed(&mut self, began: Millis, events: Vec<Event>) {
        if self.clock.now().saturating_sub(began) > SLOW_MS {
            self.stand_still(began);
        }
        let actions = std::mem::take(&mut self.backlog);
        self.count(&actions);
        for event in events {
            self.step(event);
        }
        self.publish();
        for action in actions {
            self.carry_out(action);
        }
        self.store_works();
    }

    fn store_fails(&mut self, error: &store::Error) {
        let now = self.clock.now();
        self.retry_at = Some(now + RETRY_MS);
        self.stand_still(now);
        self.next_status.store_error = Some(error.to_string());
        self.refuse();
        self.publish();
    }

    /// Lets no limit run from this time on.
    fn stand_still(&mut self, since: Millis) {
        if !self.stands_still {
            self.stands_still = true;
            self.step_at(since, Event::StoreFails);
        }
    }

    /// Lets the limits run again; says whether they stood still.
    fn store_works(&mut self) -> bool {
        self.next_status.store_error = None;
        let stood_still = std::mem::take(&mut self.stands_still);
        if stood_still {
            self.step(Event::StoreWorks);
        }
        stood_still
    }

    /// Starts units whose claims are durable already, as those of prepared units are: their devices wait for
    /// them, and need not wait for what else is to be written.
    fn start_claimed(&mut self) {
        let claimed: HashSet<LeaseId> = self
            .backlog
            .iter()
            .filter_map(|action| match action {
                Action::Persist(Write::Claim { lease, .. }) => Some(*lease),
                _ => None,
            })
            .collect();
        let may_start = |action: &mut Action| match action {
            Action::Start { lease, .. } => !claimed.contains(lease),
            _ => false,
        };
        let starts: Vec<_> = self.backlog.extract_if(.., may_start).collect();
        for start in starts {
            self.carry_out(start);
        }
    }

    /// While the store fails, submissions that are not stored yet are refused rather than kept
    /// waiting.
    fn refuse(&mut self) {
        let Some(cause) = self.next_status.store_error.clone() else {
            return;
        };
        let mut waiting = Vec::new();
        self.backlog.retain(|action| {
            waiting.push(match action {
                Action::Persist(Write::Insert(record)) => record.id,
                Action::Persist(Write::Restart { job, .. }) => *job,
                _ => return true,
            });
            false
        });
        for job in waiting {
            self.step(Event::NotStored {
                job,
                cause: cause.clone(),
            });
        }
        self.answer(&cause);
    }

    /// Lets no client wait for a store that fails. What depends on no write any more is said; that a job is
    /// cancelled, or has what was asked for with a repeated request, cannot be promised.
    fn answer(&mut self, cause: &str) {
        let joining: HashSet<JobId> = self
            .backlog
            .iter()
            .filter_map(|action| match action {
                Action::Persist(Write::Join { job, .. }) => Some(*job),
                _ => None,
            })
            .collect();
        let is_reply = |action: &mut Action| matches!(action, Action::Reply { .. });
        let replies: Vec<_> = self.backlog.extract_if(.., is_reply).collect();
        for mut action in replies {
            if let Action::Reply { reply, .. } = &mut action {
                let is_promise = match reply {
                    Reply::Cancelled { job, .. } => job.is_some(),
                    // That it is stored was the reason for the reply.
                    Reply::Admitted { how, job, .. } => {
                        matches!(how, Admitted::Joined | Admitted::Completed)
                            && joining.contains(job)
                    }
                    Reply::Refused(_) => false,
                };
                if is_promise {
                    let cause = cause.to_owned();
                    *reply = Reply::Refused(Refusal::NotStored { cause });
                }
            }
            self.carry_out(action);
        }
    }

    /// Makes the backlog's writes durable, all together. A write that the store refuses as
    /// overtaken is dropped, and its consequences with it. Returns what is to be told to the
    /// scheduler.
    fn commit(&mut self) -> store::Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let writes: Vec<(usize, store::Change)> = (0..)
                .zip(&self.backlog)
                .filter_map(|(at, action)| match action {
                    Action::Persist(write) => Some((at, self.bytes.change(&self.holder, write)?)),
                    _ => None,
                })
                .collect();
            let changes: Vec<_> = writes.iter().map(|(_, change)| change.clone()).collect();
            if changes.is_empty() {
                break;
            }
            match self.store.apply(&changes) {
                Ok(()) => break,
                Err(store::Error::Conflict { index, cause }) => {
                    events.extend(self.drop_write(writes[index].0, &cause.to_string()));
                }
                Err(error) => {
                    // What was dropped is gone from the backlog: it must be told in any case.
                    for event in events {
                        self.step(event);
                    }
                    return Err(error);
                }
            }
        }
        for action in &self.backlog {
            let Action::Persist(write) = action else {
                continue;
            };
            self.bytes.done(write);
            match write {
                Write::Insert(record) => events.push(Event::Stored { job: record.id }),
                Write::Restart { job, .. } => events.push(Event::Stored { job: *job }),
                _ => {}
            }
        }
        Ok(events)
    }

    /// Takes a refused write out of the backlog, with what would have followed from it.
    fn drop_write(&mut self, at: usize, cause: &str) -> Option<Event> {
        let Action::Persist(write) = self.backlog.remove(at) else {
            return None;
        };
        match write {
            Write::Insert(record) => Some(Event::NotStored {
                job: record.id,
                cause: cause.to_owned(),
            }),
            Write::Restart { job, .. } => Some(Event::NotStored {
                job,
                cause: cause.to_owned(),
            }),
            Write::Claim { lease: claimed, .. } => {
                let starts = |action: &Action| match action {
                    Action::Start { lease, .. } | Action::Prepare { lease, .. } => {
                        *lease == claimed
                    }
                    _ => false,
                };
                self.backlog.retain(|action| !starts(action));
                let cause = format!("another engine has the unit: {cause}");
                Some(Event::UnitFailed {
                    lease: claimed,
                    fault: Fault::Try,
                    cause,
                })
            }
            _ => None,
        }
    }
}
