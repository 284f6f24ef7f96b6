//! Which device proves, and why.

use std::sync::Arc;

use groth16::{Backend, CpuBackend};
use serde::Serialize;

use crate::cli::Device;
use crate::failure::{Exit, Failure};
use crate::progress::{Meter, Progress};

/// The chosen device.
pub struct Chosen {
    /// What computes the sums.
    pub backend: Box<dyn Backend>,
    /// Its name and the reason, for the user.
    pub document: DeviceDocument,
}

/// A device in `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceDocument {
    /// `cpu`.
    pub device: &'static str,
    /// The device in words.
    pub name: String,
    /// Why this one.
    pub reason: &'static str,
}

/// Chooses the device.
///
/// # Errors
/// `DEVICE_ABSENT` for a device that was named and is not there: never another one instead.
pub fn choose(device: Device, progress: &Progress) -> Result<Chosen, Failure> {
    let reason = match device {
        Device::Cpu => "as asked for",
        Device::Auto => "this build has no GPU backend",
        Device::Gpu => {
            return Err(Failure::new(
                Exit::Resources,
                "DEVICE_ABSENT",
                "cannot prove on a gpu: this build has no GPU backend",
                "use --device cpu, or --device auto to take what there is",
            ));
        }
    };
    let backend = CpuBackend::new().with_progress(Arc::new(Meter::new(progress, "proving")));
    let name = backend.device().to_string();
    Ok(Chosen {
        backend: Box::new(backend),
        document: DeviceDocument {
            device: "cpu",
            name,
            reason,
        },
    })
}
