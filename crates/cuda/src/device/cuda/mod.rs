//! The CUDA driver, through cudarc's bindings, opened at run time.

mod call;
mod cub;
mod module;
mod properties;

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cudarc::driver::sys;

use crate::device::driver::{Driver, Grid};
use crate::device::kernel::Kernel;
use crate::device::memory::DeviceSlice;
use crate::device::sort::{PairBuffers, Sums};
use crate::device::{DeviceProperties, Waiting};
use crate::error::{CudaError, DriverVersion, Result};
use crate::topic::Topic;
use call::{check_bytes, driver_call};

/// How long a thread looks before it sleeps. Most waits find the work done: of a proof's only the first is
/// long, and takes milliseconds at least.
const SPIN_NS: u64 = 50_000;

/// One device's primary context. It is the one that the CUDA run-time library uses too, so the
/// CUB library works on the same memory and streams.
pub struct CudaDriver {
    device: sys::CUdevice,
    context: sys::CUcontext,
    properties: DeviceProperties,
    /// For each topic that is loaded, the image of each kernel by name. Images stay until the
    /// process ends.
    modules: Mutex<HashMap<Topic, HashMap<String, Module>>>,
    /// How long a thread that waits looks whether it has to; then it sleeps.
    spin_ns: AtomicU64,
}

/// A handle that any thread may use once the context is current on it.
#[derive(Clone, Copy)]
struct Module(sys::CUmodule);

// SAFETY: contexts and modules are the driver's own objects, which it guards with locks.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Send for CudaDriver {}
// SAFETY: as above; `modules` has its own lock.
unsafe impl Sync for CudaDriver {}

impl CudaDriver {
    /// How many devices the driver shows.
    pub fn count() -> Result<usize> {
        init()?;
        let mut count = 0;
        // SAFETY: the driver is there; it writes the count.
        unsafe { driver_call!(cuDeviceGetCount(&raw mut count))? };
        Ok(count.max(0) as usize)
    }

    /// Opens device `ordinal`.
    pub fn open(ordinal: usize) -> Result<Self> {
        let count = Self::count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let mut device = 0;
        let mut context = ptr::null_mut();
        // SAFETY: the ordinal is below the count; both variables are written by the driver.
        let properties = unsafe {
            driver_call!(cuDeviceGet(&raw mut device, ordinal as i32))?;
            // A driver that refuses, as some do while somebody has the context already, has threads
            // spin: that costs processor time and nothing else.
            let flags = sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
            let _ = sys::cuDevicePrimaryCtxSetFlags_v2(device, flags);
            driver_call!(cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            properties::read(device, ordinal, version()?)?
        };
        Ok(CudaDriver {
            device,
            context,
            properties,
            modules: Mutex::default(),
            spin_ns: AtomicU64::new(SPIN_NS),
        })
    }

    /// Makes the context current on this thread, which every call needs.
    fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained until `self` is dropped.
        unsafe { driver_call!(cuCtxSetCurrent(self.context)) }
    }

    /// Looks by `query` until the work is over or it is time to sleep; what became of the work, the call that
    /// sleeps says.
    fn look(&self, query: impl Fn() -> sys::CUresult) {
        let limit = u128::from(self.spin_ns.load(Ordering::Relaxed));
        let began = Instant::now();
        while query() == sys::CUresult::CUDA_ERROR_NOT_READY && began.elapsed().as_nanos() < limit {
            std::hint::spin_loop();
        }
    }

