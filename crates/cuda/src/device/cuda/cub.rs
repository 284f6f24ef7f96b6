//! The static library of CUB's algorithms: kernels/cub/sort.cu.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use cudarc::driver::sys;

use super::call::check;
use crate::device::memory::DeviceSlice;
use crate::device::sort::{PairBuffers, Sums};
use crate::error::{CudaError, Result};

unsafe extern "C" {
    fn cuzk_cub_sort_pairs(
        temp: *mut c_void,
        temp_bytes: usize,
        keys: *const u64,
        values: *const u64,
        len: u32,
        begin_bit: c_int,
        end_bit: c_int,
        place: *mut c_int,
        stream: *mut c_void,
    ) -> c_int;
    fn cuzk_cub_exclusive_sum_u32(
        temp: *mut c_void,
        temp_bytes: usize,
        input: *const c_void,
        output: *mut c_void,
        len: u32,
        stream: *mut c_void,
    ) -> c_int;
    fn cuzk_cub_exclusive_sum_u64(
        temp: *mut c_void,
        temp_bytes: usize,
        input: *const c_void,
        output: *mut c_void,
        len: u32,
        stream: *mut c_void,
    ) -> c_int;
}

/// # Safety
/// All buffers lie in device memory of the current context; `stream` is one of its streams.
pub unsafe fn sort_pairs(
    stream: u64,
    temp: DeviceSlice<u8>,
    pairs: &PairBuffers,
    bits: Range<u32>,
) -> Result<usize> {
    let [keys, values] = [pairs.keys, pairs.values].map(|both| both.map(|slice| slice.ptr()));
    let mut place = 0;
    // SAFETY: the caller's; `keys` and `values` are two addresses each.
    let code = unsafe {
        cuzk_cub_sort_pairs(
            temp.ptr() as *mut c_void,
            temp.len(),
            keys.as_ptr(),
            values.as_ptr(),
            pairs.keys[0].len() as u32,
            bits.start as c_int,
            bits.end as c_int,
            &raw mut place,
            stream as *mut c_void,
        )
    };
    result("cub::DeviceRadixSort", code)?;
    Ok(usize::from(place != 0))
}

/// # Safety
/// As [`sort_pairs`].
pub unsafe fn exclusive_sum(
    stream: u64,
    sums: Sums,
    temp: DeviceSlice<u8>,
    input: u64,
    output: u64,
    len: u32,
) -> Result<()> {
    let function = match sums {
        Sums::U32 => cuzk_cub_exclusive_sum_u32,
        Sums::U64 => cuzk_cub_exclusive_sum_u64,
    };
    // SAFETY: the caller's.
    let code = unsafe {
        function(
            temp.ptr() as *mut c_void,
            temp.len(),
            input as *const c_void,
            output as *mut c_void,
            len,
            stream as *mut c_void,
        )
    };
    result("cub::DeviceScan", code)
}

/// The library's codes; positive ones are a `cudaError_t`, of which those that matter here have
/// the driver's numbers.
fn result(call: &'static str, code: c_int) -> Result<()> {
    let failed = |reason: &str| CudaError::Call {
        call,
        code: code as u32,
        reason: reason.to_owned(),
    };
    match code {
        0 => Ok(()),
        -1 => Err(failed("it wants more temporary memory than was planned")),
        -2 => Err(failed("an exception")),
        2 => check(call, sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        209 => Err(failed(
            "no code for this device: build it for that target (CUZK_CUDA_ARCHS)",
        )),
        700 => check(call, sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
        719 => check(call, sys::CUresult::CUDA_ERROR_LAUNCH_FAILED),
        _ => Err(failed("see cudaError_t")),
    }
}
