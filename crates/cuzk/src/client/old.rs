//! `single` and `batch` as the earlier bench tool had them.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use filecoin::SubmitProofRequest;
use filecoin::decode::REQUEST_LIMIT;
use serde_json::json;
use server::client::Client;
use server::proto::v1::await_proof_response::Status;

use super::args::{BatchArgs, OldKind, OldRequest, SingleArgs};
use super::{connect, failure, jobs};
use crate::Context;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::input;

/// Proves one request.
pub fn single(context: &Context, global: &Global, args: &SingleArgs) -> Result<(), Failure> {
    let request = message(&args.request, args.partition)?;
    let mut client = connect(global, &args.request.server)?;
    let result = client.prove(request, 0).map_err(failure)?;
    jobs::finish(context, &result, None, None)
}

/// Proves one request several times, so many at a time.
pub fn batch(context: &Context, global: &Global, args: &BatchArgs) -> Result<(), Failure> {
    let request = message(&args.request, 0)?;
    let lanes = args.concurrency.min(args.count);
    let clients = (0..lanes)
        .map(|_| connect(global, &args.request.server))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let (next, proven) = (AtomicU32::new(0), AtomicU32::new(0));
    let failures = Mutex::new(Vec::new());
    let lane = |mut client: Client| {
        while next.fetch_add(1, Ordering::Relaxed) < args.count {
            match prove(&mut client, &request) {
                Ok(total_ms) => {
                    let done = proven.fetch_add(1, Ordering::Relaxed) + 1;
                    context
                        .output
                        .remark(&format!("{done} of {} in {total_ms} ms", args.count));
                }
                Err(cause) => failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(cause),
            }
        }
    };
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| lane(client));
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let proven = proven.into_inner();
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let each = seconds / f64::from(proven.max(1));
    let document = json!({
        "schema": "cuzk.batch/1", "count": args.count, "concurrency": lanes, "proven": proven,
        "failures": failures, "seconds": seconds,
    });
    let text = format!(
        "{proven} of {} proven in {seconds:.1} s, {each:.2} s each, {lanes} at a time\n",
        args.count
    );
    context.output.show(&document, &text)?;
    for cause in &failures {
        context.output.warn(cause);
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::reported(Exit::Input))
    }
}

/// Without an id every run is a job of its own.
fn prove(client: &mut Client, request: &SubmitProofRequest) -> Result<u64, String> {
    let result = client
        .prove(request.clone(), 0)
        .map_err(|error| error.to_string())?;
    match result.status() {
        Status::Completed => Ok(result.total_ms),
        _ => Err(result.error_message),
    }
}

fn message(args: &OldRequest, partition_index: u32) -> Result<SubmitProofRequest, Failure> {
    let mut request = SubmitProofRequest {
        registered_proof: args.registered_proof,
        sector_number: args.sector_num,
        miner_id: args.miner_id,
        partition_index,
        ..SubmitProofRequest::default()
    };
    let vanilla = |request: &mut SubmitProofRequest| -> Result<(), Failure> {
        request.vanilla_proofs = vanilla_proofs(needed(args.vanilla.as_deref(), "--vanilla")?)?;
        Ok(())
    };
    let hex = |given: &Option<[u8; 32]>, option| {
        given
            .map(|bytes| bytes.to_vec())
            .ok_or_else(|| missing(option))
    };
    match args.kind {
        OldKind::Porep => {
            request.proof_kind = 1;
            // The number is in the C1 output; the earlier tool's 0 meant "not given".
            request.registered_proof = 0;
            request.vanilla_proof = read(needed(args.c1.as_deref(), "--c1")?)?;
        }
        OldKind::Snap => {
            request.proof_kind = 2;
            vanilla(&mut request)?;
            request.comm_r_old = hex(&args.comm_r_old, "--comm-r-old")?;
            request.comm_r_new = hex(&args.comm_r_new, "--comm-r-new")?;
            request.comm_d_new = hex(&args.comm_d_new, "--comm-d-new")?;
        }
        OldKind::Wpost | OldKind::Winning => {
            let window = args.kind == OldKind::Wpost;
            request.proof_kind = if window { 3 } else { 4 };
            request.sector_number = 0;
            if !window {
                request.partition_index = 0;
            }
            vanilla(&mut request)?;
            request.randomness = args.randomness.unwrap_or_default().to_vec();
        }
    }
    Ok(request)
}

fn needed<'a>(path: Option<&'a Path>, option: &str) -> Result<&'a Path, Failure> {
    path.ok_or_else(|| missing(option))
}

fn missing(option: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        "USAGE",
        format!("this type of proof needs {option}"),
        "give it, or use `cuzk submit` with a request file",
    )
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    input::read(path, REQUEST_LIMIT + 1)
        .map_err(|e| input::unreadable("request", "REQUEST_UNREADABLE", path, &e))
}

/// A JSON array of base64 texts, else the file is one raw proof.
fn vanilla_proofs(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = read(path)?;
    let Ok(texts) = serde_json::from_slice::<Vec<String>>(&bytes) else {
        return Ok(vec![bytes]);
    };
    let decode = |text: &String| base64::engine::general_purpose::STANDARD.decode(text);
    texts
        .iter()
        .map(decode)
        .collect::<Result<_, _>>()
        .map_err(|e| {
            Failure::new(
                Exit::Input,
                "BAD_FIELD",
                format!("{} is not an array of base64 texts", input::name(path)),
                "give the vanilla proofs as the sealing node writes them",
            )
            .because(&e)
        })
}
