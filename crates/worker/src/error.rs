//! What can go wrong between a daemon and a worker.

use std::io;

/// Why the two ends do not understand each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pipe failed.
    #[error("the pipe between daemon and worker failed: {0}; see why the other end has ended")]
    Pipe(#[from] io::Error),
    /// The bytes are no frame.
    #[error(
        "the bytes between daemon and worker are no frame: {0}; something else writes to the \
         worker's standard output, or memory is faulty"
    )]
    Frame(&'static str),
    /// The other end speaks another version of the protocol.
    #[error(
        "the other end speaks version {found} of the worker protocol, this one {expected}; start \
         daemon and workers from the same program"
    )]
    Version {
        /// The version found.
        found: u32,
        /// The version spoken here.
        expected: u32,
    },
    /// A frame holds no message.
    #[error("a frame holds no message: {0}; start daemon and workers from the same program")]
    Message(String),
    /// A message came where another had to.
    #[error("unexpected message: {0}; start daemon and workers from the same program")]
    Unexpected(&'static str),
    /// A thread could not be started.
    #[error("cannot start the thread {name}: {source}; raise the limit of processes (ulimit -u)")]
    Thread {
        /// Its name.
        name: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
