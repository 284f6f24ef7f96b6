//! What a device must offer; the CUDA driver and the emulation do.

use std::ffi::c_void;
use std::ops::Range;

use crate::device::kernel::Kernel;
use crate::device::memory::DeviceSlice;
use crate::device::sort::{PairBuffers, Sums};
use crate::device::{DeviceProperties, Waiting};
use crate::error::Result;
use crate::topic::Topic;

/// Raw operations on one device. Addresses are device addresses; streams, events and functions
/// are handles that the same driver gave out. Lengths are bytes.
///
/// # Safety
/// The unsafe operations trust addresses and handles: ranges must lie in live allocations of
/// this driver, handles must not have been destroyed.
#[allow(
    dead_code,
    reason = "a build without a driver holds the interface alone"
)]
pub(crate) trait Driver: Send + Sync {
    fn properties(&self) -> &DeviceProperties;
    fn free_bytes(&self) -> Result<u64>;
    fn kernel(&self, topic: Topic, name: &'static str) -> Result<Kernel>;

    fn allocate(&self, bytes: u64) -> Result<u64>;
    unsafe fn free(&self, address: u64);

    /// Lets the device read and write host memory by itself.
    unsafe fn pin(&self, start: u64, bytes: usize) -> Result<()>;
    unsafe fn unpin(&self, start: u64);

    /// How threads wait from now on.
    fn set_waiting(&self, waiting: Waiting);

    fn create_stream(&self) -> Result<u64>;
    unsafe fn destroy_stream(&self, stream: u64);
    /// Waits until everything on the stream is done.
    unsafe fn synchronize(&self, stream: u64) -> Result<()>;

    /// Marks the place that the stream has reached; gives an event.
    unsafe fn record(&self, stream: u64) -> Result<u64>;
    unsafe fn wait(&self, stream: u64, event: u64) -> Result<()>;
    unsafe fn synchronize_event(&self, event: u64) -> Result<()>;
    unsafe fn elapsed_ms(&self, from: u64, to: u64) -> Result<f32>;
    unsafe fn destroy_event(&self, event: u64);

    /// Copies in stream order; the host memory must stay until the stream has come past it.
    unsafe fn upload(&self, stream: u64, to: u64, from: *const c_void, bytes: usize) -> Result<()>;
    /// As [`Self::upload`].
    unsafe fn download(&self, stream: u64, from: u64, to: *mut c_void, bytes: usize) -> Result<()>;
    unsafe fn copy(&self, stream: u64, to: u64, from: u64, bytes: usize) -> Result<()>;
    unsafe fn zero(&self, stream: u64, to: u64, bytes: usize) -> Result<()>;

    /// `params` points to the kernel's parameter struct, whose size has been checked.
    unsafe fn launch(
        &self,
        stream: u64,
        kernel: &Kernel,
        grid: Grid,
        params: *const c_void,
    ) -> Result<()>;

    /// Sorts pairs; gives the number of the buffers that hold the result.
    unsafe fn sort_pairs(
        &self,
        stream: u64,
        temp: DeviceSlice<u8>,
        pairs: &PairBuffers,
        bits: Range<u32>,
    ) -> Result<usize>;
    /// Prefix sums of `len` elements.
    unsafe fn exclusive_sum(
        &self,
        stream: u64,
        sums: Sums,
        temp: DeviceSlice<u8>,
        input: u64,
        output: u64,
        len: u32,
    ) -> Result<()>;
}

/// The sizes of a launch.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "a build without a driver reads none of it")]
pub(crate) struct Grid {
    pub blocks: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}
