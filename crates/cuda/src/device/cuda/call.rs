//! Calls of the driver, checked.

use std::ffi::CStr;
use std::ptr;

use cudarc::driver::sys;

use crate::error::{CudaError, Result};

/// Turns the code of `call` into an error; `bytes` is what it was asked to allocate, if it was.
pub fn check_bytes(call: &'static str, code: sys::CUresult, bytes: u64) -> Result<()> {
    use sys::CUresult as Code;
    match code {
        Code::CUDA_SUCCESS => Ok(()),
        Code::CUDA_ERROR_OUT_OF_MEMORY => Err(CudaError::OutOfMemory { call, bytes }),
        // After these the context is lost.
        Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_TIMEOUT
        | Code::CUDA_ERROR_ASSERT
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_LAUNCH_FAILED => Err(CudaError::LaunchFailure {
            kernel: "a kernel",
            reason: reason(code),
        }),
        _ => Err(CudaError::Call {
            call,
            code: code as u32,
            reason: reason(code),
        }),
    }
}

/// As [`check_bytes`], for calls that allocate nothing.
pub fn check(call: &'static str, code: sys::CUresult) -> Result<()> {
    check_bytes(call, code, 0)
}

fn reason(code: sys::CUresult) -> String {
    let mut text = ptr::null();
    // SAFETY: `text` is where the function puts the address of a static string.
    let known = unsafe { sys::cuGetErrorString(code, &raw mut text) };
    if known != sys::CUresult::CUDA_SUCCESS || text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: a static string of the driver.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Calls a function of the driver, by its name without the version suffix, and checks the result.
macro_rules! driver_call {
    ($name:ident ( $($argument:expr),* $(,)? )) => {
        $crate::device::cuda::call::check(
            stringify!($name),
            ::cudarc::driver::sys::$name($($argument),*),
        )
    };
}
pub(crate) use driver_call;
