//! `cuzk.v1.ProvingEngine`.

mod caller;
mod result;
mod status;
pub(crate) use caller::HEADER as NAME_HEADER;
pub(crate) use result::CODE_HEADER;
pub(crate) use status::condition;
mod submit;
mod v2;

use std::sync::Arc;
use std::time::Duration;

use filecoin::CircuitId;
use tonic::{Code, Request, Response, Status};

use crate::context::{Closing, Context, Work};
use crate::keys::Evicted;
use crate::proto::v1;
use crate::proto::v1::proving_engine_server::ProvingEngine;
use crate::waiters::Answer;
use result::{await_response, engine_status, failed_response, with_code};
use store::JobId;
use submit::NotTaken;

/// The service.
#[derive(Clone)]
pub(crate) struct Api {
    context: Arc<Context>,
}

impl Api {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// The result of a job, when it has ended. `name` is what the caller called it.
    async fn result(&self, job: JobId, name: &str) -> Result<v1::AwaitProofResponse, Status> {
        loop {
            let mut closing = self.context.closing.clone();
            // In this order: when the last unit ends the closing, its job has ended before.
            let answer = tokio::select! {
                biased;
                answer = self.context.waiters.ended(job) => answer,
                _ = closing.wait_for(|closing| *closing == Closing::Closed) => Answer::Stopped,
            };
            match answer {
                Answer::Stopped => return Err(shutting_down()),
                Answer::Unknown => return Err(engine_status(&unknown(name))),
                Answer::Ended => {}
            }
            let finished = self
                .context
                .blocking(Work::Question, move |context| context.service.finished(job))
                .await?
                .map_err(|error| engine_status(&error))?;
            // Submitted again meanwhile, it may be open once more.
            if let Some(response) = await_response(name, finished) {
                return Ok(response);
            }
        }
    }

    async fn lookup(&self, name: &str) -> Result<JobId, Status> {
        let wanted = name.to_owned();
        self.context
            .blocking(Work::Question, move |context| {
                context.service.lookup(&wanted)
            })
            .await?
            .map_err(|error| engine_status(&error))
    }

    fn circuit(name: &str) -> Result<CircuitId, Status> {
        CircuitId::parse(name).map_err(|_| {
            let shown: String = name.chars().take(64).collect();
            let status = Status::invalid_argument(format!("unknown circuit ID: {shown}"));
            with_code(status, "UNKNOWN_CIRCUIT")
        })
    }
}

fn unknown(name: &str) -> engine::Error {
    engine::Error::UnknownJob(name.to_owned())
}

fn shutting_down() -> Status {
    let status = Status::unavailable(
        "the daemon is shutting down; the job is kept, submit it again after the restart",
    );
    with_code(status, "SHUTTING_DOWN")
}

#[tonic::async_trait]
impl ProvingEngine for Api {
    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<Response<v1::SubmitProofResponse>, Status> {
        let _call = self.context.call();
        let client = caller::name(&request);
        let submitted = self.submit(request.into_inner(), client).await;
        let admission = submitted.map_err(NotTaken::into_status)?;
        Ok(Response::new(v1::SubmitProofResponse {
            job_id: admission.name,
            queue_position: admission.ahead,
            assigned_gpu: String::new(),
        }))
    }

    async fn await_proof(
        &self,
        request: Request<v1::AwaitProofRequest>,
    ) -> Result<Response<v1::AwaitProofResponse>, Status> {
        let _call = self.context.call();
        let v1::AwaitProofRequest { job_id, timeout_ms } = request.into_inner();
        let job = self.lookup(&job_id).await?;
        let result = self.result(job, &job_id);
        if timeout_ms == 0 {
            return result.await.map(Response::new);
        }
        match tokio::time::timeout(Duration::from_millis(timeout_ms), result).await {
            Ok(response) => response.map(Response::new),
            Err(_) => Ok(Response::new(v1::AwaitProofResponse {
                job_id,
                status: v1::await_proof_response::Status::Timeout.into(),
                ..v1::AwaitProofResponse::default()
            })),
        }
    }

    async fn prove(
        &self,
        request: Request<v1::ProveRequest>,
    ) -> Result<Response<v1::ProveResponse>, Status> {
        let _call = self.context.call();
        let client = caller::name(&request);
        let submit = request.into_inner().submit.ok_or_else(|| {
            let status = Status::invalid_argument("submit is missing; put the request there");
            with_code(status, "MISSING_FIELD")
        })?;
        let result = match self.submit(submit, client).await {
            Ok(admission) => self.result(admission.job, &admission.name).await?,
            Err(NotTaken::Call(status)) => return Err(status),
            Err(
                NotTaken::Request {
                    name,
                    code,
                    message,
                }
                | NotTaken::Key {
                    name,
                    code,
                    message,
                },
            ) => failed_response(name, &code, &message),
        };
        let result = Some(result);
        Ok(Response::new(v1::ProveResponse { result }))
    }

    async fn cancel_proof(
        &self,
        request: Request<v1::CancelProofRequest>,
    ) -> Result<Response<v1::CancelProofResponse>, Status> {
        let _call = self.context.call();
        let name = request.into_inner().job_id;
        let was_running = self
            .context
            .blocking(Work::Question, move |context| context.service.cancel(&name))
            .await?
            .map_err(|error| engine_status(&error))?;
        Ok(Response::new(v1::CancelProofResponse { was_running }))
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(status::response(&self.context)))
    }

    async fn get_metrics(
        &self,
        _request: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<v1::GetMetricsResponse>, Status> {
        Ok(Response::new(v1::GetMetricsResponse {
            prometheus_text: self.context.metrics(),
        }))
    }

    async fn preload_srs(
        &self,
        request: Request<v1::PreloadSrsRequest>,
    ) -> Result<Response<v1::PreloadSrsResponse>, Status> {
        let _call = self.context.call();
        let circuit = Self::circuit(&request.into_inner().circuit_id)?;
        let loaded = self
            .context
            .blocking(Work::Keys, move |context| context.keys.preload(circuit))
            .await?
            .map_err(|error| key_status(&error))?;
        Ok(Response::new(v1::PreloadSrsResponse {
            already_loaded: loaded.already_loaded,
            load_time_ms: if loaded.already_loaded {
                0
            } else {
                loaded.load_ms
            },
        }))
    }

    async fn evict_srs(
        &self,
        request: Request<v1::EvictSrsRequest>,
    ) -> Result<Response<v1::EvictSrsResponse>, Status> {
        let _call = self.context.call();
        let circuit = Self::circuit(&request.into_inner().circuit_id)?;
        let evicted = self
            .context
            .blocking(Work::Keys, move |context| context.keys.evict(circuit))
            .await?
            .map_err(|error| key_status(&error))?;
        let (was_loaded, freed_bytes) = match evicted {
            Evicted::NotLoaded => (false, 0),
            Evicted::InUse => (true, 0),
            Evicted::Freed { bytes } => (true, bytes),
        };
        Ok(Response::new(v1::EvictSrsResponse {
            was_loaded,
            freed_bytes,
        }))
    }
}

fn key_status(error: &crate::keys::KeyError) -> Status {
    let status = Status::new(Code::FailedPrecondition, error.message.clone());
    with_code(status, &error.code)
}
