//! The stacked depth-robust graph: which nodes a node's label depends on.
//!
//! A node has 6 parents on its own layer (the DRG, bucket sampling) and 8 on the layer
//! before (the expander, a permutation of all node slots). Both follow from the porep id
//! alone, so they are computed here and never read from a proof.

mod bucket;
mod feistel;
#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

use crate::registered::{RegisteredSealProof, SealVersion};
use crate::registry::{DRG_PARENTS, EXP_PARENTS};

use bucket::BucketSampler;
use feistel::Feistel;

/// The graph of one seal proof type.
pub struct Graph {
    base: BucketSampler,
    expander: Feistel,
    /// API 1.0.0, whose two peculiarities are kept: the order of the DRG parents, and expander
    /// slots cut to 32 bits.
    legacy: bool,
}

impl Graph {
    /// The graph that sectors of this type are sealed with.
    pub fn new(proof_type: RegisteredSealProof) -> Graph {
        let porep_id = proof_type.porep_id();
        Graph {
            base: BucketSampler::new(&domain_seed("Filecoin_DRSample", &porep_id)),
            expander: Feistel::new(
                &domain_seed("Filecoin_Feistel", &porep_id),
                proof_type.size.nodes() * EXP_PARENTS as u64,
            ),
            legacy: proof_type.version == SealVersion::V1,
        }
    }

    /// Parents on the node's own layer, below the node (all 0 for nodes 0 and 1), in the order in
    /// which they are hashed. The predecessor comes first, in API 1.0.0 last.
    pub fn drg_parents(&self, node: u32) -> [u32; DRG_PARENTS] {
        if node < 2 {
            return [0; DRG_PARENTS];
        }
        let mut parents = [node - 1; DRG_PARENTS];
        let sampled = if self.legacy {
            &mut parents[..DRG_PARENTS - 1]
        } else {
            &mut parents[1..]
        };
        self.base.sample(node, sampled);
        parents
    }

    /// Parents on the layer before.
    pub fn expander_parents(&self, node: u32) -> [u32; EXP_PARENTS] {
        std::array::from_fn(|i| {
            let slot = self
                .expander
                .permute(u64::from(node) * EXP_PARENTS as u64 + i as u64);
            if self.legacy {
                // API 1.0.0 divides after the cut. Sizes from 32 GiB on have more than 2^32 slots.
                slot as u32 / EXP_PARENTS as u32
            } else {
                (slot / EXP_PARENTS as u64) as u32
            }
        })
    }
}

/// SHA-256(tag || porep id).
fn domain_seed(tag: &str, porep_id: &[u8; 32]) -> [u8; 32] {
    Sha256::new()
        .chain_update(tag)
        .chain_update(porep_id)
        .finalize()
        .into()
}
