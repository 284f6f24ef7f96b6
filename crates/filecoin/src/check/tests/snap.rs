use super::*;
use crate::registered::RegisteredUpdateProof;
use crate::request::SnapRequest;
use crate::support::sectors;

fn request(name: &str) -> SnapRequest {
    match fixtures::fixture(name).requests().remove(0) {
        Request::Snap(snap) => snap,
        other => panic!("{:?}", other.kind()),
    }
}

type Edit = fn(&mut SnapRequest);

fn proof(request: &mut SnapRequest, challenge: usize) -> &mut crate::snap::ChallengeProof {
    &mut request.partitions[0].challenge_proofs[challenge]
}

/// (what is changed, how, place, fault).
#[allow(
    clippy::semicolon_if_nothing_returned,
    reason = "one expression per change, however it is wrapped"
)]
const CHANGES: &[(&str, Edit, &str, &str)] = &[
    (
        "comm_r_old",
        |r| r.comm_r_old.flip(),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "comm_r_new",
        |r| r.comm_r_new.flip(),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "comm_d_new",
        |r| r.comm_d_new.flip(),
        "partition 0, challenge 0, proof_d_new",
        "ROOT",
    ),
    (
        "old and new exchanged",
        |r| std::mem::swap(&mut r.comm_r_old, &mut r.comm_r_new),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "comm_c",
        |r| r.partitions[0].comm_c.flip(),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "old root",
        |r| parts(&mut proof(r, 0).proof_r_old).root.flip(),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "new root",
        |r| parts(&mut proof(r, 0).proof_r_new).root.flip(),
        "partition 0, comm_c",
        "COMMITMENT",
    ),
    (
        "old root of a later challenge",
        |r| parts(&mut proof(r, 9).proof_r_old).root.flip(),
        "partition 0, challenge 9, proof_r_old",
        "ROOT",
    ),
    (
        "new root of a later challenge",
        |r| parts(&mut proof(r, 9).proof_r_new).root.flip(),
        "partition 0, challenge 9, proof_r_new",
        "ROOT",
    ),
    (
        "old leaf",
        |r| parts(&mut proof(r, 1).proof_r_old).leaf.flip(),
        "partition 0, challenge 1, proof_r_old",
        "PATH_HASH",
    ),
    (
        "data leaf",
        |r| parts(&mut proof(r, 1).proof_d_new).leaf.flip(),
        "partition 0, challenge 1, proof_d_new",
        "PATH_HASH",
    ),
    (
        "new leaf",
        |r| parts(&mut proof(r, 1).proof_r_new).leaf.flip(),
        "partition 0, challenge 1, proof_r_new",
        "PATH_HASH",
    ),
    (
        "old path hash",
        |r| element(&mut proof(r, 2).proof_r_old, 1).hashes[0].flip(),
        "partition 0, challenge 2, proof_r_old",
        "PATH_HASH",
    ),
    (
        "data path hash",
        |r| element(&mut proof(r, 2).proof_d_new, 0).hashes[0].flip(),
        "partition 0, challenge 2, proof_d_new",
        "PATH_HASH",
    ),
    (
        "new path hash",
        |r| element(&mut proof(r, 2).proof_r_new, 0).hashes[6].flip(),
        "partition 0, challenge 2, proof_r_new",
        "PATH_HASH",
    ),
    (
        "old path index",
        |r| element(&mut proof(r, 3).proof_r_old, 0).index ^= 1,
        "partition 0, challenge 3, proof_r_old",
        "PATH_INDEX",
    ),
    (
        "data path index",
        |r| element(&mut proof(r, 3).proof_d_new, 0).index ^= 1,
        "partition 0, challenge 3, proof_d_new",
        "PATH_INDEX",
    ),
    (
        "new path index",
        |r| element(&mut proof(r, 3).proof_r_new, 1).index ^= 1,
        "partition 0, challenge 3, proof_r_new",
        "PATH_INDEX",
    ),
    (
        "old and new paths exchanged",
        |r| {
            let proof = proof(r, 5);
            std::mem::swap(&mut proof.proof_r_old, &mut proof.proof_r_new);
        },
        "partition 0, challenge 5, proof_r_old",
        "ROOT",
    ),
    (
        "a challenge less",
        |r| shorten(&mut r.partitions[0].challenge_proofs),
        "partition 0, challenge_proofs",
        "COUNT",
    ),
    (
        "no challenge",
        |r| r.partitions[0].challenge_proofs.clear(),
        "partition 0, challenge_proofs",
        "COUNT",
    ),
    (
        "an apex leaf less",
        |r| shorten(&mut r.partitions[0].apex_leafs),
        "partition 0, apex_leafs",
        "COUNT",
    ),
    (
        "no partition",
        |r| r.partitions.clear(),
        "vanilla_proofs",
        "COUNT",
    ),
];

#[test]
fn every_change_is_refused_with_its_place_and_cause() {
    for name in [
        "2KiB/empty-sector-update-a",
        "2KiB/empty-sector-update-b",
        "8MiB/empty-sector-update-a",
    ] {
        let original = request(name);
        for (what, edit, place, code) in CHANGES {
            let mut changed = original.clone();
            edit(&mut changed);
            assert_refused(
                &format!("{name}: {what}"),
                &Request::Snap(changed),
                place,
                code,
            );
        }
    }
}

/// Every apex leaf counts, whether a challenge is below it or not.
#[test]
fn every_apex_leaf_is_tied_to_the_data_tree() {
    for name in ["2KiB/empty-sector-update-a", "8MiB/empty-sector-update-a"] {
        let original = request(name);
        for partition in 0..original.partitions.len() {
            // 128 leafs a partition are too many to try all.
            let leafs = original.partitions[partition].apex_leafs.len();
            for leaf in (0..leafs).step_by(leafs.div_ceil(20)) {
                let mut changed = original.clone();
                changed.partitions[partition].apex_leafs[leaf].flip();
                let failure = refused(&Request::Snap(changed));
                assert_eq!(failure.fault.code(), "APEX");
                assert_eq!(failure.place.partition, Some(partition));
            }
        }
    }
}

#[test]
fn partitions_must_be_in_order() {
    let mut swapped = request("8MiB/empty-sector-update-a");
    swapped.partitions.swap(1, 2);
    let place = "partition 1, challenge 0, proof_r_old";
    assert_refused("swapped", &Request::Snap(swapped), place, "PATH_INDEX");
}

/// A consistent forgery: all trees and commitments are right, the new replica is not the encoding.
#[test]
fn a_new_node_that_is_no_encoding_is_refused() {
    let proof_type = RegisteredUpdateProof::from_number(1).unwrap();
    let forged = sectors::snap_with_data(proof_type, 6, Flip::flip);
    let failure = refused(&Request::Snap(forged));
    assert_eq!(failure.fault.code(), "ENCODING", "{failure}");
    assert_eq!(
        failure.place.to_string(),
        "partition 0, challenge 0, proof_r_new.leaf"
    );
}

#[test]
fn accepts_synthetic_sectors_of_all_sizes() {
    for number in [1, 2, 4] {
        let proof_type = RegisteredUpdateProof::from_number(number).unwrap();
        let request = Request::Snap(sectors::snap(proof_type, number));
        let report = check(&request, &()).unwrap_or_else(|error| panic!("{proof_type}: {error}"));
        let shape = proof_type.size.snap();
        assert_eq!(
            report.challenges,
            (shape.partitions * shape.challenges) as u64
        );
    }
}
