//! What goes wrong with a device, each with what to do about it.

use std::fmt;

/// A device's failures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// This build holds no device code.
    #[error(
        "this program was built without CUDA. Build it with the feature `cuda`, or prove on the CPU with --device cpu"
    )]
    NotBuilt,

    /// There is no driver library.
    #[error(
        "no GPU can be used: the CUDA driver (libcuda.so.1) is not installed. Install NVIDIA's driver, version {} or later, or prove on the CPU with --device cpu",
        DriverVersion::NEEDED_RELEASE
    )]
    NoDriver,

    /// The driver does not know the CUDA version that the kernels are built with.
    #[error(
        "the CUDA driver supports CUDA {found}, this program needs {}. Install NVIDIA's driver, version {} or later",
        DriverVersion::NEEDED,
        DriverVersion::NEEDED_RELEASE
    )]
    DriverTooOld {
        /// What the driver supports.
        found: DriverVersion,
    },

    /// There is no such device.
    #[error(
        "there is no GPU {ordinal}: the driver shows {count}. See nvidia-smi and CUDA_VISIBLE_DEVICES"
    )]
    NoDevice {
        /// The device asked for, from 0.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },

    /// The binary has no code that the device runs.
    #[error(
        "this program has no {topic} kernels for compute capability {}.{} ({device}). Build it for that target (CUZK_CUDA_ARCHS)",
        capability.0, capability.1
    )]
    MissingImage {
        /// The device's name.
        device: String,
        /// Its compute capability.
        capability: (u32, u32),
        /// The kernels' topic.
        topic: &'static str,
    },

    /// A kernel is not in its topic's images: the host part and the kernels disagree.
    #[error("there is no kernel {kernel} under {topic}. This is a defect: please report it")]
    MissingKernel {
        /// The topic.
        topic: &'static str,
        /// The kernel.
        kernel: &'static str,
    },

    /// A launch does not fit its kernel: the host part and the kernels disagree.
    #[error("{kernel} cannot be launched: {reason}. This is a defect: please report it")]
    BadLaunch {
        /// The kernel.
        kernel: &'static str,
        /// What does not fit.
        reason: String,
    },

    /// What was planned needs more memory than there is, or than it may take.
    #[error(
        "{what} needs {} of GPU memory, {} are {}. {}",
        Bytes(*needed),
        Bytes(*available),
        if *limited { "allowed" } else { "free" },
        if *limited { "Raise --vram" } else { "Free memory on the GPU, or use a larger one" }
    )]
    DoesNotFit {
        /// What was planned.
        what: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it may have.
        available: u64,
        /// Whether the user's limit decides, not the device.
        limited: bool,
    },

    /// The driver could not allocate.
    #[error("{call} found no memory for {}. Free memory, or use a larger GPU", Bytes(*bytes))]
    OutOfMemory {
        /// The driver's function.
        call: &'static str,
        /// Bytes asked for.
        bytes: u64,
    },

    /// A key is to be streamed, and the host has no memory for it.
    #[error(
        "the key does not fit on the GPU, and to stream it takes {} of the host's memory: {} are available. Free memory, or raise --vram so that the key stays on the GPU",
        Bytes(*needed),
        Bytes(*available)
    )]
    HostMemory {
        /// Bytes of its points.
        needed: u64,
        /// Bytes that this process may take.
        available: u64,
    },

    /// The memory for a proof did not become free in time.
    #[error(
        "no memory for another proof became free on the GPU in {seconds} seconds. Ask for fewer proofs at a time; if none ends, start a new process"
    )]
    Busy {
        /// How long it was waited for.
        seconds: u64,
    },

    /// The thread that made several proofs in one pass panicked.
    #[error(
        "the proof was to be made together with another one, whose thread stopped. Prove again"
    )]
    PassLost,

    /// A result is not what is known of it.
    #[error(
        "the GPU's result is wrong: {what}. Do not prove on it; `cuzk bench compare` shows which stage fails"
    )]
    WrongResult {
        /// What was computed.
        what: String,
    },

    /// Something cannot be measured.
    #[error("{what} cannot be measured: {reason}. Leave it out")]
    NotMeasured {
        /// What was to be measured.
        what: String,
        /// Why it cannot be.
        reason: String,
    },

    /// A kernel failed while it ran.
    #[error(
        "the GPU failed while it ran {kernel}: {reason}. This process cannot use it any more: start a new one"
    )]
    LaunchFailure {
        /// The kernel launched last on the stream, or `a kernel` where that is not known.
        kernel: &'static str,
        /// What the driver says.
        reason: String,
    },

    /// Another call failed.
    #[error("{call} failed: {reason} (CUDA error {code})")]
    Call {
        /// The function.
        call: &'static str,
        /// CUDA's number of the error.
        code: u32,
        /// What the driver says.
        reason: String,
    },
}

impl CudaError {
    /// Whether the process can do no more work on the device: its context is lost.
    pub fn is_fatal(&self) -> bool {
        matches!(self, CudaError::LaunchFailure { .. })
    }
}

/// A size for people: three digits and a binary unit, rounded up.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        for (unit, shift) in UNITS {
            if self.0 >> shift > 0 {
                let hundredths = (u128::from(self.0) * 100).div_ceil(1 << shift);
                return write!(f, "{}.{:02} {unit}", hundredths / 100, hundredths % 100);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

/// Results of this crate.
pub type Result<T, E = CudaError> = std::result::Result<T, E>;

/// A CUDA version, as the driver states it: 1000·major + 10·minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion(pub u32);

impl DriverVersion {
    /// The oldest that runs code of the compiler in use.
    pub const NEEDED: Self = DriverVersion(13_000);
    /// The first driver release that supports it.
    pub const NEEDED_RELEASE: u32 = 580;
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(text(0), "0 bytes");
        assert_eq!(text(1023), "1023 bytes");
        assert_eq!(text(1024), "1.00 KiB");
        assert_eq!(text((16 << 30) + 1), "16.01 GiB");
        assert_eq!(text(3 << 19), "1.50 MiB");
        assert_eq!(text(u64::MAX), "17179869184.00 GiB");
    }

    #[test]
    fn texts_end_in_what_to_do() {
        let error = CudaError::DoesNotFit {
            what: "porep-32g".into(),
            needed: 20 << 30,
            available: 16 << 30,
            limited: true,
        };
        let text = "porep-32g needs 20.00 GiB of GPU memory, 16.00 GiB are allowed. Raise --vram";
        assert_eq!(error.to_string(), text);
        let error = CudaError::DriverTooOld {
            found: DriverVersion(12_040),
        };
        assert!(
            error
                .to_string()
                .starts_with("the CUDA driver supports CUDA 12.4, this program needs 13.0. ")
        );
    }
}
