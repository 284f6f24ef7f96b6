use super::*;
use crate::registered::RegisteredSealProof;
use crate::request::PorepRequest;
use crate::support::sectors;

fn request(name: &str) -> PorepRequest {
    match fixtures::fixture(name).requests().remove(0) {
        Request::Porep(porep) => porep,
        other => panic!("{:?}", other.kind()),
    }
}

type Edit = fn(&mut PorepRequest);

/// The first challenge's proof.
fn first(request: &mut PorepRequest) -> &mut crate::porep::Proof {
    &mut request.partitions[0][0]
}

/// (what is changed, how, place reported, fault reported); for sectors with two layers.
#[allow(
    clippy::semicolon_if_nothing_returned,
    reason = "one expression per change, however it is wrapped"
)]
const CHANGES: &[(&str, Edit, &str, &str)] = &[
    // Public values.
    (
        "seed",
        |r| r.seed[3] ^= 1,
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_INDEX",
    ),
    (
        "comm_d, and the replica id with it",
        |r| r.comm_d.flip(),
        "replica_id",
        "REPLICA_ID",
    ),
    ("comm_r", |r| r.comm_r.flip(), "comm_r", "COMMITMENT"),
    ("ticket", |r| r.ticket[0] ^= 1, "replica_id", "REPLICA_ID"),
    (
        "miner",
        |r| r.miner_id = Some(1),
        "replica_id",
        "REPLICA_ID",
    ),
    (
        "sector",
        |r| r.sector_number = Some(1),
        "replica_id",
        "REPLICA_ID",
    ),
    (
        "replica id",
        |r| r.replica_id.flip(),
        "replica_id",
        "REPLICA_ID",
    ),
    // Without miner and sector the replica id shows in challenges and labels.
    (
        "replica id alone",
        |r| {
            r.miner_id = None;
            r.replica_id.flip();
        },
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_INDEX",
    ),
    (
        "comm_d alone",
        |r| {
            r.miner_id = None;
            r.comm_d.flip();
        },
        "partition 0, challenge 0, comm_d_proofs",
        "ROOT",
    ),
    // Counts.
    (
        "no partition",
        |r| r.partitions.clear(),
        "vanilla_proofs",
        "COUNT",
    ),
    (
        "no challenge",
        |r| r.partitions[0].clear(),
        "partition 0, vanilla_proofs",
        "COUNT",
    ),
    (
        "one challenge less",
        |r| shorten(&mut r.partitions[0]),
        "partition 0, vanilla_proofs",
        "COUNT",
    ),
    (
        "challenges swapped",
        |r| r.partitions[0].swap(0, 1),
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_INDEX",
    ),
    // Data tree.
    (
        "data leaf",
        |r| parts(&mut first(r).comm_d_proofs).leaf.flip(),
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_HASH",
    ),
    (
        "data root",
        |r| parts(&mut first(r).comm_d_proofs).root.flip(),
        "partition 0, challenge 0, comm_d_proofs",
        "ROOT",
    ),
    (
        "data path hash",
        |r| element(&mut first(r).comm_d_proofs, 2).hashes[0].flip(),
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_HASH",
    ),
    (
        "data path index",
        |r| element(&mut first(r).comm_d_proofs, 1).index ^= 1,
        "partition 0, challenge 0, comm_d_proofs",
        "PATH_INDEX",
    ),
    // Replica tree.
    (
        "replica leaf",
        |r| parts(&mut first(r).comm_r_last_proof).leaf.flip(),
        "partition 0, challenge 0, comm_r_last_proof",
        "PATH_HASH",
    ),
    (
        "replica root of the first challenge",
        |r| parts(&mut first(r).comm_r_last_proof).root.flip(),
        "comm_r",
        "COMMITMENT",
    ),
    (
        "replica root of the second challenge",
        |r| parts(&mut r.partitions[0][1].comm_r_last_proof).root.flip(),
        "partition 0, challenge 1, comm_r_last_proof",
        "ROOT",
    ),
    (
        "replica path hash",
        |r| element(&mut first(r).comm_r_last_proof, 1).hashes[6].flip(),
        "partition 0, challenge 0, comm_r_last_proof",
        "PATH_HASH",
    ),
    (
        "replica path index",
        |r| element(&mut first(r).comm_r_last_proof, 0).index ^= 1,
        "partition 0, challenge 0, comm_r_last_proof",
        "PATH_INDEX",
    ),
    // Columns.
    (
        "own column's index",
        |r| first(r).replica_column_proofs.c_x.column.index ^= 1,
        "partition 0, challenge 0, replica_column_proofs.c_x.column.index",
        "NUMBER",
    ),
    (
        "own column's row",
        |r| first(r).replica_column_proofs.c_x.column.rows[0].flip(),
        "partition 0, challenge 0, replica_column_proofs.c_x.column.rows",
        "COLUMN_HASH",
    ),
    (
        "own column's rows",
        |r| first(r).replica_column_proofs.c_x.column.rows.swap(0, 1),
        "partition 0, challenge 0, replica_column_proofs.c_x.column.rows",
        "COLUMN_HASH",
    ),
    (
        "a row less",
        |r| shorten(&mut first(r).replica_column_proofs.c_x.column.rows),
        "partition 0, challenge 0, replica_column_proofs.c_x.column.rows",
        "COUNT",
    ),
    (
        "own column's leaf",
        |r| {
            parts(&mut first(r).replica_column_proofs.c_x.inclusion_proof)
                .leaf
                .flip()
        },
        "partition 0, challenge 0, replica_column_proofs.c_x.inclusion_proof",
        "PATH_HASH",
    ),
    (
        "column root of the first challenge",
        |r| {
            parts(&mut first(r).replica_column_proofs.c_x.inclusion_proof)
                .root
                .flip()
        },
        "comm_r",
        "COMMITMENT",
    ),
    (
        "a parent's column root",
        |r| {
            parts(&mut first(r).replica_column_proofs.drg_parents[5].inclusion_proof)
                .root
                .flip()
        },
        "partition 0, challenge 0, replica_column_proofs.drg_parents[5].inclusion_proof",
        "ROOT",
    ),
    (
        "a DRG parent's row",
        |r| first(r).replica_column_proofs.drg_parents[2].column.rows[1].flip(),
        "partition 0, challenge 0, replica_column_proofs.drg_parents[2].column.rows",
        "COLUMN_HASH",
    ),
    (
        "an expander parent's path hash",
        |r| {
            element(
                &mut first(r).replica_column_proofs.exp_parents[7].inclusion_proof,
                0,
            )
            .hashes[3]
                .flip()
        },
        "partition 0, challenge 0, replica_column_proofs.exp_parents[7].inclusion_proof",
        "PATH_HASH",
    ),
    (
        "an expander parent's index",
        |r| first(r).replica_column_proofs.exp_parents[3].column.index ^= 1,
        "partition 0, challenge 0, replica_column_proofs.exp_parents[3].column.index",
        "NUMBER",
    ),
    (
        "a DRG parent is an expander parent",
        |r| {
            let columns = &mut first(r).replica_column_proofs;
            let other = columns
                .exp_parents
                .iter()
                .find(|c| c.column.index != columns.drg_parents[0].column.index);
            columns.drg_parents[0] = other.unwrap().clone();
        },
        "partition 0, challenge 0, replica_column_proofs.drg_parents[0].inclusion_proof",
        "PATH_INDEX",
    ),
    (
        "a DRG parent less",
        |r| shorten(&mut first(r).replica_column_proofs.drg_parents),
        "partition 0, challenge 0, replica_column_proofs.drg_parents",
        "COUNT",
    ),
    (
        "an expander parent less",
        |r| shorten(&mut first(r).replica_column_proofs.exp_parents),
        "partition 0, challenge 0, replica_column_proofs.exp_parents",
        "COUNT",
    ),
    // Labels.
    (
        "a labelling less",
        |r| shorten(&mut first(r).labeling_proofs),
        "partition 0, challenge 0, labeling_proofs",
        "COUNT",
    ),
    (
        "labelling's layer",
        |r| first(r).labeling_proofs[1].layer_index = 1,
        "partition 0, challenge 0, layer 2, labeling_proofs[1].layer_index",
        "NUMBER",
    ),
    (
        "labelling's node",
        |r| first(r).labeling_proofs[0].node += 1,
        "partition 0, challenge 0, layer 1, labeling_proofs[0].node",
        "NUMBER",
    ),
    (
        "labelling's last parent",
        |r| first(r).labeling_proofs[0].parents[36].flip(),
        "partition 0, challenge 0, layer 1, labeling_proofs[0].parents",
        "PARENT_LABEL",
    ),
    (
        "labelling's parents",
        |r| shorten(&mut first(r).labeling_proofs[1].parents),
        "partition 0, challenge 0, layer 2, labeling_proofs[1].parents",
        "COUNT",
    ),
    // Encoding.
    (
        "encoding's parent",
        |r| first(r).encoding_proof.parents[0].flip(),
        "partition 0, challenge 0, layer 2, encoding_proof.parents",
        "PARENT_LABEL",
    ),
    (
        "encoding's layer",
        |r| first(r).encoding_proof.layer_index = 1,
        "partition 0, challenge 0, layer 2, encoding_proof.layer_index",
        "NUMBER",
    ),
    (
        "encoding's node",
        |r| first(r).encoding_proof.node = 0,
        "partition 0, challenge 0, layer 2, encoding_proof.node",
        "NUMBER",
    ),
];

