//! What the server needs to know of proving keys and devices, from whoever has them.

use filecoin::CircuitId;

/// Where a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// In the memory of a device.
    Hot,
    /// In host memory.
    Warm,
    /// In its file, mapped or known.
    Cold,
}

impl Tier {
    /// In lower case, for people and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// A key that is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedKey {
    /// Its circuit.
    pub circuit: CircuitId,
    /// Where it is; of several places the fastest.
    pub tier: Tier,
    /// Bytes that it takes there, over all devices.
    pub bytes: u64,
    /// Units that use it now.
    pub references: u32,
    /// How long it has not been used, seconds.
    pub idle_secs: f64,
    /// Whether it was made for tests.
    pub test_key: bool,
}

/// What does not come from the engine about a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its model, for example `NVIDIA H200`, or that of the processor.
    pub model: String,
    /// Number of the GPU as the driver counts them; `None` for the CPU.
    pub ordinal: Option<u32>,
    /// Bytes of its memory.
    pub memory_total: u64,
    /// Of those, free.
    pub memory_free: u64,
}

/// What loading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preloaded {
    /// Every device that serves the circuit had it before.
    pub already_loaded: bool,
    /// Milliseconds that it took.
    pub load_ms: u64,
}

/// What unloading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evicted {
    /// It was not loaded.
    NotLoaded,
    /// It is in use and stays.
    InUse,
    /// It is gone.
    Freed {
        /// Bytes that are free now.
        bytes: u64,
    },
}

/// Why a key cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    /// Stable upper-case code, for example `KEY_MISSING`.
    pub code: String,
    /// Names the file, the cause and the remedy.
    pub message: String,
}

/// Keys and devices as the server sees them. Only [`Keys::preload`] and [`Keys::evict`] may take
/// their time; the others answer at once, whatever the load.
pub trait Keys: Send + Sync {
    /// The devices, in the order in which the engine numbers them.
    fn devices(&self) -> Vec<DeviceFacts>;

    /// The keys that are loaded.
    fn loaded(&self) -> Vec<LoadedKey>;

    /// Whether units of the circuit can be proven as far as its key goes: the file is there, has
    /// the right size, and has not been found corrupt. An error is what a client gets to read.
    fn check(&self, circuit: CircuitId) -> Result<(), KeyError>;

    /// Host memory that one unit of the circuit takes while it is worked on, bytes.
    fn unit_bytes(&self, circuit: CircuitId) -> u64;

    /// Loads a key on every device that serves its circuit, and returns when it is there.
    fn preload(&self, circuit: CircuitId) -> Result<Preloaded, KeyError>;

    /// Unloads a key wherever it is not in use.
    fn evict(&self, circuit: CircuitId) -> Result<Evicted, KeyError>;

    /// Page-locked host memory: bytes in use, and the most that will be used.
    fn pinned(&self) -> (u64, u64) {
        (0, 0)
    }
}
