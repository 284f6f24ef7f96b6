//! SnapDeals (`EmptySectorUpdateCircuit`): the apex tree, the challenges' bits, one block per
//! challenge.

use ::witness::{Writer, field, merkle, poseidon::gadget};
use blstrs::Scalar as Fr;
use ff::PrimeField;

use super::failure;
use super::path::{include_siblings_first, sha256_node};
use crate::SectorSize;
use crate::challenges::snap_challenges;
use crate::check::path::{Tree, verify_commitment, verify_count};
use crate::check::{Failure, Fault, Progress, Role};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::request::SnapRequest;
use crate::snap::{ChallengeProof, PartitionProof};

/// Numbers of high bits among which the public selector chooses.
const SELECTABLE: usize = 6;

/// The values of h that the circuit for sectors of this size can select.
fn selectable_high_bits(size: SectorSize) -> [u32; SELECTABLE] {
    match size {
        SectorSize::KiB2 => [1; SELECTABLE],
        _ => [7, 8, 9, 10, 11, 12],
    }
}

/// What the challenges of one partition share.
pub(super) struct Partition<'a> {
    request: &'a SnapRequest,
    number: usize,
    proof: &'a PartitionProof,
    size: SectorSize,
    tree_r_old: Tree<PoseidonDomain>,
    tree_d_new: Tree<Sha256Domain>,
    tree_r_new: Tree<PoseidonDomain>,
    apex_leafs: Vec<Fr>,
}

impl<'a> Partition<'a> {
    /// # Errors
    /// A failure if lists have wrong lengths. `number` must be below the request's partitions.
    pub fn new(request: &'a SnapRequest, number: usize) -> Result<Self, Box<Failure>> {
        let size = request.proof_type.size;
        let shape = size.snap();
        let proof = &request.partitions[number];
        let fail = |element: &str, fault| failure(number, None, None, element, fault);
        verify_count("partitions", request.partitions.len(), shape.partitions)
            .map_err(|fault| fail("vanilla_proofs", fault))?;
        verify_count("apex leafs", proof.apex_leafs.len(), shape.apex_leafs)
            .map_err(|fault| fail("apex_leafs", fault))?;
        verify_count("challenges", proof.challenge_proofs.len(), shape.challenges)
            .map_err(|fault| fail("challenge_proofs", fault))?;
        let first = &proof.challenge_proofs[0];
        Ok(Self {
            request,
            number,
            proof,
            size,
            tree_r_old: Tree::new("the old replica tree", first.proof_r_old.root(), size),
            tree_d_new: Tree::new("comm_d_new", request.comm_d_new, size),
            tree_r_new: Tree::new("the new replica tree", first.proof_r_new.root(), size),
            apex_leafs: proof.apex_leafs.iter().map(Domain::to_fr).collect(),
        })
    }

    fn partition_bits(&self) -> u32 {
        self.size.snap().partitions.ilog2()
    }

    fn apex_bits(&self) -> u32 {
        self.size.snap().apex_leafs.ilog2()
    }

    /// Levels of the data tree below the apex leafs.
    fn levels_to_apex(&self) -> u32 {
        self.size.log2_nodes() - self.partition_bits() - self.apex_bits()
    }

