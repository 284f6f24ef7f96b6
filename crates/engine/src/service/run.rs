//! The loop.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use store::{JobId, Retention, Store, UnitKey};

use super::Settings;
use super::clock::Clock;
use super::device::{Device, JobInfo, Port, Task, UnitProof};
use super::gate::Gate;
use super::judge::{Joined, Judge};
use super::message::{Callback, Inbox, Message};
use super::observer::Observer;
use super::pool::{Pool, caught};
use super::status::Status;
use super::writes::Bytes;
use crate::Error;
use crate::scheduler::{
    Action, DeviceId, Event, Fault, JobPhase, LeaseId, Millis, Outcome, Refusal, Reply, Scheduler,
    Ticket, Verdict, Write,
};

/// So many messages are taken together, so that their writes share a commit.
const BATCH: usize = 256;
/// The longest sleep; a guard against the clock of a machine that was suspended.
const SLEEP_MS_MAX: Millis = 1_000;

/// What the loop works with.
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    pub(super) judge: Arc<dyn Judge>,
    pub(super) devices: Vec<Arc<dyn Device>>,
    pub(super) observer: Arc<dyn Observer>,
}

pub(super) struct Loop {
    pub(super) scheduler: Scheduler,
    pub(super) clock: Clock,
    pub(super) store: Arc<dyn Store>,
    pub(super) devices: Vec<Arc<dyn Device>>,
    pub(super) jobs: HashMap<JobId, Arc<JobInfo>>,
    pub(super) holder: String,
    /// Through which devices read the store.
    gate: Arc<Gate>,
    judge: Arc<dyn Judge>,
    observer: Arc<dyn Observer>,
    pool: Pool,
    inbox: Inbox,
    messages: Receiver<Message>,
    began: Millis,
    replies: HashMap<Ticket, Callback<Reply>>,
    next_ticket: u64,
    watchers: HashMap<JobId, Vec<Callback<Option<JobId>>>>,
    drained: Vec<Callback<()>>,
    pub(super) bytes: Bytes,
    /// What the scheduler wants and has not been done, in order.
    pub(super) backlog: Vec<Action>,
    /// Set while the store fails: when to try again.
    pub(super) retry_at: Option<Millis>,
    /// The scheduler was told that the store fails, and not yet that it works.
    pub(super) stands_still: bool,
    lease_ms: Millis,
    next_renewal: Millis,
    retention: Retention,
    sweep_every_ms: Millis,
    next_sweep: Millis,
    status: Arc<RwLock<Status>>,
    pub(super) next_status: Status,
    stopping: bool,
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.gate.close();
    }
}

impl Loop {
    pub(super) fn new(
        settings: Settings,
        parts: Parts,
        (inbox, messages): (Inbox, Receiver<Message>),
        status: Arc<RwLock<Status>>,
    ) -> Result<Self, Error> {
        let Parts {
            store,
            judge,
            devices,
            observer,
        } = parts;
        let clock = Clock::new();
        let began = clock.now();
        let mut config = settings.scheduler;
        // Larger than any number given before: no engine leases a thousand units a millisecond.
        config.first_lease = began.saturating_mul(1_000);
        let (holder, lease_ms) = (config.holder.clone(), config.lease_ms);
        Ok(Self {
            scheduler: Scheduler::new(config, began),
            clock,
            gate: Arc::new(Gate::new(Arc::clone(&store))),
            store,
            devices,
            jobs: HashMap::new(),
            holder,
            judge,
            observer,
            pool: Pool::new(settings.judge_threads)?,
            inbox,
            messages,
            began,
            replies: HashMap::new(),
            next_ticket: 0,
            watchers: HashMap::new(),
            drained: Vec::new(),
            bytes: Bytes::default(),
            backlog: Vec::new(),
            retry_at: None,
            stands_still: false,
            lease_ms,
            next_renewal: began,
            retention: settings.retention,
            sweep_every_ms: settings.sweep_every_ms,
            next_sweep: began,
            status,
            next_status: Status::default(),
            stopping: false,
        })
    }

    pub(super) fn run(mut self) {
        while !self.stopping {
            match self.messages.recv_timeout(self.sleep()) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            for _ in 1..BATCH {
                match self.messages.try_recv() {
                    Ok(message) => self.take(message),
                    Err(_) => break,
                }
            }
            self.do_what_is_due();
            self.settle();
        }
        for device in &self.devices {
            device.stop("the daemon ends");
        }
    }

    fn sleep(&self) -> Duration {
        let times = [
            self.scheduler.next_wake(),
            self.retry_at,
            Some(self.next_sweep),
        ];
        let next = times.into_iter().flatten().min().unwrap_or(Millis::MAX);
        Duration::from_millis(next.saturating_sub(self.clock.now()).min(SLEEP_MS_MAX))
    }

