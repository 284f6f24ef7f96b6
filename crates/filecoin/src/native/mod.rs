//! Witnesses made natively: the exact assignment of the public circuits, straight from the
//! decoded vanilla proof.
//!
//! A generator walks through its circuit in the order in which the circuit allocates variables,
//! and calls the generators of the gadgets (crate `witness`) as the circuit calls the gadgets: one
//! function here is one block of the circuit, run once per challenge, sector or path. Everything
//! that depends on the sector size comes from [`crate::registry`]; there is one generator per
//! circuit.
//!
//! The hashes that make up the witness are those of the vanilla check. So a generator compares
//! what it computes with what the vanilla proof claims, and reports the same [`Failure`]s: a
//! witness that is handed out satisfies its circuit. [`check`] is that check of a whole request,
//! with the witnesses as its by-product: nothing is hashed twice.

#[cfg(test)]
mod damage_tests;
mod path;
mod porep;
mod post;
#[cfg(test)]
mod prepared_tests;
mod snap;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use ::witness::{Parts, Size};
use r1cs::{CompiledCircuit, PackedWitness};
use rayon::prelude::*;

use crate::check::{self, CheckReport, Failure, Fault, Place, Progress};
use crate::registry::ProofKind;
use crate::request::Request;
use crate::witness::{WitnessError, WitnessGenerator};

/// The native generator of every kind, version and size.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeWitness;

impl WitnessGenerator for NativeWitness {
    fn witness(
        &self,
        request: &Request,
        partition: usize,
        circuit: &CompiledCircuit,
    ) -> Result<PackedWitness, WitnessError> {
        packed(request, partition, circuit, &())
    }
}

/// What [`check`] found and made.
#[derive(Debug)]
pub struct Checked {
    /// What was checked.
    pub report: CheckReport,
    /// Witnesses of the first partitions, as many as were asked for.
    pub witnesses: Vec<PackedWitness>,
}

/// Checks a request completely by making the witnesses of all its partitions, and keeps the first
/// `keep` of them; `circuit` is the compiled circuit of [`Request::circuit_id`].
///
/// Partitions are worked on side by side, and the sectors of a window request, on all threads of the
/// current rayon pool. `progress` sees one stage, "vanilla check", in challenges. Memory: the witnesses
/// kept, and one more per thread.
///
/// # Errors
/// [`WitnessError::Vanilla`] with the first failure in the order of the request. It refuses
/// exactly the requests that [`check::check`] refuses.
pub fn check(
    request: &Request,
    circuit: &CompiledCircuit,
    keep: usize,
    progress: &dyn Progress,
) -> Result<Checked, WitnessError> {
    let report = check::begin(request)?;
    progress.begin("vanilla check", report.challenges);
    // The first partition known to fail: none after it needs to be looked at.
    let failed = AtomicUsize::new(usize::MAX);
    let partition = |spare: &mut Parts, number: usize| {
        if number > failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let made = if number < keep {
            packed(request, number, circuit, progress).map(Some)
        } else {
            fill_reporting(request, number, size(circuit), spare, progress).map(|()| None)
        };
        if made.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        made
    };
    let made: Vec<Result<Option<PackedWitness>, WitnessError>> = (0..request.partitions())
        .into_par_iter()
        .with_max_len(1)
        .map_init(Parts::default, partition)
        .collect();
    let made = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Checked {
        report,
        witnesses: made.into_iter().flatten().collect(),
    })
}

/// The witness of one partition, in memory of its own.
fn packed(
    request: &Request,
    partition: usize,
    circuit: &CompiledCircuit,
    progress: &dyn Progress,
) -> Result<PackedWitness, WitnessError> {
    let mut parts = Parts::default();
    fill_reporting(request, partition, size(circuit), &mut parts, progress)?;
    let Parts {
        inputs,
        bits,
        dense,
    } = parts;
    Ok(PackedWitness::from_parts(circuit, inputs, bits, dense)?)
}

/// Numbers of variables of a compiled circuit.
pub fn size(circuit: &CompiledCircuit) -> Size {
    Size {
        // The constant one is not written by a generator.
        inputs: circuit.shape().inputs.saturating_sub(1),
        bits: circuit.layout().bit_count(),
        dense: circuit.layout().dense_count(),
    }
}

/// Writes the witness of one partition into `parts`, whose memory is reused.
///
/// Window PoSt works on all threads of the current rayon pool, the others on the calling thread:
/// they have partitions to work on side by side.
///
/// # Errors
/// [`WitnessError::NoSuchPartition`]; [`WitnessError::Vanilla`] with what does not hold;
/// [`WitnessError::Size`] if `size` is not that of the request's circuit.
pub fn fill(
    request: &Request,
    partition: usize,
    size: Size,
    parts: &mut Parts,
) -> Result<(), WitnessError> {
    fill_reporting(request, partition, size, parts, &())
}

/// [`fill`]; `progress` sees the challenges that are done.
fn fill_reporting(
    request: &Request,
    partition: usize,
    size: Size,
    parts: &mut Parts,
    progress: &dyn Progress,
) -> Result<(), WitnessError> {
    if partition >= request.partitions() {
        return Err(WitnessError::NoSuchPartition {
            partition,
            partitions: request.partitions(),
        });
    }
    match request {
        Request::Porep(porep) => {
            let sector = porep::Sector::new(porep)?;
            parts.fill(size, |writer| {
                Ok(sector.partition(partition, writer, progress)?)
            })
        }
        Request::Snap(snap) => {
            let sector = snap::Partition::new(snap, partition)?;
            parts.fill(size, |writer| Ok(sector.write(writer, progress)?))
        }
        Request::Window(post) => post::fill(post, ProofKind::Window, size, parts, progress),
        Request::Winning(post) => post::fill(post, ProofKind::Winning, size, parts, progress),
    }
}

/// A failure in one partition: of one challenge, or of what the challenges share.
fn failure(
    partition: usize,
    challenge: Option<usize>,
    layer: Option<usize>,
    element: impl Into<String>,
    fault: Fault,
) -> Box<Failure> {
    let place = Place {
        partition: Some(partition),
        sector: None,
        challenge,
        layer: layer.map(|layer| layer as u32),
        element: element.into(),
    };
    Failure::new(place, fault)
}
