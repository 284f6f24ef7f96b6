//! From a request to a job: decoded and stored off the async threads, then given to the engine.

use engine::scheduler::{Millis, Refusal, Submission};
use engine::service::Admission;
use filecoin::{CircuitId, Hints, ProofKind, SubmitProofRequest};
use store::{JobId, Priority};
use tokio::sync::oneshot;
use tonic::{Code, Status};

use super::result::{code_of, engine_status, one_line, with_code};
use super::{Api, shutting_down};
use crate::context::{Context, Work, now};
use crate::payload::PayloadReader;
use crate::proto::v1;

/// Why a request did not become a job.
pub(super) enum NotTaken {
    /// The call fails.
    Call(Status),
    /// The request is at fault.
    Request {
        name: String,
        code: String,
        message: String,
    },
    /// The key that it needs cannot be had.
    Key {
        name: String,
        code: String,
        message: String,
    },
}

impl NotTaken {
    /// As the error of a call that has no other place for it.
    pub(super) fn into_status(self) -> Status {
        match self {
            Self::Call(status) => status,
            Self::Request { code, message, .. } => {
                with_code(Status::invalid_argument(message), &code)
            }
            Self::Key { code, message, .. } => {
                with_code(Status::failed_precondition(message), &code)
            }
        }
    }
}

impl From<Status> for NotTaken {
    fn from(status: Status) -> Self {
        Self::Call(status)
    }
}

impl Api {
    /// Makes a request a job, or finds the job that it is already.
    pub(super) async fn submit(
        &self,
        request: v1::SubmitProofRequest,
        client: String,
    ) -> Result<Admission, NotTaken> {
        // On a task of its own: a request that has come in becomes a job, also when its client
        // has gone meanwhile.
        let api = self.clone();
        let task = tokio::spawn(async move { api.try_submit(request, client).await });
        let taken = task.await.unwrap_or_else(|_| Err(shutting_down().into()));
        self.count(&taken);
        taken
    }

    /// Notes a refusal in the metrics.
    pub(super) fn count<T>(&self, taken: &Result<T, NotTaken>) {
        if let Err(not_taken) = taken {
            let code = match not_taken {
                NotTaken::Call(status) => code_of(status),
                NotTaken::Request { code, .. } | NotTaken::Key { code, .. } => code,
            };
            self.context.observatory.metrics().refused(code);
        }
    }

    async fn try_submit(
        &self,
        request: v1::SubmitProofRequest,
        client: String,
    ) -> Result<Admission, NotTaken> {
        let kind = kind(request.proof_kind)?;
        let priority = priority(kind, request.priority);
        let bytes = request.vanilla_proofs.iter().map(Vec::len).sum::<usize>();
        let bytes = (bytes + request.vanilla_proof.len()) as u64;
        self.check_early(request.request_id.clone(), kind, priority, bytes)
            .await?;
        let prepared = self
            .context
            .blocking(work(kind), move |context| {
                prepare(context, priority, request, client)
            })
            .await?;
        self.enter(prepared?).await
    }

    /// Refuses what can be seen to be refused before its payload is looked at, or even received.
    pub(super) async fn check_early(
        &self,
        request_id: String,
        kind: ProofKind,
        priority: Priority,
        payload_bytes: u64,
    ) -> Result<(), Status> {
        if self.context.is_closing() {
            return Err(shutting_down());
        }
        let check = move |context: &Context| {
            if let Some(cause) = context.service.status().store_error {
                return Err(Refusal::NotStored { cause }.into());
            }
            let refused = context.service.ask(move |scheduler| {
                scheduler.check_early(&request_id, kind, priority, payload_bytes)
            })?;
            Ok(refused?)
        };
        let checked: Result<(), engine::Error> =
            self.context.blocking(Work::Question, check).await?;
        checked.map_err(|error| engine_status(&error))
    }

    /// Gives a stored request to the engine.
    pub(super) async fn enter(&self, submission: Submission) -> Result<Admission, NotTaken> {
        let (sender, receiver) = oneshot::channel();
        let reply = move |admission| {
            // Who asked may have gone.
            let _ = sender.send(admission);
        };
        self.context
            .service
            .submit_then(submission, Box::new(reply));
        let admission = receiver.await.map_err(|_| shutting_down())?;
        Ok(admission.map_err(|error| engine_status(&error))?)
    }
}

/// On which threads a request of this kind is decoded.
pub(super) fn work(kind: ProofKind) -> Work {
    match kind {
        ProofKind::Winning => Work::DecodeLane,
        _ => Work::Decode,
    }
}

/// The kind with this number on the wire.
pub(super) fn kind(number: i32) -> Result<ProofKind, Status> {
    let kinds = ProofKind::ALL.into_iter();
    let mut kinds = kinds.filter(|kind| i64::from(kind.number()) == i64::from(number));
    kinds.next().ok_or_else(|| {
        let message = format!(
            "proof_kind {number} is not one of 1 (PoRep), 2 (SnapDeals), 3 (WindowPoSt), 4 \
             (WinningPoSt)"
        );
        with_code(Status::new(Code::InvalidArgument, message), "UNKNOWN_KIND")
    })
}

