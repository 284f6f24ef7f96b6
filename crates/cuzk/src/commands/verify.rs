//! `cuzk verify REQUEST --proof FILE`: a proof against the request's public values.

use std::fs;
use std::path::Path;

use filecoin::request::Description;
use filecoin::{Request, proof_bytes};
use groth16::key::KeyStore;
use groth16::{PreparedVerifyingKey, Proof};
use rayon::prelude::*;
use serde::Serialize;

use crate::Context;
use crate::cli::VerifyArgs;
use crate::failure::{Exit, Failure};
use crate::keys::{self, KeyDocument};
use crate::table;
use crate::{input, partitions};

/// Runs the command.
pub fn run(context: &Context, args: &VerifyArgs) -> Result<(), Failure> {
    if args.request.request == args.proof && args.proof == Path::new("-") {
        return Err(Failure::new(
            Exit::Usage,
            "USAGE",
            "the request and the proof cannot both come from standard input",
            "name a file for one of them",
        ));
    }
    let decoded = input::request(context.output, &args.request)?;
    let request = &decoded.request;
    if request.is_non_interactive() && !args.partitions_only {
        return Err(Failure::new(
            Exit::Input,
            "AGGREGATION_MISSING",
            format!(
                "{} is a non-interactive PoRep: its proof is a SnarkPack aggregate, which this version cannot verify",
                request.proof_type()
            ),
            "use --partitions-only to verify the partitions' proofs one by one",
        ));
    }
    let bytes = read_proof(&args.proof, request)?;
    let key = verify(request, &bytes, &keys::store(context, &args.keys))?;
    let document = Document {
        schema: "cuzk.verify/1",
        verified: true,
        request: decoded.describe(),
        partitions: request.partitions(),
        notice: key.notice,
        key: &key,
    };
    report(context, request, &document)
}

fn report(context: &Context, request: &Request, document: &Document<'_>) -> Result<(), Failure> {
    let key = document.key;
    let mut lines = vec![
        (
            "proof",
            format!(
                "verifies: {} bytes for {}",
                request.partitions() * Proof::BYTES,
                request.proof_type()
            ),
        ),
        ("key", format!("{}: {}", key.path, key.words)),
    ];
    lines.extend(key.notice.map(|notice| ("notice", notice.to_owned())));
    if context.output.quiet() {
        key.notice
            .iter()
            .for_each(|notice| context.output.warn(notice));
        return context.output.show(document, "");
    }
    context.output.show(document, &table::pairs(&lines))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    verified: bool,
    request: Description,
    partitions: usize,
    key: &'a KeyDocument,
    notice: Option<&'static str>,
}

/// Verifies all partitions' proofs against the public values of `request`.
///
/// # Errors
/// `PROOF_INVALID` names the first partition whose proof does not verify; key failures.
pub fn verify(request: &Request, bytes: &[u8], store: &KeyStore) -> Result<KeyDocument, Failure> {
    let proofs = proof_bytes::split(request, bytes);
    if let Err(error @ filecoin::Error::ProofLength { .. }) = proofs {
        return Err(error.into());
    }
    let circuit = request.circuit_id().compiled()?;
    let key = keys::verifying_key(store, &request.circuit_id().key_spec(&circuit))?;
    let inputs = filecoin::public_inputs(request)?;
    let pvk = PreparedVerifyingKey::from(&key.key);
    let proofs = proofs.map_err(|error| match error {
        filecoin::Error::ProofPoint { partition, source } => invalid(partition).because(&source),
        other => other.into(),
    })?;
    let verdicts: Vec<Result<bool, groth16::Error>> = proofs
        .par_iter()
        .zip(&inputs)
        .map(|(proof, inputs)| groth16::verify(&pvk, inputs, proof))
        .collect();
    for (k, verdict) in verdicts.into_iter().enumerate() {
        if !verdict? {
            return Err(invalid(k));
        }
    }
    Ok(KeyDocument::new(&key.path, key.trust))
}

fn invalid(partition: usize) -> Failure {
    Failure::new(
        Exit::Unverified,
        "PROOF_INVALID",
        format!("the proof of partition {partition} does not verify"),
        "check that proof, request and key belong together: another statement, another key or one \
         changed byte is enough",
    )
}

/// The proof's bytes, from a file of bytes or hex, or from a folder of partitions.
fn read_proof(path: &Path, request: &Request) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        from_folder(path, request.partitions())
    } else {
        from_file(path, request.partitions() * Proof::BYTES)
    }
}

fn from_file(path: &Path, expected: usize) -> Result<Vec<u8>, Failure> {
    // No proof is as long as this, be it in hex.
    const LIMIT: u64 = 1 << 20;
    let bytes = input::read(path, LIMIT)
        .map_err(|e| input::unreadable("proof", "PROOF_UNREADABLE", path, &e))?;
    if bytes.len() == expected {
        return Ok(bytes);
    }
    let text = bytes.trim_ascii();
    Ok(hex::decode(text).unwrap_or(bytes))
}

fn from_folder(folder: &Path, count: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(count * Proof::BYTES);
    for k in 0..count {
        let path = partitions::file(folder, k);
        let proof = fs::read(&path)
            .map_err(|e| input::unreadable("proof", "PROOF_UNREADABLE", &path, &e))?;
        if proof.len() != Proof::BYTES {
            return Err(Failure::new(
                Exit::Input,
                "PROOF_LENGTH",
                format!(
                    "{} is {} bytes long, a partition's proof is {}",
                    path.display(),
                    proof.len(),
                    Proof::BYTES
                ),
                "make the partition's proof again",
            ));
        }
        bytes.extend(proof);
    }
    Ok(bytes)
}
