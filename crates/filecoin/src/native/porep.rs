//! PoRep (`StackedCircuit`): one block per challenge, inside it one per column, label and path.

use ::witness::word::Word;
use ::witness::{Writer, field, poseidon::gadget, sha256};
use blstrs::Scalar as Fr;

use super::failure;
use super::path::{include_poseidon, include_sha256};
use crate::challenges::PorepChallenges;
use crate::check::path::{Tree, verify_commitment, verify_count};
use crate::check::porep::{check_replica_id, parent_labels, verify_labeling, verify_number, whole};
use crate::check::{Failure, Fault, Progress, Role};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::graph::Graph;
use crate::porep::{ColumnProof, Proof};
use crate::registry::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};
use crate::request::PorepRequest;

/// Words of a label's message: replica id, layer and node with zeros, 37 parents.
const LABEL_WORDS: usize = 8 * (2 + LABEL_PARENTS);

/// A fault, and the layer and the path of the element it was found in.
type At = Box<(Option<usize>, String, Fault)>;

fn at(element: impl Into<String>) -> impl FnOnce(Fault) -> At {
    let element = element.into();
    move |fault| Box::new((None, element, fault))
}

/// What all challenges of a sector share.
pub(super) struct Sector<'a> {
    request: &'a PorepRequest,
    graph: Graph,
    layers: usize,
    tree_d: Tree<Sha256Domain>,
    tree_c: Tree<PoseidonDomain>,
    tree_r: Tree<PoseidonDomain>,
    replica_id: [Word; 8],
}

impl<'a> Sector<'a> {
    /// # Errors
    /// A failure if the number of partitions or the replica id is wrong.
    pub fn new(request: &'a PorepRequest) -> Result<Self, Box<Failure>> {
        let size = request.proof_type.size;
        check_replica_id(request)?;
        let expected = request.proof_type.partitions();
        verify_count("partitions", request.partitions.len(), expected)
            .map_err(|fault| whole("vanilla_proofs", fault))?;
        let first = request.partitions[0].first().ok_or_else(|| {
            let (what, expected) = ("challenges", size.porep().challenges);
            let fault = Fault::Count {
                what,
                actual: 0,
                expected,
            };
            failure(0, None, None, "vanilla_proofs", fault)
        })?;
        let comm_c = first.replica_column_proofs.c_x.inclusion_proof.root();
        Ok(Self {
            request,
            graph: Graph::new(request.proof_type),
            layers: size.porep().layers,
            tree_d: Tree::new("comm_d", request.comm_d, size),
            tree_c: Tree::new("comm_c", comm_c, size),
            tree_r: Tree::new("comm_r_last", first.comm_r_last_proof.root(), size),
            replica_id: field::words(request.replica_id.as_bytes()),
        })
    }

