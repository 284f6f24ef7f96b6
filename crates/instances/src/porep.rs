//! PoRep: a sector of which only the opened columns exist, or a whole small one.

use std::collections::{BTreeMap, BTreeSet};

use filecoin::challenges::PorepChallenges;
use filecoin::graph::Graph;
use filecoin::porep::{Column, ColumnProof, LabelingProof, Proof, ReplicaColumnProof};
use filecoin::registry::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};
use filecoin::{
    Domain, PorepRequest, PoseidonDomain, RegisteredSealProof, SealVersion, SectorSize,
    Sha256Domain, poseidon, sha256,
};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use rayon::prelude::*;

use crate::Error;
use crate::tree::{BlockTree, Node, SparseTree, Tree};

/// Labels of some nodes: one per layer.
type Columns = BTreeMap<u32, Vec<PoseidonDomain>>;

/// Most distinct leafs of the data tree, log 2.
const DATA_BLOCKS: u32 = 10;

/// A request of all partitions.
pub fn request(
    proof_type: RegisteredSealProof,
    rng: &mut ChaCha8Rng,
) -> Result<PorepRequest, Error> {
    let size = proof_type.size;
    let sealable = matches!(size, SectorSize::KiB2 | SectorSize::MiB8);
    let (mut seed, mut ticket) = ([0; 32], [0; 32]);
    rng.fill_bytes(&mut seed);
    rng.fill_bytes(&mut ticket);
    let (miner_id, sector_number) = (1000 + rng.next_u64() % 1000, rng.next_u64() % 1000);

    // The replica id, hence every challenge, follows from comm_d.
    let blocks = 1u64 << DATA_BLOCKS.min(size.log2_nodes());
    let data: Vec<Sha256Domain> = (0..blocks).map(|_| Node::random(rng)).collect();
    let tree_d = BlockTree::new(data, size);
    let comm_d = tree_d.root();
    let porep_id = proof_type.porep_id();
    let replica_id = sha256::replica_id(miner_id, sector_number, &ticket, &comm_d, &porep_id);
    let sector = Sector {
        proof_type,
        graph: Graph::new(proof_type),
        replica_id,
        tree_d,
    };

    let interactive = matches!(proof_type.version, SealVersion::V1 | SealVersion::V1_1);
    let sealed = if interactive {
        let challenges = PorepChallenges {
            proof_type,
            replica_id: &replica_id,
            // Interactive challenges do not depend on it.
            comm_r: &replica_id,
            seed: &seed,
        };
        let nodes = (0..proof_type.partitions()).flat_map(|k| challenges.partition(k));
        sector.around(&nodes.collect(), rng)
    } else if sealable {
        sector.whole()
    } else {
        let version = proof_type.version;
        return Err(Error::NeedsSealing { version, size });
    };

    let [comm_c, comm_r_last] = [&sealed.tree_c, &sealed.tree_r].map(|tree| tree.root().to_fr());
    let comm_r: PoseidonDomain = poseidon::hash_2(comm_c, comm_r_last).into();
    let challenges = PorepChallenges {
        proof_type,
        replica_id: &replica_id,
        comm_r: &comm_r,
        seed: &seed,
    };
    let partitions = (0..proof_type.partitions())
        .into_par_iter()
        .map(|k| {
            let nodes = challenges.partition(k).into_iter();
            nodes.map(|node| sector.prove(&sealed, node)).collect()
        })
        .collect();
    Ok(PorepRequest {
        proof_type,
        miner_id: Some(miner_id),
        sector_number: Some(sector_number),
        comm_r,
        comm_d,
        replica_id,
        seed,
        ticket,
        partitions,
    })
}

/// A sector before its labels are known.
struct Sector {
    proof_type: RegisteredSealProof,
    graph: Graph,
    replica_id: PoseidonDomain,
    tree_d: BlockTree<Sha256Domain>,
}

/// Its opened columns and the trees over all columns and over the replica.
struct Sealed {
    columns: Columns,
    tree_c: Box<dyn Tree<PoseidonDomain> + Send + Sync>,
    tree_r: Box<dyn Tree<PoseidonDomain> + Send + Sync>,
}

impl Sector {
    fn size(&self) -> SectorSize {
        self.proof_type.size
    }

    fn layers(&self) -> usize {
        self.size().porep().layers
    }

