//! Requests of the right form whose vanilla proofs do not hold.

use serde_json::Value;

use super::Case;
use crate::decode::SubmitProofRequest;
use crate::support::fixtures::fixture;

/// A request file of this fixture with something changed.
fn changed(name: &str, change: impl FnOnce(&mut SubmitProofRequest)) -> Vec<u8> {
    let mut submit = fixture(name).submits().remove(0);
    change(&mut submit);
    submit.to_json()
}

/// The phase-1 output of a fixture with something changed.
fn phase1(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut json = serde_json::from_slice(&fixture("2KiB/porep-v1_1-a").read("c1.json")).unwrap();
    change(&mut json);
    json.to_string().into_bytes()
}

/// Changes the lowest bit of a number in JSON.
fn flip(byte: &mut Value) {
    *byte = (byte.as_u64().unwrap() ^ 1).into();
}

/// The same with the change made to the first challenge's proof.
fn challenge(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    phase1(|json| change(&mut json["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = poreps();
    cases.extend(others());
    cases
}

fn poreps() -> Vec<Case> {
    let tree = |proof: &mut Value, tree: &str| {
        flip(&mut proof[tree]["data"]["Single"]["path"]["path"][1]["hashes"][0][0]);
    };
    let sector = fixture("2KiB/porep-v1_1-a");
    vec![
        Case::check(
            "porep-flipped-data-path",
            challenge(|proof| tree(proof, "comm_d_proofs")),
            "comm_d_proofs",
        ),
        Case::check(
            "porep-flipped-replica-path",
            challenge(|proof| tree(proof, "comm_r_last_proof")),
            "comm_r_last_proof",
        ),
        Case::check(
            "porep-flipped-column",
            challenge(|proof| {
                flip(&mut proof["replica_column_proofs"]["c_x"]["column"]["rows"][0][0]);
            }),
            "c_x",
        ),
        Case::check(
            "porep-flipped-parent-label",
            challenge(|proof| flip(&mut proof["labeling_proofs"][1]["parents"][3][0])),
            "labeling_proofs",
        ),
        Case::check(
            "porep-other-challenge-node",
            challenge(|proof| proof["labeling_proofs"][0]["node"] = 3.into()),
            "labeling_proofs",
        ),
        Case::check(
            "porep-swapped-challenges",
            phase1(|json| {
                json["vanilla_proofs"]["StackedDrg2KiBV1"][0]
                    .as_array_mut()
                    .unwrap()
                    .swap(0, 1);
            }),
            "but",
        ),
        Case::check(
            "porep-other-seed",
            phase1(|json| flip(&mut json["seed"][0])),
            "but",
        ),
        Case::check(
            "porep-other-comm-d",
            phase1(|json| flip(&mut json["comm_d"][0])),
            "comm_d",
        ),
        Case::check(
            "porep-other-comm-r",
            phase1(|json| flip(&mut json["comm_r"][0])),
            "comm_r",
        ),
        Case::check(
            "porep-other-seal-version",
            phase1(|json| json["registered_proof"] = "StackedDrg2KiBV1".into()),
            "but",
        ),
        Case::check(
            "porep-other-miner",
            sector.read("c2-input.json"),
            "replica_id",
        )
        .with_hints(Some(857_193), Some(83832)),
        Case::check("porep-other-sector", sector.read("c1.json"), "replica_id")
            .with_hints(Some(857_192), Some(83833)),
    ]
}

fn others() -> Vec<Case> {
    /// Offset of the first hash of the first path in a PoSt entry.
    const HASH: usize = 8 + 32 + 8 + 8 + 4 + 64 + 16;
    let window = "2KiB/window-post-1-partition";
    vec![
        Case::check(
            "window-flipped-path",
            changed(window, |r| r.vanilla_proofs[1][HASH] ^= 1),
            "inclusion_proofs[0]",
        ),
        Case::check(
            "window-swapped-sectors",
            changed(window, |r| {
                // Each entry keeps its sector id and takes the other's proof.
                let (first, second) = r.vanilla_proofs.split_at_mut(1);
                first[0][8..].swap_with_slice(&mut second[0][8..]);
            }),
            "but",
        ),
        Case::check(
            "window-sectors-out-of-order",
            changed(window, |r| r.vanilla_proofs.swap(0, 1)),
            "sector numbers must ascend",
        ),
        Case::check(
            "window-other-randomness",
            changed(window, |r| r.randomness[0] ^= 1),
            "but",
        ),
        Case::check(
            "window-v1-other-partition-index",
            changed("2KiB/window-post-v1", |r| r.partition_index = 1),
            "but",
        ),
        Case::check(
            "winning-flipped-path",
            changed("2KiB/winning-post-a", |r| r.vanilla_proofs[0][HASH] ^= 1),
            "inclusion_proofs[0]",
        ),
        Case::check(
            "winning-flipped-comm-r",
            changed("2KiB/winning-post-a", |r| r.vanilla_proofs[0][8] ^= 1),
            "comm_r",
        ),
        Case::check(
            "snap-flipped-apex-leaf",
            changed("2KiB/empty-sector-update-a", |r| {
                r.vanilla_proofs[0][40] ^= 1;
            }),
            "apex",
        ),
        Case::check(
            "snap-swapped-partitions",
            changed("8MiB/empty-sector-update-a", |r| {
                r.vanilla_proofs.swap(1, 2);
            }),
            "but",
        ),
        Case::check(
            "snap-other-comm-r-old",
            changed("2KiB/empty-sector-update-a", |r| r.comm_r_old[0] ^= 1),
            "comm_r_old",
        ),
        Case::check(
            "snap-of-another-sector",
            changed("2KiB/empty-sector-update-a", |r| {
                let other = fixture("2KiB/empty-sector-update-b").submits().remove(0);
                r.vanilla_proofs = other.vanilla_proofs;
            }),
            "but",
        ),
    ]
}
