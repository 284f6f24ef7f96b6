//! The client: calls that block, for command lines and tests.

mod error;
mod follow;
mod http;
mod upload;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use filecoin::SubmitProofRequest;
use tokio::runtime::Runtime;
pub use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Response, Status};

use crate::address::Address;
use crate::grpc::NAME_HEADER;
use crate::proto::v1;
use crate::proto::v1::proving_engine_client::ProvingEngineClient;
use crate::proto::v2::proving_client::ProvingClient;
pub use error::{ClientError, Result};
use error::{causes, lost};
pub use follow::Followed;
pub use http::{http_get, percent_encoded};
pub use upload::{Submitted, parts};

/// Largest message, sent or received, bytes.
const MESSAGE_LIMIT: usize = 256 << 20;
/// How much the peer may send before it is read.
const WINDOW: u32 = 16 << 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How the daemon is reached.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The authorities of the daemon's certificate, PEM; turns TLS on.
    pub authorities: Option<PathBuf>,
    /// Our certificate and its key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Our name, for fair shares; the daemon goes by the address without one.
    pub name: Option<String>,
}

/// A connection whose calls block. Not for use on async threads.
pub struct Client {
    runtime: Runtime,
    calls: ProvingEngineClient<Channel>,
    calls_v2: ProvingClient<Channel>,
    address: String,
    name: Option<String>,
}

/// Connects for async use of `cuzk.v1`.
///
/// # Errors
/// As [`channel`].
pub async fn connect(address: &Address, options: &Options) -> Result<ProvingEngineClient<Channel>> {
    let channel = channel(address, options).await?;
    Ok(ProvingEngineClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT))
}

/// Connects.
///
/// # Errors
/// [`ClientError::Unreachable`], [`ClientError::File`].
pub async fn channel(address: &Address, options: &Options) -> Result<Channel> {
    let unreachable = |error: tonic::transport::Error| ClientError::Unreachable {
        address: address.to_string(),
        cause: causes(&error),
    };
    let uri = match (address, &options.authorities) {
        (Address::Unix(path), _) => format!("unix://{}", path.display()),
        (tcp, None) => format!("http://{tcp}"),
        (tcp, Some(_)) => format!("https://{tcp}"),
    };
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(unreachable)?
        .connect_timeout(CONNECT_LIMIT)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW)
        .tcp_nodelay(true);
    if let Some(authorities) = &options.authorities {
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(authorities)?));
        if let Some((certificate, key)) = &options.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        endpoint = endpoint.tls_config(tls).map_err(unreachable)?;
    }
    endpoint.connect().await.map_err(unreachable)
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// As [`connect`].
    pub fn connect(address: &Address, options: &Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ClientError::Unreachable {
                address: address.to_string(),
                cause: error.to_string(),
            })?;
        let channel = runtime.block_on(channel(address, options))?;
        Ok(Self {
            runtime,
            calls: ProvingEngineClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            calls_v2: ProvingClient::new(channel),
            address: address.to_string(),
            name: options.name.clone(),
        })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(name) = self.name.as_deref().and_then(|name| name.parse().ok()) {
            request.metadata_mut().insert(NAME_HEADER, name);
        }
        request
    }

    /// The answer to a call, or what went wrong.
    fn answer<T>(&self, response: std::result::Result<Response<T>, Status>) -> Result<T> {
        response
            .map(Response::into_inner)
            .map_err(|status| lost(status, &self.address))
    }

    /// Submits a request and waits for its proof. `deadline_ms` 0 is none.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; a job that failed is not an error here.
    pub fn prove(
        &mut self,
        request: SubmitProofRequest,
        deadline_ms: u64,
    ) -> Result<v1::AwaitProofResponse> {
        let submit = Some(message(request, deadline_ms));
        let request = self.request(v1::ProveRequest { submit });
        let response = self.runtime.block_on(self.calls.prove(request));
        let result = self.answer(response)?.result;
        result.ok_or_else(|| no_result().into())
    }

    /// Submits a request and returns when it is stored.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn submit(
        &mut self,
        request: SubmitProofRequest,
        deadline_ms: u64,
    ) -> Result<v1::SubmitProofResponse> {
        let request = self.request(message(request, deadline_ms));
        let response = self.runtime.block_on(self.calls.submit_proof(request));
        self.answer(response)
    }

    /// Waits for a job, at most `timeout_ms` (0: for ever).
    ///
    /// # Errors
    /// [`ClientError::Refused`] with `NotFound` for an unknown job.
    pub fn wait(&mut self, job_id: &str, timeout_ms: u64) -> Result<v1::AwaitProofResponse> {
        let request = self.request(v1::AwaitProofRequest {
            job_id: job_id.to_owned(),
            timeout_ms,
        });
        let response = self.runtime.block_on(self.calls.await_proof(request));
        self.answer(response)
    }

    /// Cancels a job; says whether a unit of it was running.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn cancel(&mut self, job_id: &str) -> Result<bool> {
        let request = self.request(v1::CancelProofRequest {
            job_id: job_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.cancel_proof(request));
        Ok(self.answer(response)?.was_running)
    }

    /// Devices, keys, queues, totals.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn status(&mut self) -> Result<v1::GetStatusResponse> {
        let request = self.request(v1::GetStatusRequest {});
        let response = self.runtime.block_on(self.calls.get_status(request));
        self.answer(response)
    }

    /// The metrics, as text.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn metrics(&mut self) -> Result<String> {
        let request = self.request(v1::GetMetricsRequest {});
        let response = self.runtime.block_on(self.calls.get_metrics(request));
        Ok(self.answer(response)?.prometheus_text)
    }

    /// Loads a circuit's key.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn preload(&mut self, circuit_id: &str) -> Result<v1::PreloadSrsResponse> {
        let request = self.request(v1::PreloadSrsRequest {
            circuit_id: circuit_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.preload_srs(request));
        self.answer(response)
    }

    /// Unloads a circuit's key.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn evict(&mut self, circuit_id: &str) -> Result<v1::EvictSrsResponse> {
        let request = self.request(v1::EvictSrsRequest {
            circuit_id: circuit_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.evict_srs(request));
        self.answer(response)
    }
}

/// The message of the wire for a request.
pub fn message(request: SubmitProofRequest, deadline_ms: u64) -> v1::SubmitProofRequest {
    v1::SubmitProofRequest {
        request_id: request.request_id,
        proof_kind: request.proof_kind,
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        priority: request.priority,
        vanilla_proof: request.vanilla_proof,
        vanilla_proofs: request.vanilla_proofs,
        sector_number: request.sector_number,
        miner_id: request.miner_id,
        randomness: request.randomness,
        partition_index: request.partition_index,
        comm_r_old: request.comm_r_old,
        comm_r_new: request.comm_r_new,
        comm_d_new: request.comm_d_new,
        deadline_ms,
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| ClientError::File {
        path: path.clone(),
        source,
    })
}

fn no_result() -> Status {
    Status::internal("the daemon's answer has no result; is it a cuzk daemon?")
}
