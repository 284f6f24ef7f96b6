//! WindowPoSt and WinningPoSt: every opened leaf of every sector.

use rayon::prelude::*;

use crate::challenges::PostChallenges;
use crate::post::FallbackPoStSectorProof;
use crate::registry::ProofKind;
use crate::request::PostRequest;

use super::failure::{Failure, Fault, Place, Role};
use super::path::{Tree, verify_comm_r, verify_count};
use super::{CheckReport, Progress, ReplicaIdCheck};

/// Counts and order.
pub(super) fn begin(request: &PostRequest, kind: ProofKind) -> Result<CheckReport, Box<Failure>> {
    check_form(request, kind)?;
    let challenges = (request.sectors.len() * shape(request, kind).1) as u64;
    Ok(CheckReport {
        challenges,
        merkle_paths: challenges,
        labels: 0,
        replica_id: ReplicaIdCheck::NotInvolved,
    })
}

/// Checks all sectors in parallel. Reports the first failure in order.
pub(super) fn check(
    request: &PostRequest,
    kind: ProofKind,
    progress: &dyn Progress,
) -> Result<CheckReport, Box<Failure>> {
    let report = begin(request, kind)?;
    progress.begin("vanilla check", request.sectors.len() as u64);
    let challenges = PostChallenges::of(request);
    let failure = request
        .sectors
        .par_iter()
        .enumerate()
        .find_map_first(|(position, sector)| {
            let leafs = challenges.sector(position, sector.sector_id);
            let outcome = check_sector(request, sector, &leafs);
            progress.advance(1);
            outcome.err()
        });
    failure.map_or(Ok(report), Err)
}

/// Most sectors of a request, and inclusion proofs per sector.
fn shape(request: &PostRequest, kind: ProofKind) -> (usize, usize) {
    let size = request.proof_type.size;
    match kind {
        ProofKind::Winning => (1, size.winning().inclusion_proofs_per_entry(kind)),
        _ => (
            size.window().sectors,
            size.window().inclusion_proofs_per_entry(kind),
        ),
    }
}

/// Counts and order. A verifier looks sectors up by number, so each may appear once, in order.
pub(crate) fn check_form(request: &PostRequest, kind: ProofKind) -> Result<(), Box<Failure>> {
    let fail = |sector, fault| {
        let element = "vanilla_proofs".to_owned();
        let place = Place {
            sector,
            element,
            ..Place::default()
        };
        Failure::new(place, fault)
    };
    if request.proof_type.kind() != kind {
        return Err(fail(None, Fault::Kind));
    }
    let (most, per_sector) = shape(request, kind);
    let sectors = &request.sectors;
    verify_count("sectors", sectors.len(), sectors.len().clamp(1, most))
        .map_err(|fault| fail(None, fault))?;
    for pair in sectors.windows(2) {
        let (previous, sector) = (pair[0].sector_id, pair[1].sector_id);
        if sector <= previous {
            return Err(fail(Some(sector), Fault::SectorOrder { sector, previous }));
        }
    }
    for entry in sectors {
        let number = Some(entry.sector_id);
        let proofs = &entry.vanilla_proof.sectors;
        verify_count("sector proofs", proofs.len(), 1).map_err(|fault| fail(number, fault))?;
        verify_count(
            "inclusion proofs",
            proofs[0].inclusion_proofs.len(),
            per_sector,
        )
        .map_err(|fault| fail(number, fault))?;
    }
    Ok(())
}

/// One sector: its commitment, and its challenged leafs in the replica tree.
fn check_sector(
    request: &PostRequest,
    entry: &FallbackPoStSectorProof,
    leafs: &[u64],
) -> Result<(), Box<Failure>> {
    let fail = |challenge, element: String, fault| {
        let place = Place {
            sector: Some(entry.sector_id),
            challenge,
            element,
            ..Place::default()
        };
        Failure::new(place, fault)
    };
    let proof = entry.sector();
    verify_comm_r("comm_r", &entry.comm_r, &proof.comm_c, &proof.comm_r_last)
        .map_err(|fault| fail(None, "comm_r".to_owned(), fault))?;
    let tree = Tree::new("comm_r_last", proof.comm_r_last, request.proof_type.size);
    let failure = proof
        .inclusion_proofs
        .par_iter()
        .zip(leafs)
        .enumerate()
        .find_map_first(|(number, (inclusion, &leaf))| {
            let outcome = tree.verify(inclusion, leaf, Role::Challenge);
            outcome
                .err()
                .map(|fault| fail(Some(number), format!("inclusion_proofs[{number}]"), fault))
        });
    failure.map_or(Ok(()), Err)
}
