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
//! witness that is handed out satisfies its circuit.

mod path;
mod porep;
mod post;
mod snap;
#[cfg(test)]
mod tests;

use ::witness::{Parts, Size};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::check::{Failure, Fault, Place};
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
        let mut parts = Parts::default();
        fill(request, partition, size(circuit), &mut parts)?;
        let Parts {
            inputs,
            bits,
            dense,
        } = parts;
        Ok(PackedWitness::from_parts(circuit, inputs, bits, dense)?)
    }
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
    if partition >= request.partitions() {
        return Err(WitnessError::NoSuchPartition {
            partition,
            partitions: request.partitions(),
        });
    }
    match request {
        Request::Porep(porep) => {
            let sector = porep::Sector::new(porep)?;
            parts.fill(size, |writer| Ok(sector.partition(partition, writer)?))
        }
        Request::Snap(snap) => {
            let sector = snap::Partition::new(snap, partition)?;
            parts.fill(size, |writer| Ok(sector.write(writer)?))
        }
        Request::Window(post) => post::fill(post, ProofKind::Window, size, parts),
        Request::Winning(post) => post::fill(post, ProofKind::Winning, size, parts),
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
