//! The one place where errors of the crates below get an exit code, a stable code
//! string and a remedy of their own.
//!
//! Their messages end in the remedy, as a sentence or clause of its own; here it is
//! split off, so that it stands on the `remedy:` line.

use std::io;

use cuda::{CudaError, DualRunError, SelfTestError};
use filecoin::{Error as FilecoinError, WitnessError};
use groth16::BackendError;
use groth16::key::KeyError;

use super::{Exit, Failure};

const REPORT: &str = "this is a defect: please report it with the command line and the cause above";

/// A failure whose text and remedy are the two parts of `text` around its last `separator`.
fn split(exit: Exit, code: &'static str, text: &str, separator: &str, otherwise: &str) -> Failure {
    match text.rsplit_once(separator) {
        Some((message, remedy)) if !remedy.is_empty() => {
            Failure::new(exit, code, message, uncapitalised(remedy))
        }
        _ => Failure::new(exit, code, text, otherwise),
    }
}

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    // An environment variable or an acronym stays as it is.
    let word = chars.clone().next().is_some_and(char::is_uppercase);
    if word {
        text.to_owned()
    } else {
        first.into_iter().chain(chars).collect()
    }
}

impl From<FilecoinError> for Failure {
    fn from(error: FilecoinError) -> Self {
        let exit = match &error {
            FilecoinError::UnknownCircuit { .. } => Exit::Usage,
            FilecoinError::ProofPoint { .. } => Exit::Unverified,
            e if e.is_internal() => Exit::Internal,
            _ => Exit::Input,
        };
        split(
            exit,
            error.code(),
            &error.to_string(),
            "; ",
            "make the request again",
        )
    }
}

impl From<instances::Error> for Failure {
    fn from(error: instances::Error) -> Self {
        let remedy = "choose another circuit";
        Failure::new(Exit::Usage, "NO_INSTANCE", error.to_string(), remedy)
    }
}

impl From<pipeline::Error> for Failure {
    fn from(error: pipeline::Error) -> Self {
        match error {
            pipeline::Error::Witness(error) => error.into(),
            pipeline::Error::Proof(error) => error.into(),
            error => split(
                Exit::Internal,
                "WITNESS_INPUTS",
                &error.to_string(),
                "; ",
                REPORT,
            ),
        }
    }
}

impl From<r1cs::Error> for Failure {
    fn from(error: r1cs::Error) -> Self {
        // The circuits are part of the program, and a request that passed its checks satisfies them.
        Failure::new(Exit::Internal, "CIRCUIT", error.to_string(), REPORT)
    }
}

impl From<groth16::Error> for Failure {
    fn from(error: groth16::Error) -> Self {
        let (exit, code) = match error {
            groth16::Error::Backend(error) => return error.into(),
            groth16::Error::Unsatisfied(_) => (Exit::Internal, "WITNESS"),
            groth16::Error::ProofRejected => (Exit::Internal, "PROOF_REJECTED"),
            groth16::Error::NoRandomness(_) => (Exit::Resources, "RANDOM"),
            groth16::Error::ProofLength { .. } => (Exit::Input, "PROOF_LENGTH"),
            groth16::Error::ProofPoint { .. } => (Exit::Unverified, "PROOF_INVALID"),
            groth16::Error::InputCount { .. } => (Exit::Params, "PARAMS_OTHER_CIRCUIT"),
            _ => (Exit::Internal, "PROVER"),
        };
        split(exit, code, &error.to_string(), ". ", REPORT)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let (exit, code) = match error {
            BackendError::Key(error) => return error.into(),
            BackendError::Circuit(error) => return error.into(),
            BackendError::OtherCircuit { .. } => (Exit::Params, "PARAMS_OTHER_CIRCUIT"),
            BackendError::Threads { .. } => (Exit::Resources, "THREADS"),
            BackendError::NeedsGpu { .. } => (Exit::Resources, "DEVICE_ABSENT"),
            BackendError::Device { source, .. } => match source.downcast::<CudaError>() {
                Ok(error) => return (*error).into(),
                Err(source) => {
                    let failure =
                        Failure::new(Exit::Internal, "BACKEND", source.to_string(), REPORT);
                    return failure;
                }
            },
            _ => (Exit::Internal, "BACKEND"),
        };
        split(exit, code, &error.to_string(), ". ", REPORT)
    }
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Self {
        let (exit, code) = match &error {
            CudaError::NotBuilt | CudaError::NoDriver | CudaError::NoDevice { .. } => {
                (Exit::Resources, "DEVICE_ABSENT")
            }
            CudaError::DriverTooOld { .. } => (Exit::Resources, "DRIVER_TOO_OLD"),
            CudaError::MissingImage { .. } => (Exit::Resources, "DEVICE_NO_CODE"),
            CudaError::DoesNotFit { .. } => (Exit::Resources, "VRAM"),
            CudaError::OutOfMemory { .. } => (Exit::Resources, "VRAM"),
            CudaError::HostMemory { .. } => (Exit::Resources, "MEMORY"),
            CudaError::Busy { .. } => (Exit::Resources, "DEVICE_BUSY"),
            CudaError::LaunchFailure { .. } | CudaError::Call { .. } => {
                (Exit::Internal, "DEVICE_FAILED")
            }
            CudaError::WrongResult { .. } => (Exit::Internal, "DEVICE_WRONG"),
            CudaError::NotMeasured { .. } => (Exit::Internal, "MEASUREMENT"),
            _ => (Exit::Internal, "BACKEND"),
        };
        split(exit, code, &error.to_string(), ". ", REPORT)
    }
}

