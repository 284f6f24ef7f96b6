//! The client against a daemon that knows `cuzk.v1` alone, as the earlier one does.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::request;
use server::client::{Client, Followed, Options};
use server::proto::v1;
use server::proto::v1::await_proof_response::Status as Outcome;
use server::proto::v1::proving_engine_server::{ProvingEngine, ProvingEngineServer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

/// Completes every job but one that is called `endless`, and notes what it was asked.
#[derive(Clone, Default)]
struct OldDaemon(Arc<Mutex<Vec<String>>>);

impl OldDaemon {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

fn not_asked<T>() -> Answer<T> {
    Err(Status::unimplemented("not in this test"))
}

#[tonic::async_trait]
impl ProvingEngine for OldDaemon {
    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Answer<v1::SubmitProofResponse> {
        let request = request.into_inner();
        let bytes: usize = request.vanilla_proofs.iter().map(Vec::len).sum();
        self.note(format!("submit {} of {bytes} bytes", request.request_id));
        Ok(Response::new(v1::SubmitProofResponse {
            job_id: request.request_id,
            queue_position: 3,
            ..Default::default()
        }))
    }

    async fn await_proof(
        &self,
        request: Request<v1::AwaitProofRequest>,
    ) -> Answer<v1::AwaitProofResponse> {
        let request = request.into_inner();
        self.note(format!("await {}", request.job_id));
        let status = match request.job_id.as_str() {
            "nobody" => return Err(Status::not_found("job not found: nobody")),
            "endless" => Outcome::Timeout,
            _ => Outcome::Completed,
        };
        assert_eq!(request.timeout_ms > 0, status == Outcome::Timeout);
        Ok(Response::new(v1::AwaitProofResponse {
            job_id: request.job_id,
            status: status.into(),
            proof: vec![7; 192],
            ..Default::default()
        }))
    }

    async fn prove(&self, _: Request<v1::ProveRequest>) -> Answer<v1::ProveResponse> {
        not_asked()
    }

    async fn cancel_proof(
        &self,
        _: Request<v1::CancelProofRequest>,
    ) -> Answer<v1::CancelProofResponse> {
        not_asked()
    }

    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Answer<v1::GetStatusResponse> {
        not_asked()
    }

    async fn get_metrics(
        &self,
        _: Request<v1::GetMetricsRequest>,
    ) -> Answer<v1::GetMetricsResponse> {
        not_asked()
    }

    async fn preload_srs(
        &self,
        _: Request<v1::PreloadSrsRequest>,
    ) -> Answer<v1::PreloadSrsResponse> {
        not_asked()
    }

    async fn evict_srs(&self, _: Request<v1::EvictSrsRequest>) -> Answer<v1::EvictSrsResponse> {
        not_asked()
    }
}

/// Serves until the program ends; returns where.
fn serve(daemon: OldDaemon) -> String {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            Server::builder()
                .add_service(ProvingEngineServer::new(daemon))
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
    });
    receiver.recv().unwrap().to_string()
}

#[test]
fn the_client_does_without_what_the_daemon_does_not_know() {
    let daemon = OldDaemon::default();
    let address = serve(daemon.clone()).parse().unwrap();
    let mut client = Client::connect(&address, &Options::default()).unwrap();
    let mut request = request("winning");
    "a job".clone_into(&mut request.request_id);
    let bytes: usize = request.vanilla_proofs.iter().map(Vec::len).sum();
    let job = client.upload(request, 0).unwrap();
    assert_eq!((job.job_id.as_str(), job.queue_position), ("a job", 3));
    let followed = client.follow("a job", None, |_| ()).unwrap();
    let Followed::Ended(result) = followed else {
        panic!("{followed:?}");
    };
    assert_eq!(
        (result.status(), result.proof.len()),
        (Outcome::Completed, 192)
    );
    let limit = Some(Duration::from_secs(5));
    let followed = client.follow("endless", limit, |_| ()).unwrap();
    assert_eq!(followed, Followed::TimedOut);
    let error = client.follow("nobody", None, |_| ()).unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
    let submitted = format!("submit a job of {bytes} bytes");
    assert_eq!(
        *daemon.0.lock().unwrap(),
        [
            submitted.as_str(),
            "await a job",
            "await endless",
            "await nobody"
        ]
    );
}
