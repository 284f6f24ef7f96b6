//! Window and Winning PoSt (`FallbackPoStCircuit`): one block per sector.

use ::witness::{Parts, Size, Writer, poseidon::gadget};
use rayon::prelude::*;

use super::path::include_poseidon;
use crate::challenges::PostChallenges;
use crate::check::path::{Tree, verify_commitment};
use crate::check::{Failure, Fault, Place, Progress, Role, post::check_form};
use crate::domain::Domain;
use crate::merkle::MerkleProof;
use crate::post::FallbackPoStSectorProof;
use crate::registry::ProofKind;
use crate::request::PostRequest;
use crate::witness::WitnessError;
use crate::{PoseidonDomain, SectorSize};

/// One sector of the circuit.
struct Sector<'a> {
    size: SectorSize,
    entry: &'a FallbackPoStSectorProof,
    /// Number of the first inclusion proof within the entry.
    first: usize,
    /// Inclusion proofs and the leafs that they must show.
    inclusions: &'a [MerkleProof<PoseidonDomain>],
    leafs: &'a [u64],
}

/// All sectors in parallel.
///
/// A window circuit with too few sectors is filled up with its last one, whose block is computed
/// once and copied. A winning circuit takes the 66 inclusion proofs of its one sector as those
/// of 66 sectors.
pub(super) fn fill(
    request: &PostRequest,
    kind: ProofKind,
    size: Size,
    parts: &mut Parts,
    progress: &dyn Progress,
) -> Result<(), WitnessError> {
    check_form(request, kind)?;
    let challenges = PostChallenges::of(request);
    let leafs: Vec<Vec<u64>> = request
        .sectors
        .par_iter()
        .enumerate()
        .map(|(position, sector)| challenges.sector(position, sector.sector_id))
        .collect();
    let shape = match kind {
        ProofKind::Winning => request.proof_type.size.winning(),
        _ => request.proof_type.size.window(),
    };
    let sectors: Vec<Sector<'_>> = request
        .sectors
        .iter()
        .zip(&leafs)
        .flat_map(|(entry, leafs)| {
            let inclusions = entry.sector().inclusion_proofs.chunks(shape.challenges);
            inclusions
                .zip(leafs.chunks(shape.challenges))
                .enumerate()
                .map(move |(chunk, (inclusions, leafs))| Sector {
                    size: request.proof_type.size,
                    entry,
                    first: chunk * shape.challenges,
                    inclusions,
                    leafs,
                })
        })
        .collect();
    let part = Size {
        inputs: size.inputs / shape.sectors,
        bits: size.bits / shape.sectors,
        dense: size.dense / shape.sectors,
    };
    let padding = shape.sectors - sectors.len();
    parts.fill_equal_parts(part, sectors.len(), padding, |number, writer| {
        sectors[number].write(writer)?;
        progress.advance(sectors[number].leafs.len() as u64);
        Ok(())
    })
}

impl Sector<'_> {
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), Box<Failure>> {
        let proof = self.entry.sector();
        let [comm_r_last, comm_c, comm_r] =
            [&proof.comm_r_last, &proof.comm_c, &self.entry.comm_r].map(Domain::to_fr);
        writer.nums(&[comm_r_last, comm_c, comm_r]);
        writer.input(comm_r);
        let computed = gadget::hash_2(comm_c, comm_r_last, writer).into();
        verify_commitment("comm_r", &self.entry.comm_r, computed)
            .map_err(|fault| self.failure(None, "comm_r".to_owned(), fault))?;

        let tree = Tree::new("comm_r_last", proof.comm_r_last, self.size);
        for (i, (inclusion, &leaf)) in self.inclusions.iter().zip(self.leafs).enumerate() {
            let node = inclusion.leaf().to_fr();
            writer.num(node);
            include_poseidon(&tree, inclusion, node, leaf, Role::Challenge, writer).map_err(
                |fault| {
                    let number = self.first + i;
                    self.failure(Some(number), format!("inclusion_proofs[{number}]"), fault)
                },
            )?;
        }
        Ok(())
    }

    fn failure(&self, challenge: Option<usize>, element: String, fault: Fault) -> Box<Failure> {
        let place = Place {
            sector: Some(self.entry.sector_id),
            challenge,
            element,
            ..Place::default()
        };
        Failure::new(place, fault)
    }
}
