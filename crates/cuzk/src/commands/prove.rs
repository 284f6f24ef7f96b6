//! `cuzk prove REQUEST`: check, prove, verify, write.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use filecoin::check::{CheckReport, ReplicaIdCheck};
use filecoin::native;
use filecoin::request::Description;
use filecoin::{Decoded, Request};
use groth16::Proof;
use groth16::key::KeyStore;
use pipeline::{CircuitKey, Lane, Spans, Statement};
use serde::Serialize;

use crate::Context;
use crate::cli::{Device, DeviceArgs, GpuWait, ProveArgs};
use crate::device::{self, Chosen, DeviceDocument};
use crate::failure::{Exit, Failure};
use crate::keys::{self, KeyDocument};
use crate::outfile::{self, OutFile};
use crate::phases::{Phases, PhasesDocument};
use crate::progress::Meter;
use crate::proving::{self, Prover, Source, Unit};
use crate::table;
use crate::{input, partitions};

/// Runs the command.
pub fn run(context: &Context, args: &ProveArgs) -> Result<(), Failure> {
    let device = device::choose(&args.device, &context.progress)?;
    let mut phases = Phases::start();
    let decoded = phases.run("decode", || input::request(context.output, &args.request))?;
    let sink = Sink::new(context, &decoded.request, args)?;
    let store = keys::store(context, &args.keys);
    prove(context, &decoded, device, &store, sink, phases).map(drop)
}

/// The device that `cuzk demo` uses.
pub fn default_device(context: &Context) -> Result<Chosen, Failure> {
    let args = DeviceArgs {
        device: Device::Auto,
        gpu: 0,
        vram: None,
        gpu_wait: GpuWait::Sleep,
    };
    device::choose(&args, &context.progress)
}

/// Checks a decoded request, proves it with a key from `store`, delivers and reports the result.
/// The proof bytes are given back too.
///
/// # Errors
/// Whatever goes wrong; nothing has been written then, except whole proofs of single partitions
/// where those were asked for.
pub fn prove(
    context: &Context,
    decoded: &Decoded,
    device: Chosen,
    store: &KeyStore,
    sink: Sink,
    mut phases: Phases,
) -> Result<Vec<u8>, Failure> {
    let request = &decoded.request;
    let circuit = phases.run("load circuit", || request.circuit_id().compiled())?;
    let kind = device.backend.device().kind;
    let checked = phases.run("check and witness", || {
        native::check(
            request,
            &circuit,
            proving::witnesses_to_keep(&circuit, kind),
            &Meter::new(&context.progress, request.circuit_id().name()),
        )
    })?;
    let spec = request.circuit_id().key_spec(&circuit);
    proving::check_memory(&circuit, kind)?;
    let key = phases.run("open key", || keys::proving_key(context, store, &spec))?;
    let (path, trust) = (key.path, key.trust);
    let key = phases.run("open key", || {
        CircuitKey::new(Arc::clone(&circuit), key.key)
    });
    let statement = Arc::new(Statement::new(request.clone())?);
    let count = statement.inputs.len();
    if let Some(gpu) = &device.gpu {
        gpu.expect_callers(count);
    }
    let source = Arc::new(Source::decoded(Arc::new(key), statement));
    let mut made = checked.witnesses.into_iter();
    let units = (0..count).map(|k| Unit::new(&source, k, made.next()));
    let prover = Prover {
        backend: device.backend,
        gpu: device.gpu,
        progress: context.progress.clone(),
    };
    let mut bytes = Vec::with_capacity(count * Proof::BYTES);
    // One partition has no line of its own: its phases show.
    let label = |k: usize| format!("partition {} of {count}", (k + 1).min(count));
    let stage = (count > 1).then(|| context.progress.stage(label(0), count as u64));
    prover.prove(&circuit, units.collect(), |proven| {
        add(&mut phases, &proven.spans);
        if let Some(stage) = &stage {
            stage.advance(1);
            stage.rename(label(proven.number + 1));
        }
        bytes.extend(proven.proof.to_bytes());
        sink.partition(proven.number, &proven.proof)
    })?;
    drop(stage);
    let report = Report {
        decoded,
        device: device.document,
        check: checked.report,
        key: KeyDocument::new(&path, trust),
        bytes,
        phases,
    };
    report.deliver(context, sink)?;
    Ok(report.bytes)
}

