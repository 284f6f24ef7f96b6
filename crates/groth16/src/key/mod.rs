//! Keys: the verifying key, the mapped proving key, and what makes either of them usable.

mod check;
mod counts;
mod digest;
mod encoding;
mod error;
mod map;
mod memory;
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
pub use proving::{ProvingKey, Section};
pub use side_file::SideFile;
pub use store::{KeySpec, KeyStore, KeyTrust, ProductionDigests, Trusted};
pub use verifying::VerifyingKey;

#[cfg(test)]
mod tests;
