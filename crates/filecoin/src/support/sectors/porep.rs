//! A sealed sector.

use std::collections::BTreeMap;

use blstrs::Scalar as Fr;

use super::Source;
use super::tree::SparseTree;
use crate::challenges::PorepChallenges;
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::graph::Graph;
use crate::registered::RegisteredSealProof;
use crate::registry::{LABEL_PARENTS, SectorSize};
use crate::request::PorepRequest;
use crate::{porep, poseidon, sha256};

/// A sealed sector of an interactive type, all partitions. Miner and sector are 1000 and 7.
///
/// # Panics
/// For types whose challenges depend on comm_r (synthetic, non-interactive), and for 2 KiB,
/// where challenges and parents overlap.
pub fn porep(proof_type: RegisteredSealProof, seed: u64) -> PorepRequest {
    porep_with(proof_type, seed, |_| ())
}

/// As [`porep`], but the column of the very first challenge is changed before anything is built on it.
///
/// # Panics
/// As [`porep`].
pub fn porep_with(
    proof_type: RegisteredSealProof,
    seed: u64,
    change: impl FnOnce(&mut [PoseidonDomain]),
) -> PorepRequest {
    let size = proof_type.size;
    assert!(proof_type.number() < 10 && size != SectorSize::KiB2);
    let mut source = Source::new(seed);
    // The data has a filler of its own, so comm_d is known only after the challenges. They
    // depend on the replica id, hence on comm_d: keep all data the same.
    let data: Sha256Domain = source.node();
    let tree_d = SparseTree::new(size, data, BTreeMap::new());
    let (ticket, seed) = (source.bytes(), source.bytes());
    let replica_id = sha256::replica_id(1000, 7, &ticket, &tree_d.root(), &proof_type.porep_id());
    let mut request = PorepRequest {
        proof_type,
        miner_id: Some(1000),
        sector_number: Some(7),
        comm_r: PoseidonDomain::default(),
        comm_d: tree_d.root(),
        replica_id,
        seed,
        ticket,
        partitions: Vec::new(),
    };
    let nodes: Vec<Vec<u32>> = (0..proof_type.partitions())
        .map(|partition| PorepChallenges::of(&request).partition(partition))
        .collect();
    let mut columns = Columns::new(&request, &nodes, &mut source);
    change(columns.rows.get_mut(&nodes[0][0]).unwrap());
    let hashes = columns
        .rows
        .iter()
        .map(|(&node, rows)| (u64::from(node), column_hash(rows)));
    let tree_c = SparseTree::new(size, source.node(), hashes.collect());
    let replica = nodes.iter().flatten().map(|&node| {
        let key = columns.rows[&node].last().unwrap().to_fr();
        (u64::from(node), PoseidonDomain::from(key + data.to_fr()))
    });
    let tree_r = SparseTree::new(size, source.node(), replica.collect());
    request.comm_r = poseidon::hash_2(tree_c.root().to_fr(), tree_r.root().to_fr()).into();
    let proof = |&node: &u32| porep::Proof {
        comm_d_proofs: tree_d.proof(node.into()),
        comm_r_last_proof: tree_r.proof(node.into()),
        replica_column_proofs: columns.proof(node, &tree_c),
        labeling_proofs: columns.labelings(node),
        encoding_proof: columns.labelings(node).pop().unwrap(),
    };
    request.partitions = nodes
        .iter()
        .map(|nodes| nodes.iter().map(proof).collect())
        .collect();
    request
}

/// Puts another value at `node` of the replica, in a tree of its own right: all paths, roots and
/// comm_r follow, only the encoding does not.
pub fn replace_replica_leafs(request: &mut PorepRequest, node: u64) {
    let proofs = || request.partitions.iter().flatten();
    let leafs = proofs().map(|proof| {
        let index = proof.comm_r_last_proof.leaf_index().unwrap();
        let leaf = proof.comm_r_last_proof.leaf().to_fr();
        let change = Fr::from(u64::from(index == node));
        (index, PoseidonDomain::from(leaf + change))
    });
    let tree = SparseTree::new(
        request.proof_type.size,
        PoseidonDomain::default(),
        leafs.collect(),
    );
    let comm_c = request.partitions[0][0]
        .replica_column_proofs
        .c_x
        .inclusion_proof
        .root();
    request.comm_r = poseidon::hash_2(comm_c.to_fr(), tree.root().to_fr()).into();
    for proof in request.partitions.iter_mut().flatten() {
        let index = proof.comm_r_last_proof.leaf_index().unwrap();
        proof.comm_r_last_proof = tree.proof(index);
    }
}