    /// The whole circuit.
    pub fn write(
        &self,
        writer: &mut Writer<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Box<Failure>> {
        let fail = |challenge, element: String, fault| {
            failure(self.number, challenge, None, element, fault)
        };
        // The first challenge's path gives the siblings above the apex tree, so it is verified
        // before anything is taken from it.
        let nodes = snap_challenges(self.size, &self.request.comm_r_new, self.number);
        let first = &self.proof.challenge_proofs[0].proof_d_new;
        self.tree_d_new
            .verify_place(first, nodes[0].into(), Role::Challenge)
            .map_err(|fault| fail(Some(0), "proof_d_new".to_owned(), fault))?;

        self.public_values(writer);
        let phi = gadget::hash_randomness(
            self.request.comm_d_new.to_fr(),
            self.request.comm_r_old.to_fr(),
            writer,
        );
        self.roots(writer)
            .map_err(|fault| fail(None, "comm_c".to_owned(), fault))?;
        let apex = self
            .apex_tree(writer)
            .map_err(|fault| fail(None, "apex_leafs".to_owned(), fault))?;
        self.challenge_bits(writer);
        for (i, (proof, node)) in self.proof.challenge_proofs.iter().zip(nodes).enumerate() {
            self.challenge(proof, node, phi, &apex, writer)
                .map_err(|(element, fault)| fail(Some(i), element, fault))?;
            progress.advance(1);
        }
        Ok(())
    }

    /// Partition number and selector, packed and as bits; the commitments.
    fn public_values(&self, writer: &mut Writer<'_>) {
        let partition = self.number as u64;
        let packed = partition | self.size.snap().h_selector() << self.partition_bits();
        writer.num(Fr::from(packed));
        writer.input(Fr::from(packed));
        writer.bits(packed, self.partition_bits() + SELECTABLE as u32);
        write_packed(partition, self.partition_bits(), writer);
        let SnapRequest {
            comm_r_old,
            comm_d_new,
            comm_r_new,
            ..
        } = self.request;
        for value in [comm_r_old.to_fr(), comm_d_new.to_fr(), comm_r_new.to_fr()] {
            writer.num(value);
            writer.input(value);
        }
    }

    /// comm_c, the roots of the replica trees, apex leafs and the path above them; then comm_r =
    /// H(comm_c, root) for the old replica and the new.
    fn roots(&self, writer: &mut Writer<'_>) -> Result<(), Fault> {
        let comm_c = self.proof.comm_c.to_fr();
        let [old, new] = [&self.tree_r_old, &self.tree_r_new].map(|tree| tree.root.to_fr());
        writer.nums(&[comm_c, old, new]);
        writer.nums(&self.apex_leafs);
        for (_, sibling) in self.path_above_apex() {
            writer.num(sibling.to_fr());
        }
        let computed = gadget::hash_2(comm_c, old, writer).into();
        verify_commitment("comm_r_old", &self.request.comm_r_old, computed)?;
        let computed = gadget::hash_2(comm_c, new, writer).into();
        verify_commitment("comm_r_new", &self.request.comm_r_new, computed)
    }

    /// Side and sibling on each level above the root of the apex tree.
    fn path_above_apex(&self) -> impl Iterator<Item = (bool, Sha256Domain)> + '_ {
        let first = &self.proof.challenge_proofs[0].proof_d_new;
        let below = self.levels_to_apex() + self.apex_bits();
        first
            .elements()
            .skip(below as usize)
            .enumerate()
            .map(|(level, element)| (self.number >> level & 1 == 1, element.hashes[0]))
    }

    /// Hashes the apex leafs to their root and that to comm_d_new (`apex_por`). Returns the rows of
    /// the apex tree, leafs first, without the root.
    fn apex_tree(&self, writer: &mut Writer<'_>) -> Result<Vec<Vec<[u8; 32]>>, Fault> {
        let leafs = self.proof.apex_leafs.iter();
        let mut row: Vec<[u8; 32]> = leafs.map(|leaf| *leaf.as_bytes()).collect();
        let mut rows = Vec::with_capacity(self.apex_bits() as usize);
        while row.len() > 1 {
            let parents = row
                .chunks_exact(2)
                .map(|pair| merkle::hash_pair(&pair[0], &pair[1], writer))
                .collect();
            rows.push(std::mem::replace(&mut row, parents));
        }
        let root = self
            .path_above_apex()
            .fold(row[0], |node, (right, sibling)| {
                merkle::sha256_insert(&node, right, sibling.as_bytes(), writer)
            });
        self.tree_d_new.verify_root(sha256_node(root))?;
        Ok(rows)
    }

    /// The digests whose bits are the challenges (`gen_challenge_bits`).
    fn challenge_bits(&self, writer: &mut Writer<'_>) {
        let random_bits = self.size.log2_nodes() - self.partition_bits();
        let per_digest = (Fr::CAPACITY / random_bits) as usize;
        let digests = self.size.snap().challenges.div_ceil(per_digest);
        let comm_r_new = self.request.comm_r_new.to_fr();
        for i in 0..digests {
            // A lone digest's index is a copy of the partition's number, a sum otherwise.
            let index = (self.number * digests + i) as u64;
            let bits = if digests == 1 {
                self.partition_bits()
            } else {
                u32::MAX
            };
            write_packed(index, bits, writer);
            let index = Fr::from(index);
            let digest = gadget::hash_randomness(comm_r_new, index, writer);
            field::to_bits(&digest.to_repr(), writer);
        }
    }

