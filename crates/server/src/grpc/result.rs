//! From the engine's answers to those of the wire.

use std::collections::HashMap;

use engine::scheduler::RefusalClass as Class;
use engine::service::Finished;
use store::JobState;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::proto::v1;
use crate::proto::v1::await_proof_response::Status as Outcome;

/// Trailer with the stable code of an error.
pub(crate) const CODE_HEADER: &str = "cuzk-error-code";
/// Who gives the codes, in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "cuzk";
/// Longest fact beside a code, bytes: trailers have a limit, and the message has it all.
const FACT_LIMIT: usize = 256;

/// Adds the stable code to a status: as a trailer, and as `google.rpc.ErrorInfo` among its
/// details.
#[allow(
    clippy::needless_pass_by_value,
    reason = "callers make the status for this"
)]
pub(super) fn with_code(status: Status, code: &str) -> Status {
    with_facts(&status, code, Vec::new())
}

/// The same, with what the message names.
pub(super) fn with_facts(
    status: &Status,
    code: &str,
    facts: Vec<(&'static str, String)>,
) -> Status {
    let facts = facts.into_iter().map(|(name, mut value)| {
        value.truncate(value.floor_char_boundary(FACT_LIMIT));
        (name.to_owned(), value)
    });
    let facts: HashMap<String, String> = facts.collect();
    let details = ErrorDetails::with_error_info(code, DOMAIN, facts);
    let mut metadata = status.metadata().clone();
    if let Ok(value) = MetadataValue::try_from(code) {
        metadata.insert(CODE_HEADER, value);
    }
    Status::with_error_details_and_metadata(status.code(), status.message(), details, metadata)
}

/// The stable code of a status of ours.
pub(super) fn code_of(status: &Status) -> &str {
    let code = status.metadata().get(CODE_HEADER);
    code.and_then(|code| code.to_str().ok())
        .unwrap_or("INTERNAL")
}

/// What the wire says of an error of the engine.
pub(super) fn engine_status(error: &engine::Error) -> Status {
    let code = match error {
        engine::Error::Refused(refusal) => match refusal.class() {
            Class::Unavailable => Code::Unavailable,
            Class::Exhausted => Code::ResourceExhausted,
            Class::Never => Code::FailedPrecondition,
        },
        engine::Error::UnknownJob(_) => Code::NotFound,
        engine::Error::Store(store::Error::PayloadTooLarge { .. }) => Code::OutOfRange,
        engine::Error::Store(_) | engine::Error::Stopped => Code::Unavailable,
        _ => Code::Internal,
    };
    let facts = match error {
        engine::Error::Refused(refusal) => refusal.facts(),
        engine::Error::UnknownJob(name) => vec![("job", name.clone())],
        _ => Vec::new(),
    };
    let status = Status::new(code, one_line(&error.to_string()));
    with_facts(&status, error.code(), facts)
}

/// A message without line breaks and never empty.
pub(super) fn one_line(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        "no cause was given; the log of the daemon may tell".to_owned()
    } else {
        line
    }
}

/// A job that failed before it was accepted.
pub(super) fn failed_response(job_id: String, code: &str, message: &str) -> v1::AwaitProofResponse {
    v1::AwaitProofResponse {
        job_id,
        status: Outcome::Failed.into(),
        error_message: one_line(message),
        error_code: code.to_owned(),
        ..v1::AwaitProofResponse::default()
    }
}

/// An ended job; `None` if it is open.
pub(super) fn await_response(name: &str, finished: Finished) -> Option<v1::AwaitProofResponse> {
    let Finished { record, proof } = finished;
    let status = match record.state {
        JobState::Open => return None,
        JobState::Completed => Outcome::Completed,
        JobState::Failed => Outcome::Failed,
        JobState::Cancelled => Outcome::Cancelled,
    };
    let end = record.finished_ms.unwrap_or(record.accepted_ms);
    let started = record.started_ms.unwrap_or(end);
    let mut response = v1::AwaitProofResponse {
        job_id: name.to_owned(),
        status: status.into(),
        queue_wait_ms: started.saturating_sub(record.accepted_ms),
        srs_load_ms: record.timings.load_ms,
        synthesis_ms: record.timings.witness_ms,
        gpu_compute_ms: record.timings.device_ms,
        total_ms: end.saturating_sub(record.accepted_ms),
        test_key: record.test_key,
        ..v1::AwaitProofResponse::default()
    };
    match (status, proof) {
        (Outcome::Completed, Some(proof)) => response.proof = proof,
        (Outcome::Completed, None) => {
            // Expired between the two readings of the store.
            response.status = Outcome::Failed.into();
            response.error_code = "RESULT_EXPIRED".to_owned();
            response.error_message =
                "the result is no longer kept ([store] max_age, max_results); submit the request \
                 again"
                    .to_owned();
        }
        (Outcome::Failed, _) => {
            let failure = record.failure.unwrap_or_else(|| store::Failure {
                code: "UNKNOWN".to_owned(),
                message: String::new(),
            });
            response.error_message = one_line(&failure.message);
            response.error_code = failure.code;
        }
        _ => {}
    }
    Some(response)
}
