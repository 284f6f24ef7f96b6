//! Who wants to know when something about a job changes. Nothing is queued: a watcher is told
//! that there is something new, and looks for itself, so one that is slow costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::JobId;
use tokio::sync::watch;

/// All watchers, by job.
#[derive(Default)]
pub(super) struct Changes(Mutex<HashMap<JobId, watch::Sender<()>>>);

/// One watcher. Leaves when dropped.
pub(crate) struct Watch {
    job: JobId,
    changed: watch::Receiver<()>,
    changes: Arc<Changes>,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(self: &Arc<Self>, job: JobId) -> Watch {
        let mut senders = self.lock();
        let sender = senders.entry(job).or_insert_with(|| watch::channel(()).0);
        Watch {
            job,
            changed: sender.subscribe(),
            changes: Arc::clone(self),
        }
    }

    /// Something about the job, if it is one, has changed.
    pub(super) fn note(&self, job: Option<JobId>) {
        if let Some(job) = job
            && let Some(sender) = self.lock().get(&job)
        {
            sender.send_replace(());
        }
    }
}

impl Watch {
    /// Waits for a change since the last call, or since the beginning.
    pub(crate) async fn changed(&mut self) {
        // The sender stays as long as there is a watcher.
        let _ = self.changed.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut senders = self.changes.lock();
        // This one is still counted.
        if senders
            .get(&self.job)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            senders.remove(&self.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_is_told_once_however_often_it_happened() {
        let changes = Arc::new(Changes::default());
        let job = JobId::from_bytes([1; 16]);
        let (mut one, mut two) = (changes.watch(job), changes.watch(job));
        changes.note(Some(job));
        changes.note(Some(job));
        changes.note(Some(JobId::from_bytes([2; 16])));
        changes.note(None);
        one.changed().await;
        two.changed().await;
        let again = tokio::time::timeout(std::time::Duration::from_millis(1), one.changed());
        assert!(again.await.is_err());
        drop(one);
        changes.note(Some(job));
        two.changed().await;
        drop(two);
        assert!(changes.lock().is_empty());
    }
}
