//! Uploading a request by `cuzk.v2`, or in one message where the daemon does not know that.

use std::sync::Arc;

use bytes::Bytes;
use filecoin::SubmitProofRequest;
use sha2::{Digest as _, Sha256};

use super::{Client, Result};
use crate::proto::v2;
use crate::proto::v2::submit_request::Part;

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

/// A job that was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Its name.
    pub job_id: String,
    /// Jobs before it.
    pub queue_position: u32,
}

impl Client {
    /// Uploads a request and returns when it is stored. `deadline_ms` 0 is none.
    ///
    /// # Errors
    /// [`super::ClientError::Refused`], [`super::ClientError::Lost`].
    pub fn upload(&mut self, request: SubmitProofRequest, deadline_ms: u64) -> Result<Submitted> {
        let request = Arc::new(request);
        let parts = tokio_stream::iter(parts(Arc::clone(&request), deadline_ms));
        let call = self.request(parts);
        let response = self.runtime.block_on(self.calls_v2.submit(call));
        match self.answer(response) {
            Ok(job) => Ok(Submitted {
                job_id: job.job_id,
                queue_position: job.queue_position,
            }),
            Err(error) if error.is_unknown_call() => {
                let job = self.submit(Arc::unwrap_or_clone(request), deadline_ms)?;
                Ok(Submitted {
                    job_id: job.job_id,
                    queue_position: job.queue_position,
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// The parts of an upload: the header, then pieces of 1 MiB.
pub fn parts(
    request: Arc<SubmitProofRequest>,
    deadline_ms: u64,
) -> impl Iterator<Item = v2::SubmitRequest> + Send {
    let header = Part::Header(header(&request, deadline_ms));
    let count = vanilla(&request).len();
    let pieces = (0..count).flat_map(move |index| {
        let request = Arc::clone(&request);
        let length = vanilla(&request)[index].len();
        (0..length).step_by(PIECE).map(move |start| {
            let end = (start + PIECE).min(length);
            Part::Piece(Bytes::copy_from_slice(
                &vanilla(&request)[index][start..end],
            ))
        })
    });
    let parts = std::iter::once(header).chain(pieces);
    parts.map(|part| v2::SubmitRequest { part: Some(part) })
}

/// The vanilla proofs in the order of an upload.
fn vanilla(request: &SubmitProofRequest) -> &[Vec<u8>] {
    if request.proof_kind == 1 {
        std::slice::from_ref(&request.vanilla_proof)
    } else {
        &request.vanilla_proofs
    }
}

fn header(request: &SubmitProofRequest, deadline_ms: u64) -> v2::SubmitHeader {
    let mut hasher = Sha256::new();
    let proofs = vanilla(request);
    proofs.iter().for_each(|proof| hasher.update(proof));
    v2::SubmitHeader {
        request_id: request.request_id.clone(),
        proof_kind: request.proof_kind,
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        priority: request.priority,
        vanilla_proof_bytes: proofs.iter().map(|proof| proof.len() as u64).collect(),
        sector_number: request.sector_number,
        miner_id: request.miner_id,
        randomness: request.randomness.clone(),
        partition_index: request.partition_index,
        comm_r_old: request.comm_r_old.clone(),
        comm_r_new: request.comm_r_new.clone(),
        comm_d_new: request.comm_d_new.clone(),
        deadline_ms,
        vanilla_sha256: hasher.finalize().to_vec(),
    }
}
