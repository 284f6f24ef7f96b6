//! Decoding of the real fixtures in every form.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::domain::Domain;
use crate::registered::RegisteredSealProof;
use crate::registry::{CircuitId, SectorSize};
use crate::request::SnapRequest;
use crate::support::fixtures::{self, Fixture, fixture};
use crate::support::synthetic;

fn decode(bytes: &[u8]) -> Decoded {
    Request::decode(bytes, Hints::default()).unwrap()
}

fn porep(request: &Request) -> &PorepRequest {
    match request {
        Request::Porep(porep) => porep,
        other => panic!("{:?}", other.kind()),
    }
}

fn phase1_of(request: &PorepRequest) -> Vec<u8> {
    let output = Phase1Output {
        registered_proof: request.proof_type.name().into(),
        vanilla_proofs: VanillaSealProof {
            size: request.proof_type.size,
            partitions: request.partitions.clone(),
        },
        comm_r: request.comm_r,
        comm_d: request.comm_d,
        replica_id: request.replica_id,
        seed: request.seed,
        ticket: request.ticket,
    };
    serde_json::to_vec(&output).unwrap()
}

#[test]
fn every_fixture_decodes_to_its_public_values() {
    let mut kinds = BTreeMap::new();
    for fixture in fixtures::all() {
        *kinds.entry(fixture.kind()).or_insert(0) += 1;
        let decoded = fixture.decoded();
        for decoded in &decoded {
            assert_eq!(decoded.warnings, [], "{}", fixture.name);
            assert_eq!(decoded.form, Form::RequestFile);
            assert_eq!(decoded.request_id.as_deref(), Some(&*fixture.name));
            assert_eq!(decoded.request.kind(), fixture.kind());
            assert_eq!(
                decoded.request.sector_size().bytes(),
                fixture.number("sector_size")
            );
        }
        match &decoded[0].request {
            Request::Porep(request) => check_porep(&fixture, request),
            Request::Snap(request) => check_snap(&fixture, request),
            Request::Window(_) | Request::Winning(_) => {
                let requests: Vec<_> = decoded.iter().map(|d| &d.request).collect();
                check_post(&fixture, &requests);
            }
        }
    }
    assert_eq!(kinds.into_values().collect::<Vec<_>>(), [7, 3, 5, 3]);
}

fn check_porep(fixture: &Fixture, request: &PorepRequest) {
    assert_eq!(request.comm_r.as_bytes()[..], fixture.hex("comm_r"));
    assert_eq!(request.comm_d.as_bytes()[..], fixture.hex("comm_d"));
    assert_eq!(request.replica_id.as_bytes()[..], fixture.hex("replica_id"));
    assert_eq!(request.seed[..], fixture.hex("seed"));
    assert_eq!(request.ticket[..], fixture.hex("ticket"));
    assert_eq!(request.proof_type.porep_id()[..], fixture.hex("porep_id"));
    assert_eq!(request.miner_id, fixture.meta["miner_id"].as_u64());
    assert_eq!(request.sector_number, fixture.meta["sector_id"].as_u64());
    assert_eq!(
        request.partitions.len() as u64,
        fixture.number("partitions")
    );
    assert_eq!(
        phase1_of(request),
        fixture.read("c1.json"),
        "{}",
        fixture.name
    );
}

fn check_snap(fixture: &Fixture, request: &SnapRequest) {
    assert_eq!(request.comm_r_old.as_bytes()[..], fixture.hex("comm_r_old"));
    assert_eq!(request.comm_r_new.as_bytes()[..], fixture.hex("comm_r_new"));
    assert_eq!(request.comm_d_new.as_bytes()[..], fixture.hex("comm_d_new"));
    assert_eq!(request.proof_type.size.snap().h, fixture.number("h"));
    assert_eq!(
        request.partitions.len() as u64,
        fixture.number("partitions")
    );
    for (k, partition) in request.partitions.iter().enumerate() {
        let file = fixture.read(&format!("partition-{k}.bin"));
        assert_eq!(bincode::serialize(partition).unwrap(), file);
        let proof = &partition.challenge_proofs[0];
        assert_eq!(
            proof.proof_r_new.root().as_bytes()[..],
            fixture.hex("comm_r_last_new")
        );
    }
}

fn check_post(fixture: &Fixture, requests: &[&Request]) {
    let expected = fixture.meta["sectors"].as_array().unwrap();
    let mut entries = Vec::new();
    for request in requests {
        let (Request::Window(post) | Request::Winning(post)) = request else {
            panic!("not a PoSt")
        };
        assert_eq!(post.randomness.as_bytes()[..], fixture.hex("randomness"));
        assert_eq!(post.miner_id, fixture.meta["miner_id"].as_u64());
        assert_eq!(post.proof_type.name(), fixture.meta["registered_proof"]);
        entries.extend(&post.sectors);
    }
    assert_eq!(entries.len(), expected.len());
    for (i, (entry, expected)) in entries.iter().zip(expected).enumerate() {
        assert_eq!(entry.sector_id, expected["sector_id"]);
        assert_eq!(entry.comm_r.to_string(), expected["comm_r"]);
        let challenges: Vec<Value> = entry
            .sector()
            .inclusion_proofs
            .iter()
            .map(|proof| proof.leaf_index().unwrap().into())
            .collect();
        assert_eq!(Value::from(challenges), expected["challenges"]);
        let file = fixture.read(&format!("vanilla-{i}.bin"));
        assert_eq!(bincode::serialize(entry).unwrap(), file);
    }
}

