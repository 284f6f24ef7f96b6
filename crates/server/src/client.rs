//! The client: calls that block, for command lines and tests.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use filecoin::SubmitProofRequest;
use tokio::runtime::Runtime;
pub use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::address::Address;
use crate::grpc::{CODE_HEADER, NAME_HEADER};
use crate::proto::v1;
use crate::proto::v1::proving_engine_client::ProvingEngineClient;

/// Largest message, sent or received, bytes.
const MESSAGE_LIMIT: usize = 256 << 20;
/// How much the peer may send before it is read.
const WINDOW: u32 = 16 << 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Largest answer of HTTP.
const HTTP_LIMIT: u64 = 256 << 20;

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

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no daemon to be reached.
    #[error(
        "the daemon at {address} cannot be reached: {cause}; is it running, and is this its \
        address ([daemon] listen)?"
    )]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What happened.
        cause: String,
    },
    /// The daemon refuses the call.
    #[error("{message}")]
    Refused {
        /// The status, by name.
        status: Code,
        /// Stable code, if the daemon gave one.
        code: Option<String>,
        /// Its message.
        message: String,
    },
    /// A file of ours cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// HTTP answered with an error.
    #[error("{address}{path} answered {status}: {message}")]
    Http {
        /// Where.
        address: String,
        /// What was asked for.
        path: String,
        /// The status line's number.
        status: u16,
        /// The answer's first line.
        message: String,
    },
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        let code = status.metadata().get(CODE_HEADER);
        Self::Refused {
            status: status.code(),
            code: code.and_then(|code| code.to_str().ok()).map(str::to_owned),
            message: status.message().to_owned(),
        }
    }
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, ClientError>;

/// A connection whose calls block. Not for use on async threads.
pub struct Client {
    runtime: Runtime,
    calls: ProvingEngineClient<Channel>,
    name: Option<String>,
}

/// Connects for async use.
///
/// # Errors
/// [`ClientError::Unreachable`], [`ClientError::File`].
pub async fn connect(address: &Address, options: &Options) -> Result<ProvingEngineClient<Channel>> {
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
    let channel = endpoint.connect().await.map_err(unreachable)?;
    Ok(ProvingEngineClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT))
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
        let calls = runtime.block_on(connect(address, options))?;
        Ok(Self {
            runtime,
            calls,
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
        let response = self.runtime.block_on(self.calls.prove(request))?;
        response.into_inner().result.ok_or_else(|| {
            Status::internal("the daemon's answer has no result; is it a cuzk daemon?").into()
        })
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
        let response = self.runtime.block_on(self.calls.submit_proof(request))?;
        Ok(response.into_inner())
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
        let response = self.runtime.block_on(self.calls.await_proof(request))?;
        Ok(response.into_inner())
    }

    /// Cancels a job; says whether a unit of it was running.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn cancel(&mut self, job_id: &str) -> Result<bool> {
        let request = self.request(v1::CancelProofRequest {
            job_id: job_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.cancel_proof(request))?;
        Ok(response.into_inner().was_running)
    }

    /// Devices, keys, queues, totals.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn status(&mut self) -> Result<v1::GetStatusResponse> {
        let request = self.request(v1::GetStatusRequest {});
        let response = self.runtime.block_on(self.calls.get_status(request))?;
        Ok(response.into_inner())
    }

    /// The metrics, as text.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn metrics(&mut self) -> Result<String> {
        let request = self.request(v1::GetMetricsRequest {});
        let response = self.runtime.block_on(self.calls.get_metrics(request))?;
        Ok(response.into_inner().prometheus_text)
    }

    /// Loads a circuit's key.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn preload(&mut self, circuit_id: &str) -> Result<v1::PreloadSrsResponse> {
        let request = self.request(v1::PreloadSrsRequest {
            circuit_id: circuit_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.preload_srs(request))?;
        Ok(response.into_inner())
    }

    /// Unloads a circuit's key.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub fn evict(&mut self, circuit_id: &str) -> Result<v1::EvictSrsResponse> {
        let request = self.request(v1::EvictSrsRequest {
            circuit_id: circuit_id.to_owned(),
        });
        let response = self.runtime.block_on(self.calls.evict_srs(request))?;
        Ok(response.into_inner())
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

/// Gets a document of the daemon's HTTP address.
///
/// # Errors
/// [`ClientError::Unreachable`]; [`ClientError::Http`] for any status but 200.
pub fn http_get(address: &Address, path: &str) -> Result<Vec<u8>> {
    let unreachable = |cause: String| ClientError::Unreachable {
        address: address.to_string(),
        cause,
    };
    let answer = http_exchange(address, path).map_err(|error| unreachable(error.to_string()))?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let no_http = || unreachable("the answer is not HTTP".to_owned());
    let end = end.ok_or_else(no_http)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer[end + 4..].to_vec();
    match status.ok_or_else(no_http)? {
        200 => Ok(body),
        status => Err(ClientError::Http {
            address: address.to_string(),
            path: path.to_owned(),
            status,
            message: String::from_utf8_lossy(&body)
                .lines()
                .next()
                .unwrap_or("")
                .to_owned(),
        }),
    }
}

/// One request per connection; the answer ends with it.
fn http_exchange(address: &Address, path: &str) -> io::Result<Vec<u8>> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: cuzk\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    match address {
        Address::Unix(socket) => {
            let mut stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(CONNECT_LIMIT))?;
            stream.write_all(request.as_bytes())?;
            stream.take(HTTP_LIMIT).read_to_end(&mut answer)?;
        }
        Address::Tcp { host, port } => {
            let mut stream = TcpStream::connect((host.as_str(), *port))?;
            stream.set_read_timeout(Some(CONNECT_LIMIT))?;
            stream.write_all(request.as_bytes())?;
            stream.take(HTTP_LIMIT).read_to_end(&mut answer)?;
        }
    }
    Ok(answer)
}

/// A name as part of a path.
pub fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::new(), |mut out, byte| {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

fn read(path: &PathBuf) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| ClientError::File {
        path: path.clone(),
        source,
    })
}

/// An error's innermost cause says what happened.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        last = error.to_string();
        next = error.source();
    }
    last
}
