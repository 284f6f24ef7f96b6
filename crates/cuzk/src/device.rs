//! Which device proves, and why.

use std::sync::Arc;

use cuda::{CudaError, GpuBackend, MemoryUse};
use groth16::{Backend, CpuBackend, DeviceKind};
use serde::Serialize;

use crate::cli::{Device, DeviceArgs};
use crate::failure::Failure;
use crate::progress::{Meter, Progress};
use crate::{memory, table};

/// The chosen device.
pub struct Chosen {
    /// What computes the sums.
    pub backend: Arc<dyn Backend>,
    /// The same, if it is a GPU.
    pub gpu: Option<Arc<GpuBackend>>,
    /// Its name and the reason, for the user.
    pub document: DeviceDocument,
}

/// A device in `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceDocument {
    /// `cpu` or `gpu`.
    pub device: &'static str,
    /// The device in words.
    pub name: String,
    /// `GPU-…`, of a GPU.
    pub uuid: Option<String>,
    /// Why this one.
    pub reason: String,
}

/// A GPU's memory in `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct VramDocument {
    /// `resident` or `streamed`.
    key: &'static str,
    /// Proofs that there is memory for.
    proofs: usize,
    planned_bytes: u64,
    taken_bytes: u64,
}

impl From<MemoryUse> for VramDocument {
    fn from(memory: MemoryUse) -> Self {
        Self {
            key: if memory.streamed {
                "streamed"
            } else {
                "resident"
            },
            proofs: memory.proofs,
            planned_bytes: memory.planned_bytes,
            taken_bytes: memory.taken_bytes,
        }
    }
}

impl VramDocument {
    /// In words.
    pub fn text(&self) -> String {
        format!(
            "{} planned, {} taken, for {} at a time; the key is {}",
            table::bytes(self.planned_bytes),
            table::bytes(self.taken_bytes),
            self.proofs,
            self.key
        )
    }
}

/// Chooses the device.
///
/// # Errors
/// `DEVICE_ABSENT` and others for a device that was named and cannot be used: never another one
/// instead.
pub fn choose(args: &DeviceArgs, progress: &Progress) -> Result<Chosen, Failure> {
    match args.device {
        Device::Cpu => Ok(cpu("as asked for".to_owned(), progress)),
        Device::Gpu => Ok(gpu(open(args)?, "as asked for", progress)),
        Device::Auto => Ok(match open(args) {
            Ok(backend) => gpu(backend, "the fastest device here", progress),
            Err(error) => cpu(format!("no GPU: {}", without_remedy(&error)), progress),
        }),
    }
}

fn open(args: &DeviceArgs) -> Result<GpuBackend, CudaError> {
    let backend = GpuBackend::open(args.gpu)?.with_host_memory(memory::available);
    backend.gpu().set_waiting(args.gpu_wait.into());
    Ok(match args.vram {
        Some(vram) => backend.with_vram_limit(vram.bytes()),
        None => backend,
    })
}

/// The first sentence: what is wrong.
fn without_remedy(error: &CudaError) -> String {
    let text = error.to_string();
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].to_owned()
}

fn cpu(reason: String, progress: &Progress) -> Chosen {
    let backend = CpuBackend::new().with_progress(meter(progress));
    chosen(Arc::new(backend), None, reason)
}

fn gpu(backend: GpuBackend, reason: &str, progress: &Progress) -> Chosen {
    let backend = Arc::new(backend.with_progress(meter(progress)));
    chosen(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Some(backend),
        reason.to_owned(),
    )
}

fn meter(progress: &Progress) -> Arc<Meter> {
    Arc::new(Meter::new(progress, "proving"))
}

fn chosen(backend: Arc<dyn Backend>, gpu: Option<Arc<GpuBackend>>, reason: String) -> Chosen {
    let info = backend.device();
    let device = match info.kind {
        DeviceKind::Gpu => "gpu",
        _ => "cpu",
    };
    let document = DeviceDocument {
        device,
        name: info.to_string(),
        uuid: info.uuid,
        reason,
    };
    Chosen {
        backend,
        gpu,
        document,
    }
}
