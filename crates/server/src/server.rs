//! Starting and ending: sockets, threads, and the order in which things go.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Service;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::server::NamedService as _;
use tonic::transport::server::Router;
use tonic::transport::{Certificate, Identity, Server as GrpcServer, ServerTlsConfig};
use tonic_health::server::HealthReporter;

use crate::Error;
use crate::address::Address;
use crate::config::{Config, Security};
use crate::context::{Closing, Context};
use crate::grpc::Api;
use crate::http;
use crate::keys::Keys;
use crate::listen::{Listener, bind};
use crate::observatory::Observatory;
use crate::proto::{
    self, v1::proving_engine_server::ProvingEngineServer, v2::proving_server::ProvingServer,
};
use crate::readiness::Readiness;

/// Flow control: how much a peer may send before it is read, per call and per connection.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Open calls per connection: one node of ours has at most tens.
const STREAMS: u32 = 4_096;
/// Largest part of an upload: a piece of 4 MiB and what is around it, or a header.
const PART_LIMIT: usize = (4 << 20) + (64 << 10);
/// How long calls may take to be answered once nothing is waited for.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
const CLOSE_POLL: Duration = Duration::from_millis(5);
/// How long what has been answered may take to be sent, and connections to close.
const FLUSH_LIMIT: Duration = Duration::from_millis(300);
/// How often the health service is brought up to date.
const HEALTH_PERIOD: Duration = Duration::from_millis(500);

/// What a server is started with.
pub struct ServerSettings {
    /// Addresses, limits, security.
    pub config: Config,
    /// The watcher that was given to the engine.
    pub observatory: Arc<Observatory>,
    /// The latches.
    pub readiness: Arc<Readiness>,
}

/// A running server. Ends when dropped, without grace.
pub struct Server {
    context: Arc<Context>,
    closing: watch::Sender<Closing>,
    runtime: Option<Runtime>,
    tasks: Vec<JoinHandle<()>>,
    grpc: Address,
    http: Option<Address>,
}

impl Server {
    /// Opens the sockets and serves. gRPC and HTTP answer from now on; what is not ready yet is
    /// said by `/readyz` and the health service.
    ///
    /// # Errors
    /// [`Error`]; nothing is left open then.
    pub fn start(
        settings: ServerSettings,
        service: Arc<Service>,
        keys: Arc<dyn Keys>,
    ) -> Result<Self, Error> {
        let ServerSettings {
            config,
            observatory,
            readiness,
        } = settings;
        check_exposure(&config)?;
        let tls = tls(&config.security)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads())
            .thread_name("cuzk-net")
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let (closing, closed) = watch::channel(Closing::Open);
        let inside = runtime.enter();
        let grpc = bind(&config.daemon.listen, "daemon.listen")?;
        let http = config.daemon.status_listen.as_ref();
        let http = http
            .map(|address| bind(address, "daemon.status_listen"))
            .transpose()?;
        drop(inside);
        let address = |listener: &Listener, wanted: &Address| {
            listener.address().unwrap_or_else(|| wanted.clone())
        };
        let grpc_address = address(&grpc, &config.daemon.listen);
        let http_address = http
            .as_ref()
            .zip(config.daemon.status_listen.as_ref())
            .map(|(listener, wanted)| address(listener, wanted));
        let context = Arc::new(Context::new(
            service,
            keys,
            (observatory, readiness),
            config,
            closed,
        ));
        let mut tasks = vec![runtime.spawn(serve_grpc(Arc::clone(&context), grpc, tls))];
        if let Some(listener) = http {
            tasks.push(runtime.spawn(serve_http(Arc::clone(&context), listener)));
        }
        Ok(Self {
            context,
            closing,
            runtime: Some(runtime),
            tasks,
            grpc: grpc_address,
            http: http_address,
        })
    }

    /// Where gRPC is, with the port that was chosen.
    pub fn grpc_address(&self) -> &Address {
        &self.grpc
    }

    /// Where HTTP is, if anywhere.
    pub fn http_address(&self) -> Option<&Address> {
        self.http.as_ref()
    }

    /// Ends in good order: takes no more jobs, lets running units end (at most `grace`), answers
    /// those whose job has ended, tells the others to come back later, and closes the sockets.
    /// Says whether every unit had come to its end. The service goes on until it is dropped.
    pub fn shutdown(mut self, grace: Duration) -> bool {
        self.closing.send_replace(Closing::Draining);
        let drained = self.context.service.drain(grace);
        self.closing.send_replace(Closing::Closed);
        if let Some(runtime) = self.runtime.take() {
            let mut tasks = std::mem::take(&mut self.tasks);
            let began = Instant::now();
            runtime.block_on(async {
                while self.context.has_calls() && began.elapsed() < CLOSE_LIMIT {
                    tokio::time::sleep(CLOSE_POLL).await;
                }
                // A client that does not listen at the moment would keep its connection open.
                for task in &mut tasks {
                    let _ = tokio::time::timeout(FLUSH_LIMIT, task).await;
                }
                tasks.iter().for_each(JoinHandle::abort);
            });
            runtime.shutdown_timeout(FLUSH_LIMIT);
        }
        drained
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.closing.send_replace(Closing::Closed);
            runtime.shutdown_background();
        }
    }
}

/// Threads for the network: they only move bytes.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4))
}

