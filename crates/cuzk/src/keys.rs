//! Keys of circuits: where they are, and opening them with their checks.

use std::path::Path;

use groth16::key::{KeySpec, KeyStore, KeyTrust, ProvingKey, Trusted, VerifyingKey};
use serde::Serialize;

use crate::Context;
use crate::cli::KeyArgs;
use crate::failure::Failure;
use crate::progress::Meter;

/// Where keys are looked for, and whether test keys will do.
pub fn store(context: &Context, args: &KeyArgs) -> KeyStore {
    let allow_test_keys = args.allow_test_keys || context.config.allow_test_keys;
    KeyStore {
        folders: context
            .config
            .key_folders(args.params.as_deref(), allow_test_keys),
        cache: Some(context.config.cache().to_owned()),
        allow_test_keys,
    }
}

/// Finds, opens and checks the proving key.
///
/// # Errors
/// Parameters that are missing, wrong, corrupt or not to be trusted.
pub fn proving_key(
    context: &Context,
    store: &KeyStore,
    spec: &KeySpec,
) -> Result<Trusted<ProvingKey>, Failure> {
    let meter = Meter::new(&context.progress, &format!("{} key", spec.circuit));
    Ok(store.proving_key(spec, &meter)?)
}

/// Finds, opens and checks the verifying key.
///
/// # Errors
/// As [`proving_key`].
pub fn verifying_key(store: &KeyStore, spec: &KeySpec) -> Result<Trusted<VerifyingKey>, Failure> {
    Ok(store.verifying_key(spec)?)
}

/// A key in `--json`.
#[derive(Debug, Serialize)]
pub struct KeyDocument {
    /// The file.
    pub path: String,
    /// BLAKE2b digest as the network publishes it.
    pub digest: String,
    /// Whether it is a test key.
    pub test_key: bool,
    /// The seed of a test key.
    pub seed: Option<u64>,
    /// What every result made with a test key says.
    pub notice: Option<&'static str>,
    /// All of it in words.
    #[serde(skip)]
    pub words: String,
}

impl KeyDocument {
    /// Describes a key that may be used.
    pub fn new(path: &Path, trust: KeyTrust) -> Self {
        let seed = match trust {
            KeyTrust::Test { seed, .. } => Some(seed),
            KeyTrust::Production { .. } => None,
        };
        Self {
            path: path.display().to_string(),
            digest: trust.digest().to_string(),
            test_key: seed.is_some(),
            seed,
            notice: trust.notice(),
            words: trust.to_string(),
        }
    }
}
