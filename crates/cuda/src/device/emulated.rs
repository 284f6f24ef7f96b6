//! The host in the role of a device: memory is host memory, a launch runs at once.

use std::alloc::{self, Layout};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::device::driver::{Driver, Grid};
use crate::device::kernel::Kernel;
use crate::device::ledger::ALIGNMENT;
use crate::device::memory::DeviceSlice;
use crate::device::sort::{PairBuffers, Sums};
use crate::device::{DeviceProperties, Waiting};
use crate::error::{CudaError, DriverVersion, Result};
use crate::topic::Topic;

// kernels/common/emulation.cpp
unsafe extern "C" {
    fn cuzk_emulation_find(
        name: *const c_char,
        params_bytes: *mut usize,
        threads_max: *mut u32,
    ) -> u32;
    fn cuzk_emulation_launch(
        name: *const c_char,
        params: *const c_void,
        blocks: u32,
        threads: u32,
        shared_bytes: usize,
        message: *mut c_char,
        message_bytes: usize,
    ) -> c_int;
    fn cuzk_emulation_limits(threads_max: *mut u32, shared_bytes_max: *mut usize);
}

/// What it says it has, so that limits are tested with small numbers.
const TOTAL_BYTES: u64 = 16 << 30;

pub struct EmulatedDriver {
    properties: DeviceProperties,
    /// Live allocations: sizes by address.
    allocations: Mutex<HashMap<u64, u64>>,
    start: Instant,
}