/// Refuses or warns of addresses that others can reach.
fn check_exposure(config: &Config) -> Result<(), Error> {
    let encrypted = config.security.identity.is_some();
    let status = config.daemon.status_listen.as_ref();
    // HTTP is never encrypted: its documents show names of jobs, not their contents.
    let addresses = [
        Some(("daemon.listen", &config.daemon.listen, encrypted)),
        status.map(|address| ("daemon.status_listen", address, false)),
    ];
    for (key, address, encrypted) in addresses.into_iter().flatten() {
        if address.is_local() || encrypted {
            continue;
        }
        if config.security.require_tls {
            let address = address.clone();
            return Err(Error::NotEncrypted { address, key });
        }
        tracing::warn!(
            %address, key,
            "other hosts can reach this address, without encryption or authentication; listen on \
             127.0.0.1 or a Unix socket, or set [security] tls_cert, tls_key and client_ca"
        );
    }
    Ok(())
}

fn tls(security: &Security) -> Result<Option<ServerTlsConfig>, Error> {
    let Some((certificate, key)) = &security.identity else {
        return Ok(None);
    };
    let identity = Identity::from_pem(read(certificate, "tls_cert")?, read(key, "tls_key")?);
    let mut tls = ServerTlsConfig::new().identity(identity);
    if let Some(authorities) = &security.client_ca {
        tls = tls.client_ca_root(Certificate::from_pem(read(authorities, "client_ca")?));
    }
    // Here rather than when it is used, so that a wrong file ends the start.
    grpc_server(Some(tls.clone()))?;
    Ok(Some(tls))
}

fn read(path: &Path, key: &'static str) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::SecurityFile {
        path: path.to_owned(),
        key,
        source,
    })
}

fn grpc_server(tls: Option<ServerTlsConfig>) -> Result<GrpcServer, Error> {
    let server = GrpcServer::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS)
        .tcp_nodelay(true);
    match tls {
        None => Ok(server),
        Some(tls) => server.tls_config(tls).map_err(|error| Error::Tls {
            cause: causes(&error),
        }),
    }
}

/// An error with all that is behind it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

/// All gRPC services.
fn router(
    context: &Arc<Context>,
    tls: Option<ServerTlsConfig>,
) -> Result<(Router, HealthReporter), Error> {
    let limit = usize::try_from(context.config.limits.max_message_bytes).unwrap_or(usize::MAX);
    let engine = ProvingEngineServer::new(Api::new(Arc::clone(context)))
        .max_decoding_message_size(limit)
        .max_encoding_message_size(limit);
    let uploads = ProvingServer::new(Api::new(Arc::clone(context)))
        .max_decoding_message_size(PART_LIMIT)
        .max_encoding_message_size(limit);
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut router = grpc_server(tls)?
        .add_service(engine)
        .add_service(uploads)
        .add_service(health);
    // Both versions are in use by tools.
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (reflection().build_v1(), reflection().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => router = router.add_service(v1).add_service(v1alpha),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "no reflection: the embedded descriptors are not usable");
        }
    }
    Ok((router, reporter))
}

async fn serve_grpc(context: Arc<Context>, listener: Listener, tls: Option<ServerTlsConfig>) {
    let (router, reporter) = match router(&context, tls) {
        Ok(parts) => parts,
        Err(error) => return tracing::error!(%error, "gRPC is not served"),
    };
    let health = tokio::spawn(report(Arc::clone(&context), reporter));
    let mut closing = context.closing.clone();
    let closed = async move {
        let _ = closing.wait_for(|now| *now == Closing::Closed).await;
    };
    let served = match listener {
        Listener::Tcp(listener) => {
            let incoming = TcpListenerStream::new(listener);
            router.serve_with_incoming_shutdown(incoming, closed).await
        }
        Listener::Unix(listener, _file) => {
            let incoming = UnixListenerStream::new(listener);
            router.serve_with_incoming_shutdown(incoming, closed).await
        }
    };
    health.abort();
    if let Err(error) = served {
        tracing::error!(error = causes(&error), "gRPC ended");
    }
}

/// Keeps the health service up to date: of the whole server, and of the engine's name.
async fn report(context: Arc<Context>, reporter: HealthReporter) {
    use tonic_health::ServingStatus;
    let mut tick = tokio::time::interval(HEALTH_PERIOD);
    loop {
        tick.tick().await;
        let status = if context.is_ready() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        let names = [
            "",
            ProvingEngineServer::<Api>::NAME,
            ProvingServer::<Api>::NAME,
        ];
        for name in names {
            reporter.set_service_status(name, status).await;
        }
    }
}

async fn serve_http(context: Arc<Context>, listener: Listener) {
    let mut closing = context.closing.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            _ = closing.wait_for(|now| *now == Closing::Closed) => return,
        };
        let context = Arc::clone(&context);
        match accepted {
            Ok(Stream::Tcp(stream)) => drop(tokio::spawn(http::serve(context, stream))),
            Ok(Stream::Unix(stream)) => drop(tokio::spawn(http::serve(context, stream))),
            Err(error) => {
                // Out of file handles, most likely: others may close some.
                tracing::warn!(%error, "an HTTP connection could not be taken");
                tokio::time::sleep(HEALTH_PERIOD).await;
            }
        }
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

async fn accept(listener: &Listener) -> std::io::Result<Stream> {
    Ok(match listener {
        Listener::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
        Listener::Unix(listener, _) => Stream::Unix(listener.accept().await?.0),
    })
}
