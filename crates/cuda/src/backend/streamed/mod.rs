//! Proofs over a key that does not fit: its points wait in page-locked memory of the host and pass
//! through a ring of buffers on the device, chunk by chunk. Each chunk serves all proofs of the pass
//! before the next one takes its place.
//!
//! Of each query the points of the tail and those of the bits are apart, in order, so that both are
//! sums over consecutive points: no lists of indices, no point twice.

mod bases;
mod batch;
mod pass;
mod plan;
mod search;

pub use bases::HostBases;
pub use batch::{Batch, NotDone};
pub use pass::{Held, Pass};
pub use plan::{ChunkSummary, StreamedSums};
pub use search::{StreamFound, StreamSearch};

/// Buffers of the ring: one is summed while the other is filled.
const RING: usize = 2;

/// Bytes a millisecond from page-locked memory to the device: 55.3 GB/s measured on an H200 (PCIe 5,
/// 16 lanes). A slower bus makes chunks wait, not results differ.
const BUS_BYTES_PER_MS: f64 = 55.0e6;
