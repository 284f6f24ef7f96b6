//! C2 inputs and phase-1 outputs with one value wrong.

use base64::Engine;
use serde_json::{Value, json};

use super::Case;
use crate::support::fixtures::fixture;

/// The phase-1 output of a fixture with something changed.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut json = serde_json::from_slice(&fixture("2KiB/porep-v1_1-a").read("c1.json")).unwrap();
    change(&mut json);
    json.to_string().into_bytes()
}

/// The same with the change made to the second challenge's proof.
fn challenge(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    changed(|json| change(&mut json["vanilla_proofs"]["StackedDrg2KiBV1"][0][1]))
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().remove(key).unwrap();
}

fn pop(value: &mut Value) {
    value.as_array_mut().unwrap().pop().unwrap();
}

/// A C2 input around these bytes.
fn envelope(sector: &str, phase1: &str, size: u64) -> Vec<u8> {
    format!(r#"{{"SectorNum":{sector},"Phase1Out":"{phase1}","SectorSize":{size}}}"#).into_bytes()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = envelopes();
    cases.extend(outputs());
    cases.extend(counts());
    cases
}

fn envelopes() -> Vec<Case> {
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let good = base64(&fixture("2KiB/porep-v1_1-a").read("c1.json"));
    let bad_inner = base64(&changed(|json| remove(json, "comm_d")));
    vec![
        Case::decode(
            "c2-not-base64",
            envelope("1", "@@@@", 2048),
            "BAD_FIELD",
            "Phase1Out: not base64",
        ),
        Case::decode(
            "c2-empty",
            envelope("1", "", 2048),
            "BAD_JSON",
            "Phase1Out: EOF while parsing",
        ),
        Case::decode(
            "c2-of-text",
            envelope("1", &base64(b"hello"), 2048),
            "BAD_JSON",
            "Phase1Out: expected value",
        ),
        Case::decode(
            "c2-other-size",
            envelope("1", &good, 34_359_738_368),
            "MISMATCH",
            "SectorSize of the C2 input is 34359738368, but",
        ),
        Case::decode(
            "c2-negative-sector",
            envelope("-5", &good, 2048),
            "BAD_FIELD",
            "SectorNum: -5 is negative",
        ),
        Case::decode(
            "c2-sector-as-text",
            envelope("\"83832\"", &good, 2048),
            "BAD_FIELD",
            "SectorNum: invalid type",
        ),
        Case::decode(
            "c2-inner-field-missing",
            envelope("1", &bad_inner, 2048),
            "MISSING_FIELD",
            "Phase1Out.comm_d: missing",
        ),
    ]
}

fn outputs() -> Vec<Case> {
    let zeros = Value::from(vec![0; 32]);
    let huge = Value::from(vec![255; 32]);
    vec![
        Case::decode(
            "c1-unknown-type",
            changed(|json| json["registered_proof"] = "StackedDrg2KiBV9".into()),
            "BAD_FIELD",
            "registered_proof: \"StackedDrg2KiBV9\" is not a seal proof",
        ),
        Case::decode(
            "c1-type-of-another-size",
            changed(|json| json["registered_proof"] = "StackedDrg8MiBV1_1".into()),
            "MISMATCH",
            "vanilla_proofs is StackedDrg2KiBV1, but registered_proof is StackedDrg8MiBV1_1 (6)",
        ),
        Case::decode(
            "c1-proofs-of-another-size",
            changed(|json| {
                let proofs = json["vanilla_proofs"]["StackedDrg2KiBV1"].take();
                json["registered_proof"] = "StackedDrg8MiBV1_1".into();
                json["vanilla_proofs"] = json!({"StackedDrg8MiBV1": proofs});
            }),
            "WRONG_COUNT",
            "vanilla_proofs.StackedDrg8MiBV1[0][0].comm_d_proofs.data.path.path: 6 levels, \
             expected 18",
        ),
        Case::decode(
            "c1-type-of-more-partitions",
            changed(|json| {
                json["registered_proof"] = "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep".into();
            }),
            "WRONG_COUNT",
            "vanilla_proofs.StackedDrg2KiBV1: 1 partitions, expected 13",
        ),
        Case::decode(
            "c1-two-keys",
            changed(|json| json["vanilla_proofs"]["StackedDrg8MiBV1"] = json!([])),
            "BAD_FIELD",
            "vanilla_proofs: invalid length 2",
        ),
        Case::decode(
            "c1-no-key",
            changed(|json| json["vanilla_proofs"] = json!({})),
            "BAD_FIELD",
            "vanilla_proofs: invalid length 0",
        ),
        Case::decode(
            "c1-versioned-key",
            changed(|json| json["vanilla_proofs"] = json!({"StackedDrg2KiBV1_1": []})),
            "BAD_FIELD",
            "\"StackedDrg2KiBV1_1\" is not a key of vanilla proofs",
        ),
        Case::decode(
            "c1-field-missing",
            changed(|json| remove(json, "ticket")),
            "MISSING_FIELD",
            "ticket: missing",
        ),
        Case::decode(
            "c1-zero-comm-r",
            changed(|json| json["comm_r"] = zeros.clone()),
            "ALL_ZERO",
            "comm_r: all zero",
        ),
        Case::decode(
            "c1-zero-comm-d",
            changed(|json| json["comm_d"] = zeros.clone()),
            "ALL_ZERO",
            "comm_d: all zero",
        ),
        Case::decode(
            "c1-zero-seed",
            changed(|json| json["seed"] = zeros.clone()),
            "ALL_ZERO",
            "seed: all zero",
        ),
        Case::decode(
            "c1-comm-r-not-canonical",
            changed(|json| json["comm_r"] = huge.clone()),
            "NOT_CANONICAL",
            "comm_r: not a canonical field element",
        ),
        Case::decode(
            "c1-comm-d-not-254-bits",
            changed(|json| json["comm_d"] = huge.clone()),
            "NOT_CANONICAL",
            "comm_d: not a 254-bit digest",
        ),
        Case::decode(
            "c1-comm-r-short",
            changed(|json| pop(&mut json["comm_r"])),
            "BAD_FIELD",
            "comm_r: invalid length 31",
        ),
        Case::decode(
            "c1-comm-r-long",
            changed(|json| json["comm_r"].as_array_mut().unwrap().push(0.into())),
            "BAD_JSON",
            "comm_r: trailing characters",
        ),
        Case::decode(
            "c1-byte-too-large",
            changed(|json| json["seed"][4] = 256.into()),
            "BAD_FIELD",
            "seed[4]: invalid value: integer `256`",
        ),
        Case::decode(
            "c1-hash-as-hex",
            changed(|json| json["comm_r"] = "00".repeat(32).into()),
            "BAD_FIELD",
            "comm_r: invalid type: string",
        ),
    ]
}

fn counts() -> Vec<Case> {
    vec![
        Case::decode(
            "c1-partition-missing",
            changed(|json| json["vanilla_proofs"]["StackedDrg2KiBV1"] = json!([])),
            "WRONG_COUNT",
            "vanilla_proofs.StackedDrg2KiBV1: 0 partitions, expected 1",
        ),
        Case::decode(
            "c1-challenge-missing",
            changed(|json| pop(&mut json["vanilla_proofs"]["StackedDrg2KiBV1"][0])),
            "WRONG_COUNT",
            "vanilla_proofs.StackedDrg2KiBV1[0]: 1 challenges, expected 2",
        ),
        Case::decode(
            "c1-path-short",
            challenge(|proof| pop(&mut proof["comm_d_proofs"]["data"]["Single"]["path"]["path"])),
            "WRONG_COUNT",
            "[0][1].comm_d_proofs.data.path.path: 5 levels, expected 6",
        ),
        Case::decode(
            "c1-sibling-missing",
            challenge(|proof| {
                let path = &mut proof["comm_r_last_proof"]["data"]["Single"]["path"]["path"];
                pop(&mut path[1]["hashes"]);
            }),
            "WRONG_COUNT",
            "comm_r_last_proof.data.path.path[1].hashes: 6 siblings, expected 7",
        ),
        Case::decode(
            "c1-position-too-large",
            challenge(|proof| {
                let path = &mut proof["comm_r_last_proof"]["data"]["Single"]["path"]["path"];
                path[0]["index"] = 8.into();
            }),
            "BAD_FIELD",
            "comm_r_last_proof.data.path.path[0].index: 8 is not a position among 8",
        ),
        Case::decode(
            "c1-other-tree-variant",
            challenge(|proof| {
                let single = proof["comm_r_last_proof"]["data"]["Single"].take();
                let path = single["path"].clone();
                proof["comm_r_last_proof"]["data"] = json!({"Sub": {
                    "base_proof": path, "sub_proof": {"path": []},
                    "root": single["root"], "leaf": single["leaf"],
                }});
            }),
            "BAD_FIELD",
            "comm_r_last_proof.data: is a Sub Merkle proof",
        ),
        Case::decode(
            "c1-unknown-tree-variant",
            challenge(|proof| {
                let single = proof["comm_r_last_proof"]["data"]["Single"].take();
                proof["comm_r_last_proof"]["data"] = json!({"Double": single});
            }),
            "BAD_FIELD",
            "unknown variant `Double`",
        ),
        Case::decode(
            "c1-drg-parent-missing",
            challenge(|proof| pop(&mut proof["replica_column_proofs"]["drg_parents"])),
            "WRONG_COUNT",
            "replica_column_proofs.drg_parents: 5 parents, expected 6",
        ),
        Case::decode(
            "c1-column-short",
            challenge(|proof| {
                pop(&mut proof["replica_column_proofs"]["c_x"]["column"]["rows"]);
            }),
            "WRONG_COUNT",
            "c_x.column.rows: 1 rows, expected 2",
        ),
        Case::decode(
            "c1-layer-missing",
            challenge(|proof| pop(&mut proof["labeling_proofs"])),
            "WRONG_COUNT",
            "labeling_proofs: 1 layers, expected 2",
        ),
        Case::decode(
            "c1-label-parent-missing",
            challenge(|proof| pop(&mut proof["encoding_proof"]["parents"])),
            "WRONG_COUNT",
            "encoding_proof.parents: 36 parents, expected 37",
        ),
    ]
}
