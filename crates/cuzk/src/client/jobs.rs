//! `cuzk submit`, `cuzk wait` and `cuzk cancel`.

use std::path::Path;
use std::time::Duration;

use filecoin::decode::REQUEST_LIMIT;
use filecoin::{Hints, SubmitProofRequest};
use serde_json::json;
use server::client::{Client, Followed};
use server::proto::v1::AwaitProofResponse;
use server::proto::v1::await_proof_response::Status;
use server::proto::v2::JobState;

use super::args::{JobArgs, SubmitArgs, WaitArgs};
use super::{connect, failure};
use crate::Context;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::outfile::OutFile;
use crate::progress::Stage;

/// Submits a request.
pub fn submit(context: &Context, global: &Global, args: &SubmitArgs) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutFile::reserve).transpose()?;
    let mut request = read(args)?;
    if let Some(id) = &args.id {
        request.request_id.clone_from(id);
    }
    if let Some(priority) = args.priority {
        request.priority = priority as i32;
    }
    let deadline_ms = args.deadline.unwrap_or(0).saturating_mul(1000);
    let mut client = connect(global, &args.server)?;
    let job = client.upload(request, deadline_ms).map_err(failure)?;
    if args.no_wait {
        let document = json!({
            "schema": "cuzk.submitted/1", "job_id": job.job_id,
            "queue_position": job.queue_position,
        });
        return context
            .output
            .deliver(&document, &format!("{}\n", job.job_id));
    }
    let result = follow(context, &mut client, &job.job_id, None)?;
    finish(context, &result, out, args.out.as_deref())
}

/// Follows a job to its end, showing how many units are proven.
fn follow(
    context: &Context,
    client: &mut Client,
    job: &str,
    limit: Option<Duration>,
) -> Result<AwaitProofResponse, Failure> {
    let mut line: Option<Stage> = None;
    let seen = |state: &JobState| {
        if state.units > 0 {
            let units = u64::from(state.units);
            let line = line.get_or_insert_with(|| context.progress.stage("units proven", units));
            line.reach(u64::from(state.units_proven));
        }
    };
    let followed = client.follow(job, limit, seen).map_err(failure)?;
    match followed {
        Followed::Ended(result) => Ok(*result),
        Followed::TimedOut => Err(not_finished(job)),
    }
}

fn not_finished(job: &str) -> Failure {
    Failure::new(
        Exit::Resources,
        "JOB_NOT_FINISHED",
        format!("the job {job} has not ended in this time; it goes on"),
        "wait again, or see `cuzk top`",
    )
}

/// Waits for a job.
pub fn wait(context: &Context, global: &Global, args: &WaitArgs) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutFile::reserve).transpose()?;
    let mut client = connect(global, &args.server)?;
    let limit = args.timeout.map(Duration::from_secs);
    let result = follow(context, &mut client, &args.job, limit)?;
    finish(context, &result, out, args.out.as_deref())
}

/// Cancels a job.
pub fn cancel(context: &Context, global: &Global, args: &JobArgs) -> Result<(), Failure> {
    let was_running = connect(global, &args.server)?
        .cancel(&args.job)
        .map_err(failure)?;
    let document = json!({
        "schema": "cuzk.cancelled/1", "job_id": args.job, "was_running": was_running,
    });
    let text = if was_running {
        "a unit was running: the job ends with it\n"
    } else {
        "no unit was running\n"
    };
    context.output.show(&document, text)
}

fn read(args: &SubmitArgs) -> Result<SubmitProofRequest, Failure> {
    let path = &args.request;
    let bytes = input::read(path, REQUEST_LIMIT + 1)
        .map_err(|e| input::unreadable("request", "REQUEST_UNREADABLE", path, &e))?;
    let hints = Hints {
        miner_id: args.miner,
        sector_number: args.sector,
    };
    SubmitProofRequest::from_any(&bytes, hints).map_err(|e| {
        Failure::from(e).about(&format!("cannot use the request {}", input::name(path)))
    })
}

/// Prints or writes a result; a job without a proof is a failure.
pub fn finish(
    context: &Context,
    result: &AwaitProofResponse,
    out: Option<OutFile>,
    path: Option<&Path>,
) -> Result<(), Failure> {
    match result.status() {
        Status::Completed => {}
        other => return Err(unproven(result, other)),
    }
    if result.test_key {
        context
            .output
            .warn("made with a test key: this proof is worth nothing on a public network");
    }
    let proof = hex::encode(&result.proof);
    let mut document = json!({
        "schema": "cuzk.result/1", "job_id": result.job_id, "test_key": result.test_key,
        "proof_bytes": result.proof.len(),
        "queue_wait_ms": result.queue_wait_ms, "srs_load_ms": result.srs_load_ms,
        "synthesis_ms": result.synthesis_ms, "gpu_compute_ms": result.gpu_compute_ms,
        "total_ms": result.total_ms,
    });
    let Some(out) = out else {
        document["proof"] = proof.as_str().into();
        return context.output.deliver(&document, &format!("{proof}\n"));
    };
    let to_stdout = out.is_stdout();
    out.commit(&result.proof)?;
    let times = format!(
        "{} bytes in {} ms (queue {}, keys {}, witness {}, device {})",
        result.proof.len(),
        result.total_ms,
        result.queue_wait_ms,
        result.srs_load_ms,
        result.synthesis_ms,
        result.gpu_compute_ms
    );
    if to_stdout {
        context.output.remark(&times);
        return Ok(());
    }
    let shown = path.map(|path| path.display().to_string());
    document["out"] = shown.into();
    context.output.show(&document, &format!("{times}\n"))
}

fn unproven(result: &AwaitProofResponse, status: Status) -> Failure {
    let name = &result.job_id;
    match status {
        Status::Cancelled => Failure::new(
            Exit::Input,
            "JOB_CANCELLED",
            format!("the job {name} was cancelled"),
            "submit the request again if the proof is wanted after all",
        ),
        Status::Timeout => not_finished(name),
        _ => {
            let message = format!("the job {name} failed: {}", result.error_message);
            let remedy = "correct what is named above, then submit the request again";
            let mut failure = Failure::new(Exit::Input, "JOB_FAILED", message, remedy);
            failure.cause(format!("the daemon's code is {}", result.error_code));
            failure
        }
    }
}
