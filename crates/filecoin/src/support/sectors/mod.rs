//! Requests for sectors of any size that pass the vanilla check, made from nothing.
//!
//! Nobody can seal 32 GiB in a test, but a proof opens only a few thousand nodes. The trees here hold
//! those and are filled up with one made-up node per level; what a request needs beyond that
//! (labels, encodings, commitments) is computed as a sealer would.

mod porep;
mod post;
mod snap;
mod tree;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::domain::Domain;
use crate::sha256;

pub use porep::{porep, porep_with, replace_replica_leafs};
pub use post::post;
pub use snap::{snap, snap_with_data};

/// Random nodes.
struct Source(ChaCha8Rng);

impl Source {
    pub(super) fn new(seed: u64) -> Self {
        Source(ChaCha8Rng::seed_from_u64(seed))
    }

    pub(super) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    pub(super) fn node<D: Domain>(&mut self) -> D {
        sha256::truncated(self.bytes())
    }
}
