//! An upload: pieces go from the network to a file, a few at a time, and become a job at the end.

use std::time::Duration;

use bytes::Bytes;
use engine::scheduler::{Admitted, Submission};
use engine::service::Admission;
use filecoin::{CircuitId, ProofKind, SectorSize, SubmitProofRequest};
use sha2::{Digest as _, Sha256};
use store::{Digest, JobId, Priority};
use tokio::sync::mpsc::{Sender, channel};
use tonic::{Status, Streaming};

use crate::context::{Closing, Context, Work};
use crate::grpc::result::{engine_status, with_code, with_facts};
use crate::grpc::submit::{NotTaken, check_key, deadline, examine, kind, name, priority, work};
use crate::grpc::{Api, shutting_down};
use crate::payload::Upload;
use crate::proto::v2;
use crate::proto::v2::submit_request::Part;

/// How long the next piece may take.
const PIECE_LIMIT: Duration = Duration::from_secs(60);
/// Pieces between network and file: with the flow control window all that an upload holds.
const PIECES: usize = 4;

/// A payload on its disk.
struct Stored {
    digest: Digest,
    bytes: u64,
    vanilla: Option<Vec<u8>>,
}

/// What an upload is about.
struct Wanted {
    header: v2::SubmitHeader,
    client: String,
    kind: ProofKind,
    priority: Priority,
    /// All bytes of the vanilla proofs.
    bytes: u64,
}

impl Api {
    /// Receives a request and makes it a job.
    pub(super) async fn upload(
        &self,
        mut parts: Streaming<v2::SubmitRequest>,
        client: String,
    ) -> Result<v2::SubmitResponse, NotTaken> {
        let first = self.next(&mut parts).await?;
        let Some(Part::Header(header)) = first else {
            return Err(invalid("the first part of an upload must be its header").into());
        };
        let wanted = self.wanted(header, client).await?;
        let stored = self.receive(&wanted, parts).await?;
        // On a task of its own: a request that has come in becomes a job, also when its client
        // has gone meanwhile.
        let api = self.clone();
        let task = tokio::spawn(async move {
            let digest = stored.digest;
            let admission = api.make_job(wanted, stored).await?;
            Ok((digest, admission))
        });
        let taken = task.await.unwrap_or_else(|_| Err(shutting_down().into()));
        taken.map(|(digest, admission)| response(digest, admission))
    }

    /// What the header asks for, if it can be had at all: known before any piece is read.
    async fn wanted(&self, header: v2::SubmitHeader, client: String) -> Result<Wanted, NotTaken> {
        let kind = kind(header.proof_kind)?;
        let priority = priority(kind, header.priority);
        let lengths = &header.vanilla_proof_bytes;
        if kind == ProofKind::Porep && lengths.len() != 1 {
            let count = lengths.len();
            let message = format!("a PoRep has one vanilla proof, vanilla_proof_bytes has {count}");
            return Err(invalid(message).into());
        }
        if !matches!(header.vanilla_sha256.len(), 0 | 32) {
            return Err(invalid("vanilla_sha256 must have 32 bytes, or none").into());
        }
        let bytes = lengths.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let limit = self.context.config.limits.max_message_bytes;
        if bytes > limit {
            let message = format!(
                "the vanilla proofs have {bytes} bytes and the limit is {limit}; a request of any \
                 kind is smaller, or raise [limits] max_message_bytes"
            );
            let status = Status::out_of_range(message);
            let facts = vec![("bytes", bytes.to_string()), ("limit", limit.to_string())];
            return Err(with_facts(&status, "PAYLOAD_TOO_LARGE", facts).into());
        }
        self.check_early(header.request_id.clone(), kind, priority, bytes)
            .await?;
        if let Some(circuit) = circuit(kind, &header) {
            let name = header.request_id.clone();
            let check = move |context: &Context| check_key(context, circuit, name);
            self.context.blocking(Work::Question, check).await??;
        }
        Ok(Wanted {
            header,
            client,
            kind,
            priority,
            bytes,
        })
    }

    /// Writes the pieces to disk as they come.
    async fn receive(
        &self,
        wanted: &Wanted,
        mut parts: Streaming<v2::SubmitRequest>,
    ) -> Result<Stored, NotTaken> {
        let (sender, pieces) = channel(PIECES);
        let header = wanted.header.clone();
        let store = move |context: &Context| {
            let mut hasher = Sha256::new();
            let checked = !header.vanilla_sha256.is_empty();
            let mut upload = Upload::new(&header, pieces, checked.then_some(&mut hasher));
            let (digest, bytes) = context.service.put_payload(&mut upload)?;
            let vanilla = checked.then(|| hasher.finalize().to_vec());
            Ok::<_, engine::Error>(Stored {
                digest,
                bytes,
                vanilla,
            })
        };
        let threads = match wanted.kind {
            ProofKind::Winning => Work::UploadLane,
            _ => Work::Upload,
        };
        let context = std::sync::Arc::clone(&self.context);
        let storing = tokio::spawn(async move { context.blocking(threads, store).await });
        // When this fails, the sender is gone, the thread ends, and its file with it.
        self.pump(wanted.bytes, sender, &mut parts).await?;
        let stored = storing.await.map_err(|_| shutting_down())??;
        let stored = stored.map_err(|error| engine_status(&error))?;
        let expected = &wanted.header.vanilla_sha256;
        if let Some(found) = stored.vanilla.as_ref().filter(|found| *found != expected) {
            let message = format!(
                "the vanilla proofs hash to {} and vanilla_sha256 is {}; upload them again",
                hexadecimal(found),
                hexadecimal(expected)
            );
            self.discard(stored.digest).await;
            return Err(with_code(Status::data_loss(message), "UPLOAD_DIGEST").into());
        }
        Ok(stored)
    }

