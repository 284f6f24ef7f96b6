//! The service: one loop owns the [scheduler](crate::scheduler), makes durable what it decides,
//! and only then acts on it. Devices and proof checking are behind traits.
//!
//! ```text
//! client ──submit──▶ payload to the store ──▶ ┌──────────┐ ──writes──▶ store (one transaction)
//! device ──report──────────────────────────▶  │   loop   │              │
//! judge  ──verdict─────────────────────────▶  │scheduler │ ◀──done──────┘
//!                                             └──────────┘ ──▶ replies, devices, judges
//! ```
//!
//! The loop takes what has come in, lets the scheduler decide, commits all writes together, and
//! carries out the rest; a unit whose lease is stored already is started before the commit. While the
//! store fails nothing is acknowledged and no unit is leased; what has been decided waits, and is
//! tried again every second.

mod clock;
mod commit;
mod device;
mod gate;
mod judge;
mod message;
mod observer;
mod pool;
mod recovery;
mod run;
mod status;
mod writes;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use store::{Digest, JobId, JobRecord, Retention, Store};

pub use device::{Device, JobInfo, Port, Task, UnitProof};
pub use judge::{Joined, Judge};
pub use message::Callback;
pub use observer::Observer;
pub use status::{Status, Totals};

use crate::Error;
use crate::scheduler::{Admitted, Config, DeviceId, Event, Millis, Reply, Scheduler, Submission};
use message::{Inbox, Message};

/// How a service is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The scheduler's part. `first_lease` is set by the service.
    pub scheduler: Config,
    /// What is kept of ended jobs.
    pub retention: Retention,
    /// Pause between sweeps.
    pub sweep_every_ms: Millis,
    /// Threads for checking and joining proofs.
    pub judge_threads: usize,
    /// Largest payload, bytes.
    pub payload_limit: u64,
}

impl Default for Settings {
    /// A sweep a minute, two judges, 256 MiB payloads.
    fn default() -> Self {
        Self {
            scheduler: Config::default(),
            retention: Retention::default(),
            sweep_every_ms: 60_000,
            judge_threads: 2,
            payload_limit: 256 << 20,
        }
    }
}

/// A submission that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The job.
    pub job: JobId,
    /// The client's name for it.
    pub name: String,
    /// As what.
    pub how: Admitted,
    /// Open jobs before it.
    pub ahead: u32,
}

/// An ended job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended, and its timings.
    pub record: JobRecord,
    /// The proof bytes, if it is completed.
    pub proof: Option<Vec<u8>>,
}

/// What came of waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The job has ended.
    Ended(Box<Finished>),
    /// Time was up; the job goes on.
    TimedOut,
}

/// The running service.
pub struct Service {
    inbox: Inbox,
    store: Arc<dyn Store>,
    status: Arc<RwLock<Status>>,
    payload_limit: u64,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Recovers what the store has, starts the devices and the loop. Devices are numbered in the
    /// order given.
    ///
    /// Errors: the store's, and [`Error::Thread`].
    pub fn start(
        settings: Settings,
        store: Arc<dyn Store>,
        judge: Arc<dyn Judge>,
        devices: Vec<Arc<dyn Device>>,
    ) -> Result<Self, Error> {
        Self::start_observed(settings, store, judge, devices, Arc::new(observer::Nobody))
    }

    /// As [`Service::start`], seen by an observer from the recovery on.
    pub fn start_observed(
        settings: Settings,
        store: Arc<dyn Store>,
        judge: Arc<dyn Judge>,
        devices: Vec<Arc<dyn Device>>,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, Error> {
        let (sender, messages) = channel();
        let inbox = Inbox::new(sender);
        let status = Arc::new(RwLock::new(Status::default()));
        let payload_limit = settings.payload_limit;
        let mut looped = run::Loop::new(
            settings,
            run::Parts {
                store: Arc::clone(&store),
                judge,
                devices,
                observer,
            },
            (inbox.clone(), messages),
            Arc::clone(&status),
        )?;
        looped.recover()?;
        let name = "cuzk-engine";
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || looped.run())
            .map_err(|source| Error::Thread { name, source })?;
        Ok(Self {
            inbox,
            store,
            status,
            payload_limit,
            thread: Some(thread),
        })
    }

    /// Stores a payload, on this thread. The digest goes into the [`Submission`].
    pub fn put_payload(&self, source: &mut dyn Read) -> Result<(Digest, u64), Error> {
        Ok(self.store.put_payload(source, self.payload_limit)?)
    }

    /// A stored payload, checked, on this thread.
    pub fn payload(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        Ok(self.store.payload(digest)?)
    }

    /// Keeps a payload whose submission was long in preparing, on this thread.
    pub fn renew_payload(&self, digest: &Digest) -> Result<(), Error> {
        Ok(self.store.renew_payload(digest)?)
    }