/// The wish, or what the kind has without one.
pub(super) fn priority(kind: ProofKind, number: i32) -> Priority {
    match (number, kind) {
        (0, ProofKind::Winning) => Priority::Critical,
        (0, ProofKind::Window) => Priority::High,
        (number, _) => Priority::from_number(number.into()).unwrap_or(Priority::Normal),
    }
}

/// Decodes the request to see that it can be proven and how, and stores it.
fn prepare(
    context: &Context,
    priority: Priority,
    request: v1::SubmitProofRequest,
    client: String,
) -> Result<Submission, NotTaken> {
    let deadline_ms = deadline(request.deadline_ms);
    let request = message(request);
    let id = JobId::random();
    let (circuit, units) = examine(context, &request, name(&request.request_id, id))?;
    let (digest, payload_bytes) = context
        .service
        .put_payload(&mut PayloadReader::new(&request))
        .map_err(|error| engine_status(&error))?;
    Ok(Submission {
        id,
        request_id: request.request_id,
        digest,
        client,
        circuit,
        priority,
        deadline_ms,
        units,
        unit_bytes: context.keys.unit_bytes(circuit),
        payload_bytes,
    })
}

/// When, of "so many milliseconds from now".
pub(super) fn deadline(span_ms: u64) -> Option<Millis> {
    (span_ms > 0).then(|| now().saturating_add(span_ms))
}

/// What a job is called before the engine has named it.
pub(super) fn name(request_id: &str, id: JobId) -> String {
    match request_id {
        "" => id.to_string(),
        name => name.to_owned(),
    }
}

/// The circuit and the number of units of a request that can be proven here.
pub(super) fn examine(
    context: &Context,
    request: &SubmitProofRequest,
    name: String,
) -> Result<(CircuitId, u32), NotTaken> {
    let wrong = |code: &str, message: &str| NotTaken::Request {
        name: name.clone(),
        code: code.to_owned(),
        message: one_line(message),
    };
    let mut warnings = Vec::new();
    let decoded = request
        .decode(Hints::default(), &mut warnings)
        .map_err(|error| wrong(error.code(), &error.to_string()))?;
    let (circuit, units) = (decoded.circuit_id(), decoded.partitions());
    if decoded.is_non_interactive() {
        let message = "non-interactive PoRep is not supported: its proofs would have to be \
                       aggregated; prove it with another prover";
        return Err(wrong("NI_POREP_UNSUPPORTED", message));
    }
    drop(decoded);
    for warning in warnings {
        tracing::warn!(job = ?name, %warning, "an oddity in a request");
    }
    check_key(context, circuit, name)?;
    Ok((circuit, u32::try_from(units).unwrap_or(u32::MAX)))
}

/// Whether the key of a circuit can be had.
pub(super) fn check_key(
    context: &Context,
    circuit: CircuitId,
    name: String,
) -> Result<(), NotTaken> {
    let check = context.keys.check(circuit);
    check.map_err(|error| NotTaken::Key {
        name,
        code: error.code,
        message: one_line(&error.message),
    })
}

/// The message as the decoder wants it; the vanilla proofs are moved.
fn message(request: v1::SubmitProofRequest) -> SubmitProofRequest {
    SubmitProofRequest {
        request_id: request.request_id,
        proof_kind: request.proof_kind,
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        priority: request.priority,
        vanilla_proof: request.vanilla_proof,
        vanilla_proofs: request.vanilla_proofs,
        sector_number: request.sector_number,
        miner_id: request.miner_id,
        randomness: request.randomness,
        partition_index: request.partition_index,
        comm_r_old: request.comm_r_old,
        comm_r_new: request.comm_r_new,
        comm_d_new: request.comm_d_new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_default_by_kind_and_unknown_ones_are_normal() {
        for (kind, number, expected) in [
            (ProofKind::Winning, 0, Priority::Critical),
            (ProofKind::Window, 0, Priority::High),
            (ProofKind::Porep, 0, Priority::Normal),
            (ProofKind::Snap, 0, Priority::Normal),
            (ProofKind::Porep, 1, Priority::Low),
            (ProofKind::Porep, 4, Priority::Critical),
            (ProofKind::Winning, 5, Priority::Normal),
            (ProofKind::Window, -1, Priority::Normal),
        ] {
            assert_eq!(priority(kind, number), expected, "{kind} {number}");
        }
    }

    #[test]
    fn kinds_outside_one_to_four_are_invalid() {
        for number in [0, 5, -1, i32::MAX] {
            assert_eq!(kind(number).unwrap_err().code(), Code::InvalidArgument);
        }
        for known in ProofKind::ALL {
            assert_eq!(kind(known.number() as i32).ok(), Some(known));
        }
    }
}
