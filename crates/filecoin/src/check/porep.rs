//! PoRep: every opened column, label and encoding of a sealed sector.

use rayon::prelude::*;

use crate::challenges::PorepChallenges;
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::graph::Graph;
use crate::porep::{ColumnProof, LabelingProof, Proof};
use crate::poseidon;
use crate::registry::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};
use crate::request::PorepRequest;
use crate::sha256;

use super::failure::{Failure, Fault, Place, Role};
use super::path::{Tree, verify_comm_r, verify_count};
use super::{CheckReport, Progress, ReplicaIdCheck};

/// Numbers of partitions and challenges, and the replica id.
pub(super) fn begin(request: &PorepRequest) -> Result<CheckReport, Box<Failure>> {
    let shape = request.proof_type.size.porep();
    let replica_id = check_replica_id(request)?;
    let partitions = request.proof_type.partitions();
    verify_count("partitions", request.partitions.len(), partitions)
        .map_err(|fault| whole("vanilla_proofs", fault))?;
    for (partition, proofs) in request.partitions.iter().enumerate() {
        verify_count("challenges", proofs.len(), shape.challenges).map_err(|fault| {
            Failure::new(
                Place {
                    partition: Some(partition),
                    element: "vanilla_proofs".to_owned(),
                    ..Place::default()
                },
                fault,
            )
        })?;
    }
    let challenges = (partitions * shape.challenges) as u64;
    let paths = 3 + (DRG_PARENTS + EXP_PARENTS) as u64;
    Ok(CheckReport {
        challenges,
        merkle_paths: challenges * paths,
        labels: challenges * shape.layers as u64,
        replica_id,
    })
}

/// Checks all partitions, all challenges in parallel. Reports the first failure in order.
pub(super) fn check(
    request: &PorepRequest,
    progress: &dyn Progress,
) -> Result<CheckReport, Box<Failure>> {
    let report = begin(request)?;
    // Every challenge must open the same two Poseidon trees, and comm_r commits to both.
    let first = &request.partitions[0][0];
    let comm_c = first.replica_column_proofs.c_x.inclusion_proof.root();
    let comm_r_last = first.comm_r_last_proof.root();
    verify_comm_r("comm_r", &request.comm_r, &comm_c, &comm_r_last)
        .map_err(|fault| whole("comm_r", fault))?;

    let size = request.proof_type.size;
    let sector = Sector {
        request,
        graph: Graph::new(request.proof_type),
        layers: size.porep().layers,
        tree_d: Tree::new("comm_d", request.comm_d, size),
        tree_c: Tree::new("comm_c", comm_c, size),
        tree_r: Tree::new("comm_r_last", comm_r_last, size),
    };
    let derived = PorepChallenges::of(request);
    let challenges: Vec<Challenge<'_>> = request
        .partitions
        .iter()
        .enumerate()
        .flat_map(|(partition, proofs)| {
            let nodes = derived.partition(partition);
            proofs
                .iter()
                .zip(nodes)
                .enumerate()
                .map(move |(number, (proof, node))| Challenge {
                    partition,
                    number,
                    node,
                    proof,
                })
        })
        .collect();
    progress.begin("vanilla check", challenges.len() as u64);
    let failure = challenges.par_iter().find_map_first(|challenge| {
        let outcome = sector.check(challenge);
        progress.advance(1);
        outcome.err()
    });
    failure.map_or(Ok(report), Err)
}

/// A failure of a value of the whole request.
pub(crate) fn whole(element: &str, fault: Fault) -> Box<Failure> {
    let place = Place {
        element: element.to_owned(),
        ..Place::default()
    };
    Failure::new(place, fault)
}

/// Recomputes the replica id if the request names miner and sector.
pub(crate) fn check_replica_id(request: &PorepRequest) -> Result<ReplicaIdCheck, Box<Failure>> {
    let (Some(miner), Some(sector)) = (request.miner_id, request.sector_number) else {
        return Ok(ReplicaIdCheck::Skipped);
    };
    let porep_id = request.proof_type.porep_id();
    let expected = sha256::replica_id(miner, sector, &request.ticket, &request.comm_d, &porep_id);
    if expected == request.replica_id {
        return Ok(ReplicaIdCheck::Recomputed);
    }
    let fault = Fault::ReplicaId {
        actual: request.replica_id.into(),
        expected: expected.into(),
        miner,
        sector,
    };
    Err(whole("replica_id", fault))
}