    /// The whole circuit.
    pub fn partition(
        &self,
        partition: usize,
        writer: &mut Writer<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Box<Failure>> {
        let proofs = &self.request.partitions[partition];
        let count = self.request.proof_type.size.porep().challenges;
        verify_count("challenges", proofs.len(), count)
            .map_err(|fault| failure(partition, None, None, "vanilla_proofs", fault))?;
        self.commitments(writer)
            .map_err(|fault| whole("comm_r", fault))?;
        let nodes = PorepChallenges::of(self.request).partition(partition);
        for (number, (proof, node)) in proofs.iter().zip(nodes).enumerate() {
            self.challenge(proof, node, writer).map_err(|at| {
                let (layer, element, fault) = *at;
                failure(partition, Some(number), layer, element, fault)
            })?;
            progress.advance(1);
        }
        Ok(())
    }

    /// Replica id, comm_d, comm_r, and comm_r = H(comm_c, comm_r_last).
    fn commitments(&self, writer: &mut Writer<'_>) -> Result<(), Fault> {
        let request = self.request;
        for (i, (value, bytes)) in [
            (request.replica_id.to_fr(), request.replica_id.as_bytes()),
            (request.comm_d.to_fr(), request.comm_d.as_bytes()),
            (request.comm_r.to_fr(), request.comm_r.as_bytes()),
        ]
        .into_iter()
        .enumerate()
        {
            writer.num(value);
            writer.input(value);
            if i == 0 {
                field::to_bits(bytes, writer);
            }
        }
        let comm_r_last = self.tree_r.root.to_fr();
        let comm_c = self.tree_c.root.to_fr();
        writer.nums(&[comm_r_last, comm_c]);
        let computed = gadget::hash_2(comm_c, comm_r_last, writer).into();
        verify_commitment("comm_r", &request.comm_r, computed)
    }

    fn challenge(&self, proof: &Proof, node: u32, writer: &mut Writer<'_>) -> Result<(), At> {
        let index = u64::from(node);
        let data = proof.comm_d_proofs.leaf().to_fr();
        writer.num(data);
        include_sha256(
            &self.tree_d,
            &proof.comm_d_proofs,
            index,
            Role::Challenge,
            writer,
        )
        .map_err(at("comm_d_proofs"))?;

        self.parent_columns(proof, node, writer)?;

        writer.bits(index, 64);
        writer.input(Fr::from(index));
        let labels = self.labels(proof, node, writer)?;

        let key = labels[self.layers - 1];
        let encoded = key + data;
        writer.num(encoded);
        verify_encoding(encoded, &proof.comm_r_last_proof.leaf())
            .map_err(at("comm_r_last_proof.leaf"))?;
        include_poseidon(
            &self.tree_r,
            &proof.comm_r_last_proof,
            encoded,
            index,
            Role::Challenge,
            writer,
        )
        .map_err(at("comm_r_last_proof"))?;

        let c_x = &proof.replica_column_proofs.c_x;
        self.column(c_x, &labels, node, Role::Challenge, writer)
            .map_err(|(part, fault)| at(format!("replica_column_proofs.c_x.{part}"))(fault))
    }

    /// The columns of all parents and their inclusion in tree C.
    fn parent_columns(&self, proof: &Proof, node: u32, writer: &mut Writer<'_>) -> Result<(), At> {
        let columns = &proof.replica_column_proofs;
        let drg = self.graph.drg_parents(node);
        let exp = self.graph.expander_parents(node);
        for (name, columns, count) in [
            ("drg_parents", &columns.drg_parents, DRG_PARENTS),
            ("exp_parents", &columns.exp_parents, EXP_PARENTS),
        ] {
            verify_count("columns", columns.len(), count)
                .map_err(at(format!("replica_column_proofs.{name}")))?;
        }
        let drg = columns.drg_parents.iter().zip(drg).enumerate();
        let exp = columns.exp_parents.iter().zip(exp).enumerate();
        let drg = drg.map(|(i, pair)| ("drg_parents", i, Role::DrgParent(i), pair));
        let exp = exp.map(|(i, pair)| ("exp_parents", i, Role::ExpanderParent(i), pair));
        for (name, i, role, (column, parent)) in drg.chain(exp) {
            let mut write = || {
                let rows = &column.column.rows;
                verify_count("rows", rows.len(), self.layers)
                    .map_err(|fault| ("column.rows", fault))?;
                let rows: Vec<Fr> = rows.iter().map(Domain::to_fr).collect();
                writer.nums(&rows);
                self.column(column, &rows, parent, role, writer)
            };
            write().map_err(|(part, fault)| {
                at(format!("replica_column_proofs.{name}[{i}].{part}"))(fault)
            })?;
        }
        Ok(())
    }

    /// The hash of a column whose `rows` have been written, and its inclusion in tree C. A fault
    /// names the part of the column proof.
    fn column(
        &self,
        proof: &ColumnProof,
        rows: &[Fr],
        node: u32,
        role: Role,
        writer: &mut Writer<'_>,
    ) -> Result<(), (&'static str, Fault)> {
        let hash = match rows {
            [a, b] => gadget::hash_2(*a, *b, writer),
            _ => {
                let rows = rows.try_into().expect("invariant: 2 or 11 layers");
                gadget::hash_11(rows, writer)
            }
        };
        let (computed, leaf) = (PoseidonDomain::from(hash), proof.inclusion_proof.leaf());
        if computed != leaf {
            let (computed, leaf) = (computed.into(), leaf.into());
            return Err(("column.rows", Fault::ColumnHash { computed, leaf }));
        }
        let tree = &self.tree_c;
        include_poseidon(
            tree,
            &proof.inclusion_proof,
            hash,
            node.into(),
            role,
            writer,
        )
        .map_err(|fault| ("inclusion_proof", fault))?;
        verify_number("node", proof.column.index.into(), node.into())
            .map_err(|fault| ("column.index", fault))
    }

    /// The challenged node's label on every layer. The parents' columns have the right length.
    fn labels(&self, proof: &Proof, node: u32, writer: &mut Writer<'_>) -> Result<Vec<Fr>, At> {
        let rows = &proof.replica_column_proofs.c_x.column.rows;
        verify_count("rows", rows.len(), self.layers)
            .map_err(at("replica_column_proofs.c_x.column.rows"))?;
        verify_count("labelings", proof.labeling_proofs.len(), self.layers)
            .map_err(at("labeling_proofs"))?;
        let mut labels = Vec::with_capacity(self.layers);
        for (i, (row, labeling)) in rows.iter().zip(&proof.labeling_proofs).enumerate() {
            let layer = i + 1;
            let parents = parent_labels(proof, layer);
            verify_labeling(labeling, layer, node, &parents).map_err(|(part, fault)| {
                let element = format!("labeling_proofs[{i}].{part}");
                Box::new((Some(layer), element, fault))
            })?;
            if layer == self.layers {
                verify_labeling(&proof.encoding_proof, layer, node, &parents).map_err(
                    |(part, fault)| {
                        Box::new((Some(layer), format!("encoding_proof.{part}"), fault))
                    },
                )?;
            }
            let label = self.label(layer as u32, node, &parents, writer);
            let computed = PoseidonDomain::from(label);
            if computed != *row {
                let (computed, column) = (computed.into(), (*row).into());
                let element = format!("replica_column_proofs.c_x.column.rows[{i}]");
                let fault = Fault::Label { computed, column };
                return Err(Box::new((Some(layer), element, fault)));
            }
            labels.push(label);
        }
        Ok(labels)
    }

    /// One label: the bits of its parents, each once, and 20 SHA-256 blocks.
    fn label(
        &self,
        layer: u32,
        node: u32,
        parents: &[PoseidonDomain; LABEL_PARENTS],
        writer: &mut Writer<'_>,
    ) -> Fr {
        let distinct = if layer == 1 {
            DRG_PARENTS
        } else {
            DRG_PARENTS + EXP_PARENTS
        };
        for parent in &parents[..distinct] {
            field::to_bits(parent.as_bytes(), writer);
        }
        let mut message = [Word::constant(0); LABEL_WORDS];
        let (head, tail) = message.split_at_mut(16);
        head[..8].copy_from_slice(&self.replica_id);
        head[8] = Word::constant(layer);
        // The node is a 64-bit number, big-endian; all 64 bits are variables.
        head[9] = Word::allocated(0);
        head[10] = Word::allocated(node);
        for (words, parent) in tail.chunks_exact_mut(8).zip(parents) {
            words.copy_from_slice(&field::words(parent.as_bytes()));
        }
        let digest = field::truncate(sha256::message(&message, writer));
        let label = field::element(&digest);
        writer.num(label);
        label
    }
}

/// Whether the replica's node is the encoding of its data.
fn verify_encoding(encoded: Fr, replica: &PoseidonDomain) -> Result<(), Fault> {
    let computed = PoseidonDomain::from(encoded);
    if computed == *replica {
        return Ok(());
    }
    let (computed, replica) = (computed.into(), (*replica).into());
    Err(Fault::Encoding { computed, replica })
}