impl From<SelfTestError> for Failure {
    fn from(error: SelfTestError) -> Self {
        match error {
            SelfTestError::Backend(error) => error.into(),
            SelfTestError::Prove(error) => error.into(),
            SelfTestError::Preparation(_) => Failure::new(
                Exit::Resources,
                "OUTPUT_UNWRITABLE",
                error.to_string(),
                "check the folder for temporary files (TMPDIR)",
            ),
            _ => wrong_device(error.to_string()),
        }
    }
}

impl From<DualRunError> for Failure {
    fn from(error: DualRunError) -> Self {
        match error {
            DualRunError::Backend(error) => error.into(),
            _ => wrong_device(error.to_string()),
        }
    }
}

/// A device that computes something else than the CPU.
fn wrong_device(message: String) -> Failure {
    let remedy = "do not use this GPU for proving, and report this output";
    Failure::new(Exit::Internal, "DEVICE_WRONG", message, remedy)
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        split(
            Exit::Resources,
            error.code(),
            &error.to_string(),
            "; ",
            "see [store] path in the configuration file",
        )
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Self {
        split(
            Exit::Resources,
            error.code(),
            &error.to_string(),
            "; ",
            REPORT,
        )
    }
}

impl From<server::Error> for Failure {
    fn from(error: server::Error) -> Self {
        split(
            Exit::Resources,
            error.code(),
            &error.to_string(),
            "; ",
            "correct the configuration file",
        )
    }
}

impl From<server::config::Error> for Failure {
    fn from(error: server::config::Error) -> Self {
        split(
            Exit::Usage,
            "CONFIG_INVALID",
            &error.to_string(),
            "; ",
            "correct the file, or name another one with --config",
        )
    }
}

impl From<WitnessError> for Failure {
    fn from(error: WitnessError) -> Self {
        let error = match error {
            WitnessError::Vanilla(failure) => return FilecoinError::CheckFailed(failure).into(),
            error => error,
        };
        // A vanilla proof that holds has a witness: anything else is a defect.
        let failure = Failure::new(Exit::Internal, "WITNESS", "cannot make the witness", REPORT);
        failure.because(&error)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let error = match error {
            KeyError::Device { source } => return (*source).into(),
            error => error,
        };
        let (exit, code) = match &error {
            KeyError::Missing(key) => return missing(&key.circuit, &error),
            KeyError::Io { source, action, .. } => io_class(source, action),
            KeyError::Malformed { .. } | KeyError::Point { .. } => (Exit::Params, "PARAMS_CORRUPT"),
            KeyError::OtherCircuit { .. } => (Exit::Params, "PARAMS_OTHER_CIRCUIT"),
            KeyError::Changed { .. } => (Exit::Params, "PARAMS_CHANGED"),
            KeyError::Untrusted { .. } => (Exit::Params, "PARAMS_UNTRUSTED"),
            KeyError::TestKeyNotAllowed { .. } => (Exit::Params, "TEST_KEY_NOT_ALLOWED"),
            KeyError::TestKeyMismatch { .. } => (Exit::Params, "TEST_KEY_MISMATCH"),
            KeyError::PairMismatch { .. } => (Exit::Params, "PARAMS_PAIR_MISMATCH"),
            KeyError::Exists { .. } => (Exit::Params, "PARAMS_EXIST"),
            KeyError::MixedFolder { .. } => (Exit::Params, "PARAMS_MIXED_FOLDER"),
            KeyError::NoSpace { .. } => (Exit::Resources, "DISK_FULL"),
            KeyError::NoMemory { .. } => (Exit::Resources, "MEMORY"),
            KeyError::Random { .. } => (Exit::Resources, "RANDOM"),
            _ => (Exit::Internal, "KEY"),
        };
        let remedy = if exit == Exit::Internal {
            REPORT
        } else {
            io_remedy(code)
        };
        split(exit, code, &error.to_string(), ". ", remedy)
    }
}

/// A missing key, with the way to a test key besides the way to the official one.
fn missing(circuit: &str, error: &KeyError) -> Failure {
    let mut failure = split(Exit::Params, "PARAMS_MISSING", &error.to_string(), ". ", "");
    failure.remedy +=
        &format!("; for a test, `cuzk params generate {circuit} --test`, then --allow-test-keys");
    failure
}

/// Exit and code of a refusal by the operating system: of what is asked for, or of the files.
fn io_class(source: &io::Error, action: &str) -> (Exit, &'static str) {
    match source.kind() {
        io::ErrorKind::OutOfMemory => (Exit::Resources, "MEMORY"),
        _ if ["create", "create a file in", "write", "write to"].contains(&action) => {
            (Exit::Resources, "OUTPUT_UNWRITABLE")
        }
        _ => (Exit::Params, "PARAMS_UNREADABLE"),
    }
}

fn io_remedy(code: &str) -> &'static str {
    match code {
        "MEMORY" => "free memory, or raise this process's limits (ulimit -v, container limits)",
        "OUTPUT_UNWRITABLE" => {
            "make the folder writable, free space, or choose another one with --params"
        }
        _ => "check the path, and that this user may read it",
    }
}