impl EmulatedDriver {
    pub fn new() -> Self {
        let (mut threads, mut shared) = (0, 0);
        // SAFETY: both point to variables of the right types.
        unsafe { cuzk_emulation_limits(&raw mut threads, &raw mut shared) };
        EmulatedDriver {
            properties: DeviceProperties {
                name: "emulated".to_owned(),
                uuid: "GPU-00000000-0000-0000-0000-000000000000".to_owned(),
                ordinal: 0,
                capability: (0, 0),
                multiprocessors: 2,
                total_bytes: TOTAL_BYTES,
                l2_bytes: 1 << 20,
                shared_bytes_max: shared as u32,
                driver: DriverVersion::NEEDED,
                emulated: true,
            },
            allocations: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn with_allocations<T>(&self, f: impl FnOnce(&mut HashMap<u64, u64>) -> T) -> T {
        f(&mut self
            .allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, ALIGNMENT as usize).ok()
}

impl Driver for EmulatedDriver {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        Ok(TOTAL_BYTES - self.with_allocations(|live| live.values().sum::<u64>()))
    }

    fn kernel(&self, topic: Topic, name: &'static str) -> Result<Kernel> {
        let missing = CudaError::MissingKernel {
            topic: topic.name(),
            kernel: name,
        };
        let Ok(c_name) = CString::new(name) else {
            return Err(missing);
        };
        let (mut params_bytes, mut threads_max) = (0, 0);
        // SAFETY: a C string, and variables of the right types.
        let count = unsafe {
            cuzk_emulation_find(c_name.as_ptr(), &raw mut params_bytes, &raw mut threads_max)
        };
        match count {
            0 => Err(missing),
            1 => Ok(Kernel {
                name,
                function: 0,
                params_bytes,
                threads_max,
                shared_bytes_max: self.properties.shared_bytes_max,
                shared_bytes_set: Arc::new(AtomicU32::new(0)),
                registers: 0,
                local_bytes: 0,
            }),
            _ => Err(CudaError::BadLaunch {
                kernel: name,
                reason: format!("{count} kernels have this name"),
            }),
        }
    }

    // Its work is done when it returns.
    fn set_waiting(&self, _waiting: Waiting) {}

    fn allocate(&self, bytes: u64) -> Result<u64> {
        let failed = CudaError::OutOfMemory {
            call: "the emulated allocator",
            bytes,
        };
        let Some(layout) = layout(bytes).filter(|layout| layout.size() > 0) else {
            return Err(failed);
        };
        // SAFETY: the layout has a size above 0.
        let address = unsafe { alloc::alloc(layout) };
        if address.is_null() {
            return Err(failed);
        }
        // SAFETY: as many bytes were allocated. A pattern, so that reading what was never written
        // shows.
        unsafe { address.write_bytes(0xa5, layout.size()) };
        self.with_allocations(|live| live.insert(address as u64, bytes));
        Ok(address as u64)
    }

    unsafe fn free(&self, address: u64) {
        let bytes = self.with_allocations(|live| live.remove(&address));
        if let Some(layout) = bytes.and_then(layout) {
            // SAFETY: allocated above with the same layout.
            unsafe { alloc::dealloc(address as *mut u8, layout) };
        }
    }

    unsafe fn pin(&self, _start: u64, _bytes: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn unpin(&self, _start: u64) {}

    fn create_stream(&self) -> Result<u64> {
        Ok(0)
    }

    unsafe fn destroy_stream(&self, _stream: u64) {}

    unsafe fn synchronize(&self, _stream: u64) -> Result<()> {
        Ok(())
    }

    /// An event is the time at which it was recorded, in nanoseconds.
    unsafe fn record(&self, _stream: u64) -> Result<u64> {
        Ok(self.start.elapsed().as_nanos() as u64)
    }

    unsafe fn wait(&self, _stream: u64, _event: u64) -> Result<()> {
        Ok(())
    }

    unsafe fn synchronize_event(&self, _event: u64) -> Result<()> {
        Ok(())
    }

    unsafe fn elapsed_ms(&self, from: u64, to: u64) -> Result<f32> {
        Ok((to as f64 - from as f64) as f32 / 1e6)
    }

    unsafe fn destroy_event(&self, _event: u64) {}

    unsafe fn upload(
        &self,
        _stream: u64,
        to: u64,
        from: *const c_void,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: both have `bytes` bytes, by the caller's contract.
        unsafe { std::ptr::copy(from.cast::<u8>(), to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn download(
        &self,
        _stream: u64,
        from: u64,
        to: *mut c_void,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: as for `upload`.
        unsafe { std::ptr::copy(from as *const u8, to.cast::<u8>(), bytes) };
        Ok(())
    }

    unsafe fn copy(&self, _stream: u64, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: as for `upload`.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn zero(&self, _stream: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: as for `upload`.
        unsafe { (to as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn launch(
        &self,
        _stream: u64,
        kernel: &Kernel,
        grid: Grid,
        params: *const c_void,
    ) -> Result<()> {
        let mut message = [0 as c_char; 512];
        let name = CString::new(kernel.name).unwrap_or_default();
        // SAFETY: the parameters have the kernel's size, by the caller's contract; the message
        // buffer has the length given and is ended by a zero.
        let failed = unsafe {
            cuzk_emulation_launch(
                name.as_ptr(),
                params,
                grid.blocks,
                grid.threads,
                grid.shared_bytes as usize,
                message.as_mut_ptr(),
                message.len(),
            )
        };
        if failed == 0 {
            return Ok(());
        }
        // SAFETY: ended by a zero.
        let reason = unsafe { CStr::from_ptr(message.as_ptr()) };
        Err(CudaError::LaunchFailure {
            kernel: kernel.name,
            reason: reason.to_string_lossy().into_owned(),
        })
    }

    /// As CUB does: every 8-bit digit moves the pairs to the other buffers; few pairs are sorted
    /// in one step.
    unsafe fn sort_pairs(
        &self,
        _stream: u64,
        _temp: DeviceSlice<u8>,
        pairs: &PairBuffers,
        bits: Range<u32>,
    ) -> Result<usize> {
        const ONE_STEP: usize = 4096;
        let steps = match pairs.keys[0].len() {
            _ if bits.is_empty() => 0,
            0..=ONE_STEP => 1,
            _ => bits.len().div_ceil(8),
        };
        let place = steps % 2;
        let mask = u32::MAX.checked_shr(32 - bits.end).unwrap_or(0);
        let [keys, values] = [pairs.keys, pairs.values].map(|both| {
            both.map(|slice| {
                // SAFETY: live buffers of this many elements, which do not overlap and which
                // nothing else touches during the call.
                unsafe { std::slice::from_raw_parts_mut(slice.ptr() as *mut u32, slice.len()) }
            })
        });
        let mut sorted: Vec<(u32, u32)> = keys[0]
            .iter()
            .copied()
            .zip(values[0].iter().copied())
            .collect();
        sorted.sort_by_key(|(key, _)| (key & mask).checked_shr(bits.start));
        keys[1 - place].fill(0xa5a5_a5a5);
        values[1 - place].fill(0xa5a5_a5a5);
        for (i, (key, value)) in sorted.into_iter().enumerate() {
            keys[place][i] = key;
            values[place][i] = value;
        }
        Ok(place)
    }

    unsafe fn exclusive_sum(
        &self,
        _stream: u64,
        sums: Sums,
        _temp: DeviceSlice<u8>,
        input: u64,
        output: u64,
        len: u32,
    ) -> Result<()> {
        /// # Safety
        /// Both addresses have `len` elements.
        unsafe fn scan<T: Copy + Default>(input: u64, output: u64, len: u32, add: fn(T, T) -> T) {
            let mut sum = T::default();
            for i in 0..len as usize {
                // SAFETY: inside both buffers, which may be the same one.
                unsafe {
                    let value = *(input as *const T).add(i);
                    *(output as *mut T).add(i) = sum;
                    sum = add(sum, value);
                }
            }
        }
        // SAFETY: the caller's.
        unsafe {
            match sums {
                Sums::U32 => scan::<u32>(input, output, len, u32::wrapping_add),
                Sums::U64 => scan::<u64>(input, output, len, u64::wrapping_add),
            }
        }
        Ok(())
    }
}
