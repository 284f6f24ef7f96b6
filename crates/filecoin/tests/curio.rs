//! Against a checkout of Curio: the entry of a real 32 GiB sector that its own tests decode.
//!
//! ```text
//! CURIO=DIR cargo test --release -p filecoin --test curio -- --ignored
//! ```

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fs;
use std::path::PathBuf;

use filecoin::{Hints, Request, SubmitProofRequest, check};
use serde_json::Value;

/// The text of `sealed_cid` is base32 of: version, codec, hash and length, then the digest.
fn digest_of(cid: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in cid.strip_prefix('b').unwrap().bytes() {
        let value = ALPHABET.iter().position(|&l| l == letter).unwrap();
        bits = (bits << 5) | u32::try_from(value).unwrap();
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes.split_off(bytes.len() - 32)
}

#[test]
#[ignore = "needs a checkout of Curio in the folder that CURIO names"]
fn curio_s_golden_window_entry_is_decoded_and_checked() {
    let folder = PathBuf::from(std::env::var_os("CURIO").unwrap()).join("lib/proof/testgolden");
    let entry = fs::read(folder.join("post.vproof")).unwrap();
    assert_eq!(entry.len(), 24960);
    let public: Value =
        serde_json::from_slice(&fs::read(folder.join("postpub.json")).unwrap()).unwrap();
    let sector = &public["ChallengedSectors"][0];
    let submit = SubmitProofRequest {
        proof_kind: 3,
        registered_proof: public["Proofs"][0]["PoStProof"].as_u64().unwrap(),
        miner_id: public["Prover"].as_u64().unwrap(),
        randomness: vec![0; 32],
        vanilla_proofs: vec![entry],
        ..SubmitProofRequest::default()
    };
    assert_eq!(public["Randomness"], format!("{}=", "A".repeat(43)));
    let mut warnings = Vec::new();
    let request = submit.decode(Hints::default(), &mut warnings).unwrap();
    assert_eq!(warnings, []);
    let Request::Window(post) = &request else {
        panic!("{request:?}");
    };
    let found = &post.sectors[0];
    assert_eq!(found.sector_id, sector["SectorNumber"].as_u64().unwrap());
    let comm_r = digest_of(sector["SealedCID"]["/"].as_str().unwrap());
    assert_eq!(found.comm_r.as_ref(), comm_r);
    // Every path leads to the root, and the challenges are the ones that follow from the statement.
    check::check(&request, &()).unwrap();
}