/// Adds a unit's spans to the phases of the whole.
fn add(phases: &mut Phases, spans: &Spans) {
    for span in spans.iter() {
        match span.lane {
            Lane::Witness => phases.add("witness", span.time()),
            _ => phases.add(&format!("prove: {}", span.name), span.time()),
        }
    }
}

/// Where the proof goes.
pub enum Sink {
    /// Into the report, as hex.
    Report,
    /// All bytes in one file.
    File(PathBuf, OutFile),
    /// One file per partition in a folder.
    Folder(PathBuf),
}

impl Sink {
    fn new(context: &Context, request: &Request, args: &ProveArgs) -> Result<Self, Failure> {
        match (request.is_non_interactive(), args.partitions_only) {
            (true, false) => Err(aggregation_missing(request)),
            (false, true) => Err(Failure::new(
                Exit::Usage,
                "USAGE",
                format!(
                    "--partitions-only is for non-interactive PoReps, this request is {}",
                    request.proof_type()
                ),
                "leave --partitions-only out",
            )),
            (true, true) => Self::folder(args.out.as_deref().unwrap_or(Path::new("."))),
            (false, false) => Self::file(context, args.out.as_deref()),
        }
    }

    /// One file, or the report for none.
    ///
    /// # Errors
    /// `OUTPUT_UNWRITABLE`; `USAGE` where bytes and report, or bytes and a person, would meet.
    pub fn file(context: &Context, out: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = out else {
            return Ok(Self::Report);
        };
        if outfile::is_stdout(path) && (context.output.json() || std::io::stdout().is_terminal()) {
            return Err(Failure::new(
                Exit::Usage,
                "USAGE",
                "the proof's bytes cannot go to a terminal, nor to stdout beside --json",
                "name a file with --out, or leave --out away to have the bytes as hex",
            ));
        }
        Ok(Self::File(path.to_owned(), OutFile::reserve(path)?))
    }

    fn folder(path: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(path).map_err(|e| outfile::unwritable(path, &e))?;
        drop(OutFile::reserve(&partitions::file(path, 0))?);
        Ok(Self::Folder(path.to_owned()))
    }

    fn partition(&self, k: usize, proof: &Proof) -> Result<(), Failure> {
        match self {
            Self::Folder(folder) => {
                OutFile::reserve(&partitions::file(folder, k))?.commit(&proof.to_bytes())
            }
            _ => Ok(()),
        }
    }
}

fn aggregation_missing(request: &Request) -> Failure {
    Failure::new(
        Exit::Input,
        "AGGREGATION_MISSING",
        format!(
            "{} is a non-interactive PoRep: the chain wants its {} proofs as one SnarkPack aggregate, which this version cannot make",
            request.proof_type(),
            request.partitions()
        ),
        "use --partitions-only --out DIR to make and verify the partitions' proofs one by one",
    )
}

struct Report<'a> {
    decoded: &'a Decoded,
    device: DeviceDocument,
    check: CheckReport,
    key: KeyDocument,
    bytes: Vec<u8>,
    phases: Phases,
}

