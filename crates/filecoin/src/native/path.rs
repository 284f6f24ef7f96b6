//! Merkle paths of vanilla proofs, written and verified.

use ::witness::{Writer, merkle};
use blstrs::Scalar as Fr;

use crate::check::path::Tree;
use crate::check::{Fault, Role};
use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::merkle::{MerkleProof, PathElement};

/// The inclusion gadget over a Poseidon tree: `node` is leaf `index` of `tree`. The node itself
/// has been written before; after the levels comes the index as a public input.
pub(super) fn include_poseidon(
    tree: &Tree<PoseidonDomain>,
    proof: &MerkleProof<PoseidonDomain>,
    node: Fr,
    index: u64,
    role: Role,
    writer: &mut Writer<'_>,
) -> Result<(), Fault> {
    tree.verify_place(proof, index, role)?;
    let root = proof.elements().fold(node, |node, element| {
        let position = element.index as usize;
        match siblings(element) {
            Siblings::One(sibling) => merkle::pair_level(node, position == 1, sibling, writer),
            Siblings::Seven(siblings) => merkle::oct_level(node, position, &siblings, writer),
        }
    });
    writer.input(Fr::from(index));
    tree.verify_root(root.into())
}

/// The inclusion gadget over a SHA-256 tree; as [`include_poseidon`].
pub(super) fn include_sha256(
    tree: &Tree<Sha256Domain>,
    proof: &MerkleProof<Sha256Domain>,
    index: u64,
    role: Role,
    writer: &mut Writer<'_>,
) -> Result<(), Fault> {
    tree.verify_place(proof, index, role)?;
    let leaf = *proof.leaf().as_bytes();
    let root = proof.elements().fold(leaf, |node, element| {
        let sibling = element.hashes[0].as_bytes();
        merkle::sha256_level(&node, element.index == 1, sibling, writer)
    });
    writer.input(Fr::from(index));
    tree.verify_root(sha256_node(root))
}

/// The update circuit's inclusion in a Poseidon tree: all siblings, then insertion and hash of
/// each level. The index bits are the challenge's, written before.
pub(super) fn include_siblings_first(
    tree: &Tree<PoseidonDomain>,
    proof: &MerkleProof<PoseidonDomain>,
    node: Fr,
    index: u64,
    writer: &mut Writer<'_>,
) -> Result<(), Fault> {
    tree.verify_place(proof, index, Role::Challenge)?;
    for element in proof.elements() {
        match siblings(element) {
            Siblings::One(sibling) => writer.num(sibling),
            Siblings::Seven(siblings) => writer.nums(&siblings),
        }
    }
    let root = proof.elements().fold(node, |node, element| {
        let position = element.index as usize;
        match siblings(element) {
            Siblings::One(sibling) => merkle::pair_insert(node, position == 1, sibling, writer),
            Siblings::Seven(siblings) => merkle::oct_insert(node, position, &siblings, writer),
        }
    });
    tree.verify_root(root.into())
}

/// A node of the data tree from a digest that the gadgets have cut to 254 bits.
pub(super) fn sha256_node(bytes: [u8; 32]) -> Sha256Domain {
    Sha256Domain::from_bytes(bytes).expect("invariant: the gadgets cut digests to 254 bits")
}

enum Siblings {
    One(Fr),
    Seven([Fr; 7]),
}

/// The siblings on one level of a path whose shape has been verified.
fn siblings(element: &PathElement<PoseidonDomain>) -> Siblings {
    match element.hashes[..] {
        [sibling] => Siblings::One(sibling.to_fr()),
        _ => Siblings::Seven(std::array::from_fn(|i| element.hashes[i].to_fr())),
    }
}
