//! Requests of every kind and size with made-up nodes: right in form, false in
//! content. They stand in for the large sectors of which there are no fixtures.

use base64::Engine;

use crate::decode::{Phase1Output, SubmitProofRequest, VanillaSealProof};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::merkle::{InclusionPath, MerkleProof, PathElement, ProofData};
use crate::registered::RegisteredSealProof;
use crate::registry::{CircuitId, DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS, ProofKind, SectorSize};
use crate::{porep, post, snap};

/// A stream of made-up nodes (SplitMix64).
struct Nodes(u64);

impl Nodes {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes());
        }
        bytes[31] &= 0x3f;
        bytes
    }

    fn node<D: Domain>(&mut self) -> D {
        D::from_bytes(self.bytes()).unwrap()
    }

    fn list<D: Domain>(&mut self, count: usize) -> Vec<D> {
        (0..count).map(|_| self.node()).collect()
    }

    fn path<D: Domain>(&mut self, levels: usize, arity: usize) -> InclusionPath<D> {
        let path = (0..levels)
            .map(|_| PathElement {
                hashes: self.list(arity - 1),
                index: self.word() % arity as u64,
            })
            .collect();
        InclusionPath { path }
    }

    fn data_tree(&mut self, size: SectorSize) -> MerkleProof<Sha256Domain> {
        MerkleProof {
            data: ProofData::Single {
                root: self.node(),
                leaf: self.node(),
                path: self.path(size.log2_nodes() as usize, 2),
            },
        }
    }

    fn poseidon_tree(&mut self, size: SectorSize) -> MerkleProof<PoseidonDomain> {
        let tree = size.tree();
        let (root, leaf) = (self.node(), self.node());
        let base = self.path(tree.base_levels, tree.base_arity);
        let data = match (tree.sub_arity, tree.top_arity) {
            (0, _) => ProofData::Single {
                root,
                leaf,
                path: base,
            },
            (sub, 0) => ProofData::Sub {
                base_proof: base,
                sub_proof: self.path(1, sub),
                root,
                leaf,
            },
            (sub, top) => ProofData::Top {
                base_proof: base,
                sub_proof: self.path(1, sub),
                top_proof: self.path(1, top),
                root,
                leaf,
            },
        };
        MerkleProof { data }
    }

    fn column(&mut self, size: SectorSize) -> porep::ColumnProof {
        let index = self.word() as u32;
        porep::ColumnProof {
            column: porep::Column::new(index, self.list(size.porep().layers)),
            inclusion_proof: self.poseidon_tree(size),
        }
    }

    fn label(&mut self, layer_index: u32) -> porep::LabelingProof {
        porep::LabelingProof {
            parents: self.list(LABEL_PARENTS),
            layer_index,
            node: u64::from(self.word() as u32),
        }
    }

    fn porep_challenge(&mut self, size: SectorSize) -> porep::Proof {
        let layers = size.porep().layers as u32;
        porep::Proof {
            comm_d_proofs: self.data_tree(size),
            comm_r_last_proof: self.poseidon_tree(size),
            replica_column_proofs: porep::ReplicaColumnProof {
                c_x: self.column(size),
                drg_parents: (0..DRG_PARENTS).map(|_| self.column(size)).collect(),
                exp_parents: (0..EXP_PARENTS).map(|_| self.column(size)).collect(),
            },
            labeling_proofs: (1..=layers).map(|layer| self.label(layer)).collect(),
            encoding_proof: self.label(layers),
        }
    }
}

/// A phase-1 output, as JSON.
pub fn phase1(proof_type: RegisteredSealProof, seed: u64) -> Vec<u8> {
    let mut nodes = Nodes(seed);
    let size = proof_type.size;
    let output = Phase1Output {
        registered_proof: proof_type.name().into(),
        vanilla_proofs: VanillaSealProof {
            size,
            partitions: (0..proof_type.partitions())
                .map(|_| {
                    (0..size.porep().challenges)
                        .map(|_| nodes.porep_challenge(size))
                        .collect()
                })
                .collect(),
        },
        comm_r: nodes.node(),
        comm_d: nodes.node(),
        replica_id: nodes.node(),
        seed: nodes.bytes(),
        ticket: nodes.bytes(),
    };
    serde_json::to_vec(&output).unwrap()
}

