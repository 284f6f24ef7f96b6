//! `cuzk bench e2e NAME`: made-up requests from their bytes to verified proofs, through the pipeline that
//! commands and workers use.

pub(super) mod keys;
mod meter;
mod report;
mod trace;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filecoin::CircuitId;
use instances::Instance;
use pipeline::CircuitKey;

use super::circuit;
use crate::Context;
use crate::cli::BenchE2eArgs;
use crate::device;
use crate::failure::{Exit, Failure};
use crate::outfile::OutFile;
use crate::proving::{Proven, Prover, Session, Source, Unit};
use keys::KeyFacts;
use meter::{Cpu, MemoryPeaks};
use report::{Alone, Document, Measured, Traffic};

/// A circuit with its key and a request for it.
struct Subject {
    id: CircuitId,
    key: Arc<CircuitKey>,
    facts: KeyFacts,
    /// In the form in which the daemon stores it.
    request: Vec<u8>,
    /// Units of a request that are proven.
    units: usize,
}

/// Runs the command.
pub fn run(context: &Context, args: &BenchE2eArgs) -> Result<(), Failure> {
    let reserve = |file: &Option<_>| file.as_deref().map(OutFile::reserve).transpose();
    let (trace, json) = (reserve(&args.trace)?, reserve(&args.json_out)?);
    let mut names = vec![circuit::parse(&args.name)?];
    names.extend(args.alternate.as_deref().map(circuit::parse).transpose()?);
    let device = device::choose(&args.device, &context.progress)?;
    let (began, cpu) = (Instant::now(), Cpu::now());
    let subjects = names
        .into_iter()
        .map(|id| subject(context, args, id, &device))
        .collect::<Result<Vec<_>, _>>()?;
    let setup = (began.elapsed(), cpu.since());

    if let Some(gpu) = &device.gpu {
        gpu.expect_callers(crate::proving::GPU_PROOFS_MAX);
    }
    let prover = Prover {
        backend: device.backend,
        gpu: device.gpu,
        progress: context.progress.clone(),
    };
    let units = subjects.iter().map(|subject| subject.units).sum::<usize>();
    let circuit = &subjects[0].key.circuit;
    let measured = prover.run(circuit, units * args.count as usize, |session| {
        measure(session, &subjects, args)
    })?;
    let memory = match &prover.gpu {
        Some(gpu) => gpu.memory()?,
        None => None,
    };
    if let Some(file) = trace {
        file.commit(&trace::document(&measured))?;
    }
    let document = Document::new(&subjects, args, device.document, setup, &measured, memory);
    if let Some(file) = json {
        let text = serde_json::to_vec_pretty(&document);
        file.commit(&text.map_err(|error| unwritten(&error))?)?;
    }
    match memory {
        Some(memory) if memory.taken_bytes > memory.planned_bytes => {
            context.output.show(&document, &document.text())?;
            Err(super::bench_prove::above_plan(memory))
        }
        _ => context.output.show(&document, &document.text()),
    }
}

pub(super) fn unwritten(error: &serde_json::Error) -> Failure {
    Failure::new(
        Exit::Internal,
        "MEASUREMENT",
        format!("the document cannot be written: {error}"),
        "this is a defect: please report it with the command line",
    )
}

/// Makes a request and finds or makes the key.
fn subject(
    context: &Context,
    args: &BenchE2eArgs,
    id: CircuitId,
    device: &device::Chosen,
) -> Result<Subject, Failure> {
    let line = context.progress.stage(format!("request of {id}"), 0);
    let request = Instance::new(id, args.seed).request()?;
    drop(line);
    let all = request.partitions();
    let units = (args.partitions).map_or(all, |some| all.min(some as usize));
    let request = instances::submit(&request, &format!("{id}-seed-{}", args.seed)).to_payload();
    let (key, facts) = keys::open(context, args, id, device)?;
    Ok(Subject {
        id,
        key: Arc::new(key),
        facts,
        request,
        units,
    })
}

/// Proves everything that is asked for.
fn measure(
    session: &Session<'_>,
    subjects: &[Subject],
    args: &BenchE2eArgs,
) -> Result<Measured, Failure> {
    // The first proof of each circuit loads its key, and everything that is loaded once.
    let first = subjects
        .iter()
        .map(|subject| alone(session, subject, 1))
        .collect::<Result<Vec<_>, _>>()?;
    let memory = MemoryPeaks::watch();
    let traffic = session.traffic();
    let (began, cpu) = (Instant::now(), Cpu::now());
    // Which subject and which request each unit is of, by its number.
    let mut ordered = Vec::new();
    for request in 0..args.count as usize {
        for (at, subject) in subjects.iter().enumerate() {
            let source = Arc::new(Source::stored(
                Arc::clone(&subject.key),
                subject.request.clone(),
            ));
            for index in 0..subject.units {
                session.order(Unit::new(&source, index, None));
                ordered.push((at, request));
            }
        }
    }
    let mut first_number = usize::MAX;
    let mut proofs = Vec::with_capacity(ordered.len());
    for _ in 0..ordered.len() {
        let proven = session.next()?;
        first_number = first_number.min(proven.number);
        proofs.push((proven, Instant::now()));
    }
    let (wall, cpu, memory) = (began.elapsed(), cpu.since(), memory.end());
    let traffic = session.traffic().zip(traffic).map(|(now, before)| Traffic {
        to_device_bytes: now.0.saturating_sub(before.0),
        from_device_bytes: now.1.saturating_sub(before.1),
    });
    let proofs = proofs.into_iter().map(|(proven, end)| {
        let (subject, request) = ordered[proven.number - first_number];
        report::Made {
            subject,
            request,
            spans: proven.spans,
            end,
        }
    });
    let proofs = proofs.collect();
    // Without --alone a winning proof is made alone nevertheless: that is how it is asked for.
    let repeats = match args.alone {
        0 if subjects.iter().any(|subject| is_winning(subject.id)) => ALONE,
        repeats => repeats as usize,
    };
    let mut alone_times = Vec::new();
    for _ in 0..repeats {
        for (at, subject) in subjects.iter().enumerate() {
            alone_times.push((at, alone(session, subject, subject.units)?));
        }
    }
    Ok(Measured {
        first,
        began,
        wall,
        cpu,
        memory,
        traffic,
        proofs,
        alone: alone_times,
    })
}

/// Winning proofs made alone unless told otherwise.
const ALONE: usize = 5;

fn is_winning(id: CircuitId) -> bool {
    id.kind == filecoin::ProofKind::Winning
}

/// One request, or some units of it, while nothing else is proven.
fn alone(session: &Session<'_>, subject: &Subject, units: usize) -> Result<Alone, Failure> {
    let request = subject.request.clone();
    let began = Instant::now();
    let source = Arc::new(Source::stored(Arc::clone(&subject.key), request));
    for index in 0..units {
        session.order(Unit::new(&source, index, None));
    }
    let proven = (0..units)
        .map(|_| session.next())
        .collect::<Result<Vec<Proven>, _>>()?;
    Ok(Alone {
        time: began.elapsed(),
        spans: proven.into_iter().map(|proven| proven.spans).collect(),
    })
}

/// Seconds with microseconds.
fn exact(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

/// Bytes of a text file of the system, or none.
fn system_file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}
