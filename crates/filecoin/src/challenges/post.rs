//! PoSt challenges: window and winning.

use sha2::{Digest, Sha256};

use crate::registered::{PostVersion, RegisteredPostProof};
use crate::{PoseidonDomain, PostRequest};

/// What the challenges of a PoSt follow from.
pub struct PostChallenges<'a> {
    /// Version and sector size.
    pub proof_type: RegisteredPostProof,
    /// Randomness.
    pub randomness: &'a PoseidonDomain,
    /// Number of the partition in its deadline; it matters for [`PostVersion::WindowV1`] only.
    pub partition_index: u32,
}

impl<'a> PostChallenges<'a> {
    /// The challenges of a request.
    pub fn of(request: &'a PostRequest) -> PostChallenges<'a> {
        PostChallenges {
            proof_type: request.proof_type,
            randomness: &request.randomness,
            partition_index: request.partition_index,
        }
    }

    /// The challenged leafs of one sector. `position` is the sector's place in the request.
    ///
    /// Challenge number j is the first 64 bits (little-endian) of SHA-256(randomness || sector
    /// number || j), both numbers as u64 little-endian, modulo the number of nodes. Numbers
    /// count from 0 in each sector, but for the first window version over all sectors of
    /// all partitions.
    pub fn sector(&self, position: usize, sector_number: u64) -> Vec<u64> {
        let size = self.proof_type.size;
        let shape = match self.proof_type.version {
            PostVersion::WinningV1 => size.winning(),
            PostVersion::WindowV1 | PostVersion::WindowV1_2 => size.window(),
        };
        let count = shape.inclusion_proofs_per_entry(self.proof_type.kind()) as u64;
        let first = match self.proof_type.version {
            PostVersion::WinningV1 | PostVersion::WindowV1_2 => 0,
            PostVersion::WindowV1 => {
                let full_partitions = u64::from(self.partition_index) * shape.sectors as u64;
                (full_partitions + position as u64) * count
            }
        };
        let prefix = Sha256::new()
            .chain_update(self.randomness)
            .chain_update(sector_number.to_le_bytes());
        (first..first + count)
            .map(|number| {
                let digest = prefix.clone().chain_update(number.to_le_bytes()).finalize();
                let head = digest[..8].try_into();
                u64::from_le_bytes(head.expect("invariant: 8 bytes")) % size.nodes()
            })
            .collect()
    }
}
