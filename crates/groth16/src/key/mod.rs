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
mod store_prepared;
mod verifying;

pub use counts::KeyCounts;
pub use digest::{KeyDigest, NotADigest};
pub use encoding::{KeyPoint, PointEncoding, PointFault};
pub use error::{KeyError, MissingKey};
pub use map::FileStamp;
pub(crate) use map::MappedFile;
pub(crate) use memory::remember_sound;
pub(crate) use memory_file::MemoryFile;
pub(crate) use prepared::{ENCODING, PREPARED, PreparedLayout, content_digest};
pub use prepared::{PreparedHeader, prepared_name};
pub(crate) use proving::PARAMETER;
pub use proving::{KeyForm, ProvingKey};
pub use section::Section;
pub use side_file::SideFile;
pub use store::{KeySpec, KeyStore, KeyTrust, ProductionDigests, Trusted};
pub use verifying::VerifyingKey;

#[cfg(test)]
mod tests;
