//! What can be wrong with a key.

use std::io;
use std::path::{Path, PathBuf};

use super::digest::KeyDigest;
use super::encoding::PointFault;
use crate::backend::BackendError;

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

    /// None of the folders holds the file.
    #[error("{0}")]
    Missing(Box<MissingKey>),

    /// A complete file that is neither the network's nor a test key made here.
    #[error("{} is not a key to be used: its digest is {found}, {}, and it has no side file {side_file} of a test key. Fetch the official file again, or generate a test key in a folder of its own", path.display(), expected_digest(expected.as_ref()))]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Its digest.
        found: KeyDigest,
        /// The official file's digest, if one is known.
        expected: Option<KeyDigest>,
        /// Name that the side file would have.
        side_file: String,
    },

    /// A test key where only official ones may be used.
    #[error("{} is a test key (side file {side_file}): anyone could forge proofs for it. Allow test keys explicitly (--allow-test-keys, or srs.allow_test_keys in the configuration) if this is a test; otherwise take its folder out of the search path", path.display())]
    TestKeyNotAllowed {
        /// The key.
        path: PathBuf,
        /// Name of its side file.
        side_file: String,
    },

    /// A test key and its side file disagree.
    #[error("test key {} does not agree with its side file: {reason}. Delete the key's files and generate it again", path.display())]
    TestKeyMismatch {
        /// The key.
        path: PathBuf,
        /// What disagrees.
        reason: String,
    },

    /// The two files of one key hold different verifying keys.
    #[error("{} and the head of {} differ, but they belong to one key. Delete both and fetch them again", vk.display(), params.display())]
    PairMismatch {
        /// The `.vk` file.
        vk: PathBuf,
        /// The `.params` file.
        params: PathBuf,
    },

    /// A file to be written exists already.
    #[error("{} exists already and is not overwritten. Delete it, or choose another folder", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// A test key was to be written among other keys.
    #[error("{} holds {}, which is no test key: test keys live in a folder of their own. Choose another folder", folder.display(), other.display())]
    MixedFolder {
        /// The folder.
        folder: PathBuf,
        /// The key that is no test key.
        other: PathBuf,
    },

    /// The disk has no room.
    #[error("no space for {}: {bytes} more bytes are needed. Free some, or choose another folder", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Bytes that do not fit.
        bytes: u64,
    },

    /// A prepared key that is damaged, or was made by or for something else.
    #[error("{} is not a prepared key to be used: {reason}. Delete it and prepare the key again (`cuzk params prepare`)", path.display())]
    Prepared {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },

    /// There is not enough memory for a key that is to live there.
    #[error("no memory for {}: {bytes} bytes are needed. Free some, or keep the key in a file", path.display())]
    NoMemory {
        /// What the key is called.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },

    /// The device that makes the key's points refuses or fails.
    #[error("{source}")]
    Device {
        /// What it says, and what to do about it.
        source: Box<BackendError>,
    },

    /// No key can be made for this circuit.
    #[error(
        "no key can be made: {variable} occurs in no row of the circuit. Constrain it or leave it out"
    )]
    Unconstrained {
        /// The variable.
        variable: r1cs::Variable,
    },

    /// The secret τ is a root of some polynomial of the circuit.
    #[error("this seed gives a key with a point at infinity. Take another seed")]
    UnluckySeed,

    /// The operating system gave no random bytes.
    #[error(
        "the operating system gave no random numbers ({reason}), and checking a key needs some. Check that getrandom or /dev/urandom works here"
    )]
    Random {
        /// The cause.
        reason: String,
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

/// A key file that no folder holds, and everything a user needs to get it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} (circuit {circuit}, {bytes} bytes, digest {}) is in none of the searched folders: {}. The official files are usually fetched with `lotus fetch-params {sector}` or `curio fetch-params {sector}`; FIL_PROOFS_PARAMETER_CACHE or --params name another folder",
    digest.map_or_else(|| "not published".to_owned(), |digest| digest.to_string()),
    folders(searched)
)]
pub struct MissingKey {
    /// Circuit, for example `porep-32g`.
    pub circuit: String,
    /// File name looked for.
    pub name: String,
    /// Its length, which follows from the circuit.
    pub bytes: u64,
    /// The official file's digest, if one is known.
    pub digest: Option<KeyDigest>,
    /// Sector size as the fetch commands spell it, for example `32GiB`.
    pub sector: String,
    /// Folders that were searched, in order.
    pub searched: Vec<PathBuf>,
}

fn folders(searched: &[PathBuf]) -> String {
    if searched.is_empty() {
        return "no folder was given".to_owned();
    }
    let names: Vec<String> = searched
        .iter()
        .map(|dir| dir.display().to_string())
        .collect();
    names.join(", ")
}

fn expected_digest(expected: Option<&KeyDigest>) -> String {
    expected.map_or_else(
        || "no official digest is known for this circuit".to_owned(),
        |digest| format!("the official one is {digest}"),
    )
}

impl KeyError {
    /// Adapter for `map_err` on what a device says.
    pub(crate) fn device(error: BackendError) -> KeyError {
        match error {
            BackendError::Key(error) => error,
            error => KeyError::Device {
                source: Box::new(error),
            },
        }
    }

    /// Adapter for `map_err` on I/O results.
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> KeyError + use<> {
        let path = path.to_path_buf();
        move |source| KeyError::Io {
            path,
            action,
            source,
        }
    }
}
