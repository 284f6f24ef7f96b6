//! Test keys: a set-up whose secrets follow from a seed, written in the reference's format.
//!
//! Nobody may trust such a key: whoever reads the seed can forge proofs for it. That is why
//! its side file says so and why [`crate::key::KeyStore`] refuses it unless told otherwise.
//!
//! The work is one multiplication of a generator for each point of the key, by tables and
//! batched affine additions, streamed to the file: memory holds the polynomials' values
//! (32 bytes for each point of the domain while columns are evaluated, 96 bytes for each
//! variable) and the tables (at most 283 MB), never the points.

mod draft;
mod fixed_base;
mod queries;
#[cfg(test)]
mod tests;
mod trapdoor;

use std::path::{Path, PathBuf};

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use r1cs::CompiledCircuit;
use rayon::prelude::*;

use crate::curve::AffinePoint;
use crate::key::{
    KeyCounts, KeyDigest, KeyError, KeyPoint, SideFile, VerifyingKey, remember_sound,
};
use crate::progress::Progress;
use draft::{Draft, Finished, refuse_existing};
use fixed_base::{FixedBase, Multiplier};
use queries::Queries;

pub use trapdoor::Trapdoor;

/// Points multiplied at a time by one thread.
const CHUNK: usize = 4096;
/// Chunks for each thread between two writes.
const CHUNKS_PER_WAVE: usize = 4;

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
    let paths = Paths::new(request);
    paths.refuse_conflicts(request)?;
    let created = !request.folder.exists();
    std::fs::create_dir_all(request.folder).map_err(KeyError::io("create", request.folder))?;
    let result = write_key(circuit, request, &paths, progress);
    if result.is_err() && created {
        // Only an empty folder goes.
        let _ = std::fs::remove_dir(request.folder);
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
        let entries = match std::fs::read_dir(request.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(KeyError::io("read", request.folder))?,
        };
        for entry in entries {
            let path = entry.map_err(KeyError::io("read", request.folder))?.path();
            let is_key = path
                .extension()
                .is_some_and(|extension| extension == "params" || extension == "vk");
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if is_key && !request.folder.join(SideFile::name(&stem)).exists() {
                return Err(KeyError::MixedFolder {
                    folder: request.folder.to_path_buf(),
                    other: path,
                });
            }
        }
        Ok(())
    }
}

fn write_key(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    paths: &Paths,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let counts = KeyCounts::of(circuit);
    // First of all, so that a full disk shows before the work is done.
    let mut params = Draft::create(&paths.params, counts.params_bytes())?;
    let mut vk_file = Draft::create(&paths.vk, counts.vk_bytes())?;

    let secrets = Trapdoor::from_seed(request.seed, circuit.shape().domain());
    let queries = Queries::new(circuit, &secrets, progress)?;
    let vk = write_points(&queries, &secrets, &counts, &mut params, progress)?;
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

/// Writes the whole parameter file and returns the verifying key at its head.
fn write_points(
    queries: &Queries,
    secrets: &Trapdoor,
    counts: &KeyCounts,
    out: &mut Draft,
    progress: &dyn Progress,
) -> Result<VerifyingKey, KeyError> {
    let points = counts.inputs + counts.h + counts.l + counts.a + 2 * counts.b;
    progress.begin("points", points);
    let (h, b) = (counts.h as usize, counts.b as usize);
    let g1_count = queries.ic.len() + h + queries.l.len() + queries.a.len() + b;
    let g1 = FixedBase::new(G1Affine::generator(), g1_count);

    let mut ic = vec![G1Affine::identity(); queries.ic.len()];
    ic.par_chunks_mut(CHUNK)
        .zip(queries.ic.par_chunks(CHUNK))
        .for_each(|(ic, scalars)| Multiplier::new(&g1).multiply(scalars, ic));
    progress.advance(counts.inputs);
    let vk = verifying_key(secrets, ic);
    out.write(&vk.to_bytes())?;

    write_vector(&g1, h, |i, out| queries.h(i, out), out, progress)?;
    for scalars in [&queries.l, &queries.a, &queries.b] {
        let copy = |i: usize, out: &mut [Scalar]| out.copy_from_slice(&scalars[i..][..out.len()]);
        write_vector(&g1, scalars.len(), copy, out, progress)?;
    }
    drop(g1);
    let g2 = FixedBase::new(G2Affine::generator(), b);
    let copy = |i: usize, out: &mut [Scalar]| out.copy_from_slice(&queries.b[i..][..out.len()]);
    write_vector(&g2, b, copy, out, progress)?;
    Ok(vk)
}

fn verifying_key(secrets: &Trapdoor, ic: Vec<G1Affine>) -> VerifyingKey {
    let g1 = |scalar: &Scalar| (G1Affine::generator() * scalar).to_affine();
    let g2 = |scalar: &Scalar| (G2Affine::generator() * scalar).to_affine();
    VerifyingKey {
        alpha_g1: g1(&secrets.alpha),
        beta_g1: g1(&secrets.beta),
        beta_g2: g2(&secrets.beta),
        gamma_g2: g2(&secrets.gamma),
        delta_g1: g1(&secrets.delta),
        delta_g2: g2(&secrets.delta),
        ic,
    }
}

/// Writes a vector's count and its points: the generator times `scalars(i, …)`. While one
/// wave of chunks is hashed and written, the next is multiplied.
fn write_vector<P: AffinePoint + KeyPoint>(
    base: &FixedBase<P>,
    count: usize,
    scalars: impl Fn(usize, &mut [Scalar]) + Sync,
    out: &mut Draft,
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let head = u32::try_from(count).expect("invariant: circuits have less than 2^32 variables");
    out.write(&head.to_be_bytes())?;
    let wave = rayon::current_num_threads() * CHUNKS_PER_WAVE * CHUNK;
    let mut ready: Vec<Vec<u8>> = Vec::new();
    for start in (0..count).step_by(wave) {
        let end = count.min(start + wave);
        let (next, written) = rayon::join(
            || encoded_multiples(base, start, end, &scalars, progress),
            || ready.iter().try_for_each(|bytes| out.write(bytes)),
        );
        written?;
        ready = next;
    }
    ready.iter().try_for_each(|bytes| out.write(bytes))
}

/// The encodings of the points `start .. end`, chunk by chunk.
fn encoded_multiples<P: AffinePoint + KeyPoint>(
    base: &FixedBase<P>,
    start: usize,
    end: usize,
    scalars: &(impl Fn(usize, &mut [Scalar]) + Sync),
    progress: &dyn Progress,
) -> Vec<Vec<u8>> {
    let starts: Vec<usize> = (start..end).step_by(CHUNK).collect();
    starts
        .into_par_iter()
        .map_init(
            || Multiplier::new(base),
            |multiplier, start| {
                let len = CHUNK.min(end - start);
                let mut factors = vec![Scalar::ZERO; len];
                scalars(start, &mut factors);
                let mut points = vec![P::identity(); len];
                multiplier.multiply(&factors, &mut points);
                let mut bytes = vec![0; len * P::BYTES];
                for (point, bytes) in points.iter().zip(bytes.chunks_exact_mut(P::BYTES)) {
                    point.encode(bytes);
                }
                progress.advance(len as u64);
                bytes
            },
        )
        .collect()
}