/// What all challenges of a sector share.
struct Sector<'a> {
    request: &'a PorepRequest,
    graph: Graph,
    layers: usize,
    tree_d: Tree<Sha256Domain>,
    tree_c: Tree<PoseidonDomain>,
    tree_r: Tree<PoseidonDomain>,
}

/// One challenge: the derived node and what the proof says about it.
struct Challenge<'a> {
    partition: usize,
    number: usize,
    node: u32,
    proof: &'a Proof,
}

impl Challenge<'_> {
    fn failure(
        &self,
        layer: Option<usize>,
        element: impl Into<String>,
        fault: Fault,
    ) -> Box<Failure> {
        Failure::new(
            Place {
                partition: Some(self.partition),
                sector: None,
                challenge: Some(self.number),
                layer: layer.map(|layer| layer as u32),
                element: element.into(),
            },
            fault,
        )
    }
}

impl Sector<'_> {
    fn check(&self, challenge: &Challenge<'_>) -> Result<(), Box<Failure>> {
        let Challenge { node, proof, .. } = *challenge;
        let fail = |element: &str, fault| challenge.failure(None, element, fault);
        let index = u64::from(node);
        self.tree_d
            .verify(&proof.comm_d_proofs, index, Role::Challenge)
            .map_err(|fault| fail("comm_d_proofs", fault))?;
        self.tree_r
            .verify(&proof.comm_r_last_proof, index, Role::Challenge)
            .map_err(|fault| fail("comm_r_last_proof", fault))?;
        self.check_columns(challenge)?;
        self.check_labels(challenge)?;
        self.check_encoding(challenge)
    }

    /// The columns of the challenge and of all its parents, each at its derived place in tree C.
    fn check_columns(&self, challenge: &Challenge<'_>) -> Result<(), Box<Failure>> {
        let columns = &challenge.proof.replica_column_proofs;
        let drg = self.graph.drg_parents(challenge.node);
        let exp = self.graph.expander_parents(challenge.node);
        let fail = |element: &str, fault| {
            challenge.failure(None, format!("replica_column_proofs.{element}"), fault)
        };
        verify_count("columns", columns.drg_parents.len(), DRG_PARENTS)
            .map_err(|f| fail("drg_parents", f))?;
        verify_count("columns", columns.exp_parents.len(), EXP_PARENTS)
            .map_err(|f| fail("exp_parents", f))?;
        self.check_column(&columns.c_x, challenge.node, Role::Challenge)
            .map_err(|(part, fault)| fail(&format!("c_x.{part}"), fault))?;
        for (i, (column, node)) in columns.drg_parents.iter().zip(drg).enumerate() {
            self.check_column(column, node, Role::DrgParent(i))
                .map_err(|(part, fault)| fail(&format!("drg_parents[{i}].{part}"), fault))?;
        }
        for (i, (column, node)) in columns.exp_parents.iter().zip(exp).enumerate() {
            self.check_column(column, node, Role::ExpanderParent(i))
                .map_err(|(part, fault)| fail(&format!("exp_parents[{i}].{part}"), fault))?;
        }
        Ok(())
    }

    /// One column; a failure names the part of it.
    fn check_column(
        &self,
        proof: &ColumnProof,
        node: u32,
        role: Role,
    ) -> Result<(), (&'static str, Fault)> {
        let rows = &proof.column.rows;
        verify_count("rows", rows.len(), self.layers).map_err(|fault| ("column.rows", fault))?;
        self.tree_c
            .verify(&proof.inclusion_proof, u64::from(node), role)
            .map_err(|fault| ("inclusion_proof", fault))?;
        let computed = column_hash(rows);
        let leaf = proof.inclusion_proof.leaf();
        if computed != leaf {
            let (computed, leaf) = (computed.into(), leaf.into());
            return Err(("column.rows", Fault::ColumnHash { computed, leaf }));
        }
        verify_number("node", proof.column.index.into(), node.into())
            .map_err(|fault| ("column.index", fault))
    }

    /// Every layer's label of the challenged node, from its parents' columns.
    fn check_labels(&self, challenge: &Challenge<'_>) -> Result<(), Box<Failure>> {
        let proof = challenge.proof;
        verify_count("labelings", proof.labeling_proofs.len(), self.layers)
            .map_err(|fault| challenge.failure(None, "labeling_proofs", fault))?;
        for (i, labeling) in proof.labeling_proofs.iter().enumerate() {
            let layer = i + 1;
            let fail = |element: &str, fault| {
                challenge.failure(
                    Some(layer),
                    format!("labeling_proofs[{i}].{element}"),
                    fault,
                )
            };
            let parents = parent_labels(proof, layer);
            verify_labeling(labeling, layer, challenge.node, &parents)
                .map_err(|(part, fault)| fail(part, fault))?;
            let node = u64::from(challenge.node);
            let computed = sha256::label(&self.request.replica_id, layer as u32, node, &parents);
            let column = proof.replica_column_proofs.c_x.column.rows[i];
            if computed != column {
                let (computed, column) = (computed.into(), column.into());
                let element = format!("replica_column_proofs.c_x.column.rows[{i}]");
                return Err(challenge.failure(
                    Some(layer),
                    element,
                    Fault::Label { computed, column },
                ));
            }
        }
        Ok(())
    }

    /// replica node = last label + data node, and the encoding proof is the last labelling.
    fn check_encoding(&self, challenge: &Challenge<'_>) -> Result<(), Box<Failure>> {
        let proof = challenge.proof;
        let parents = parent_labels(proof, self.layers);
        verify_labeling(&proof.encoding_proof, self.layers, challenge.node, &parents).map_err(
            |(part, fault)| {
                challenge.failure(Some(self.layers), format!("encoding_proof.{part}"), fault)
            },
        )?;
        let key = proof.replica_column_proofs.c_x.column.rows[self.layers - 1].to_fr();
        let computed: PoseidonDomain = (key + proof.comm_d_proofs.leaf().to_fr()).into();
        let replica = proof.comm_r_last_proof.leaf();
        if computed == replica {
            return Ok(());
        }
        let (computed, replica) = (computed.into(), replica.into());
        Err(challenge.failure(
            None,
            "comm_r_last_proof.leaf",
            Fault::Encoding { computed, replica },
        ))
    }
}

