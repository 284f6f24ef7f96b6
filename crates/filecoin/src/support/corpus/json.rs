//! Wrong containers, wrong JSON, and request files whose fields do not fit.

use std::io::Write;

use super::Case;
use crate::decode::SubmitProofRequest;
use crate::support::fixtures::{Fixture, fixture};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn cut(mut bytes: Vec<u8>, by: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - by);
    bytes
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = containers();
    cases.extend(syntax());
    cases.extend(fields());
    cases.extend(values());
    cases
}

fn containers() -> Vec<Case> {
    let c2 = fixture("2KiB/porep-v1_1-a").read("c2-input.json");
    let zstd = zstd::encode_all(&c2[..], 1).unwrap();
    vec![
        Case::decode("empty-file", Vec::new(), "EMPTY_INPUT", "request is empty"),
        Case::decode(
            "only-whitespace",
            text(" \n\t\n"),
            "EMPTY_INPUT",
            "request is empty",
        ),
        Case::decode(
            "plain-text",
            text("StackedDrg32GiBV1_1"),
            "UNKNOWN_FORM",
            "neither a JSON object nor compressed",
        ),
        Case::decode(
            "array-of-vanilla-proofs",
            text(r#"["AAAA", "AAAA"]"#),
            "UNKNOWN_FORM",
            "it is a JSON array",
        ),
        Case::decode(
            "empty-object",
            text("{}"),
            "UNKNOWN_FORM",
            "empty JSON object",
        ),
        Case::decode(
            "another-object",
            text(r#"{"name": "cuzk", "version": 1}"#),
            "UNKNOWN_FORM",
            r#"with the keys "name", "version""#,
        ),
        Case::decode(
            "gzip-cut",
            cut(gzip(&c2), 100),
            "BAD_COMPRESSION",
            "like gzip",
        ),
        Case::decode(
            "gzip-of-text",
            gzip(b"hello"),
            "UNKNOWN_FORM",
            "neither a JSON object",
        ),
        Case::decode(
            "gzip-of-nothing",
            gzip(b""),
            "EMPTY_INPUT",
            "request is empty",
        ),
        Case::decode("zstd-cut", cut(zstd, 100), "BAD_COMPRESSION", "like zstd"),
        Case::decode(
            "zstd-of-zstd",
            zstd::encode_all(&zstd::encode_all(&c2[..], 1).unwrap()[..], 1).unwrap(),
            "UNKNOWN_FORM",
            "neither a JSON object nor compressed",
        ),
    ]
}

fn syntax() -> Vec<Case> {
    let c2 = fixture("2KiB/porep-v1_1-a").read("c2-input.json");
    let mut trailing = c2.clone();
    trailing.extend(b"{}");
    let mut bad_utf8 = c2.clone();
    bad_utf8[20] = 0xff;
    let nested = format!(r#"{{"SectorNum":1,"x":{}"#, "[".repeat(1_000_000));
    let objects = r#"{"a":"#.repeat(100_000);
    vec![
        Case::decode(
            "cut-in-half",
            cut(c2.clone(), 60_000),
            "BAD_JSON",
            "EOF while parsing",
        ),
        Case::decode(
            "trailing-object",
            trailing,
            "BAD_JSON",
            "trailing characters",
        ),
        Case::decode("not-utf8", bad_utf8, "BAD_JSON", "request: invalid unicode"),
        Case::decode(
            "deep-arrays",
            text(&nested),
            "BAD_JSON",
            "nests deeper than 64 levels",
        ),
        Case::decode(
            "deep-objects",
            text(&objects),
            "BAD_JSON",
            "nests deeper than 64 levels",
        ),
        Case::decode(
            "duplicate-key",
            text(r#"{"proofKind":3,"minerId":1,"miner_id":2}"#),
            "BAD_FIELD",
            "duplicate field `minerId`",
        ),
        Case::decode(
            "only-a-sector",
            text(r#"{"SectorNum":1,"SectorSize":2048}"#),
            "UNKNOWN_FORM",
            r#"with the keys "SectorNum", "SectorSize""#,
        ),
    ]
}

/// A request file of this fixture with something changed.
fn changed(fixture: &Fixture, change: impl FnOnce(&mut SubmitProofRequest)) -> Vec<u8> {
    let mut submit = fixture.submits().remove(0);
    change(&mut submit);
    submit.to_json()
}

/// A request file of this fixture with one JSON value replaced.
fn replaced(fixture: &Fixture, key: &str, value: impl Into<serde_json::Value>) -> Vec<u8> {
    let json = fixture.submits().remove(0).to_json();
    let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    json[key] = value.into();
    json.to_string().into_bytes()
}

/// Fields that are absent, of another kind, or disagree.
fn fields() -> Vec<Case> {
    let porep = fixture("2KiB/porep-v1_1-a");
    let window = fixture("2KiB/window-post-1-partition");
    let winning = fixture("2KiB/winning-post-a");
    let snap = fixture("8MiB/empty-sector-update-a");
    vec![
        Case::decode(
            "kind-missing",
            changed(&window, |r| r.proof_kind = 0),
            "UNKNOWN_KIND",
            "proof_kind: 0 is not",
        ),
        Case::decode(
            "kind-number",
            replaced(&window, "proofKind", 9),
            "UNKNOWN_KIND",
            "proof_kind: 9 is not",
        ),
        Case::decode(
            "kind-name",
            replaced(&window, "proofKind", "WINDOW_POST"),
            "UNKNOWN_KIND",
            r#"proof_kind: "WINDOW_POST" is not"#,
        ),
        Case::decode(
            "winning-type-for-window",
            changed(&window, |r| r.registered_proof = 0),
            "UNKNOWN_PROOF_NUMBER",
            "0 is not a window-post type; use 5 to 14",
        ),
        Case::decode(
            "window-type-for-winning",
            changed(&winning, |r| r.registered_proof = 5),
            "UNKNOWN_PROOF_NUMBER",
            "5 is not a winning-post type; use 0 to 4",
        ),
        Case::decode(
            "seal-type-for-snap",
            changed(&snap, |r| r.registered_proof = 6),
            "UNKNOWN_PROOF_NUMBER",
            "6 is not a snap-update type",
        ),
        Case::decode(
            "other-seal-type",
            changed(&porep, |r| r.registered_proof = 10),
            "MISMATCH",
            "registered_proof is 10, but registered_proof of the phase-1 output is \
             StackedDrg2KiBV1_1 (5)",
        ),
        Case::decode(
            "other-sector-size",
            changed(&window, |r| r.sector_size = 34_359_738_368),
            "MISMATCH",
            "sector_size is 34359738368, but",
        ),
        Case::decode(
            "other-sector-size-porep",
            changed(&porep, |r| r.sector_size = 8_388_608),
            "MISMATCH",
            "sector_size is 8388608, but",
        ),
        Case::decode(
            "other-sector",
            changed(&porep, |r| r.sector_number += 1),
            "MISMATCH",
            "SectorNum of the C2 input is 83832, but sector_number of the request is 83833",
        ),
        Case::decode(
            "other-sector-beside",
            porep.read("c2-input.json"),
            "MISMATCH",
            "SectorNum of the C2 input is 83832, but the sector that the caller gave is 7",
        )
        .with_hints(Some(857_192), Some(7)),
        Case::decode(
            "other-miner-beside",
            changed(&window, |_| {}),
            "MISMATCH",
            "the miner that the caller gave is 7, but miner_id of the request is 857192",
        )
        .with_hints(Some(7), None),
        Case::decode(
            "porep-without-proof",
            changed(&porep, |r| r.vanilla_proof.clear()),
            "MISSING_FIELD",
            "vanilla_proof: missing",
        ),
        Case::decode(
            "partition-missing",
            changed(&snap, |r| drop(r.vanilla_proofs.pop())),
            "WRONG_COUNT",
            "vanilla_proofs: 3 partition proofs, expected 4 for update StackedDrg8MiBV1 (1)",
        ),
        Case::decode(
            "window-without-sectors",
            changed(&window, |r| r.vanilla_proofs.clear()),
            "WRONG_COUNT",
            "vanilla_proofs: 0 sectors, expected 1 to 2",
        ),
        Case::decode(
            "window-overfull",
            changed(&window, |r| {
                r.vanilla_proofs.push(r.vanilla_proofs[1].clone());
            }),
            "WRONG_COUNT",
            "vanilla_proofs: 3 sectors, expected 1 to 2",
        ),
        Case::decode(
            "winning-two-sectors",
            changed(&winning, |r| {
                r.vanilla_proofs.push(r.vanilla_proofs[0].clone());
            }),
            "WRONG_COUNT",
            "vanilla_proofs: 2 sectors, expected 1",
        ),
    ]
}

/// Values that cannot be what their field holds.
fn values() -> Vec<Case> {
    let window = fixture("2KiB/window-post-1-partition");
    let snap = fixture("2KiB/empty-sector-update-a");
    let hex_text = hex::encode(&snap.submits()[0].comm_r_old).into_bytes();
    vec![
        Case::decode(
            "randomness-short",
            changed(&window, |r| r.randomness.truncate(31)),
            "BAD_FIELD",
            "randomness: 31 bytes, expected 32",
        ),
        Case::decode(
            "randomness-missing",
            changed(&window, |r| r.randomness.clear()),
            "MISSING_FIELD",
            "randomness: missing",
        ),
        Case::decode(
            "randomness-not-canonical",
            changed(&window, |r| r.randomness[31] = 0xff),
            "BAD_FIELD",
            "Invalid commitment (randomness)",
        ),
        Case::decode(
            "randomness-not-base64",
            replaced(&window, "randomness", "not base64!"),
            "BAD_FIELD",
            "randomness: not base64: bad symbol at offset 3",
        ),
        Case::decode(
            "miner-negative",
            replaced(&window, "minerId", -1),
            "BAD_FIELD",
            "minerId: invalid type: integer `-1`",
        ),
        Case::decode(
            "miner-address",
            replaced(&window, "minerId", "f01000"),
            "BAD_FIELD",
            "minerId: invalid value: string \"f01000\"",
        ),
        Case::decode(
            "partition-index-too-large",
            replaced(&window, "partitionIndex", 4_294_967_296_u64),
            "BAD_FIELD",
            "partition_index: 4294967296 does not fit 32 bits",
        ),
        Case::decode(
            "proofs-not-a-list",
            replaced(&window, "vanillaProofs", "AAAA"),
            "BAD_FIELD",
            "vanillaProofs: invalid type: string",
        ),
        Case::decode(
            "proof-not-base64",
            replaced(&window, "vanillaProofs", vec!["AAAA", "AA!A"]),
            "BAD_FIELD",
            "vanillaProofs[1]: not base64",
        ),
        Case::decode(
            "priority-name",
            replaced(&window, "priority", "URGENT"),
            "BAD_FIELD",
            "priority: \"URGENT\" is not a priority",
        ),
        Case::decode(
            "commitment-as-hex",
            changed(&snap, |r| r.comm_r_old = hex_text),
            "BAD_FIELD",
            "comm_r_old: 64 bytes, expected 32",
        ),
        Case::decode(
            "commitment-missing",
            changed(&snap, |r| r.comm_d_new.clear()),
            "MISSING_FIELD",
            "comm_d_new: missing",
        ),
        Case::decode(
            "commitment-zero",
            changed(&snap, |r| r.comm_r_new.fill(0)),
            "ALL_ZERO",
            "comm_r_new: all zero",
        ),
        Case::decode(
            "commitment-not-canonical",
            changed(&snap, |r| r.comm_r_new.fill(0xff)),
            "NOT_CANONICAL",
            "comm_r_new: not a canonical field element",
        ),
    ]
}
