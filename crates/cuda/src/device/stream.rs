//! Streams and events.

use std::fmt;
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::driver::{Driver, Grid};
use crate::device::kernel::{Kernel, Params};
use crate::device::memory::{DeviceSlice, Pod};
use crate::error::{CudaError, Result};

/// An order of work on a device.
///
/// Everything here is queued, and errors of the work itself come with a later call, at the latest
/// with [`Self::synchronize`]. Only copies from and to host memory wait.
pub struct Stream {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) handle: u64,
    /// Tells it from every other stream of this process, also from those that are gone: the driver
    /// gives handles out again.
    pub(crate) id: u64,
    /// The kernel launched last, for error texts.
    last: Mutex<&'static str>,
    pub(crate) traffic: Arc<Traffic>,
}

/// Bytes that have been copied between host and device, both ways.
#[derive(Debug, Default)]
pub struct Traffic {
    up: AtomicU64,
    down: AtomicU64,
}

impl Traffic {
    pub(crate) fn went_up(&self, bytes: usize) {
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn came_down(&self, bytes: usize) {
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// To the device, and from it.
    pub fn bytes(&self) -> (u64, u64) {
        let read = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        (read(&self.up), read(&self.down))
    }
}

impl Stream {
    pub(crate) fn new(driver: Arc<dyn Driver>, traffic: Arc<Traffic>) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let handle = driver.create_stream()?;
        Ok(Stream {
            driver,
            handle,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            last: Mutex::new("a kernel"),
            traffic,
        })
    }

    /// Copies `src` to the device; waits until it is there.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn upload<T: Pod>(&self, dst: DeviceSlice<T>, src: &[T]) -> Result<()> {
        assert_eq!(dst.len(), src.len(), "lengths of an upload");
        if src.is_empty() {
            return Ok(());
        }
        let (address, bytes) = (dst.ptr(), dst.bytes());
        // SAFETY: source and destination have `bytes` bytes; the source is not left before the
        // copy is done.
        unsafe {
            self.driver
                .upload(self.handle, address, src.as_ptr().cast(), bytes)?;
        }
        self.traffic.went_up(bytes);
        self.synchronize()
    }

    /// Copies to `dst` what is on the device when the stream has come here; waits for it.
    ///
    /// # Errors
    /// A driver that fails, and failures of the work before.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn download<T: Pod>(&self, src: DeviceSlice<T>, dst: &mut [T]) -> Result<()> {
        assert_eq!(dst.len(), src.len(), "lengths of a download");
        if dst.is_empty() {
            return self.synchronize();
        }
        // SAFETY: as for `upload`; any bytes are values of T.
        unsafe {
            self.driver
                .download(self.handle, src.ptr(), dst.as_mut_ptr().cast(), src.bytes())?;
        }
        self.traffic.came_down(src.bytes());
        self.synchronize()
    }

    /// Copies from one place on the device to another that it does not overlap.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy<T>(&self, dst: DeviceSlice<T>, src: DeviceSlice<T>) -> Result<()> {
        assert_eq!(dst.len(), src.len(), "lengths of a copy");
        if src.is_empty() {
            return Ok(());
        }
        // SAFETY: both slices have as many bytes.
        unsafe {
            self.driver
                .copy(self.handle, dst.ptr(), src.ptr(), src.bytes())
        }
    }

    /// Fills with zero bytes.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn zero<T>(&self, dst: DeviceSlice<T>) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        // SAFETY: the slice has as many bytes.
        unsafe { self.driver.zero(self.handle, dst.ptr(), dst.bytes()) }
    }

    /// Launches `blocks` blocks of `threads` threads with `shared_bytes` of dynamic shared memory
    /// each. No blocks is no launch.
    ///
    /// The device addresses in `params` must be of live arenas, and large enough for the kernel;
    /// nothing checks them.
    ///
    /// # Errors
    /// [`CudaError::BadLaunch`] when sizes do not fit the kernel; a driver that fails.
    pub fn launch<P: Params>(
        &self,
        kernel: &Kernel,
        blocks: u32,
        threads: u32,
        shared_bytes: u32,
        params: &P,
    ) -> Result<()> {
        if blocks == 0 {
            return Ok(());
        }
        let bad = |reason: String| CudaError::BadLaunch {
            kernel: kernel.name,
            reason,
        };
        if size_of::<P>() != kernel.params_bytes {
            return Err(bad(format!(
                "it takes {} bytes of parameters, {} has {}",
                kernel.params_bytes,
                std::any::type_name::<P>(),
                size_of::<P>()
            )));
        }
        if threads == 0 || threads > kernel.threads_max {
            return Err(bad(format!(
                "{threads} threads in a block of at most {}",
                kernel.threads_max
            )));
        }
        if shared_bytes > kernel.shared_bytes_max {
            return Err(bad(format!(
                "{shared_bytes} bytes of shared memory, a block can have {}",
                kernel.shared_bytes_max
            )));
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = kernel.name;
        let grid = Grid {
            blocks,
            threads,
            shared_bytes,
        };
        // SAFETY: `params` has the size that the kernel takes.
        unsafe {
            self.driver
                .launch(self.handle, kernel, grid, (&raw const *params).cast())
        }
    }

    /// An event: the place that the stream has reached.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn record(&self) -> Result<Event> {
        // SAFETY: the stream lives.
        let handle = unsafe { self.driver.record(self.handle)? };
        Ok(Event {
            driver: Arc::clone(&self.driver),
            handle,
        })
    }

    /// Lets what is queued from here on wait for `event`, of this or another stream.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        // SAFETY: stream and event live.
        unsafe { self.driver.wait(self.handle, event.handle) }
    }

    /// Waits until everything queued is done.
    ///
    /// # Errors
    /// Failures of the work; [`CudaError::LaunchFailure`] is final.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream lives.
        let result = unsafe { self.driver.synchronize(self.handle) };
        result.map_err(|error| match error {
            CudaError::LaunchFailure { reason, .. } => CudaError::LaunchFailure {
                kernel: *self.last.lock().unwrap_or_else(PoisonError::into_inner),
                reason,
            },
            other => other,
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nothing uses the stream any more.
        unsafe { self.driver.destroy_stream(self.handle) };
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:#x})", self.handle)
    }
}

/// A place in a stream.
pub struct Event {
    driver: Arc<dyn Driver>,
    handle: u64,
}

impl Event {
    /// Milliseconds from `earlier` to this; waits until both are reached.
    ///
    /// # Errors
    /// A driver that fails, and failures of the work before.
    pub fn elapsed_ms(&self, earlier: &Event) -> Result<f32> {
        self.synchronize()?;
        earlier.synchronize()?;
        // SAFETY: both events live.
        unsafe { self.driver.elapsed_ms(earlier.handle, self.handle) }
    }

    /// Waits until the stream has come past it.
    ///
    /// # Errors
    /// A driver that fails, and failures of the work before.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event lives.
        unsafe { self.driver.synchronize_event(self.handle) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nothing uses the event any more.
        unsafe { self.driver.destroy_event(self.handle) };
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:#x})", self.handle)
    }
}
