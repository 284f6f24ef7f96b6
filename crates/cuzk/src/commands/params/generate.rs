//! `cuzk params generate NAME --test`: keys for tests.

use std::fs;
use std::path::{Path, PathBuf};

use cuda::GpuFixedBase;
use filecoin::CircuitId;
use groth16::key::{KeyCounts, KeyForm};
use groth16::setup::{self, CpuFixedBase, FixedBaseMultiplier, SetupRequest, TestKey};
use r1cs::CompiledCircuit;
use serde::Serialize;

use crate::Context;
use crate::cli::{Device, GenerateArgs, MakerArgs};
use crate::commands::circuit;
use crate::failure::{Exit, Failure};
use crate::phases::{Phases, PhasesDocument};
use crate::progress::Meter;
use crate::table;

/// What every result about a test key says.
const NOTICE: &str = "test key: anyone could forge this";

/// Runs the command.
pub fn run(context: &Context, args: &GenerateArgs) -> Result<(), Failure> {
    let id = circuit::parse(&args.name)?;
    let folder = args
        .params
        .clone()
        .unwrap_or_else(|| context.config.test_keys());
    refuse_production(context, &folder)?;
    let mut phases = Phases::start();
    let circuit = phases.run("load circuit", || id.compiled())?;
    let (multiplier, device) = multiplier(&args.maker, &KeyCounts::of(&circuit))?;
    let request = Request {
        id,
        seed: args.seed,
        form: args.form.into(),
        folder: &folder,
    };
    let key = phases.run("generate", || {
        make(context, &circuit, &request, &*multiplier)
    })?;
    report(context, &request, device, &key, &phases)
}

/// What is made, and where.
struct Request<'a> {
    id: CircuitId,
    seed: u64,
    form: KeyForm,
    folder: &'a Path,
}

/// Makes the files of a key as published in `folder`, on the CPU; nothing is overwritten, and
/// nothing is left if it fails.
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
    let request = Request {
        id,
        seed,
        form: KeyForm::Published,
        folder,
    };
    let multiplier = CpuFixedBase::new(&KeyCounts::of(circuit));
    make(context, circuit, &request, &multiplier)
}

fn make(
    context: &Context,
    circuit: &CompiledCircuit,
    request: &Request<'_>,
    multiplier: &dyn FixedBaseMultiplier,
) -> Result<TestKey, Failure> {
    let id = request.id;
    let files = SetupRequest {
        circuit: id.name(),
        stem: &id.params_stem(),
        folder: request.folder,
        seed: request.seed,
        cache: Some(context.config.cache()),
    };
    let meter = Meter::new(&context.progress, &format!("{id} test key"));
    Ok(match request.form {
        KeyForm::Published => setup::generate_on(circuit, &files, multiplier, &meter)?,
        KeyForm::Prepared => setup::generate_prepared(circuit, &files, multiplier, &meter)?,
    })
}

/// What multiplies the generators for a key of these counts, and its name.
///
/// # Errors
/// A GPU that was asked for and cannot be used.
pub fn multiplier(
    maker: &MakerArgs,
    counts: &KeyCounts,
) -> Result<(Box<dyn FixedBaseMultiplier>, &'static str), Failure> {
    let cpu = || (Box::new(CpuFixedBase::new(counts)) as Box<_>, "cpu");
    let gpu = |device| (Box::new(GpuFixedBase::on(device)) as Box<_>, "gpu");
    Ok(match maker.device {
        Device::Cpu => cpu(),
        Device::Gpu => gpu(cuda::Device::open(maker.gpu)?),
        Device::Auto => cuda::Device::open(maker.gpu).map_or_else(|_| cpu(), gpu),
    })
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
    request: &Request<'_>,
    device: &'static str,
    key: &TestKey,
    phases: &Phases,
) -> Result<(), Failure> {
    let form = match request.form {
        KeyForm::Published => "published",
        KeyForm::Prepared => "prepared",
    };
    let document = Document {
        schema: "cuzk.params-generate/1",
        circuit: request.id.name(),
        seed: request.seed,
        form,
        device,
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
        ("seed", request.seed.to_string()),
        ("form", form.to_owned()),
        ("made by", device.to_owned()),
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
    form: &'static str,
    device: &'static str,
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