impl Report<'_> {
    fn deliver(&self, context: &Context, sink: Sink) -> Result<(), Failure> {
        let out = match &sink {
            Sink::Report => None,
            Sink::File(path, _) | Sink::Folder(path) => Some(path.clone()),
        };
        let output = context.output;
        if let Some(notice) = self.key.notice
            && output.quiet()
        {
            output.warn(notice);
        }
        let document = self.document(out.as_deref());
        let text = self.text(out.as_deref());
        match sink {
            Sink::File(_, file) if file.is_stdout() => {
                file.commit(&self.bytes)?;
                output.remark(text.trim_end());
                Ok(())
            }
            Sink::File(_, file) => {
                file.commit(&self.bytes)?;
                output.show(&document, if output.quiet() { "" } else { &text })
            }
            Sink::Folder(_) => output.show(&document, if output.quiet() { "" } else { &text }),
            Sink::Report => {
                let proof = format!("{}\n", hex::encode(&self.bytes));
                output.deliver(
                    &document,
                    &if output.quiet() {
                        proof
                    } else {
                        format!("{text}\n{proof}")
                    },
                )
            }
        }
    }

    fn document(&self, out: Option<&Path>) -> Document<'_> {
        Document {
            schema: "cuzk.prove/1",
            request: self.decoded.describe(),
            device: &self.device,
            check: CheckDocument::new(&self.check),
            key: &self.key,
            notice: self.key.notice,
            verified: true,
            proof_bytes: self.bytes.len(),
            proof: hex::encode(&self.bytes),
            out: out.map(|p| p.display().to_string()),
            timing: self.phases.to_json(),
        }
    }

    fn text(&self, out: Option<&Path>) -> String {
        let request = &self.decoded.request;
        let proofs = if request.partitions() == 1 {
            "one proof".into()
        } else {
            format!("{} proofs", request.partitions())
        };
        let written = out.map_or("follows as hex".into(), |path| {
            match outfile::is_stdout(path) {
                true => "written to standard output".into(),
                false => format!("written to {}", path.display()),
            }
        });
        let mut lines = vec![
            (
                "request",
                format!(
                    "{}, {proofs} of circuit {}",
                    request.proof_type(),
                    request.circuit_id()
                ),
            ),
            (
                "device",
                format!("{} ({})", self.device.name, self.device.reason),
            ),
            ("check", check_text(&self.check)),
        ];
        lines.extend(replica_id_text(request, &self.check).map(|text| ("replica_id", text)));
        lines.extend([
            ("key", format!("{}: {}", self.key.path, self.key.words)),
            (
                "proof",
                format!("{} bytes, verified, {written}", self.bytes.len()),
            ),
        ]);
        lines.extend(self.key.notice.map(|notice| ("notice", notice.to_owned())));
        table::pairs(&lines) + "\n" + &self.phases.render()
    }
}

fn check_text(check: &CheckReport) -> String {
    let n = table::grouped;
    let labels = if check.labels == 0 {
        String::new()
    } else {
        format!(", {} labels", n(check.labels))
    };
    format!(
        "{} challenges, {} Merkle paths{labels}: all hold",
        n(check.challenges),
        n(check.merkle_paths)
    )
}

fn replica_id_text(request: &Request, check: &CheckReport) -> Option<String> {
    let Request::Porep(porep) = request else {
        return None;
    };
    let missing = match (porep.miner_id, porep.sector_number) {
        (None, None) => "the request names neither miner nor sector: give --miner and --sector",
        (None, _) => "the request does not name the miner: give --miner",
        _ => "the request does not name the sector: give --sector",
    };
    match check.replica_id {
        ReplicaIdCheck::Recomputed => {
            Some("recomputed from miner, sector, ticket and comm_d: it agrees".into())
        }
        ReplicaIdCheck::Skipped => Some(format!("not checked: {missing}")),
        ReplicaIdCheck::NotInvolved => None,
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    request: Description,
    device: &'a DeviceDocument,
    check: CheckDocument,
    key: &'a KeyDocument,
    notice: Option<&'static str>,
    verified: bool,
    proof_bytes: usize,
    proof: String,
    out: Option<String>,
    timing: PhasesDocument,
}

#[derive(Serialize)]
struct CheckDocument {
    challenges: u64,
    merkle_paths: u64,
    labels: u64,
    replica_id: &'static str,
}

impl CheckDocument {
    fn new(check: &CheckReport) -> Self {
        Self {
            challenges: check.challenges,
            merkle_paths: check.merkle_paths,
            labels: check.labels,
            replica_id: match check.replica_id {
                ReplicaIdCheck::Recomputed => "recomputed",
                ReplicaIdCheck::Skipped => "skipped",
                ReplicaIdCheck::NotInvolved => "not-involved",
            },
        }
    }
}
