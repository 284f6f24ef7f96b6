//! SHA-256 as Filecoin uses it: digests are cut to 254 bits so that they are field elements.

use sha2::{Digest, Sha256};

use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::registry::LABEL_PARENTS;

/// Clears the two top bits of the last byte: the little-endian number is then below 2^254 < r.
pub fn truncate(mut digest: [u8; 32]) -> [u8; 32] {
    digest[31] &= 0x3f;
    digest
}

/// A digest as a node of either kind.
pub fn truncated<D: Domain>(digest: [u8; 32]) -> D {
    D::from_bytes(truncate(digest)).expect("invariant: 254 bits are a valid node")
}

/// The parent of two nodes of the data tree.
pub fn hash_pair(left: &Sha256Domain, right: &Sha256Domain) -> Sha256Domain {
    let digest = Sha256::new()
        .chain_update(left)
        .chain_update(right)
        .finalize();
    truncated(digest.into())
}

/// The label of a node: SHA-256 over replica id, layer (u32 big-endian, first layer 1), node
/// (u64 big-endian), 20 zero bytes and the 37 parent labels. 20 SHA-256 blocks.
pub fn label(
    replica_id: &PoseidonDomain,
    layer: u32,
    node: u64,
    parents: &[PoseidonDomain; LABEL_PARENTS],
) -> PoseidonDomain {
    let mut hasher = Sha256::new();
    hasher.update(replica_id);
    hasher.update(layer.to_be_bytes());
    hasher.update(node.to_be_bytes());
    hasher.update([0; 20]);
    for parent in parents {
        hasher.update(parent);
    }
    truncated(hasher.finalize().into())
}

/// The replica id: SHA-256 over prover id, sector number (u64 big-endian), ticket, comm_d and porep id.
pub fn replica_id(
    miner_id: u64,
    sector_number: u64,
    ticket: &[u8; 32],
    comm_d: &Sha256Domain,
    porep_id: &[u8; 32],
) -> PoseidonDomain {
    let digest = Sha256::new()
        .chain_update(prover_id(miner_id))
        .chain_update(sector_number.to_be_bytes())
        .chain_update(ticket)
        .chain_update(comm_d)
        .chain_update(porep_id)
        .finalize();
    truncated(digest.into())
}

/// The miner's actor id as unsigned LEB128, zero-padded to 32 bytes.
pub fn prover_id(miner_id: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut rest = miner_id;
    for byte in &mut bytes {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prover_ids_are_leb128() {
        let cases = [
            (0, "00"),
            (127, "7f"),
            (128, "8001"),
            (1000, "e807"),
            (857_192, "e8a834"),
        ];
        for (miner, hex_start) in cases {
            let expected = format!("{hex_start:0<64}");
            assert_eq!(hex::encode(prover_id(miner)), expected);
        }
        let largest = prover_id(u64::MAX);
        assert_eq!(hex::encode(&largest[..11]), "ffffffffffffffffff0100");
    }
}