#[test]
fn a_porep_is_the_same_in_every_form() {
    let fixture = fixture("2KiB/porep-v1_1-a");
    let from_file = decode(&fixture.read("c2-input.json"));
    assert_eq!(from_file.form, Form::C2Input);
    assert_eq!(fixture.c2_input(), fixture.read("c2-input.json"));
    // The envelope names the sector, the bare output neither.
    assert_eq!(porep(&from_file.request).sector_number, Some(83832));
    assert_eq!(porep(&from_file.request).miner_id, None);
    let bare = decode(&fixture.read("c1.json"));
    assert_eq!(bare.form, Form::Phase1Output);
    assert_eq!(porep(&bare.request).sector_number, None);

    let full = Request::decode(&fixture.read("c1.json"), fixture.hints()).unwrap();
    let mut forms = vec![
        Request::decode(&fixture.read("c2-input.json"), fixture.hints()).unwrap(),
        fixture.decoded().remove(0),
    ];
    // A request that holds the phase-1 output without the envelope.
    let mut submit = fixture.submits().remove(0);
    submit.vanilla_proof = fixture.read("c1.json");
    forms.push(decode(&submit.to_json()));
    // Compressed.
    let zipped = zstd::encode_all(&fixture.read("c2-input.json")[..], 1).unwrap();
    forms.push(Request::decode(&zipped, fixture.hints()).unwrap());
    assert_eq!(forms[3].compression, Some(Compression::Zstd));
    for form in &forms {
        assert_eq!(form.request, full.request, "{}", form.form);
    }
}

/// Go writes a struct's keys in another order than Rust, and may add its own.
#[test]
fn key_order_and_unknown_keys_do_not_matter() {
    let fixture = fixture("2KiB/porep-v1_1-a");
    let rust = decode(&fixture.read("c1.json"));
    // serde_json's map sorts its keys, which is no order that either side writes.
    let mut value: Value = serde_json::from_slice(&fixture.read("c1.json")).unwrap();
    value["unknown"] = serde_json::json!({"deep": [[[{"x": null}]]]});
    let proof = &mut value["vanilla_proofs"]["StackedDrg2KiBV1"][0][1];
    proof["also_unknown"] = Value::from("text");
    let column = &mut proof["replica_column_proofs"]["c_x"]["column"];
    column.as_object_mut().unwrap().remove("_h").unwrap();
    let sorted = decode(&serde_json::to_vec_pretty(&value).unwrap());
    assert_eq!(sorted.request, rust.request);
    assert_eq!(sorted.warnings.len(), 1);
    assert_eq!(
        sorted.warnings[0].to_string(),
        r#""unknown": unknown key, ignored"#
    );
}

#[test]
fn request_files_take_both_spellings_and_loose_types() {
    let fixture = fixture("2KiB/window-post-1-partition");
    let submit = fixture.submits().remove(0);
    let expected = decode(&submit.to_json()).request;
    let proofs: Vec<Value> = submit
        .vanilla_proofs
        .iter()
        .map(|proof| {
            let text = json::encode_base64(proof);
            let url = text.replace('+', "-").replace('/', "_");
            Value::from(url.trim_end_matches('=').to_owned())
        })
        .collect();
    let loose = serde_json::json!({
        "proof_kind": 3,
        "sector_size": 0,
        "registered_proof": submit.registered_proof,
        "priority": null,
        "vanilla_proof": null,
        "vanilla_proofs": proofs,
        "miner_id": submit.miner_id,
        "randomness": json::encode_base64(&submit.randomness),
        "partition_index": "0",
        "commROld": "",
    });
    let decoded = decode(loose.to_string().as_bytes());
    assert_eq!(decoded.request, expected);
    assert_eq!(decoded.request_id, None);
    assert_eq!(
        SubmitProofRequest::from_json(&submit.to_json()).unwrap(),
        submit
    );
}

#[test]
fn the_example_requests_are_the_fixtures() {
    let folder = fixtures::folder().join("../examples/requests");
    for (file, name) in fixtures::EXAMPLES {
        let decoded = decode(&std::fs::read(folder.join(file)).unwrap());
        assert_eq!(decoded.warnings, [], "{file}");
        assert_eq!(decoded.form, Form::RequestFile);
        assert_eq!(decoded.request, fixture(name).requests()[0], "{file}");
    }
}