#[test]
fn every_change_is_refused_with_its_place_and_cause() {
    for name in ["2KiB/porep-v1_1-a", "2KiB/porep-v1", "8MiB/porep-v1_1-a"] {
        let original = request(name);
        for (what, edit, place, code) in CHANGES {
            let mut changed = original.clone();
            edit(&mut changed);
            assert_refused(
                &format!("{name}: {what}"),
                &Request::Porep(changed),
                place,
                code,
            );
        }
    }
}

/// Changes in the last partition of many are found there.
#[test]
fn the_partition_is_named() {
    let mut changed = request("2KiB/porep-v1_2-ni");
    changed.partitions[12][1].encoding_proof.parents[36].flip();
    let place = "partition 12, challenge 1, layer 2, encoding_proof.parents";
    assert_refused(
        "last partition",
        &Request::Porep(changed),
        place,
        "PARENT_LABEL",
    );

    let mut swapped = request("2KiB/porep-v1_2-ni");
    swapped.partitions.swap(3, 4);
    let place = "partition 3, challenge 0, comm_d_proofs";
    assert_refused(
        "partitions swapped",
        &Request::Porep(swapped),
        place,
        "PATH_INDEX",
    );
}

/// Non-interactive challenges do not depend on the seed, synthetic ones do.
#[test]
fn challenges_depend_on_what_they_must() {
    let mut ni = request("2KiB/porep-v1_2-ni");
    ni.seed[0] ^= 1;
    assert!(check(&Request::Porep(ni), &()).is_ok());
    let mut synthetic = request("2KiB/porep-v1_1-synthetic");
    synthetic.seed[0] ^= 1;
    assert_eq!(
        refused(&Request::Porep(synthetic)).fault.code(),
        "PATH_INDEX"
    );
}