/// Poseidon over a column's labels; 2 or 11 of them, as the caller has checked.
fn column_hash(rows: &[PoseidonDomain]) -> PoseidonDomain {
    match rows {
        [a, b] => poseidon::hash_2(a.to_fr(), b.to_fr()).into(),
        _ => {
            let inputs = std::array::from_fn(|i| rows[i].to_fr());
            poseidon::hash_11(&inputs).into()
        }
    }
}

/// The 37 labels that enter the label of the challenged node: its DRG parents' on the same
/// layer and, from layer 2 on, its expander parents' on the layer before, repeated in turn.
pub(crate) fn parent_labels(proof: &Proof, layer: usize) -> [PoseidonDomain; LABEL_PARENTS] {
    let columns = &proof.replica_column_proofs;
    let period = if layer == 1 {
        DRG_PARENTS
    } else {
        DRG_PARENTS + EXP_PARENTS
    };
    std::array::from_fn(|slot| match slot % period {
        i if i < DRG_PARENTS => columns.drg_parents[i].column.rows[layer - 1],
        i => columns.exp_parents[i - DRG_PARENTS].column.rows[layer - 2],
    })
}

/// Whether a labelling proof repeats what is known already.
pub(crate) fn verify_labeling(
    labeling: &LabelingProof,
    layer: usize,
    node: u32,
    parents: &[PoseidonDomain; LABEL_PARENTS],
) -> Result<(), (&'static str, Fault)> {
    verify_number("layer", labeling.layer_index.into(), layer as u64)
        .map_err(|fault| ("layer_index", fault))?;
    verify_number("node", labeling.node, node.into()).map_err(|fault| ("node", fault))?;
    verify_count("parents", labeling.parents.len(), LABEL_PARENTS)
        .map_err(|fault| ("parents", fault))?;
    let mut pairs = labeling.parents.iter().zip(parents).enumerate();
    match pairs.find(|(_, (actual, expected))| actual != expected) {
        None => Ok(()),
        Some((slot, (actual, expected))) => {
            let (actual, expected) = ((*actual).into(), (*expected).into());
            let fault = Fault::ParentLabel {
                slot,
                actual,
                expected,
            };
            Err(("parents", fault))
        }
    }
}

pub(crate) fn verify_number(what: &'static str, actual: u64, expected: u64) -> Result<(), Fault> {
    if actual == expected {
        Ok(())
    } else {
        Err(Fault::Number {
            what,
            actual,
            expected,
        })
    }
}
