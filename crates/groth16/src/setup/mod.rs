//! Test keys: a set-up whose secrets follow from a seed, written in the reference's format.
//!
//! Nobody may trust such a key: whoever reads the seed can forge proofs for it. That is why
//! its side file says so and why [`crate::key::KeyStore`] refuses it unless told otherwise.
//!
//! The work is one multiplication of a generator for each point of the key, on all threads or
//! on a device ([`FixedBaseMultiplier`]), streamed to a file or kept in memory
//! ([`generate_ephemeral`]). Besides the key, memory holds the polynomials' values (32 bytes
//! for each point of the domain while columns are evaluated, 96 to 128 bytes for each variable),
//! a few batches of points, and the multiplier's tables.

mod draft;
mod ephemeral;
mod evaluation;
mod fixed_base;
mod multiplier;
mod prepared;
#[cfg(test)]
mod prepared_tests;
mod queries;
mod sink;
mod stream;
#[cfg(test)]
mod tests;
mod trapdoor;
mod write;

use std::path::{Path, PathBuf};

use r1cs::CompiledCircuit;

use crate::key::{KeyCounts, KeyDigest, KeyError, KeyForm, SideFile, remember_sound};
use crate::progress::Progress;
use draft::{Draft, Finished};
use queries::Queries;
use sink::DraftSink;
use write::Writer;

pub(crate) use draft::refuse_existing;
pub use ephemeral::{EphemeralKey, EphemeralRequest, generate_ephemeral};
pub use multiplier::{CpuFixedBase, FixedBaseMultiplier};
pub use prepared::generate_prepared;
pub use trapdoor::Trapdoor;
pub(crate) use trapdoor::domain_generator;

/// What to generate and where.
#[derive(Clone, Copy, Debug)]
pub struct SetupRequest<'a> {
    /// Name of the circuit, for the side file: `porep-2k`.
    pub circuit: &'a str,
    /// File name without extension.
    pub stem: &'a str,
    /// Folder to write to, which must hold no other keys than test keys; created if absent.
    pub folder: &'a Path,
    /// The seed that every secret follows from.
    pub seed: u64,
    /// Our cache folder, to remember that the new key needs no check; `None` to leave that.
    pub cache: Option<&'a Path>,
}

/// A generated test key.
#[derive(Clone, Debug)]
pub struct TestKey {
    /// The `.params` file.
    pub params: PathBuf,
    /// The `.vk` file.
    pub vk: PathBuf,
    /// The side file.
    pub side_file: PathBuf,
    /// Digest of the `.params` file.
    pub params_digest: KeyDigest,
    /// Digest of the `.vk` file.
    pub vk_digest: KeyDigest,
    /// Length of the `.params` file.
    pub params_bytes: u64,
}

/// Generates a test key of `circuit`: `.params`, `.vk` and side file. The same circuit and
/// seed give the same bytes. Uses all threads.
///
/// The three files appear together at the end; nothing is overwritten, and on any error
/// nothing is left behind.
///
/// # Errors
/// [`KeyError`]: a file exists already, the folder holds keys that are no test keys, the disk
/// is full or refuses, or a variable of the circuit occurs in no row.
pub fn generate(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let multiplier = CpuFixedBase::new(&KeyCounts::of(circuit));
    generate_on(circuit, request, &multiplier, progress)
}

/// As [`generate`], with the multiplications done by `multiplier`.
///
/// # Errors
/// As [`generate`], and whatever the multiplier fails with.
pub fn generate_on(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    multiplier: &dyn FixedBaseMultiplier,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let paths = Paths::new(request);
    paths.refuse_conflicts(request)?;
    in_folder(request.folder, || {
        write_key(circuit, request, &paths, multiplier, progress)
    })
}

/// Makes a key in a folder, which is created if need be, and taken away if nothing came of it.
fn in_folder(
    folder: &Path,
    make: impl FnOnce() -> Result<TestKey, KeyError>,
) -> Result<TestKey, KeyError> {
    let created = !folder.exists();
    std::fs::create_dir_all(folder).map_err(KeyError::io("create", folder))?;
    let result = make();
    if result.is_err() && created {
        // Only an empty folder goes.
        let _ = std::fs::remove_dir(folder);
    }
    result
}

struct Paths {
    params: PathBuf,
    vk: PathBuf,
    side_file: PathBuf,
}

impl Paths {
    fn new(request: &SetupRequest<'_>) -> Self {
        let path = |extension| request.folder.join(format!("{}.{extension}", request.stem));
        Paths {
            params: path("params"),
            vk: path("vk"),
            side_file: request.folder.join(SideFile::name(request.stem)),
        }
    }

    /// Refuses to overwrite, and to mix test keys with others in one folder.
    fn refuse_conflicts(&self, request: &SetupRequest<'_>) -> Result<(), KeyError> {
        for path in [&self.params, &self.vk, &self.side_file] {
            refuse_existing(path)?;
        }
        refuse_mixed_folder(request.folder)
    }
}

/// Refuses a folder that holds keys without side files.
fn refuse_mixed_folder(folder: &Path) -> Result<(), KeyError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(KeyError::io("read", folder))?,
    };
    for entry in entries {
        let path = entry.map_err(KeyError::io("read", folder))?.path();
        let is_key = path
            .extension()
            .is_some_and(|extension| extension == "params" || extension == "vk");
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if is_key && !folder.join(SideFile::name(&stem)).exists() {
            return Err(KeyError::MixedFolder {
                folder: folder.to_path_buf(),
                other: path,
            });
        }
    }
    Ok(())
}

fn write_key(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    paths: &Paths,
    multiplier: &dyn FixedBaseMultiplier,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let counts = KeyCounts::of(circuit);
    // First of all, so that a full disk shows before the work is done.
    let mut params = Draft::create(&paths.params, counts.params_bytes())?;
    let mut vk_file = Draft::create(&paths.vk, counts.vk_bytes())?;

    let secrets = Trapdoor::from_seed(request.seed, circuit.shape().domain());
    let queries = Queries::new(circuit, &secrets, KeyForm::Published, progress)?;
    let mut sink = DraftSink::new(&mut params);
    let writer = Writer {
        queries: &queries,
        secrets: &secrets,
        counts: &counts,
        multiplier,
        progress,
    };
    let vk = writer.published(&mut sink)?;
    sink.finish()?;
    vk_file.write(&vk.to_bytes())?;
    let (params, vk_file) = (params.finish()?, vk_file.finish()?);

    let (params_digest, vk_digest) = (params.digest, vk_file.digest);
    let side = SideFile {
        format: SideFile::FORMAT,
        warning: SideFile::WARNING.to_owned(),
        circuit: request.circuit.to_owned(),
        circuit_digest: hex::encode(circuit.digest()),
        seed: request.seed,
        params_digest: params_digest.to_string(),
        vk_digest: vk_digest.to_string(),
    }
    .to_json();
    let mut side_file = Draft::create(&paths.side_file, side.len() as u64)?;
    side_file.write(&side)?;
    // The side file first: at no moment is there a key that does not say what it is.
    Finished::publish(vec![side_file.finish()?, vk_file, params])?;
    remember_sound(request.cache, &paths.params, params_digest);
    Ok(TestKey {
        params: paths.params.clone(),
        vk: paths.vk.clone(),
        side_file: paths.side_file.clone(),
        params_digest,
        vk_digest,
        params_bytes: counts.params_bytes(),
    })
}
