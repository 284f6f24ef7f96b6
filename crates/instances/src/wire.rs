//! Requests in the encodings in which they arrive.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use filecoin::decode::{Phase1Output, SubmitProofRequest, VanillaSealProof};
use filecoin::{PorepRequest, Request};
use serde_json::json;

/// The message that asks for this request's proof.
pub fn submit(request: &Request, id: &str) -> SubmitProofRequest {
    let kind = request.kind();
    let base = SubmitProofRequest {
        request_id: id.to_owned(),
        proof_kind: kind.number() as i32,
        sector_size: request.sector_size().bytes(),
        ..SubmitProofRequest::default()
    };
    match request {
        Request::Porep(porep) => SubmitProofRequest {
            registered_proof: porep.proof_type.number(),
            sector_number: porep.sector_number.unwrap_or_default(),
            miner_id: porep.miner_id.unwrap_or_default(),
            vanilla_proof: envelope(porep),
            ..base
        },
        Request::Snap(snap) => SubmitProofRequest {
            registered_proof: snap.proof_type.number(),
            sector_number: snap.sector_number.unwrap_or_default(),
            miner_id: snap.miner_id.unwrap_or_default(),
            vanilla_proofs: snap.partitions.iter().map(binary).collect(),
            comm_r_old: snap.comm_r_old.as_ref().to_vec(),
            comm_r_new: snap.comm_r_new.as_ref().to_vec(),
            comm_d_new: snap.comm_d_new.as_ref().to_vec(),
            ..base
        },
        Request::Window(post) | Request::Winning(post) => SubmitProofRequest {
            registered_proof: post.proof_type.number(),
            miner_id: post.miner_id.unwrap_or_default(),
            vanilla_proofs: post.sectors.iter().map(binary).collect(),
            randomness: post.randomness.as_ref().to_vec(),
            partition_index: post.partition_index,
            ..base
        },
    }
}

/// The C2 input: the phase-1 output in an envelope.
fn envelope(request: &PorepRequest) -> Vec<u8> {
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
    let output = serde_json::to_vec(&output).expect("invariant: plain data has a JSON form");
    let envelope = json!({
        "SectorNum": request.sector_number.unwrap_or_default(),
        "Phase1Out": STANDARD.encode(output),
        "SectorSize": request.proof_type.size.bytes(),
    });
    envelope.to_string().into_bytes()
}

/// The bincode 1.3 form.
fn binary<T: serde::Serialize>(value: &T) -> Vec<u8> {
    bincode::serialize(value).expect("invariant: plain data has a binary form")
}
