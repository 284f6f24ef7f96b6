//! `cuzk params generate NAME --test`: keys for tests.

use std::fs;
use std::path::{Path, PathBuf};

use filecoin::CircuitId;
use groth16::setup::{self, SetupRequest, TestKey};
use r1cs::CompiledCircuit;
use serde::Serialize;

use crate::Context;
use crate::commands::circuit;
use crate::failure::{Exit, Failure};
use crate::phases::{Phases, PhasesDocument};
use crate::progress::Meter;
use crate::table;

/// What every result about a test key says.
const NOTICE: &str = "test key: anyone could forge this";

/// Runs the command.
pub fn run(context: &Context, name: &str, seed: u64, folder: Option<&Path>) -> Result<(), Failure> {
    let id = circuit::parse(name)?;
    let folder = folder.map_or_else(|| context.config.test_keys(), Path::to_owned);
    refuse_production(context, &folder)?;
    let mut phases = Phases::start();
    let circuit = phases.run("load circuit", || id.compiled())?;
    let key = phases.run("generate", || {
        generate(context, id, &circuit, seed, &folder)
    })?;
    report(context, id, seed, &key, &phases)
}

/// Makes the files in `folder`; nothing is overwritten, and nothing is left if it fails.
///
/// # Errors
/// Existing files, a full disk, a folder with other keys.
pub fn generate(
    context: &Context,
    id: CircuitId,
    circuit: &CompiledCircuit,
    seed: u64,
    folder: &Path,
) -> Result<TestKey, Failure> {
    let request = SetupRequest {
        circuit: id.name(),
        stem: &id.params_stem(),
        folder,
        seed,
        cache: Some(context.config.cache()),
    };
    let meter = Meter::new(&context.progress, &format!("{id} test key"));
    Ok(setup::generate(circuit, &request, &meter)?)
}

/// Test keys must never be found where production keys are looked for.
fn refuse_production(context: &Context, folder: &Path) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if !context
        .config
        .production_folders()
        .iter()
        .any(|p| real(p) == real(folder))
    {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        "PRODUCTION_FOLDER",
        format!(
            "{} is where production keys are looked for: test keys live in a folder of their own",
            folder.display()
        ),
        "choose another folder with --params, or leave it out",
    ))
}

fn report(
    context: &Context,
    id: CircuitId,
    seed: u64,
    key: &TestKey,
    phases: &Phases,
) -> Result<(), Failure> {
    let document = Document {
        schema: "cuzk.params-generate/1",
        circuit: id.name(),
        seed,
        notice: NOTICE,
        params: FileDocument {
            path: key.params.clone(),
            digest: key.params_digest.to_string(),
        },
        vk: FileDocument {
            path: key.vk.clone(),
            digest: key.vk_digest.to_string(),
        },
        side_file: key.side_file.clone(),
        timing: phases.to_json(),
    };
    if context.output.quiet() {
        context.output.warn(NOTICE);
        return context.output.show(&document, "");
    }
    let text = table::pairs(&[
        (
            "params",
            format!(
                "{}, {}",
                key.params.display(),
                table::bytes(key.params_bytes)
            ),
        ),
        ("vk", key.vk.display().to_string()),
        ("side file", key.side_file.display().to_string()),
        ("seed", seed.to_string()),
        ("notice", NOTICE.to_owned()),
    ]);
    context
        .output
        .show(&document, &(text + "\n" + &phases.render()))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    circuit: &'a str,
    seed: u64,
    notice: &'static str,
    params: FileDocument,
    vk: FileDocument,
    side_file: PathBuf,
    timing: PhasesDocument,
}

#[derive(Serialize)]
struct FileDocument {
    path: PathBuf,
    digest: String,
}
