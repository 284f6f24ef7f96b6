//! The daemon's network side: configuration, gRPC, HTTP, metrics, and the client.
//!
//! ```text
//! Config::load ─▶ Observatory::new ─▶ Service::start_observed(…, observatory)
//!                                          │
//!            Server::start(ServerSettings, Arc<Service>, Arc<dyn Keys>)
//!                                          │
//!                        signal ─▶ Server::shutdown(grace)
//! ```
//!
//! The server has threads of its own; its caller needs no async runtime. Calls of engine, store
//! and keys that may block run on threads for that, in bounded number; WinningPoSt has its own.

#![forbid(unsafe_code)]

mod address;
pub mod client;
pub mod codes;
pub mod config;
mod context;
mod error;
mod grpc;
mod http;
pub mod keys;
mod listen;
mod metrics;
mod observatory;
mod payload;
pub mod proto;
mod readiness;
mod server;
mod waiters;

pub use address::{Address, BadAddress};
pub use config::Config;
pub use error::Error;
pub use keys::Keys;
pub use observatory::{
    AtWork, JobName, Observatory, PartitionState, PartitionView, PipelineView, SpanView, UnitPhase,
};
pub use readiness::{Part, Progress, Readiness};
pub use server::{Server, ServerSettings};
