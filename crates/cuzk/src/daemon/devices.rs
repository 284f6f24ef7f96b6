//! Which devices the daemon has, and how their workers are started.

use std::ffi::OsString;
use std::process::Command;
use std::sync::Arc;

use filecoin::CircuitId;
use groth16::DeviceKind;
use groth16::key::KeyStore;
use server::{Config, Observatory};
use worker::{WorkerProcess, WorkerSpec};

use super::fleet::{Fleet, Known, Member};
use super::{STOP_GRACE, gpus};
use crate::Context;
use crate::cli::{DaemonArgs, Device};
use crate::commands::worker::{GPU_LANE_PLACES, GPU_LOOK_AHEAD, GPU_UNITS, GpuDocument, with_keys};
use crate::failure::{Exit, Failure};

/// The GPUs, or the CPU where there is none; nothing is started yet.
///
/// # Errors
/// No usable GPU where one was asked for.
pub fn start(
    context: &Context,
    args: &DaemonArgs,
    config: &Config,
    keys: &KeyStore,
    observatory: Arc<Observatory>,
) -> Result<Fleet, Failure> {
    let program = match &args.worker_program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(|e| {
            let remedy = "start it by its path";
            Failure::new(
                Exit::Internal,
                "WORKER",
                "this program cannot be found",
                remedy,
            )
            .because(&e)
        })?,
    };
    let known = Arc::new(Known::new(observatory));
    let spec = |name: String, device: &str, circuits: Vec<CircuitId>| WorkerSpec {
        name,
        program: program.clone(),
        arguments: arguments(context, config, keys, device),
        environment: Vec::new(),
        circuits,
        at_a_time: 1,
        lane_places: 0,
        look_ahead: 1,
        stop_grace: STOP_GRACE,
    };
    let process = |spec| Arc::new(WorkerProcess::new(spec, Arc::clone(&known) as _));
    let found = match args.device {
        Device::Cpu => Err("as asked for".to_owned()),
        Device::Auto | Device::Gpu => {
            let mut command = Command::new(&program);
            command
                .args(arguments(context, config, keys, "gpu"))
                .args(["--list", "--json"]);
            gpus::find(&mut command, &config.gpus.devices)
        }
    };
    let members = match found {
        Ok(gpus) => gpus.into_iter().map(|gpu| {
            let circuits = gpu.circuits.iter().filter_map(|name| name.parse().ok());
            let name = format!("gpu-{}", gpu.ordinal);
            let mut spec = spec(name, &format!("gpu:{}", gpu.uuid), circuits.collect());
            spec.environment = only(&gpu);
            spec.at_a_time = GPU_UNITS;
            spec.lane_places = GPU_LANE_PLACES;
            spec.look_ahead = GPU_LOOK_AHEAD;
            Member {
                process: process(spec),
                ordinal: Some(gpu.ordinal),
                room: Some(gpu.target()),
                model: gpu.name,
            }
        }),
        Err(cause) if args.device == Device::Gpu => return Err(no_gpu(&cause)),
        Err(cause) => {
            tracing::warn!(cause, "proving on the CPU");
            let member = Member {
                process: process(spec("cpu".to_owned(), "cpu", with_keys(keys))),
                ordinal: None,
                room: None,
                model: "CPU".to_owned(),
            };
            let (members, kind) = (vec![member], DeviceKind::Cpu);
            return Ok(Fleet::new(members, known, keys.clone(), kind));
        }
    };
    let members = members.collect();
    Ok(Fleet::new(members, known, keys.clone(), DeviceKind::Gpu))
}

/// A worker sees no GPU but its own: contexts on the others would take their memory.
fn only(gpu: &GpuDocument) -> Vec<(OsString, OsString)> {
    vec![("CUDA_VISIBLE_DEVICES".into(), gpu.uuid.clone().into())]
}

fn arguments(context: &Context, config: &Config, keys: &KeyStore, device: &str) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["worker".into(), "--device".into(), device.into()];
    for folder in &keys.folders {
        arguments.extend(["--key-folder".into(), folder.into()]);
    }
    if keys.allow_test_keys {
        arguments.push("--allow-test-keys".into());
    }
    arguments.extend(["--cache".into(), context.config.cache().into()]);
    if let Some(file) = context.config.file() {
        arguments.extend(["--config".into(), file.into()]);
    }
    if let Some(threads) = config.synthesis.threads {
        arguments.extend(["--threads".into(), threads.to_string().into()]);
    }
    arguments
}

fn no_gpu(cause: &str) -> Failure {
    Failure::new(
        Exit::Resources,
        "DEVICE_ABSENT",
        format!("there is no GPU to prove on: {cause}"),
        "see `cuzk doctor gpu`, or leave out --device gpu to prove on the CPU",
    )
}
