//! Keys: the verifying key, the mapped proving key, and what makes either of them usable.

mod counts;
mod encoding;
mod error;
mod map;
mod proving;
mod verifying;

pub use counts::KeyCounts;
pub use encoding::{KeyPoint, PointFault};
pub use error::KeyError;
pub use map::FileStamp;
pub use proving::{ProvingKey, Section};
pub use verifying::VerifyingKey;