/// A proof of one version is refused under another's name: other porep id, graph, challenges.
#[test]
fn other_versions_are_refused() {
    for (name, number) in [
        ("2KiB/porep-v1", 5),
        ("2KiB/porep-v1_1-a", 0),
        ("2KiB/porep-v1_1-a", 10),
        ("2KiB/porep-v1_1-synthetic", 5),
    ] {
        let mut renamed = request(name);
        renamed.proof_type = RegisteredSealProof::from_number(number).unwrap();
        assert_eq!(
            refused(&Request::Porep(renamed.clone())).fault.code(),
            "REPLICA_ID"
        );
        renamed.miner_id = None;
        let code = refused(&Request::Porep(renamed)).fault.code();
        assert_eq!(code, "PATH_INDEX", "{name} as {number}");
    }
}

/// A consistent forgery below the labels: a changed column whose hash, leaf and path are right, in
/// a tree whose root makes comm_r right. Only the label itself gives it away.
#[test]
fn a_column_with_a_wrong_label_in_a_right_tree_is_refused() {
    let proof_type = RegisteredSealProof::from_number(6).unwrap();
    let forged = sectors::porep_with(proof_type, 3, |rows| rows[1].flip());
    let failure = refused(&Request::Porep(forged));
    assert_eq!(failure.fault.code(), "LABEL", "{failure}");
    assert_eq!(
        failure.place.to_string(),
        "partition 0, challenge 0, layer 2, replica_column_proofs.c_x.column.rows[1]"
    );
}

/// As above one step on: all labels right, the replica node is not their encoding.
#[test]
fn a_replica_node_that_is_no_encoding_is_refused() {
    let mut request = sectors::porep(RegisteredSealProof::from_number(6).unwrap(), 4);
    let node = request.partitions[0][1].labeling_proofs[0].node;
    sectors::replace_replica_leafs(&mut request, node);
    let failure = refused(&Request::Porep(request));
    assert_eq!(failure.fault.code(), "ENCODING", "{failure}");
    assert_eq!(
        failure.place.to_string(),
        "partition 0, challenge 1, comm_r_last_proof.leaf"
    );
}

#[test]
fn accepts_synthetic_sectors_of_all_sizes() {
    for number in [1, 2, 9] {
        let proof_type = RegisteredSealProof::from_number(number).unwrap();
        let request = Request::Porep(sectors::porep(proof_type, number));
        let report = check(&request, &()).unwrap_or_else(|error| panic!("{proof_type}: {error}"));
        let shape = proof_type.size.porep();
        let challenges = (shape.challenges * shape.partitions) as u64;
        assert_eq!(report.challenges, challenges);
        assert_eq!(report.merkle_paths, 17 * challenges);
        assert_eq!(report.labels, shape.layers as u64 * challenges);
        assert_eq!(report.replica_id, ReplicaIdCheck::Recomputed);
    }
}
