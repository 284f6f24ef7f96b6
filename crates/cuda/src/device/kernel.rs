//! Kernels and their parameters.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// A kernel's parameter struct.
///
/// # Safety
/// The type is `repr(C)` (or `repr(transparent)`), has no padding that matters, and is laid out as
/// the C++ struct of its kernel: the same fields in the same order, pointers as [`DeviceSlice`]'s
/// address or `u64`.
///
/// [`DeviceSlice`]: crate::DeviceSlice
pub unsafe trait Params: Copy {}

/// A kernel that is loaded. Clones are the same kernel.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "a build without a driver reads none of it")]
pub struct Kernel {
    pub(crate) name: &'static str,
    /// The driver's handle.
    pub(crate) function: u64,
    /// Size of its parameter struct.
    pub(crate) params_bytes: usize,
    /// Threads that a block may have.
    pub(crate) threads_max: u32,
    /// Dynamic shared memory that a block may have.
    pub(crate) shared_bytes_max: u32,
    /// How much of it the driver has been told to expect.
    pub(crate) shared_bytes_set: Arc<AtomicU32>,
    /// Registers of a thread; 0 where that means nothing.
    pub(crate) registers: u32,
    /// Bytes that a thread keeps in local memory.
    pub(crate) local_bytes: u32,
}

impl Kernel {
    /// Its name in the source.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Threads that a block may have.
    pub fn threads_max(&self) -> u32 {
        self.threads_max
    }

    /// Registers of a thread; 0 on the emulated device.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// Bytes that a thread keeps in local memory, spilled registers among them.
    pub fn local_bytes(&self) -> u32 {
        self.local_bytes
    }
}