/// The columns that a PoRep opens.
struct Columns {
    graph: Graph,
    layers: usize,
    rows: BTreeMap<u32, Vec<PoseidonDomain>>,
}

impl Columns {
    /// Parents get random labels, challenged nodes the labels that follow from them.
    fn new(request: &PorepRequest, nodes: &[Vec<u32>], source: &mut Source) -> Self {
        let mut columns = Columns {
            graph: Graph::new(request.proof_type),
            layers: request.proof_type.size.porep().layers,
            rows: BTreeMap::new(),
        };
        let challenged = || nodes.iter().flatten().copied();
        for node in challenged() {
            for parent in columns.parents(node) {
                let rows = (0..columns.layers).map(|_| source.node()).collect();
                columns.rows.entry(parent).or_insert(rows);
            }
        }
        for node in challenged() {
            let labels = (1..=columns.layers as u32).map(|layer| {
                let parents = columns.parent_labels(node, layer as usize);
                sha256::label(&request.replica_id, layer, node.into(), &parents)
            });
            let labels = labels.collect();
            let before = columns.rows.insert(node, labels);
            assert!(
                before.is_none(),
                "node {node} is challenged twice or is a parent: use another seed"
            );
        }
        columns
    }

    fn parents(&self, node: u32) -> Vec<u32> {
        let drg = self.graph.drg_parents(node);
        drg.into_iter()
            .chain(self.graph.expander_parents(node))
            .collect()
    }

    fn parent_labels(&self, node: u32, layer: usize) -> [PoseidonDomain; LABEL_PARENTS] {
        let mut labels = Vec::new();
        for parent in self.graph.drg_parents(node) {
            labels.push(self.rows[&parent][layer - 1]);
        }
        for parent in self
            .graph
            .expander_parents(node)
            .into_iter()
            .filter(|_| layer > 1)
        {
            labels.push(self.rows[&parent][layer - 2]);
        }
        std::array::from_fn(|slot| labels[slot % labels.len()])
    }

    fn column_proof(&self, node: u32, tree_c: &SparseTree<PoseidonDomain>) -> porep::ColumnProof {
        porep::ColumnProof {
            column: porep::Column::new(node, self.rows[&node].clone()),
            inclusion_proof: tree_c.proof(node.into()),
        }
    }

    fn proof(&self, node: u32, tree_c: &SparseTree<PoseidonDomain>) -> porep::ReplicaColumnProof {
        let proofs = |nodes: &[u32]| {
            nodes
                .iter()
                .map(|&node| self.column_proof(node, tree_c))
                .collect()
        };
        porep::ReplicaColumnProof {
            c_x: self.column_proof(node, tree_c),
            drg_parents: proofs(&self.graph.drg_parents(node)),
            exp_parents: proofs(&self.graph.expander_parents(node)),
        }
    }

    fn labelings(&self, node: u32) -> Vec<porep::LabelingProof> {
        let labeling = |layer| porep::LabelingProof {
            parents: self.parent_labels(node, layer).to_vec(),
            layer_index: layer as u32,
            node: node.into(),
        };
        (1..=self.layers).map(labeling).collect()
    }
}

fn column_hash(rows: &[PoseidonDomain]) -> PoseidonDomain {
    let rows: Vec<Fr> = rows.iter().map(Domain::to_fr).collect();
    match rows.len() {
        2 => poseidon::hash_2(rows[0], rows[1]).into(),
        _ => poseidon::hash_11(rows[..].try_into().unwrap()).into(),
    }
}
