//! Following a job to its end, also over the end of a connection or a restart of the daemon.

use std::time::{Duration, Instant};

use tonic::Code;

use super::{Client, ClientError, Result, no_result};
use crate::proto::v1::AwaitProofResponse;
use crate::proto::v2::{JobState, WatchJobRequest};

/// How long a daemon that is gone is waited for.
const GONE_LIMIT: Duration = Duration::from_secs(300);
/// Pause before it is looked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// How following ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// The job has ended.
    Ended(Box<AwaitProofResponse>),
    /// Time is up; the job goes on.
    TimedOut,
}

impl Client {
    /// Follows a job until it ends, at most `limit`; `seen` is called with every state. A daemon
    /// that goes away is waited for, five minutes each time.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with `NotFound` for an unknown job; [`ClientError::Lost`] if the
    /// daemon does not come back.
    pub fn follow(
        &mut self,
        job_id: &str,
        limit: Option<Duration>,
        mut seen: impl FnMut(&JobState),
    ) -> Result<Followed> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let left =
            |end: Option<Instant>| end.map(|end| end.saturating_duration_since(Instant::now()));
        let mut gone: Option<Instant> = None;
        loop {
            let error = match self.watch(job_id, left(end), &mut seen, &mut gone) {
                Ok(followed) => return Ok(followed),
                Err(error) => error,
            };
            if error.is_unknown_call() {
                return self.follow_v1(job_id, left(end));
            }
            let since = *gone.get_or_insert_with(Instant::now);
            if !may_come_back(&error) || since.elapsed() > GONE_LIMIT {
                return Err(error);
            }
            match left(end) {
                Some(left) if left <= PAUSE => return Ok(Followed::TimedOut),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }

    /// One stream of states. `gone` is forgotten as soon as one comes.
    fn watch(
        &mut self,
        job_id: &str,
        limit: Option<Duration>,
        seen: &mut impl FnMut(&JobState),
        gone: &mut Option<Instant>,
    ) -> Result<Followed> {
        let job_id = job_id.to_owned();
        let request = self.request(WatchJobRequest { job_id });
        let calls = &mut self.calls_v2;
        let following = async {
            let mut states = calls.watch_job(request).await?.into_inner();
            while let Some(state) = states.message().await? {
                *gone = None;
                seen(&state);
                if let Some(result) = state.result {
                    return Ok(Followed::Ended(Box::new(result)));
                }
            }
            Err(no_result())
        };
        let followed = self.runtime.block_on(async {
            match limit {
                None => following.await,
                Some(limit) => tokio::time::timeout(limit, following)
                    .await
                    .unwrap_or(Ok(Followed::TimedOut)),
            }
        });
        followed.map_err(|status| super::lost(status, &self.address))
    }

    /// With a daemon that knows only `cuzk.v1`.
    fn follow_v1(&mut self, job_id: &str, limit: Option<Duration>) -> Result<Followed> {
        let timeout_ms = limit.map_or(0, |limit| {
            u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1)
        });
        let result = self.wait(job_id, timeout_ms)?;
        Ok(match result.status() {
            crate::proto::v1::await_proof_response::Status::Timeout => Followed::TimedOut,
            _ => Followed::Ended(Box::new(result)),
        })
    }
}

/// Whether the daemon, or the way to it, may be there again soon: its jobs are kept.
fn may_come_back(error: &ClientError) -> bool {
    match error {
        ClientError::Lost { .. } => true,
        ClientError::Refused { status, .. } => *status == Code::Unavailable,
        _ => false,
    }
}
