//! Keys: the verifying key, the mapped proving key, and what makes either of them usable.

mod check;
mod counts;
mod digest;
mod encoding;
mod error;
mod map;
mod memory;
mod memory_file;
pub mod prepare;
mod prepared;
mod proving;
mod section;
mod side_file;
mod store;
mod verifying;

pub use counts::KeyCounts;
pub use digest::{KeyDigest, NotADigest};
pub use encoding::{KeyPoint, PointEncoding, PointFault};
pub use error::{KeyError, MissingKey};
pub use map::FileStamp;
pub(crate) use memory::remember_sound;
pub(crate) use memory_file::MemoryFile;
pub use prepared::PreparedHeader;
pub(crate) use prepared::{ENCODING, PREPARED, PreparedLayout};
pub(crate) use proving::PARAMETER;
pub use proving::{KeyForm, ProvingKey};
pub use section::Section;
pub use side_file::SideFile;
pub use store::{KeySpec, KeyStore, KeyTrust, ProductionDigests, Trusted};
pub use verifying::VerifyingKey;

#[cfg(test)]
mod tests;
