//! Following a job: its state whenever it has changed and the last one was taken.

use engine::scheduler::{JobPhase, Scheduler};
use store::JobId;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tonic::Status;

use crate::context::{Closing, Work};
use crate::grpc::result::engine_status;
use crate::grpc::{Api, shutting_down};
use crate::observatory::Progress;
use crate::proto::v1::AwaitProofResponse;
use crate::proto::v2::JobState;
use crate::proto::v2::job_state::Phase;

impl Api {
    /// The states of a job from now on. At most one waits to be read; who reads slowly gets the
    /// newest next.
    pub(super) async fn follow(
        &self,
        name: String,
    ) -> Result<Receiver<Result<JobState, Status>>, Status> {
        let job = self.lookup(&name).await?;
        let (sender, states) = channel(1);
        let api = self.clone();
        tokio::spawn(async move {
            let _call = api.context.call();
            if let Err(status) = api.tell(job, &name, &sender).await {
                // Who asked may have gone.
                let _ = sender.send(Err(status)).await;
            }
        });
        Ok(states)
    }

    async fn tell(
        &self,
        job: JobId,
        name: &str,
        states: &Sender<Result<JobState, Status>>,
    ) -> Result<(), Status> {
        let mut watch = self.context.observatory.watch(job);
        let mut closing = self.context.closing.clone();
        let mut last = None;
        loop {
            let state = self.state(job, name).await?;
            if let Some(state) = state.filter(|state| last.as_ref() != Some(state)) {
                if states.send(Ok(state.clone())).await.is_err() || state.result.is_some() {
                    return Ok(());
                }
                last = Some(state);
            }
            tokio::select! {
                () = watch.changed() => {}
                () = states.closed() => return Ok(()),
                _ = closing.wait_for(|closing| *closing == Closing::Closed) => {
                    return Err(shutting_down());
                }
            }
        }
    }
}

impl Api {
    /// Where a job stands; `None` while it is being accepted.
    async fn state(&self, job: JobId, name: &str) -> Result<Option<JobState>, Status> {
        let progress = self.context.observatory.progress(job);
        match progress {
            Some(progress) if progress.ended => {
                let result = self.result(job, name).await?;
                Ok(Some(state(name, &progress, Some(result))))
            }
            Some(progress) => Ok(Some(state(name, &progress, None))),
            // Ended before the start, or so long ago that only the store knows it.
            None if self.has_ended(job).await? => Ok(Some(JobState {
                job_id: name.to_owned(),
                phase: Phase::Ended.into(),
                result: Some(self.result(job, name).await?),
                ..JobState::default()
            })),
            None => Ok(None),
        }
    }

    async fn has_ended(&self, job: JobId) -> Result<bool, Status> {
        let ended = move |scheduler: &Scheduler| {
            let phase = scheduler.job(job).map(|job| job.phase);
            !matches!(phase, Some(JobPhase::Queued | JobPhase::Running))
        };
        self.context
            .blocking(Work::Question, move |context| context.service.ask(ended))
            .await?
            .map_err(|error| engine_status(&error))
    }
}

fn state(name: &str, progress: &Progress, result: Option<AwaitProofResponse>) -> JobState {
    let phase = match (&result, progress.started) {
        (Some(_), _) => Phase::Ended,
        (None, Some(_)) => Phase::Running,
        (None, None) => Phase::Queued,
    };
    JobState {
        job_id: name.to_owned(),
        phase: phase.into(),
        circuit: progress.circuit.name().to_owned(),
        units: progress.units,
        units_proven: progress.proven,
        units_running: progress.running,
        accepted_ms: progress.accepted,
        started_ms: progress.started.unwrap_or(0),
        result,
    }
}
