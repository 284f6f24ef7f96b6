//! The sectors of a PoSt circuit, which are not those of the request one to one.

use crate::domain::PoseidonDomain;
use crate::merkle::MerkleProof;
use crate::registry::ProofKind;
use crate::request::PostRequest;

/// One sector of the circuit, borrowed from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitSector<'a> {
    /// Position of the request's entry that it is taken from.
    pub entry: usize,
    /// Sector number.
    pub sector_id: u64,
    /// Commitment of the replica.
    pub comm_r: PoseidonDomain,
    /// Root of the column tree.
    pub comm_c: PoseidonDomain,
    /// Root of the replica tree.
    pub comm_r_last: PoseidonDomain,
    /// One inclusion proof per challenge of the circuit's sector.
    pub inclusion_proofs: &'a [MerkleProof<PoseidonDomain>],
}

impl PostRequest {
    /// The circuit's sectors in order. A window circuit has room for N of them and
    /// repeats the last entry, proof and public values, until it is full. A winning
    /// circuit takes each of the one entry's 66 inclusion proofs as a sector with
    /// one challenge.
    pub fn circuit_sectors(&self) -> impl Iterator<Item = CircuitSector<'_>> {
        let size = self.proof_type.size;
        let last = self.sectors.len().saturating_sub(1);
        let (slots, per_slot) = match self.proof_type.kind() {
            ProofKind::Winning => (size.winning().sectors, Some(size.winning().challenges)),
            _ => (size.window().sectors, None),
        };
        (0..slots).filter_map(move |slot| {
            let entry = match per_slot {
                Some(_) => 0,
                None => slot.min(last),
            };
            let given = self.sectors.get(entry)?;
            let sector = given.vanilla_proof.sectors.first()?;
            let proofs = sector.inclusion_proofs.as_slice();
            let inclusion_proofs = match per_slot {
                Some(challenges) => proofs.get(slot * challenges..(slot + 1) * challenges)?,
                None => proofs,
            };
            Some(CircuitSector {
                entry,
                sector_id: given.sector_id,
                comm_r: given.comm_r,
                comm_c: sector.comm_c,
                comm_r_last: sector.comm_r_last,
                inclusion_proofs,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use crate::support::fixtures::fixture;

    fn post(name: &str, request: usize) -> PostRequest {
        match fixture(name).requests().remove(request) {
            Request::Window(post) | Request::Winning(post) => post,
            other => panic!("{:?}", other.kind()),
        }
    }

    #[test]
    fn a_full_window_is_its_entries() {
        let post = post("2KiB/window-post-1-partition", 0);
        let sectors: Vec<_> = post.circuit_sectors().collect();
        assert_eq!(sectors.len(), 2);
        for (i, (sector, entry)) in sectors.iter().zip(&post.sectors).enumerate() {
            assert_eq!((sector.entry, sector.sector_id), (i, entry.sector_id));
            assert_eq!(sector.inclusion_proofs, entry.sector().inclusion_proofs);
        }
    }

    #[test]
    fn a_short_window_repeats_its_last_entry() {
        for (name, request) in [
            ("2KiB/window-post-1-sector", 0),
            ("2KiB/window-post-2-partitions", 1),
            ("8MiB/window-post-1-sector", 0),
        ] {
            let post = post(name, request);
            assert_eq!(post.sectors.len(), 1);
            let sectors: Vec<_> = post.circuit_sectors().collect();
            assert_eq!(sectors.len(), 2);
            assert_eq!(sectors[0], sectors[1]);
            assert_eq!(sectors[0].inclusion_proofs.len(), 10);
        }
    }

    #[test]
    fn a_large_window_is_padded_to_its_full_size() {
        let mut post = post("2KiB/window-post-1-partition", 0);
        post.proof_type.size = crate::SectorSize::GiB32;
        let entries: Vec<usize> = post.circuit_sectors().map(|s| s.entry).collect();
        assert_eq!(entries.len(), 2349);
        assert_eq!(entries[..3], [0, 1, 1]);
        assert_eq!(entries[2348], 1);
    }

    #[test]
    fn a_winning_entry_is_66_sectors_of_one_challenge() {
        let post = post("2KiB/winning-post-a", 0);
        let sectors: Vec<_> = post.circuit_sectors().collect();
        assert_eq!(sectors.len(), 66);
        let proofs: Vec<_> = sectors.iter().flat_map(|s| s.inclusion_proofs).collect();
        let expected: Vec<_> = post.sectors[0].sector().inclusion_proofs.iter().collect();
        assert_eq!(proofs, expected);
        assert!(
            sectors
                .iter()
                .all(|s| s.sector_id == post.sectors[0].sector_id)
        );
    }
}