#[test]
fn partition_index_is_kept_for_windows() {
    let mut submit = fixture("2KiB/window-post-v1").submits().remove(0);
    submit.partition_index = 1;
    match decode(&submit.to_json()).request {
        Request::Window(post) => assert_eq!(post.partition_index, 1),
        other => panic!("{:?}", other.kind()),
    }
}

#[test]
fn a_sector_size_of_zero_is_not_a_disagreement() {
    for name in ["2KiB/empty-sector-update-a", "2KiB/porep-v1"] {
        let mut submit = fixture(name).submits().remove(0);
        let expected = decode(&submit.to_json()).request;
        submit.sector_size = 0;
        assert_eq!(decode(&submit.to_json()).request, expected);
    }
}

#[test]
fn non_interactive_poreps_decode() {
    let request = fixture("2KiB/porep-v1_2-ni").requests().remove(0);
    assert!(request.is_non_interactive());
    assert_eq!(request.partitions(), 13);
    assert_eq!(
        porep(&request).proof_type,
        RegisteredSealProof::from_number(15).unwrap()
    );
}

#[test]
fn oddities_are_told() {
    let fixture = fixture("2KiB/window-post-1-partition");
    let mut submit = fixture.submits().remove(0);
    submit.vanilla_proofs[1].extend([0; 5]);
    submit.vanilla_proofs.swap(0, 1);
    submit.sector_number = 9;
    let warnings: Vec<String> = decode(&submit.to_json())
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        warnings,
        [
            "sector_number: not used by window-post proofs, ignored",
            "vanilla_proofs[0]: 5 bytes after its end are ignored",
            "vanilla_proofs[1].sector_id: not above the one before; the chain verifies sectors in \
             ascending order",
        ]
    );
}

#[test]
fn miner_and_sector_must_agree() {
    let fixture = fixture("2KiB/porep-v1_1-a");
    let hints = fixture.hints();
    let other = |miner: Option<u64>, sector: Option<u64>| Hints {
        miner_id: miner,
        sector_number: sector,
    };
    let c2 = fixture.read("c2-input.json");
    let submit = fixture.submits().remove(0).to_json();
    for (bytes, hints, start) in [
        (
            &c2,
            other(None, Some(1)),
            "SectorNum of the C2 input is 83832, but the sector that",
        ),
        (
            &submit,
            other(Some(1), None),
            "the miner that the caller gave is 1, but miner_id of",
        ),
        (
            &submit,
            other(None, Some(1)),
            "the sector that the caller gave is 1, but sector_number",
        ),
    ] {
        let error = Request::decode(bytes, hints).unwrap_err();
        assert_eq!(error.code(), "MISMATCH");
        assert!(error.to_string().starts_with(start), "{error}");
    }
    Request::decode(&submit, hints).unwrap();
    let mut wrong = fixture.submits().remove(0);
    wrong.sector_number += 1;
    let error = Request::decode(&wrong.to_json(), Hints::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("SectorNum of the C2 input is 83832, but sector_number"),
        "{error}"
    );
    // A miner without a sector number means sector 0, which this is not.
    wrong.sector_number = 0;
    assert!(Request::decode(&wrong.to_json(), Hints::default()).is_err());
}

/// No fixtures exist of the large sizes, whose trees have the other variants.
#[test]
fn every_circuit_has_a_request_that_decodes() {
    for id in CircuitId::all() {
        let submit = synthetic::submit(id, 1);
        let mut warnings = Vec::new();
        let request = submit.decode(Hints::default(), &mut warnings).unwrap();
        assert_eq!(warnings, [], "{id}");
        assert_eq!(request.circuit_id(), id);
        assert_eq!(request.partitions(), id.partitions());
    }
}

#[test]
fn a_32gib_window_entry_is_24960_bytes() {
    let id = CircuitId::new(ProofKind::Window, SectorSize::GiB32);
    let submit = synthetic::submit(id, 2);
    assert_eq!(submit.vanilla_proofs.len(), 2349);
    assert!(
        submit
            .vanilla_proofs
            .iter()
            .all(|entry| entry.len() == 24960)
    );
}

/// Time that this thread ran, which other load on the machine does not lengthen.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// A 51 MB request must not keep a client waiting; it takes about one second.
#[test]
fn a_32gib_porep_decodes_quickly() {
    let id = CircuitId::new(ProofKind::Porep, SectorSize::GiB32);
    let submit = synthetic::submit(id, 3);
    let json = submit.to_json();
    assert!((45e6..60e6).contains(&(submit.vanilla_proof.len() as f64)));
    let before = cpu_time();
    let decoded = decode(&json);
    assert_eq!(decoded.request.partitions(), 10);
    if let (Some(before), Some(after)) = (before, cpu_time()) {
        let elapsed = after - before;
        println!(
            "{} bytes of JSON decoded in {elapsed:?} of CPU time",
            json.len()
        );
        assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
    }
}
