//! SnapDeals: every opened node of the old replica, the new data and the new replica.

use rayon::prelude::*;

use crate::challenges::{EncodingRandomness, snap_challenges};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::request::SnapRequest;
use crate::sha256;
use crate::snap::{ChallengeProof, PartitionProof};

use super::failure::{Failure, Fault, Place, Role};
use super::path::{Tree, verify_comm_r, verify_count};
use super::{CheckReport, Progress, ReplicaIdCheck};

/// The number of partitions.
pub(super) fn begin(request: &SnapRequest) -> Result<CheckReport, Box<Failure>> {
    let shape = request.proof_type.size.snap();
    verify_count("partitions", request.partitions.len(), shape.partitions)
        .map_err(|fault| Failure::new(Place::whole("vanilla_proofs"), fault))?;
    let challenges = (shape.partitions * shape.challenges) as u64;
    Ok(CheckReport {
        challenges,
        merkle_paths: 3 * challenges,
        labels: 0,
        replica_id: ReplicaIdCheck::NotInvolved,
    })
}

/// Checks all partitions, all challenges in parallel. Reports the first failure in order.
pub(super) fn check(
    request: &SnapRequest,
    progress: &dyn Progress,
) -> Result<CheckReport, Box<Failure>> {
    let size = request.proof_type.size;
    let report = begin(request)?;
    let randomness = EncodingRandomness::new(size, &request.comm_d_new, &request.comm_r_old);
    progress.begin("vanilla check", report.challenges);
    let partitions = request.partitions.par_iter().enumerate();
    let failure = partitions.find_map_first(|(number, proof)| {
        let partition = Partition::new(request, number, proof, &randomness);
        partition
            .and_then(|partition| partition.check(progress))
            .err()
    });
    failure.map_or(Ok(report), Err)
}

/// What the challenges of one partition share.
struct Partition<'a> {
    request: &'a SnapRequest,
    number: usize,
    proof: &'a PartitionProof,
    randomness: &'a EncodingRandomness,
    tree_r_old: Tree<PoseidonDomain>,
    tree_d_new: Tree<Sha256Domain>,
    tree_r_new: Tree<PoseidonDomain>,
    apex: ApexTree,
}

/// The top of the data tree above one partition's apex leafs.
struct ApexTree {
    /// Its root as hashed from the leafs.
    root: Sha256Domain,
    /// Level of its leafs in the data tree, counted from the data.
    leaf_level: usize,
    /// Levels above that of its root.
    height: usize,
}

