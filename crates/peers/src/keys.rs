//! Test keys that tests and benchmarks share.
//!
//! Made once from a fixed seed into a folder below `target/`, under the names that the reference
//! crates look for. A file lock keeps two processes from making the same key twice.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result};
use filecoin::CircuitId;
use groth16::setup::{self, SetupRequest};

/// The seed of every shared test key.
pub const SEED: u64 = 2026;

/// A folder of test keys.
#[derive(Clone, Debug)]
pub struct TestKeys {
    folder: PathBuf,
}

impl TestKeys {
    /// The shared folder: `$CUZK_TEST_KEYS`, else `target/test-keys` of this workspace.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn shared() -> Result<Self> {
        let folder = std::env::var_os("CUZK_TEST_KEYS").map_or_else(
            || crate::fixtures::checkout().join("target/test-keys"),
            PathBuf::from,
        );
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        Ok(Self { folder })
    }

    /// Where the keys lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The parameter file of `id`, made if it is not there.
    ///
    /// # Errors
    /// The set-up fails or the folder cannot be written.
    pub fn ensure(&self, id: CircuitId) -> Result<PathBuf> {
        let lock = File::create(self.folder.join("lock"))?;
        lock.lock()
            .context("waiting for another set-up of test keys")?;
        let params = self.folder.join(format!("{}.params", id.params_stem()));
        if !params.exists() {
            let start = Instant::now();
            eprintln!(
                "making the test key of {} in {}",
                id.name(),
                self.folder.display()
            );
            generate(id, &self.folder)?;
            eprintln!("  took {:.1} s", start.elapsed().as_secs_f64());
        }
        Ok(params)
    }
}

/// Makes the test key of `id` in `folder`.
///
/// # Errors
/// The circuit is missing, the files exist already or the folder cannot be written.
pub fn generate(id: CircuitId, folder: &Path) -> Result<()> {
    let circuit = id.compiled()?;
    let request = SetupRequest {
        circuit: id.name(),
        stem: &id.params_stem(),
        folder,
        seed: SEED,
        cache: None,
    };
    setup::generate(&circuit, &request, &())?;
    Ok(())
}
