//! Vanilla proofs of PoSt and SnapDeals whose encoding is broken.

use super::Case;
use crate::decode::SubmitProofRequest;
use crate::support::fixtures::fixture;

/// Offset of the first inclusion proof in a PoSt entry: sector id, comm_r, one
/// sector, its count of proofs.
const FIRST_PROOF: usize = 8 + 32 + 8 + 8;

/// A request file of this fixture with the first vanilla proof's bytes changed.
fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut submit: SubmitProofRequest = fixture(name).submits().remove(0);
    change(&mut submit.vanilla_proofs[0]);
    submit.to_json()
}

fn window(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed("2KiB/window-post-1-partition", change)
}

fn snap(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed("2KiB/empty-sector-update-a", change)
}

fn put_count(bytes: &mut [u8], offset: usize, count: u64) {
    bytes[offset..offset + 8].copy_from_slice(&count.to_le_bytes());
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::decode(
            "bin-empty",
            window(Vec::clear),
            "BAD_VANILLA_PROOF",
            "vanilla_proofs[0].sector_id: ends after 0 of 8 bytes",
        ),
        Case::decode(
            "bin-cut",
            window(|bytes| bytes.truncate(bytes.len() - 1)),
            "BAD_VANILLA_PROOF",
            "vanilla_proofs[0].vanilla_proof.sectors[0].comm_r_last: ends after 31 of 32 bytes",
        ),
        Case::decode(
            "bin-cut-in-a-path",
            window(|bytes| bytes.truncate(1000)),
            "BAD_VANILLA_PROOF",
            "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[1].data.path.path",
        ),
        Case::decode(
            "bin-length-of-10-gb",
            window(|bytes| put_count(bytes, FIRST_PROOF - 8, 10_000_000_000)),
            "BAD_VANILLA_PROOF",
            "inclusion_proofs: claims 10000000000 items",
        ),
        Case::decode(
            "bin-length-of-2-64",
            snap(|bytes| put_count(bytes, 32, u64::MAX)),
            "BAD_VANILLA_PROOF",
            "vanilla_proofs[0].apex_leafs: claims 18446744073709551615 items",
        ),
        Case::decode(
            "bin-no-sector",
            window(|bytes| put_count(bytes, 40, 0)),
            "WRONG_COUNT",
            "vanilla_proofs[0].vanilla_proof.sectors: 0 sector proofs, expected 1",
        ),
        Case::decode(
            "bin-tree-variant-7",
            window(|bytes| bytes[FIRST_PROOF] = 7),
            "BAD_VANILLA_PROOF",
            "inclusion_proofs[0].data: has variant 7",
        ),
        Case::decode(
            "bin-hash-not-canonical",
            window(|bytes| bytes[FIRST_PROOF + 4 + 64 + 16 + 31] = 0xff),
            "NOT_CANONICAL",
            "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0].data.path.path[0]\
             .hashes[0]: not a canonical field element",
        ),
        Case::decode(
            "bin-comm-c-not-canonical",
            snap(|bytes| bytes[..32].fill(0xff)),
            "NOT_CANONICAL",
            "vanilla_proofs[0].comm_c: not a canonical field element",
        ),
        Case::decode(
            "bin-apex-leaf-not-254-bits",
            snap(|bytes| bytes[32 + 8 + 31] = 0x40),
            "NOT_CANONICAL",
            "vanilla_proofs[0].apex_leafs[0]: not a 254-bit digest",
        ),
        Case::decode(
            "bin-apex-leaf-missing",
            snap(|bytes| {
                put_count(bytes, 32, 7);
                bytes.drain(40..72);
            }),
            "WRONG_COUNT",
            "vanilla_proofs[0].apex_leafs: 7 apex leafs, expected 8",
        ),
        Case::decode(
            "bin-of-another-kind",
            fixture("2KiB/winning-post-a")
                .submits()
                .into_iter()
                .map(|mut submit| {
                    submit.proof_kind = 3;
                    submit.registered_proof = 10;
                    submit.to_json()
                })
                .next()
                .unwrap(),
            "WRONG_COUNT",
            "inclusion_proofs: 66 inclusion proofs, expected 10",
        ),
        Case::decode(
            "bin-of-another-size",
            fixture("8MiB/window-post-1-sector")
                .submits()
                .into_iter()
                .map(|mut submit| {
                    submit.sector_size = 0;
                    submit.registered_proof = 10;
                    submit.to_json()
                })
                .next()
                .unwrap(),
            "WRONG_COUNT",
            "inclusion_proofs[0].data.path.path: 6 levels, expected 2",
        ),
    ]
}