    /// Removes a payload that turned out to be no request, on this thread.
    pub fn discard_payload(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.store.discard_payload(digest)?)
    }

    /// Submits; `reply` is called when the job is stored or refused.
    pub fn submit_then(&self, submission: Submission, reply: Callback<Result<Admission, Error>>) {
        let reply = Box::new(move |answer| reply(admission(answer)));
        self.inbox.send(Message::Submit {
            submission: Box::new(submission),
            reply,
        });
    }

    /// Submits and waits until the job is stored or refused.
    ///
    /// Errors: [`Error::Refused`], [`Error::Stopped`].
    pub fn submit(&self, submission: Submission) -> Result<Admission, Error> {
        self.call(|answer| self.submit_then(submission, answer))?
    }

    /// Cancels an open job by any form of its name. Says whether a unit of it was running;
    /// `false` also if there is no such job.
    ///
    /// Errors: [`Error::Refused`] while the store fails (it may be cancelled all the same), and
    /// [`Error::Stopped`].
    pub fn cancel(&self, name: &str) -> Result<bool, Error> {
        let name = name.to_owned();
        let reply = self.call(|reply| self.inbox.send(Message::Cancel { name, reply }))?;
        match reply {
            Reply::Cancelled { was_running, .. } => Ok(was_running),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Admitted { .. } => Err(Error::Stopped),
        }
    }

    /// Calls `done` when the job has ended, or at once if it has or is not known.
    pub fn watch(&self, job: JobId, done: Callback<Option<JobId>>) {
        self.inbox.send(Message::Watch { job, done });
    }

    /// The job that a client means; see [`Scheduler::lookup`].
    pub fn lookup(&self, name: &str) -> Result<JobId, Error> {
        let wanted = name.to_owned();
        let found = self.ask(move |scheduler| scheduler.lookup(&wanted))?;
        found.ok_or_else(|| Error::UnknownJob(name.to_owned()))
    }

    /// Waits for a job's end, at most `timeout` (for ever without).
    ///
    /// Errors: [`Error::UnknownJob`], [`Error::Stopped`], the store's.
    pub fn wait(&self, job: JobId, timeout: Option<Duration>) -> Result<Waited, Error> {
        let (sender, receiver) = sync_channel(1);
        let done = move |ended| {
            // Who waited may have gone.
            let _ = sender.send(ended);
        };
        self.watch(job, Box::new(done));
        let ended = match timeout {
            None => receiver.recv().map_err(|_| Error::Stopped)?,
            Some(timeout) => match receiver.recv_timeout(timeout) {
                Ok(ended) => ended,
                Err(RecvTimeoutError::Timeout) => return Ok(Waited::TimedOut),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopped),
            },
        };
        ended.ok_or_else(|| Error::UnknownJob(job.to_string()))?;
        self.finished(job)
            .map(|finished| Waited::Ended(Box::new(finished)))
    }

    /// The result of an ended job.
    pub fn finished(&self, job: JobId) -> Result<Finished, Error> {
        let unknown = || Error::UnknownJob(job.to_string());
        let record = self.store.job(job)?.ok_or_else(unknown)?;
        let proof = self.store.proof(job)?;
        Ok(Finished { record, proof })
    }

    /// The service at this moment. Does not wait for the loop.
    pub fn status(&self) -> Status {
        self.status
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asks the loop something about the scheduler's state.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.call(|answer| {
            let ask = move |scheduler: &Scheduler| answer(question(scheduler));
            self.inbox.send(Message::Ask(Box::new(ask)));
        })
    }

    /// Sets the memory budget anew, bytes.
    pub fn set_budget(&self, bytes: u64) {
        self.inbox.send(Message::Event(Event::Budget { bytes }));
    }

    /// Gives a quarantined device another chance.
    pub fn release(&self, device: DeviceId) {
        self.inbox
            .send(Message::Event(Event::DeviceReleased { device }));
    }

    /// Takes no more jobs and starts no more units from now on; waits until none runs any more, at
    /// most `grace`. Says whether that was reached.
    pub fn drain(&self, grace: Duration) -> bool {
        let (sender, receiver) = sync_channel(1);
        let reply = Box::new(move |()| {
            let _ = sender.send(());
        });
        self.inbox.send(Message::Drained { reply });
        receiver.recv_timeout(grace).is_ok()
    }

    /// [Drains](Service::drain), stops the devices and ends. Open jobs go on at the next start.
    /// Says whether every unit had come to its end.
    pub fn shut_down(mut self, grace: Duration) -> bool {
        let drained = self.drain(grace);
        self.stop();
        drained
    }

    fn stop(&mut self) {
        self.inbox.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Sends a question whose answer comes by callback, and waits for it.
    fn call<T: Send + 'static>(&self, send: impl FnOnce(Callback<T>)) -> Result<T, Error> {
        let (sender, receiver) = sync_channel(1);
        send(Box::new(move |answer| drop(sender.send(answer))));
        receiver.recv().map_err(|_| Error::Stopped)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

fn admission(reply: Reply) -> Result<Admission, Error> {
    match reply {
        Reply::Admitted {
            job,
            name,
            how,
            ahead,
        } => Ok(Admission {
            job,
            name,
            how,
            ahead,
        }),
        Reply::Refused(refusal) => Err(refusal.into()),
        Reply::Cancelled { .. } => Err(Error::Stopped),
    }
}
