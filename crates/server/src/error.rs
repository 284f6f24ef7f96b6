//! What can go wrong with the server itself. Each message names the thing, the cause and the
//! remedy.

use std::io;
use std::path::PathBuf;

use crate::address::Address;

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({key}): {source}; {remedy}")]
    Listen {
        /// Which.
        address: Address,
        /// The key that names it.
        key: &'static str,
        /// The system's answer.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// An address that other hosts can reach, without TLS.
    #[error(
        "{key} = {address} can be reached from other hosts and [security] require_tls is set; \
         set tls_cert and tls_key, or listen on 127.0.0.1 or a Unix socket"
    )]
    NotEncrypted {
        /// Which.
        address: Address,
        /// The key that names it.
        key: &'static str,
    },
    /// A file of `[security]` cannot be read.
    #[error("{} ([security] {key}) cannot be read: {source}; correct the path or the file's \
        permissions", .path.display())]
    SecurityFile {
        /// Which.
        path: PathBuf,
        /// The key that names it.
        key: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The certificate, its key or the authorities are of no use.
    #[error(
        "[security] tls_cert, tls_key or client_ca is not usable: {cause}; each is a PEM \
        file, the key belongs to the certificate"
    )]
    Tls {
        /// The library's answer.
        cause: String,
    },
    /// The threads could not be started.
    #[error(
        "the server's threads cannot be started: {0}; raise the limit of processes (ulimit -u)"
    )]
    Threads(io::Error),
}

impl Error {
    /// Stable upper-case code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen { .. } => "CANNOT_LISTEN",
            Self::NotEncrypted { .. } => "TLS_REQUIRED",
            Self::SecurityFile { .. } => "TLS_FILE_UNREADABLE",
            Self::Tls { .. } => "TLS_UNUSABLE",
            Self::Threads(_) => "THREAD",
        }
    }
}