    /// Labels at `challenges`; their parents' labels are random where those are no challenges.
    fn around(&self, challenges: &BTreeSet<u32>, rng: &mut ChaCha8Rng) -> Sealed {
        let mut columns = Columns::new();
        for &node in challenges {
            let drg = self.graph.drg_parents(node);
            let exp = self.graph.expander_parents(node);
            for parent in drg.into_iter().chain(exp) {
                columns.entry(parent).or_insert_with(|| {
                    let labels = (0..self.layers()).map(|_| Node::random(rng));
                    labels.collect()
                });
            }
        }
        for &node in challenges {
            columns.insert(node, vec![PoseidonDomain::default(); self.layers()]);
        }
        let nodes: Vec<u32> = challenges.iter().copied().collect();
        self.label_all(&nodes, &mut columns);
        let leafs: Vec<(u64, PoseidonDomain)> = columns
            .par_iter()
            .map(|(&node, column)| (node.into(), column_hash(column)))
            .collect();
        let replica = challenges
            .iter()
            .map(|&node| (node.into(), self.encode(node, &columns[&node])));
        let tree_r = SparseTree::new(replica.collect(), self.size(), rng);
        let tree_c = SparseTree::new(leafs.into_iter().collect(), self.size(), rng);
        Sealed {
            columns,
            tree_c: Box::new(tree_c),
            tree_r: Box::new(tree_r),
        }
    }

    /// All labels of the sector, as sealing makes them.
    fn whole(&self) -> Sealed {
        let nodes: Vec<u32> = (0..self.size().nodes() as u32).collect();
        let empty = vec![PoseidonDomain::default(); self.layers()];
        let mut columns: Columns = nodes.iter().map(|&node| (node, empty.clone())).collect();
        self.label_all(&nodes, &mut columns);
        let columns_list: Vec<(&u32, &Vec<PoseidonDomain>)> = columns.iter().collect();
        let leafs = columns_list
            .par_iter()
            .map(|(_, column)| column_hash(column));
        let replica = columns_list
            .par_iter()
            .map(|(node, column)| self.encode(**node, column));
        let tree_c = BlockTree::new(leafs.collect(), self.size());
        let tree_r = BlockTree::new(replica.collect(), self.size());
        Sealed {
            columns,
            tree_c: Box::new(tree_c),
            tree_r: Box::new(tree_r),
        }
    }

    /// Labels `nodes`, ascending, layer by layer: a label depends on lower nodes of its layer and
    /// on any nodes of the layer before. (Node 0 takes itself for its parents where sealing takes
    /// none; it is never challenged, so nobody recomputes its label.)
    fn label_all(&self, nodes: &[u32], columns: &mut Columns) {
        for layer in 1..=self.layers() {
            for &node in nodes {
                let parents = self.parent_labels(node, layer, columns);
                let label = sha256::label(&self.replica_id, layer as u32, node.into(), &parents);
                columns
                    .get_mut(&node)
                    .expect("invariant: the caller has made room for its nodes")[layer - 1] = label;
            }
        }
    }

    /// The labels that enter a label, in order.
    fn parent_labels(
        &self,
        node: u32,
        layer: usize,
        columns: &Columns,
    ) -> [PoseidonDomain; LABEL_PARENTS] {
        let drg = self.graph.drg_parents(node);
        let exp = self.graph.expander_parents(node);
        let period = if layer == 1 {
            DRG_PARENTS
        } else {
            DRG_PARENTS + EXP_PARENTS
        };
        std::array::from_fn(|slot| match slot % period {
            i if i < DRG_PARENTS => columns[&drg[i]][layer - 1],
            i => columns[&exp[i - DRG_PARENTS]][layer - 2],
        })
    }

    /// The replica's node: last label plus data.
    fn encode(&self, node: u32, column: &[PoseidonDomain]) -> PoseidonDomain {
        let key = column[self.layers() - 1].to_fr();
        (key + self.tree_d.node(0, node.into()).to_fr()).into()
    }

    /// The vanilla proof of one challenge.
    fn prove(&self, sealed: &Sealed, node: u32) -> Proof {
        let column = |node: u32| ColumnProof {
            column: Column::new(node, sealed.columns[&node].clone()),
            inclusion_proof: sealed.tree_c.open(node.into(), self.size()),
        };
        let labeling = |layer: usize| LabelingProof {
            parents: self.parent_labels(node, layer, &sealed.columns).to_vec(),
            layer_index: layer as u32,
            node: node.into(),
        };
        Proof {
            comm_d_proofs: self.tree_d.open(node.into(), self.size()),
            comm_r_last_proof: sealed.tree_r.open(node.into(), self.size()),
            replica_column_proofs: ReplicaColumnProof {
                c_x: column(node),
                drg_parents: self.graph.drg_parents(node).map(column).into(),
                exp_parents: self.graph.expander_parents(node).map(column).into(),
            },
            labeling_proofs: (1..=self.layers()).map(labeling).collect(),
            encoding_proof: labeling(self.layers()),
        }
    }
}

/// Poseidon over a column of 2 or 11 labels.
fn column_hash(column: &[PoseidonDomain]) -> PoseidonDomain {
    match column {
        [a, b] => poseidon::hash_2(a.to_fr(), b.to_fr()).into(),
        _ => poseidon::hash_11(&std::array::from_fn(|i| column[i].to_fr())).into(),
    }
}
