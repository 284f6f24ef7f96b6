//! Bucket sampling (DRSample): distances to parents are drawn from random powers of two.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::registry::DRG_PARENTS;

/// Sampled parents of a node, and meta-nodes that a node stands for: all but the predecessor.
const SAMPLES: u64 = DRG_PARENTS as u64 - 1;

/// Draws the sampled parents of nodes.
pub struct BucketSampler {
    /// First 28 bytes of the domain seed; the other four of a node's generator are its number.
    seed: [u8; 28],
}

impl BucketSampler {
    pub fn new(domain_seed: &[u8; 32]) -> BucketSampler {
        let mut seed = [0; 28];
        seed.copy_from_slice(&domain_seed[..28]);
        BucketSampler { seed }
    }

    /// Fills `parents` with sampled parents of `node` ≥ 2, in the order of drawing.
    ///
    /// Sampling takes place in a meta-graph in which every node is a group of `SAMPLES`
    /// nodes. For each parent a bucket b is drawn from 1..=⌈log2(meta-node)⌉, then a distance
    /// from 2^(b-1)..=2^b (at least 2, at most the meta-node itself).
    pub fn sample(&self, node: u32, parents: &mut [u32]) {
        let mut seed = [0; 32];
        seed[..28].copy_from_slice(&self.seed);
        seed[28..].copy_from_slice(&node.to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(seed);

        let meta_node = u64::from(node) * SAMPLES;
        // ⌈log2 x⌉ for x ≥ 2.
        let buckets = u64::from((meta_node - 1).ilog2() + 1);
        for parent in parents {
            let bucket = random.next_u64() % buckets + 1;
            let farthest = meta_node.min(1 << bucket);
            let nearest = (farthest / 2).max(2);
            let distance = nearest + random.next_u64() % (farthest - nearest + 1);
            let mapped = ((meta_node - distance) / SAMPLES) as u32;
            // A distance within the node's own group means the predecessor.
            *parent = if mapped == node { node - 1 } else { mapped };
        }
    }
}
