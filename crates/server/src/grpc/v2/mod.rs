//! `cuzk.v2.Proving`.

mod upload;
mod watch;

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::submit::NotTaken;
use super::{Api, caller};
use crate::proto::v2;
use crate::proto::v2::proving_server::Proving;

#[tonic::async_trait]
impl Proving for Api {
    async fn submit(
        &self,
        request: Request<Streaming<v2::SubmitRequest>>,
    ) -> Result<Response<v2::SubmitResponse>, Status> {
        let _call = self.context.call();
        let client = caller::name(&request);
        let taken = self.upload(request.into_inner(), client).await;
        self.count(&taken);
        taken.map(Response::new).map_err(NotTaken::into_status)
    }

    type WatchJobStream = ReceiverStream<Result<v2::JobState, Status>>;

    async fn watch_job(
        &self,
        request: Request<v2::WatchJobRequest>,
    ) -> Result<Response<Self::WatchJobStream>, Status> {
        let states = self.follow(request.into_inner().job_id).await?;
        Ok(Response::new(ReceiverStream::new(states)))
    }
}
