//! Why a call failed.

use std::io;
use std::path::PathBuf;

use tonic::{Code, Status};

use crate::grpc::CODE_HEADER;

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
    /// The connection broke, or what is there does not speak gRPC as we do.
    #[error("the call to {address} got no answer: {cause}")]
    Lost {
        /// Where.
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

/// Result of a call.
pub type Result<T> = std::result::Result<T, ClientError>;

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

impl ClientError {
    /// Whether the daemon does not know the call: one of before it.
    pub(super) fn is_unknown_call(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: Code::Unimplemented,
                ..
            }
        )
    }
}

/// A status of the daemon's, or of the connection: the library makes statuses of its own errors.
pub(super) fn lost(status: Status, address: &str) -> ClientError {
    match std::error::Error::source(&status) {
        Some(source) if status.metadata().get(CODE_HEADER).is_none() => ClientError::Lost {
            address: address.to_owned(),
            cause: causes(source),
        },
        _ => status.into(),
    }
}

/// What happened, outermost first, without what repeats the line before it or says nothing.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let empty = text == "transport error";
        if !empty && !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        next = error.source();
    }
    if said.is_empty() {
        return "the connection broke".to_owned();
    }
    said.join(": ")
}