    fn do_what_is_due(&mut self) {
        let now = self.clock.now();
        if self.scheduler.next_wake().is_some_and(|wake| wake <= now) {
            self.step(Event::Tick);
        }
        if now >= self.next_renewal {
            self.next_renewal = now + self.lease_ms / 3;
            // A failure shows again at the next write; the leases stand two more periods.
            let _ = self.store.renew(&self.holder, now + self.lease_ms);
        }
        if now >= self.next_sweep {
            self.next_sweep = now + self.sweep_every_ms;
            let (store, inbox, retention) =
                (Arc::clone(&self.store), self.inbox.clone(), self.retention);
            self.pool.run(move || {
                let swept = caught(|| store.sweep(&retention, now).map_err(|e| e.to_string()));
                inbox.send(Message::Swept(swept));
            });
        }
    }

    /// Lets the scheduler take an event; what it wants done goes to the backlog.
    pub(super) fn step(&mut self, event: Event) {
        self.step_at(self.clock.now(), event);
    }

    /// The same, of an event that was at that time.
    pub(super) fn step_at(&mut self, now: Millis, event: Event) {
        self.observer.event(now, &event);
        self.scheduler.step(now, event, &mut self.backlog);
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.step(event),
            Message::Submit { submission, reply } => {
                if let Some(cause) = self.next_status.store_error.clone() {
                    return reply(Reply::Refused(Refusal::NotStored { cause }));
                }
                let ticket = self.ticket(reply);
                self.step(Event::Submit { ticket, submission });
            }
            Message::Cancel { name, reply } => {
                if let Some(cause) = self.next_status.store_error.clone() {
                    return reply(Reply::Refused(Refusal::NotStored { cause }));
                }
                let ticket = self.ticket(reply);
                self.step(Event::Cancel { ticket, name });
            }
            Message::Watch { job, done } => self.watch(job, done),
            Message::Ask(question) => question(&self.scheduler),
            Message::Returned { lease, proof } => self.returned(lease, proof),
            Message::Judged { lease, verdict } => self.judged(lease, verdict),
            Message::Joined {
                job,
                attempt,
                result,
            } => self.joined(job, attempt, result),
            Message::Swept(swept) => {
                for job in swept.map_or_else(|_| Vec::new(), |swept| swept.jobs) {
                    self.jobs.remove(&job);
                    self.step(Event::Forget { job });
                }
            }
            Message::Drained { reply } => {
                self.drained.push(reply);
                self.step(Event::Drain);
            }
            Message::Stop => self.stopping = true,
        }
    }

    fn ticket(&mut self, reply: Callback<Reply>) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.replies.insert(ticket, reply);
        ticket
    }

    /// A job counts as ended when the store knows.
    fn watch(&mut self, job: JobId, done: Callback<Option<JobId>>) {
        let unsaid =
            |action: &Action| matches!(action, Action::Ended { job: ended, .. } if *ended == job);
        match self.scheduler.job(job).map(|view| view.phase) {
            None => done(None),
            Some(JobPhase::Ended(_)) if !self.backlog.iter().any(unsaid) => done(Some(job)),
            Some(_) => self.watchers.entry(job).or_default().push(done),
        }
    }

    /// A device has handed over a proof: it is checked before anybody relies on it.
    fn returned(&mut self, lease: LeaseId, proof: UnitProof) {
        self.observer
            .returned(self.clock.now(), lease, &proof.timings);
        self.step(Event::UnitReturned { lease });
        let Some(unit) = self.scheduler.judging(lease) else {
            return;
        };
        let Some(job) = self.jobs.get(&unit.job).cloned() else {
            return;
        };
        let bytes = proof.bytes.clone();
        self.bytes.units.insert(lease, proof);
        let (judge, store, inbox) = (
            Arc::clone(&self.judge),
            Arc::clone(&self.store),
            self.inbox.clone(),
        );
        self.pool.run(move || {
            let payload = || store.payload(&job.digest).map_err(|e| e.to_string());
            let verdict = match caught(|| judge.verify(&job, &payload, unit.index, &bytes)) {
                Ok(true) => Verdict::Right,
                Ok(false) => Verdict::Wrong,
                Err(cause) => Verdict::Unknown(cause),
            };
            inbox.send(Message::Judged { lease, verdict });
        });
    }

    fn judged(&mut self, lease: LeaseId, verdict: Verdict) {
        let before = self.backlog.len();
        self.step(Event::UnitJudged { lease, verdict });
        let stores = |action: &Action| matches!(action, Action::Persist(Write::Prove { lease: l, .. }) if *l == lease);
        if !self.backlog[before..].iter().any(stores) {
            self.bytes.units.remove(&lease);
        }
    }

    fn assemble(&self, id: JobId, attempt: u32) {
        let Some(job) = self.jobs.get(&id).cloned() else {
            return;
        };
        let (judge, store, inbox) = (
            Arc::clone(&self.judge),
            Arc::clone(&self.store),
            self.inbox.clone(),
        );
        self.pool.run(move || {
            let result = caught(|| {
                let proofs = store.unit_proofs(id).map_err(|e| e.to_string())?;
                let in_order = proofs.iter().map(|(index, _)| *index).eq(0..job.units);
                if !in_order {
                    let (found, units) = (proofs.len(), job.units);
                    return Err(format!("the store has {found} of {units} unit proofs"));
                }
                judge.join(&job, proofs.into_iter().map(|(_, proof)| proof).collect())
            });
            inbox.send(Message::Joined {
                job: id,
                attempt,
                result,
            });
        });
    }

    fn joined(&mut self, job: JobId, attempt: u32, result: Result<Joined, String>) {
        let key = (job, attempt);
        let result = result.map(|joined| drop(self.bytes.jobs.insert(key, joined)));
        let before = self.backlog.len();
        self.step(Event::Assembled {
            job,
            attempt,
            result,
        });
        let finishes = |action: &Action| {
            matches!(
                action,
                Action::Persist(Write::Finish {
                    outcome: Outcome::Completed,
                    ..
                })
            )
        };
        if !self.backlog[before..].iter().any(finishes) {
            self.bytes.jobs.remove(&key);
        }
    }

    pub(super) fn carry_out(&mut self, action: Action) {
        self.observer.action(self.clock.now(), &action);
        match action {
            Action::Persist(_) => {}
            Action::Reply { ticket, reply } => {
                if let Some(callback) = self.replies.remove(&ticket) {
                    callback(reply);
                }
            }
            Action::Prepare {
                device,
                lease,
                unit,
            } => {
                self.with_task(device, lease, unit, |device, task| device.prepare(task));
            }
            Action::Start {
                device,
                lease,
                unit,
            } => {
                self.with_task(device, lease, unit, |device, task| device.prove(task));
            }
            Action::Discard { device, lease } => self.device(device).discard(lease),
            Action::Assemble { job, attempt } => self.assemble(job, attempt),
            Action::Ended { job, .. } => {
                for done in self.watchers.remove(&job).unwrap_or_default() {
                    done(Some(job));
                }
            }
            Action::StartDevice {
                device,
                incarnation,
            } => {
                let (inbox, gate) = (self.inbox.clone(), Arc::clone(&self.gate));
                self.device(device).start(Port {
                    device,
                    incarnation,
                    inbox,
                    gate,
                });
            }
            Action::StopDevice { device, cause, .. } => self.device(device).stop(&cause),
            Action::Quarantined { .. } => {}
            Action::Drained => self.drained.drain(..).for_each(|reply| reply(())),
        }
    }

    fn device(&self, id: DeviceId) -> &Arc<dyn Device> {
        &self.devices[id.0 as usize]
    }

    fn with_task(
        &self,
        device: DeviceId,
        lease: LeaseId,
        unit: UnitKey,
        give: impl FnOnce(&dyn Device, Task),
    ) {
        match self.jobs.get(&unit.job) {
            Some(job) => {
                let job = Arc::clone(job);
                give(self.device(device).as_ref(), Task { lease, unit, job });
            }
            None => {
                let cause = "internal error: the job is not known; please report it".to_owned();
                let fault = Fault::Request;
                self.inbox.send(Message::Event(Event::UnitFailed {
                    lease,
                    fault,
                    cause,
                }));
            }
        }
    }

    /// Notes what the actions, now durable, mean for the job table and the totals.
    pub(super) fn count(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Persist(Write::Insert(record)) => {
                    if let Some(info) = JobInfo::of(record) {
                        self.jobs.insert(record.id, Arc::new(info));
                    }
                }
                Action::Ended { job, outcome } => {
                    if let Some(info) = self.jobs.get(job) {
                        let totals = self.next_status.totals.entry(info.circuit.kind);
                        totals.or_default().count(outcome);
                    }
                }
                _ => {}
            }
        }
    }

    /// Shows the present state.
    pub(super) fn publish(&mut self) {
        let scheduler = &self.scheduler;
        let (memory_used, memory_budget) = scheduler.memory();
        let names = self.devices.iter().map(|device| device.name());
        let status = Status {
            uptime_ms: self.clock.now().saturating_sub(self.began),
            counts: scheduler.counts().to_vec(),
            devices: names.zip(scheduler.devices()).collect(),
            totals: self.next_status.totals.clone(),
            queued: scheduler.queued_jobs(),
            memory_used,
            memory_budget,
            store_error: self.next_status.store_error.clone(),
        };
        *self.status.write().unwrap_or_else(PoisonError::into_inner) = status;
    }
}
