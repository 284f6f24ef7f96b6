//! Some of a section's points once more, in order.

use super::DevicePoint;
use crate::device::{Device, DeviceSlice, Params, Stream};
use crate::error::Result;
use crate::topic::Topic;

/// Threads in a block of the kernel.
const THREADS: u32 = 256;

/// Queues points\[i\] = section\[indices\[i\]\]. Indices are below the section's length, which nothing checks.
///
/// # Errors
/// The kernel is not in this build; a driver that fails.
///
/// # Panics
/// If there are not as many indices as points.
pub(crate) fn gather<P: DevicePoint>(
    device: &Device,
    stream: &Stream,
    section: DeviceSlice<P>,
    indices: DeviceSlice<u32>,
    points: DeviceSlice<P>,
) -> Result<()> {
    assert_eq!(indices.len(), points.len(), "an index for each point");
    let kernel = device.kernel(Topic::Points, P::GATHER)?;
    let params = GatherParams {
        source: section.ptr(),
        indices: indices.ptr(),
        points: points.ptr(),
        len: points.len() as u32,
        _end: 0,
    };
    stream.launch(&kernel, params.len.div_ceil(THREADS), THREADS, 0, &params)
}

/// `GatherParams` in `kernels/points/decode.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct GatherParams {
    source: u64,
    indices: u64,
    points: u64,
    len: u32,
    /// The C++ struct's size is a multiple of 8 as well.
    _end: u32,
}

// SAFETY: the same fields in the same order.
unsafe impl Params for GatherParams {}