/// A request for this circuit, filled to the brim: all partitions, all sectors.
pub fn submit(circuit: CircuitId, seed: u64) -> SubmitProofRequest {
    let size = circuit.size;
    let base = SubmitProofRequest {
        request_id: format!("synthetic-{circuit}-{seed}"),
        proof_kind: circuit.kind.number() as i32,
        sector_size: size.bytes(),
        registered_proof: size as u64,
        miner_id: 1000,
        ..SubmitProofRequest::default()
    };
    let mut nodes = Nodes(seed);
    match circuit.kind {
        ProofKind::Porep => {
            let registered_proof = size as u64 + 5;
            let proof_type = RegisteredSealProof::from_number(registered_proof).unwrap();
            let phase1 = phase1(proof_type, seed);
            let phase1 = base64::engine::general_purpose::STANDARD.encode(phase1);
            let bytes = size.bytes();
            let envelope =
                format!(r#"{{"SectorNum":7,"Phase1Out":"{phase1}","SectorSize":{bytes}}}"#);
            SubmitProofRequest {
                registered_proof,
                sector_number: 7,
                vanilla_proof: envelope.into_bytes(),
                ..base
            }
        }
        ProofKind::Snap => SubmitProofRequest {
            sector_number: 7,
            vanilla_proofs: (0..circuit.partitions())
                .map(|_| bincode_of(&nodes_snap(&mut nodes, size)))
                .collect(),
            comm_r_old: nodes.bytes().to_vec(),
            comm_r_new: nodes.bytes().to_vec(),
            comm_d_new: nodes.bytes().to_vec(),
            ..base
        },
        ProofKind::Window | ProofKind::Winning => {
            let (entries, registered_proof) = match circuit.kind {
                ProofKind::Window => (size.window().sectors as u64, size as u64 + 10),
                _ => (1, size as u64),
            };
            SubmitProofRequest {
                registered_proof,
                vanilla_proofs: (0..entries)
                    .map(|i| bincode_of(&nodes_post(&mut nodes, circuit, i)))
                    .collect(),
                randomness: nodes.bytes().to_vec(),
                ..base
            }
        }
    }
}

fn nodes_snap(nodes: &mut Nodes, size: SectorSize) -> snap::PartitionProof {
    let shape = size.snap();
    snap::PartitionProof {
        comm_c: nodes.node(),
        apex_leafs: nodes.list(shape.apex_leafs),
        challenge_proofs: (0..shape.challenges)
            .map(|_| snap::ChallengeProof {
                proof_r_old: nodes.poseidon_tree(size),
                proof_d_new: nodes.data_tree(size),
                proof_r_new: nodes.poseidon_tree(size),
            })
            .collect(),
    }
}

fn nodes_post(
    nodes: &mut Nodes,
    circuit: CircuitId,
    sector_id: u64,
) -> post::FallbackPoStSectorProof {
    let proofs = match circuit.kind {
        ProofKind::Winning => circuit.size.winning().sectors,
        _ => circuit.size.window().challenges,
    };
    post::FallbackPoStSectorProof {
        sector_id,
        comm_r: nodes.node(),
        vanilla_proof: post::VanillaProof {
            sectors: vec![post::SectorProof {
                inclusion_proofs: (0..proofs)
                    .map(|_| nodes.poseidon_tree(circuit.size))
                    .collect(),
                comm_c: nodes.node(),
                comm_r_last: nodes.node(),
            }],
        },
    }
}

/// The bincode 1.3 form.
fn bincode_of<T: serde::Serialize>(value: &T) -> Vec<u8> {
    bincode::serialize(value).unwrap()
}