    /// Moves the announced bytes from the network to the thread that stores them. What that
    /// thread has to say if it ends early is said by itself.
    async fn pump(
        &self,
        bytes: u64,
        sender: Sender<Bytes>,
        parts: &mut Streaming<v2::SubmitRequest>,
    ) -> Result<(), Status> {
        let mut left = bytes;
        while let Some(part) = self.next(parts).await? {
            let Part::Piece(piece) = part else {
                return Err(invalid("an upload has one header"));
            };
            left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
                invalid(format!(
                    "the pieces have more than the {bytes} bytes of vanilla_proof_bytes"
                ))
            })?;
            if !piece.is_empty() && sender.send(piece).await.is_err() {
                return Ok(());
            }
        }
        if left > 0 {
            return Err(invalid(format!(
                "the upload ended {left} bytes before the {bytes} of vanilla_proof_bytes"
            )));
        }
        // An empty piece says that this was all. A thread that is gone has said why.
        let _ = sender.send(Bytes::new()).await;
        Ok(())
    }

    /// The next part; `None` at the end.
    async fn next(&self, parts: &mut Streaming<v2::SubmitRequest>) -> Result<Option<Part>, Status> {
        let mut closing = self.context.closing.clone();
        let part = tokio::select! {
            part = tokio::time::timeout(PIECE_LIMIT, parts.message()) => part,
            _ = closing.wait_for(|closing| *closing == Closing::Closed) => {
                return Err(shutting_down());
            }
        };
        let part = part.map_err(|_| {
            let seconds = PIECE_LIMIT.as_secs();
            let message = format!("no piece has come for {seconds} s; upload the request again");
            with_code(Status::deadline_exceeded(message), "UPLOAD_STALLED")
        })?;
        match part? {
            None => Ok(None),
            Some(v2::SubmitRequest { part: Some(part) }) => Ok(Some(part)),
            Some(v2::SubmitRequest { part: None }) => {
                Err(invalid("a part of an upload is a header or a piece"))
            }
        }
    }

    /// Decodes what was stored and gives it to the engine. What is no request does not stay.
    async fn make_job(&self, wanted: Wanted, stored: Stored) -> Result<Admission, NotTaken> {
        let threads = work(wanted.kind);
        let digest = stored.digest;
        let prepared = self
            .context
            .blocking(threads, move |context| prepare(context, wanted, &stored))
            .await?;
        if let Err(NotTaken::Request { .. }) = &prepared {
            self.discard(digest).await;
        }
        self.enter(prepared?).await
    }

    async fn discard(&self, digest: Digest) {
        let discard = move |context: &Context| context.service.discard_payload(&digest);
        if let Ok(Err(error)) = self.context.blocking(Work::Question, discard).await {
            tracing::warn!(%error, "a refused payload stays until the next sweep");
        }
    }
}

fn prepare(context: &Context, wanted: Wanted, stored: &Stored) -> Result<Submission, NotTaken> {
    let Wanted {
        header,
        client,
        priority,
        ..
    } = wanted;
    let deadline_ms = deadline(header.deadline_ms);
    let id = JobId::random();
    let name = name(&header.request_id, id);
    let payload = context.service.payload(&stored.digest);
    let payload = payload.map_err(|error| engine_status(&error))?;
    let wrong = |error: filecoin::Error| NotTaken::Request {
        name: name.clone(),
        code: error.code().to_owned(),
        message: error.to_string(),
    };
    let request = SubmitProofRequest::from_payload(&payload).map_err(wrong)?;
    drop(payload);
    let (circuit, units) = examine(context, &request, name.clone())?;
    // It may have waited long for this thread.
    let renewed = context.service.renew_payload(&stored.digest);
    renewed.map_err(|error| engine_status(&error))?;
    Ok(Submission {
        id,
        request_id: header.request_id,
        digest: stored.digest,
        client,
        circuit,
        priority,
        deadline_ms,
        units,
        unit_bytes: context.keys.unit_bytes(circuit),
        payload_bytes: stored.bytes,
    })
}

/// The circuit, as far as the header tells: a PoRep's 0 may also mean "see the proof".
fn circuit(kind: ProofKind, header: &v2::SubmitHeader) -> Option<CircuitId> {
    let told = kind != ProofKind::Porep || header.registered_proof > 0;
    told.then(|| CircuitId::new(kind, SectorSize::of_registered(header.registered_proof)))
}

fn response(digest: Digest, admission: Admission) -> v2::SubmitResponse {
    v2::SubmitResponse {
        job_id: admission.name,
        queue_position: admission.ahead,
        known: matches!(admission.how, Admitted::Joined | Admitted::Completed),
        digest: digest.as_bytes().to_vec(),
    }
}

fn invalid(message: impl Into<String>) -> Status {
    with_code(Status::invalid_argument(message), "UPLOAD_INVALID")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