    fn challenge(
        &self,
        proof: &ChallengeProof,
        node: u32,
        phi: Fr,
        apex: &[Vec<[u8; 32]>],
        writer: &mut Writer<'_>,
    ) -> Result<(), (String, Fault)> {
        let at = |element: &'static str| move |fault| (element.to_owned(), fault);
        let index = u64::from(node);
        let rho = gadget::hash_randomness(phi, self.high_bits(node, writer), writer);

        let old = proof.proof_r_old.leaf().to_fr();
        let data = proof.proof_d_new.leaf().to_fr();
        let scaled = data * rho;
        let new = old + scaled;
        writer.nums(&[old, data, scaled, new]);
        let (computed, replica) = (PoseidonDomain::from(new), proof.proof_r_new.leaf());
        if computed != replica {
            let (computed, replica) = (computed.into(), replica.into());
            return Err(at("proof_r_new.leaf")(Fault::Encoding {
                computed,
                replica,
            }));
        }
        include_siblings_first(&self.tree_r_old, &proof.proof_r_old, old, index, writer)
            .map_err(at("proof_r_old"))?;
        include_siblings_first(&self.tree_r_new, &proof.proof_r_new, new, index, writer)
            .map_err(at("proof_r_new"))?;
        self.data_path(proof, node, writer)?;
        self.verify_data_path(proof, node, apex)
            .map_err(at("proof_d_new"))
    }

    /// The challenge's high bits, packed for each selectable number of them, and the selected
    /// (`get_challenge_high_bits`).
    fn high_bits(&self, node: u32, writer: &mut Writer<'_>) -> Fr {
        let selector = self.size.snap().h_selector();
        let mut selected = 0;
        for (i, h) in selectable_high_bits(self.size).into_iter().enumerate() {
            let high = u64::from(node >> (self.size.log2_nodes() - h));
            let masked = high * (selector >> i & 1);
            write_packed(high, h, writer);
            write_packed(masked, h, writer);
            selected += masked;
        }
        let selected = Fr::from(selected);
        writer.num(selected);
        selected
    }

    /// The challenge's apex leaf, and the path from the data node to it.
    fn data_path(
        &self,
        proof: &ChallengeProof,
        node: u32,
        writer: &mut Writer<'_>,
    ) -> Result<(), (String, Fault)> {
        let slot = (node >> self.levels_to_apex()) as usize % self.apex_leafs.len();
        merkle::select(&self.apex_leafs, slot, writer);

        let path = &proof.proof_d_new;
        self.tree_d_new
            .verify_place(path, node.into(), Role::Challenge)
            .map_err(|fault| ("proof_d_new".to_owned(), fault))?;
        let levels = || path.elements().take(self.levels_to_apex() as usize);
        for element in levels() {
            writer.num(element.hashes[0].to_fr());
        }
        let leaf = *path.leaf().as_bytes();
        let computed = levels().fold(leaf, |node, element| {
            let sibling = element.hashes[0].as_bytes();
            merkle::sha256_insert(&node, element.index == 1, sibling, writer)
        });
        let (actual, passed) = (self.proof.apex_leafs[slot], sha256_node(computed));
        if actual == passed {
            return Ok(());
        }
        let (actual, expected) = (actual.into(), passed.into());
        let what = "leaf";
        let fault = Fault::Apex {
            what,
            actual,
            expected,
        };
        Err((format!("apex_leafs[{slot}]"), fault))
    }
}

impl Partition<'_> {
    /// Whether the rest of a data path, of which the circuit takes nothing, goes through the apex
    /// tree and on as the first challenge's.
    fn verify_data_path(
        &self,
        proof: &ChallengeProof,
        node: u32,
        apex: &[Vec<[u8; 32]>],
    ) -> Result<(), Fault> {
        let slot = (node >> self.levels_to_apex()) as usize % self.apex_leafs.len();
        let inside = apex.iter().enumerate().map(|(level, row)| {
            let sibling = slot >> level ^ 1;
            sha256_node(row[sibling])
        });
        let above = self.path_above_apex().map(|(_, sibling)| sibling);
        let path = proof.proof_d_new.elements();
        let path = path.skip(self.levels_to_apex() as usize);
        for (actual, element) in inside.chain(above).zip(path) {
            let expected = element.hashes[0];
            if actual != expected {
                let (actual, expected) = (actual.into(), expected.into());
                let what = "node";
                return Err(Fault::Apex {
                    what,
                    actual,
                    expected,
                });
            }
        }
        Ok(())
    }
}

/// Appends a packed sum of so many bits. The compiled circuit knows a sum of one bit, or of none,
/// for a bit itself.
fn write_packed(value: u64, bits: u32, writer: &mut Writer<'_>) {
    if bits <= 1 {
        writer.bit(value == 1);
    } else {
        writer.num(Fr::from(value));
    }
}
