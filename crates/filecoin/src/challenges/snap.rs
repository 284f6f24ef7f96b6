//! SnapDeals challenges and the randomness of its encoding.

use blstrs::Scalar as Fr;
use ff::PrimeField;

use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::poseidon;
use crate::registry::SectorSize;

/// Challenged nodes of one partition of an update, all inside the partition's part of the sector.
///
/// Poseidon(comm_r_new, i) yields 254 bits, from the lowest up cut into as many whole challenges
/// as fit; i counts on over all partitions. The partition's number is put on top of each.
pub fn snap_challenges(
    size: SectorSize,
    comm_r_new: &PoseidonDomain,
    partition: usize,
) -> Vec<u32> {
    let shape = size.snap();
    let random_bits = (size.log2_nodes() - shape.partitions.ilog2()) as usize;
    let per_digest = Fr::CAPACITY as usize / random_bits;
    let first_digest = partition * shape.challenges.div_ceil(per_digest);
    let comm_r_new = comm_r_new.to_fr();
    (0..shape.challenges.div_ceil(per_digest))
        .flat_map(|i| {
            let number = Fr::from((first_digest + i) as u64);
            let digest = poseidon::hash_randomness(comm_r_new, number).to_repr();
            (0..per_digest).map(move |i| bits(&digest, i * random_bits, random_bits))
        })
        .take(shape.challenges)
        .map(|random| random | (partition as u32) << random_bits)
        .collect()
}

/// `count` ≤ 31 bits of a little-endian number from bit `start` on.
fn bits(number: &[u8; 32], start: usize, count: usize) -> u32 {
    (0..count).fold(0, |value, i| {
        let position = start + i;
        let bit = number[position / 8] >> (position % 8) & 1;
        value | u32::from(bit) << i
    })
}

/// The randomness that multiplies new data: new replica node = old replica node + ρ · data node.
pub struct EncodingRandomness {
    /// φ = Poseidon(comm_d_new, comm_r_old).
    phi: Fr,
    /// Right shift of a node's number to its h highest bits.
    shift: u32,
}

impl EncodingRandomness {
    /// The randomness of one update.
    pub fn new(
        size: SectorSize,
        comm_d_new: &Sha256Domain,
        comm_r_old: &PoseidonDomain,
    ) -> EncodingRandomness {
        EncodingRandomness {
            phi: poseidon::hash_randomness(comm_d_new.to_fr(), comm_r_old.to_fr()),
            shift: size.log2_nodes() - size.snap().h as u32,
        }
    }

    /// ρ = Poseidon(φ, the h highest bits of the node's number).
    pub fn rho(&self, node: u32) -> Fr {
        poseidon::hash_randomness(self.phi, Fr::from(u64::from(node >> self.shift)))
    }
}