impl<'a> Partition<'a> {
    fn new(
        request: &'a SnapRequest,
        number: usize,
        proof: &'a PartitionProof,
        randomness: &'a EncodingRandomness,
    ) -> Result<Partition<'a>, Box<Failure>> {
        let size = request.proof_type.size;
        let shape = size.snap();
        let fail = |element: &str, fault| failure(number, None, element, fault);
        verify_count("apex leafs", proof.apex_leafs.len(), shape.apex_leafs)
            .map_err(|f| fail("apex_leafs", f))?;
        verify_count("challenges", proof.challenge_proofs.len(), shape.challenges)
            .map_err(|f| fail("challenge_proofs", f))?;
        let first = &proof.challenge_proofs[0];
        let (root_old, root_new) = (first.proof_r_old.root(), first.proof_r_new.root());
        verify_comm_r("comm_r_old", &request.comm_r_old, &proof.comm_c, &root_old)
            .map_err(|f| fail("comm_c", f))?;
        verify_comm_r("comm_r_new", &request.comm_r_new, &proof.comm_c, &root_new)
            .map_err(|f| fail("comm_c", f))?;
        let height = shape.apex_leafs.ilog2() as usize;
        Ok(Partition {
            request,
            number,
            proof,
            randomness,
            tree_r_old: Tree::new("the old replica tree", root_old, size),
            tree_d_new: Tree::new("comm_d_new", request.comm_d_new, size),
            tree_r_new: Tree::new("the new replica tree", root_new, size),
            apex: ApexTree {
                root: root_of(&proof.apex_leafs),
                leaf_level: size.log2_nodes() as usize - shape.partitions.ilog2() as usize - height,
                height,
            },
        })
    }

    fn check(&self, progress: &dyn Progress) -> Result<(), Box<Failure>> {
        let size = self.request.proof_type.size;
        let nodes = snap_challenges(size, &self.request.comm_r_new, self.number);
        let pairs = self
            .proof
            .challenge_proofs
            .par_iter()
            .zip(nodes)
            .enumerate();
        let failure = pairs.find_map_first(|(challenge, (proof, node))| {
            let outcome = self.check_challenge(proof, node);
            progress.advance(1);
            outcome
                .err()
                .map(|(element, fault)| failure(self.number, Some(challenge), &element, fault))
        });
        failure.map_or(Ok(()), Err)
    }

    /// One challenge; a failure names the element.
    fn check_challenge(&self, proof: &ChallengeProof, node: u32) -> Result<(), (String, Fault)> {
        let named = |element: &'static str| move |fault| (element.to_owned(), fault);
        let index = u64::from(node);
        self.tree_r_old
            .verify(&proof.proof_r_old, index, Role::Challenge)
            .map_err(named("proof_r_old"))?;
        self.tree_r_new
            .verify(&proof.proof_r_new, index, Role::Challenge)
            .map_err(named("proof_r_new"))?;
        self.check_data(proof, node)?;

        let data = proof.proof_d_new.leaf().to_fr();
        let old = proof.proof_r_old.leaf().to_fr();
        let computed: PoseidonDomain = (old + self.randomness.rho(node) * data).into();
        let replica = proof.proof_r_new.leaf();
        if computed == replica {
            return Ok(());
        }
        let (computed, replica) = (computed.into(), replica.into());
        Err((
            "proof_r_new.leaf".to_owned(),
            Fault::Encoding { computed, replica },
        ))
    }

    /// The data node's path, which must pass through its apex leaf and the root of the apex tree.
    fn check_data(&self, proof: &ChallengeProof, node: u32) -> Result<(), (String, Fault)> {
        let ApexTree {
            root,
            leaf_level,
            height,
        } = self.apex;
        let slot = (node >> leaf_level) as usize % self.proof.apex_leafs.len();
        let mut fault = None;
        let mut compare = |what, actual: Sha256Domain, passed: &Sha256Domain| {
            if actual != *passed && fault.is_none() {
                let (actual, expected) = (actual.into(), (*passed).into());
                let element = match what {
                    "leaf" => format!("apex_leafs[{slot}]"),
                    _ => "apex_leafs".to_owned(),
                };
                fault = Some((
                    element,
                    Fault::Apex {
                        what,
                        actual,
                        expected,
                    },
                ));
            }
        };
        self.tree_d_new
            .verify_and_visit(
                &proof.proof_d_new,
                node.into(),
                Role::Challenge,
                |level, passed| {
                    if level == leaf_level {
                        compare("leaf", self.proof.apex_leafs[slot], passed);
                    }
                    if level == leaf_level + height {
                        compare("root", root, passed);
                    }
                },
            )
            .map_err(|fault| ("proof_d_new".to_owned(), fault))?;
        fault.map_or(Ok(()), Err)
    }
}

/// Root of a binary tree over 2^k nodes.
fn root_of(leafs: &[Sha256Domain]) -> Sha256Domain {
    let mut row = leafs.to_vec();
    while row.len() > 1 {
        row = row
            .chunks_exact(2)
            .map(|pair| sha256::hash_pair(&pair[0], &pair[1]))
            .collect();
    }
    row[0]
}

fn failure(
    partition: usize,
    challenge: Option<usize>,
    element: &str,
    fault: Fault,
) -> Box<Failure> {
    let place = Place {
        partition: Some(partition),
        challenge,
        element: element.to_owned(),
        ..Place::default()
    };
    Failure::new(place, fault)
}
