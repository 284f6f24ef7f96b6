//! Keys: the verifying key, the mapped proving key, and what makes either of them usable.

mod check;
mod counts;
mod digest;
mod encoding;
mod error;
mod map;
mod memory;
mod memory_file;
mod proving;
mod side_file;
mod store;
mod verifying;

pub use counts::KeyCounts;
pub use digest::{KeyDigest, NotADigest};
pub use encoding::{KeyPoint, PointFault};
pub use error::{KeyError, MissingKey};
pub use map::FileStamp;
pub(crate) use memory::remember_sound;
pub(crate) use memory_file::MemoryFile;
pub(crate) use proving::PARAMETER;
pub use proving::{KeyForm, ProvingKey, Section};
pub use side_file::SideFile;
pub use store::{KeySpec, KeyStore, KeyTrust, ProductionDigests, Trusted};
pub use verifying::VerifyingKey;

#[cfg(test)]
mod tests;
