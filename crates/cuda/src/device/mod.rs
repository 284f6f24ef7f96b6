//! A device, its memory, its streams and its kernels: the driver's interface made safe to use,
//! over the CUDA driver or over the emulation.

#[cfg(feature = "cuda")]
mod cuda;
mod driver;
#[cfg(feature = "emulation")]
mod emulated;
mod kernel;
mod ledger;
mod memory;
mod pinned;
mod placement;
mod sort;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(not(feature = "cuda"))]
use crate::error::CudaError;
use crate::error::{DriverVersion, Result};
use crate::topic::Topic;
use driver::Driver;

pub use kernel::{Kernel, Params};
pub use ledger::{Ledger, LedgerEntry, Lifetime, Phase, Slot};
pub use memory::{Arena, DeviceSlice, Pod};
pub use pinned::PinnedBuffer;
pub(crate) use pinned::{copy_parallel, elements_mut};
pub use sort::{PairBuffers, SortedPairs, scan_temp_bytes, sort_temp_bytes};
pub use stream::{Event, Stream, Traffic};

/// A device and its context. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    driver: Arc<dyn Driver>,
    kernels: Arc<Mutex<HashMap<(Topic, &'static str), Kernel>>>,
    vram_limit: Option<u64>,
    traffic: Arc<Traffic>,
}

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The product's name.
    pub name: String,
    /// `GPU-` and the UUID, as nvidia-smi shows it.
    pub uuid: String,
    /// Its place among the devices that the driver shows.
    pub ordinal: usize,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub total_bytes: u64,
    /// Bytes of its level-2 cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory that one block may have.
    pub shared_bytes_max: u32,
    /// What the driver supports.
    pub driver: DriverVersion,
    /// Whether it is the host that plays a device.
    pub emulated: bool,
}

/// How a thread waits for work on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// It looks for some microseconds, then sleeps until the device wakes it: a proof of seconds costs no processor
    /// time meanwhile.
    #[default]
    Sleeps,
    /// It looks all the time: it goes on at once, and takes a processor for every proof under way.
    Spins,
}

impl Device {
    /// How many devices the driver shows.
    ///
    /// # Errors
    /// `NotBuilt`, `NoDriver`, `DriverTooOld`.
    pub fn count() -> Result<usize> {
        #[cfg(feature = "cuda")]
        return cuda::CudaDriver::count();
        #[cfg(not(feature = "cuda"))]
        Err(CudaError::NotBuilt)
    }

    /// Opens device `ordinal`, from 0.
    ///
    /// # Errors
    /// As [`Self::count`]; `NoDevice`; a driver that fails.
    pub fn open(ordinal: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        return Ok(Self::new(Arc::new(cuda::CudaDriver::open(ordinal)?)));
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(CudaError::NotBuilt)
        }
    }

    /// The host in the role of a device: runs the same kernels, slowly, one thread at a time.
    #[cfg(feature = "emulation")]
    pub fn emulated() -> Self {
        Self::new(Arc::new(emulated::EmulatedDriver::new()))
    }

    #[cfg(any(feature = "cuda", feature = "emulation"))]
    fn new(driver: Arc<dyn Driver>) -> Self {
        Device {
            driver,
            kernels: Arc::default(),
            vram_limit: None,
            traffic: Arc::default(),
        }
    }

    /// Lets arenas take at most `bytes`, as on a device that has no more.
    #[must_use]
    pub fn with_vram_limit(self, bytes: u64) -> Self {
        Device {
            vram_limit: Some(bytes),
            ..self
        }
    }

    /// What it is.
    pub fn info(&self) -> &DeviceProperties {
        self.driver.properties()
    }

    /// Says how threads wait from now on, in all clones.
    pub fn set_waiting(&self, waiting: Waiting) {
        self.driver.set_waiting(waiting);
    }

    /// What its streams have copied between it and the host.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Bytes of memory that are free now.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn free_bytes(&self) -> Result<u64> {
        self.driver.free_bytes()
    }

    /// A new stream: an order of its own for what is launched on it.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(Arc::clone(&self.driver), Arc::clone(&self.traffic))
    }

    /// Memory for all buffers of `ledger`, in one allocation.
    ///
    /// # Errors
    /// `DoesNotFit` when they need more than is free or allowed;
    /// `OutOfMemory`.
    pub fn arena(&self, ledger: &Ledger) -> Result<Arena> {
        Arena::new(Arc::clone(&self.driver), ledger, self.vram_limit)
    }

    /// A buffer of `bytes` bytes of host memory that copies pass through.
    ///
    /// # Errors
    /// `OutOfMemory`; a driver that fails.
    pub fn pinned(&self, bytes: usize) -> Result<PinnedBuffer> {
        PinnedBuffer::new(Arc::clone(&self.driver), bytes)
    }

    /// The kernel `name` of `topic`, loaded with its topic when it is first asked for.
    ///
    /// # Errors
    /// `MissingImage`, `MissingKernel`; a driver that fails.
    pub fn kernel(&self, topic: Topic, name: &'static str) -> Result<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(&(topic, name)) {
            return Ok(kernel.clone());
        }
        let kernel = self.driver.kernel(topic, name)?;
        kernels.insert((topic, name), kernel.clone());
        Ok(kernel)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("properties", self.info())
            .field("vram_limit", &self.vram_limit)
            .finish()
    }
}
