//! What is sent to the service's loop.

use std::sync::mpsc::Sender;

use store::{JobId, Swept};

use super::device::UnitProof;
use super::judge::Joined;
use crate::scheduler::{Event, LeaseId, Reply, Scheduler, Submission, Verdict};

/// Called once with an answer; must return at once.
pub type Callback<T> = Box<dyn FnOnce(T) + Send>;

/// A question that the loop answers from the scheduler's state.
pub(super) type Question = Box<dyn FnOnce(&Scheduler) + Send>;

pub(super) enum Message {
    /// For the scheduler as it is.
    Event(Event),
    Submit {
        submission: Box<Submission>,
        reply: Callback<Reply>,
    },
    Cancel {
        name: String,
        reply: Callback<Reply>,
    },
    /// Call back when the job has ended, or at once if it has, or is unknown (`None`).
    Watch {
        job: JobId,
        done: Callback<Option<JobId>>,
    },
    Ask(Question),
    Returned {
        lease: LeaseId,
        proof: UnitProof,
    },
    Judged {
        lease: LeaseId,
        verdict: Verdict,
    },
    Joined {
        job: JobId,
        attempt: u32,
        result: Result<Joined, String>,
    },
    Swept(Result<Swept, String>),
    Drained {
        reply: Callback<()>,
    },
    Stop,
}

/// The sending end of the loop's queue. What is sent after the loop has ended is lost, together
/// with the callbacks in it: who waits for one sees its channel closed.
#[derive(Clone)]
pub(super) struct Inbox(Sender<Message>);

impl Inbox {
    pub(super) fn new(sender: Sender<Message>) -> Self {
        Self(sender)
    }

    pub(super) fn send(&self, message: Message) {
        // An error only says that the loop has ended.
        let _ = self.0.send(message);
    }
}
