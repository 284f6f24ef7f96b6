//! What can be wrong with a key.

use std::io;
use std::path::{Path, PathBuf};

use super::encoding::PointFault;

/// Why a key cannot be read, used or written.
///
/// Every message names the file, what is wrong with it, and what to do. The command line maps
/// all of them to one exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted, as a verb: "open", "read", "create".
        action: &'static str,
        /// The cause.
        source: io::Error,
    },

    /// The bytes cannot be a key of this kind, whatever the circuit.
    #[error(
        "{} is not a {kind} file: {reason}. Delete it and fetch it again",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// "verifying key" or "parameter".
        kind: &'static str,
        /// What does not fit, with figures.
        reason: String,
    },

    /// The file is well formed but belongs to another circuit.
    #[error(
        "{} belongs to another circuit: its {section} section holds {found} points, this circuit needs {expected}. Check the file's name and size against the circuit, or fetch it again",
        path.display()
    )]
    OtherCircuit {
        /// The file.
        path: PathBuf,
        /// Which vector disagrees.
        section: &'static str,
        /// Points in the file.
        found: u64,
        /// Points that the circuit asks for.
        expected: u64,
    },

    /// One point is unusable.
    #[error("{}: point {index} of section {section} {fault}. The file is corrupt: delete it and fetch it again", path.display())]
    Point {
        /// The file.
        path: PathBuf,
        /// Which vector or which fixed element.
        section: &'static str,
        /// Position in it, from 0.
        index: u64,
        /// What is wrong with the point.
        fault: PointFault,
    },

    /// The file is no longer the one that was opened and checked.
    #[error("{} was changed while in use. Leave parameter files alone while proofs run, and start again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },

    /// A caller asked for points that do not exist.
    #[error(
        "points {start}..+{count} were asked of a section of {len}: the key does not belong to this circuit"
    )]
    Range {
        /// First point asked for.
        start: usize,
        /// How many.
        count: usize,
        /// Points there are.
        len: usize,
    },
}

impl KeyError {
    /// Adapter for `map_err` on I/O results.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
        let path = path.to_path_buf();
        move |source| KeyError::Io {
            path,
            action,
            source,
        }
    }
}
