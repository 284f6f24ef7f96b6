//! `cuzk bench compare REQUEST`: the dual run of a real request.

use filecoin::WitnessGenerator;
use filecoin::native::NativeWitness;
use serde::Serialize;

use crate::cli::{BenchCompareArgs, Device, DeviceArgs, GpuWait};
use crate::device::{self, DeviceDocument, VramDocument};
use crate::failure::{Exit, Failure};
use crate::{Context, input, keys, table};

/// Runs the command.
pub fn run(context: &Context, args: &BenchCompareArgs) -> Result<(), Failure> {
    let device = DeviceArgs {
        device: Device::Gpu,
        gpu: args.gpu,
        vram: args.vram,
        gpu_wait: GpuWait::Sleep,
    };
    let chosen = device::choose(&device, &context.progress)?;
    let gpu = chosen.gpu.ok_or_else(|| {
        Failure::new(
            Exit::Internal,
            "DEVICE_ABSENT",
            "the device chosen is no GPU",
            "this is a defect: please report it with the command line",
        )
    })?;
    let decoded = input::request(context.output, &args.request)?;
    let request = &decoded.request;
    let circuit = request.circuit_id().compiled()?;
    let store = keys::store(context, &args.keys);
    let spec = request.circuit_id().key_spec(&circuit);
    let key = keys::proving_key(context, &store, &spec)?;
    let partitions = request
        .partitions()
        .min(args.partitions.unwrap_or(usize::MAX));
    for partition in 0..partitions {
        let witness = NativeWitness.witness(request, partition, &circuit)?;
        cuda::dual_run(&gpu, &circuit, &key.key, &witness)?;
    }
    let document = Document {
        schema: "cuzk.bench-compare/1",
        circuit: request.circuit_id().name(),
        partitions,
        device: chosen.document,
        vram: gpu.memory()?.map(VramDocument::from),
    };
    let text = table::pairs(&[
        ("circuit", document.circuit.to_owned()),
        ("device", document.device.name.clone()),
        (
            "GPU memory",
            (document.vram.as_ref()).map_or("none".to_owned(), VramDocument::text),
        ),
        (
            "equal",
            format!(
                "A·w, B·w, the quotient and the five sums of {} partitions",
                document.partitions
            ),
        ),
    ]);
    context.output.show(&document, &text)
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    circuit: &'static str,
    partitions: usize,
    device: DeviceDocument,
    vram: Option<VramDocument>,
}
