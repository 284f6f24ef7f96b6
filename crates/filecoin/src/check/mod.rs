//! The vanilla check: does a request prove what it claims?
//!
//! Everything a circuit would enforce is recomputed here on plain values, before any proving:
//! challenges and parents derived from public values, every Merkle path hashed to its root, every
//! column, label and encoding. A request that passes yields proofs that verify; one
//! that does not is refused with the place and the cause, after milliseconds.
//!
//! `cuzk prove` takes the same verdict from the pass that makes the witnesses
//! ([`crate::native::check`]); this one needs no circuit and no memory to speak of, and was written apart
//! from the generators, so that each tests the other.
//!
//! Lists of wrong length and positions out of range are failures like any other: nothing here
//! panics on a request, however it was made.

mod failure;
pub(crate) mod path;
pub(crate) mod porep;
pub(crate) mod post;
pub(crate) mod snap;
#[cfg(test)]
mod tests;

pub use failure::{Failure, Fault, Node, Place, Role};
pub use groth16::progress::Progress;
#[cfg(any(test, feature = "test-support"))]
pub(crate) use path::TreeNode;

use crate::error::Error;
use crate::registry::ProofKind;
use crate::request::Request;

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckReport {
    /// Challenges opened.
    pub challenges: u64,
    /// Merkle paths hashed to their roots.
    pub merkle_paths: u64,
    /// Labels recomputed.
    pub labels: u64,
    /// What became of the replica id.
    pub replica_id: ReplicaIdCheck,
}

/// What became of the replica id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaIdCheck {
    /// It was recomputed from miner, sector number, ticket, comm_d and proof type, and agrees.
    Recomputed,
    /// It could not be: the request does not name both miner and sector number.
    Skipped,
    /// Proofs of this kind have none.
    NotInvolved,
}

/// What holds of a request as a whole, before any of its challenges is looked at: kind, number of
/// partitions or sectors, replica id. The report is that of a request of which the rest holds too.
///
/// # Errors
/// What does not hold.
pub fn begin(request: &Request) -> Result<CheckReport, Box<Failure>> {
    match request {
        Request::Porep(porep) => porep::begin(porep),
        Request::Snap(snap) => snap::begin(snap),
        Request::Window(post) => post::begin(post, ProofKind::Window),
        Request::Winning(post) => post::begin(post, ProofKind::Winning),
    }
}

/// Checks a request completely, on all threads of the current rayon pool.
///
/// `progress` sees one stage, "vanilla check", in challenges (PoSt: sectors).
///
/// # Errors
/// [`Error::CheckFailed`] with the first failure in the order of the request.
pub fn check(request: &Request, progress: &dyn Progress) -> Result<CheckReport, Error> {
    let outcome = match request {
        Request::Porep(porep) => porep::check(porep, progress),
        Request::Snap(snap) => snap::check(snap, progress),
        Request::Window(post) => post::check(post, ProofKind::Window, progress),
        Request::Winning(post) => post::check(post, ProofKind::Winning, progress),
    };
    outcome.map_err(Error::CheckFailed)
}
