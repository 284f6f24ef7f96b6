//! Waiting for jobs without threads, with one watch in the engine per job however many wait and
//! give up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::Service;
use store::JobId;
use tokio::sync::watch;

/// What is known of a job's end; the sender is gone when the engine has ended.
type End = watch::Receiver<Option<Answer>>;

/// The engine's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The job has ended.
    Ended,
    /// There is no such job.
    Unknown,
    /// The engine has stopped.
    Stopped,
}

/// Jobs that somebody waits for.
pub(crate) struct Waiters {
    service: Arc<Service>,
    ends: Arc<Mutex<HashMap<JobId, End>>>,
}

impl Waiters {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self {
            service,
            ends: Arc::default(),
        }
    }

    /// Waits until the job has ended. Giving up costs nothing.
    pub(crate) async fn ended(&self, job: JobId) -> Answer {
        let mut end = self.end(job);
        let answer = end.wait_for(Option::is_some).await;
        answer
            .ok()
            .and_then(|answer| *answer)
            .unwrap_or(Answer::Stopped)
    }

    fn end(&self, job: JobId) -> End {
        let mut ends = lock(&self.ends);
        if let Some(end) = ends.get(&job).filter(|end| end.has_changed().is_ok()) {
            return end.clone();
        }
        let (sender, end) = watch::channel(None);
        ends.insert(job, end.clone());
        drop(ends);
        let all = Arc::clone(&self.ends);
        // Dropped unsaid when the engine stops: then the channel closes.
        let said = move |ended: Option<JobId>| {
            lock(&all).remove(&job);
            let answer = match ended {
                Some(_) => Answer::Ended,
                None => Answer::Unknown,
            };
            sender.send_replace(Some(answer));
        };
        self.service.watch(job, Box::new(said));
        end
    }
}

fn lock(ends: &Mutex<HashMap<JobId, End>>) -> MutexGuard<'_, HashMap<JobId, End>> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}