    /// Lets a block of the kernel have `bytes` of dynamic shared memory. Above 48 KiB the driver
    /// wants to be told, once.
    fn allow_shared(&self, kernel: &Kernel, bytes: u32) -> Result<()> {
        const TOLD_ABOVE: u32 = 48 << 10;
        if bytes <= TOLD_ABOVE || kernel.shared_bytes_set.load(Ordering::Relaxed) >= bytes {
            return Ok(());
        }
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        unsafe {
            driver_call!(cuFuncSetAttribute(
                kernel.function as sys::CUfunction,
                attribute,
                bytes as i32
            ))?;
        }
        kernel.shared_bytes_set.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // SAFETY: retained in `open`; a failure leaves nothing to be done.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Opens the driver library, once; checks its version before anything else is called, since
/// bindings of functions that it does not have would panic.
fn init() -> Result<()> {
    // SAFETY: loads libcuda, whose initialisers are NVIDIA's.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let found = version()?;
    if found < DriverVersion::NEEDED {
        return Err(CudaError::DriverTooOld { found });
    }
    // SAFETY: the flags must be 0.
    match unsafe { driver_call!(cuInit(0)) } {
        Err(CudaError::Call { code, .. }) if code == sys::CUresult::CUDA_ERROR_NO_DEVICE as u32 => {
            Err(CudaError::NoDevice {
                ordinal: 0,
                count: 0,
            })
        }
        result => result,
    }
}

fn version() -> Result<DriverVersion> {
    let mut version = 0;
    // SAFETY: may be called before cuInit; writes the version.
    unsafe { driver_call!(cuDriverGetVersion(&raw mut version))? };
    Ok(DriverVersion(version.max(0) as u32))
}

impl Driver for CudaDriver {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are written by the driver.
        unsafe { driver_call!(cuMemGetInfo_v2(&raw mut free, &raw mut total))? };
        Ok(free as u64)
    }

    fn kernel(&self, topic: Topic, name: &'static str) -> Result<Kernel> {
        self.enter()?;
        self.load_kernel(topic, name)
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.enter()?;
        let mut address = 0;
        // SAFETY: writes the address.
        let code = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes as usize) };
        check_bytes("cuMemAlloc", code, bytes)?;
        Ok(address)
    }

    unsafe fn free(&self, address: u64) {
        if self.enter().is_ok() {
            // SAFETY: an address of `allocate`. An error here is one of earlier work, which its
            // own caller sees.
            let _ = unsafe { sys::cuMemFree_v2(address) };
        }
    }

    unsafe fn pin(&self, start: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's; any flag that is not set does not matter here.
        let code = unsafe { sys::cuMemHostRegister_v2(start as *mut c_void, bytes, 0) };
        check_bytes("cuMemHostRegister", code, bytes as u64)
    }

    unsafe fn unpin(&self, start: u64) {
        if self.enter().is_ok() {
            // SAFETY: registered by `pin`. Nothing to be done about an error, which a buffer of no
            // bytes gives.
            let _ = unsafe { sys::cuMemHostUnregister(start as *mut c_void) };
        }
    }

    fn set_waiting(&self, waiting: Waiting) {
        let spin_ns = match waiting {
            Waiting::Sleeps => SPIN_NS,
            Waiting::Spins => u64::MAX,
        };
        self.spin_ns.store(spin_ns, Ordering::Relaxed);
    }

    fn create_stream(&self) -> Result<u64> {
        self.enter()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let mut stream = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { driver_call!(cuStreamCreate(&raw mut stream, flags))? };
        Ok(stream as u64)
    }

    unsafe fn destroy_stream(&self, stream: u64) {
        if self.enter().is_ok() {
            // SAFETY: a stream of ours. The driver lets queued work finish.
            let _ = unsafe { sys::cuStreamDestroy_v2(stream as sys::CUstream) };
        }
    }

    unsafe fn synchronize(&self, stream: u64) -> Result<()> {
        self.enter()?;
        let stream = stream as sys::CUstream;
        // SAFETY: a stream of ours.
        self.look(|| unsafe { sys::cuStreamQuery(stream) });
        // SAFETY: as above.
        unsafe { driver_call!(cuStreamSynchronize(stream)) }
    }

    unsafe fn record(&self, stream: u64) -> Result<u64> {
        self.enter()?;
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        let mut event = ptr::null_mut();
        // SAFETY: writes the handle, then records it on a stream of ours.
        unsafe {
            driver_call!(cuEventCreate(&raw mut event, flags))?;
            if let Err(error) = driver_call!(cuEventRecord(event, stream as sys::CUstream)) {
                let _ = sys::cuEventDestroy_v2(event);
                return Err(error);
            }
        }
        Ok(event as u64)
    }

    unsafe fn wait(&self, stream: u64, event: u64) -> Result<()> {
        self.enter()?;
        // SAFETY: stream and event of ours.
        unsafe {
            driver_call!(cuStreamWaitEvent(
                stream as sys::CUstream,
                event as sys::CUevent,
                0
            ))
        }
    }

    unsafe fn synchronize_event(&self, event: u64) -> Result<()> {
        self.enter()?;
        let event = event as sys::CUevent;
        // SAFETY: an event of ours.
        self.look(|| unsafe { sys::cuEventQuery(event) });
        // SAFETY: as above.
        unsafe { driver_call!(cuEventSynchronize(event)) }
    }

    unsafe fn elapsed_ms(&self, from: u64, to: u64) -> Result<f32> {
        self.enter()?;
        let mut time_ms = 0.0;
        let (from, to) = (from as sys::CUevent, to as sys::CUevent);
        // SAFETY: events of ours; writes the time.
        unsafe { driver_call!(cuEventElapsedTime_v2(&raw mut time_ms, from, to))? };
        Ok(time_ms)
    }

    unsafe fn destroy_event(&self, event: u64) {
        if self.enter().is_ok() {
            // SAFETY: an event of ours.
            let _ = unsafe { sys::cuEventDestroy_v2(event as sys::CUevent) };
        }
    }

    unsafe fn upload(&self, stream: u64, to: u64, from: *const c_void, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe {
            driver_call!(cuMemcpyHtoDAsync_v2(
                to,
                from,
                bytes,
                stream as sys::CUstream
            ))
        }
    }

    unsafe fn download(&self, stream: u64, from: u64, to: *mut c_void, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe {
            driver_call!(cuMemcpyDtoHAsync_v2(
                to,
                from,
                bytes,
                stream as sys::CUstream
            ))
        }
    }

    unsafe fn copy(&self, stream: u64, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe {
            driver_call!(cuMemcpyDtoDAsync_v2(
                to,
                from,
                bytes,
                stream as sys::CUstream
            ))
        }
    }

    unsafe fn zero(&self, stream: u64, to: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe { driver_call!(cuMemsetD8Async(to, 0, bytes, stream as sys::CUstream)) }
    }

    unsafe fn launch(
        &self,
        stream: u64,
        kernel: &Kernel,
        grid: Grid,
        params: *const c_void,
    ) -> Result<()> {
        self.enter()?;
        self.allow_shared(kernel, grid.shared_bytes)?;
        let mut arguments = [params.cast_mut()];
        // SAFETY: the kernel's only argument has the size that it takes; the driver copies it
        // before it returns.
        unsafe {
            driver_call!(cuLaunchKernel(
                kernel.function as sys::CUfunction,
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                stream as sys::CUstream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            ))
        }
    }

    unsafe fn sort_pairs(
        &self,
        stream: u64,
        temp: DeviceSlice<u8>,
        pairs: &PairBuffers,
        bits: Range<u32>,
    ) -> Result<usize> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe { cub::sort_pairs(stream, temp, pairs, bits) }
    }

    unsafe fn exclusive_sum(
        &self,
        stream: u64,
        sums: Sums,
        temp: DeviceSlice<u8>,
        input: u64,
        output: u64,
        len: u32,
    ) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's.
        unsafe { cub::exclusive_sum(stream, sums, temp, input, output, len) }
    }
}
