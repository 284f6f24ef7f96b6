//! Test keys that are made in prepared form at once.

use std::path::{Path, PathBuf};

use r1cs::CompiledCircuit;

use super::draft::{Draft, Finished, refuse_existing};
use super::multiplier::FixedBaseMultiplier;
use super::queries::Queries;
use super::sink::DraftSink;
use super::trapdoor::Trapdoor;
use super::write::Writer;
use super::{SetupRequest, TestKey, in_folder, refuse_mixed_folder};
use crate::key::{
    KeyCounts, KeyDigest, KeyError, KeyForm, PreparedHeader, SideFile, prepared_name,
    remember_sound,
};
use crate::progress::Progress;

/// Generates a test key of `circuit` in prepared form alone: `cuzk-<circuit>-<digest>.key`, `.vk`
/// and side file. The same circuit and seed give the same bytes, and proofs equal those made
/// with what [`generate`](super::generate) writes. [`TestKey::params`] and its digest are those
/// of the prepared key.
///
/// # Errors
/// As [`generate_on`](super::generate_on).
pub fn generate_prepared(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    multiplier: &dyn FixedBaseMultiplier,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let vk = request.folder.join(format!("{}.vk", request.stem));
    let side_file = request.folder.join(SideFile::name(request.stem));
    for path in [&vk, &side_file] {
        refuse_existing(path)?;
    }
    refuse_mixed_folder(request.folder)?;
    in_folder(request.folder, || {
        write_key(circuit, request, [vk, side_file], multiplier, progress)
    })
}

fn write_key(
    circuit: &CompiledCircuit,
    request: &SetupRequest<'_>,
    [vk_path, side_path]: [PathBuf; 2],
    multiplier: &dyn FixedBaseMultiplier,
    progress: &dyn Progress,
) -> Result<TestKey, KeyError> {
    let counts = KeyCounts::of(circuit);
    // The name follows from the content; until then the draft goes by the stem.
    let working_name = request.folder.join(format!("{}.key", request.stem));
    let mut draft = Draft::create(&working_name, counts.prepared_bytes())?;
    let secrets = Trapdoor::from_seed(request.seed, circuit.shape().domain());
    let queries = Queries::new(circuit, &secrets, KeyForm::Prepared, progress)?;
    let header = PreparedHeader::of_test_key(circuit.digest(), request.seed);
    let mut sink = DraftSink::new(&mut draft);
    let writer = Writer {
        queries: &queries,
        secrets: &secrets,
        counts: &counts,
        multiplier,
        progress,
    };
    let vk = writer.prepared(&header, &mut sink)?.to_bytes();
    sink.finish()?;
    drop(queries);

    let vk_digest = KeyDigest::of_bytes(&vk);
    let key_path = request
        .folder
        .join(prepared_name(request.circuit, vk_digest));
    let key = draft.finish_prepared(&key_path, header, &counts, progress)?;
    let key_digest = key.digest;
    let side = SideFile {
        format: SideFile::FORMAT,
        warning: SideFile::WARNING.to_owned(),
        circuit: request.circuit.to_owned(),
        circuit_digest: hex::encode(circuit.digest()),
        seed: request.seed,
        params_digest: String::new(),
        vk_digest: vk_digest.to_string(),
    }
    .to_json();
    // The side file first: at no moment is there a key that does not say what it is.
    Finished::publish(vec![whole(&side_path, &side)?, whole(&vk_path, &vk)?, key])?;
    remember_sound(request.cache, &key_path, key_digest);
    Ok(TestKey {
        params: key_path,
        vk: vk_path,
        side_file: side_path,
        params_digest: key_digest,
        vk_digest,
        params_bytes: counts.prepared_bytes(),
    })
}

/// A small file, complete, still without its name.
fn whole(path: &Path, bytes: &[u8]) -> Result<Finished, KeyError> {
    let mut draft = Draft::create(path, bytes.len() as u64)?;
    draft.write(bytes)?;
    draft.finish()
}
