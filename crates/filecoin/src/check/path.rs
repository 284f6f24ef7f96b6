//! Merkle paths: shape, position, hashes.

use crate::domain::{Domain, PoseidonDomain, Sha256Domain};
use crate::merkle::MerkleProof;
use crate::poseidon;
use crate::registry::SectorSize;
use crate::sha256;

use super::failure::{Fault, Role};

/// A node that can be hashed with its siblings.
pub(crate) trait TreeNode: Domain {
    /// Children of a node on each level of the tree over a sector's nodes, lowest level first.
    fn arities(size: SectorSize) -> Vec<usize>;

    /// Hash of all children, as many as `arities` has.
    fn parent(children: &[Self]) -> Self;
}

impl TreeNode for Sha256Domain {
    fn arities(size: SectorSize) -> Vec<usize> {
        vec![2; size.log2_nodes() as usize]
    }

    fn parent(children: &[Self]) -> Self {
        sha256::hash_pair(&children[0], &children[1])
    }
}

impl TreeNode for PoseidonDomain {
    fn arities(size: SectorSize) -> Vec<usize> {
        let shape = size.tree();
        let mut arities = vec![shape.base_arity; shape.base_levels];
        arities.extend(
            [shape.sub_arity, shape.top_arity]
                .into_iter()
                .filter(|&arity| arity > 0),
        );
        arities
    }

    fn parent(children: &[Self]) -> Self {
        match children {
            [a, b] => poseidon::hash_2(a.to_fr(), b.to_fr()).into(),
            _ => {
                let inputs = std::array::from_fn(|i| children[i].to_fr());
                poseidon::hash_8(&inputs).into()
            }
        }
    }
}

/// The tree that a path must belong to.
pub(crate) struct Tree<D> {
    /// Its commitment's name in messages.
    pub name: &'static str,
    /// Its root.
    pub root: D,
    /// Children of a node per level, lowest first.
    pub arities: Vec<usize>,
}

impl<D: TreeNode> Tree<D> {
    /// The tree over the nodes of a sector.
    pub fn new(name: &'static str, root: D, size: SectorSize) -> Tree<D> {
        Tree {
            name,
            root,
            arities: D::arities(size),
        }
    }

    /// Whether `proof` shows that its leaf is leaf number `index` of this tree.
    pub fn verify(&self, proof: &MerkleProof<D>, index: u64, role: Role) -> Result<(), Fault> {
        self.verify_and_visit(proof, index, role, |_, _| ())
    }

    /// As [`Tree::verify`]; shows every node from the leaf (level 0) to the root to `visit`.
    pub fn verify_and_visit(
        &self,
        proof: &MerkleProof<D>,
        index: u64,
        role: Role,
        mut visit: impl FnMut(usize, &D),
    ) -> Result<(), Fault> {
        self.verify_place(proof, index, role)?;
        let mut node = proof.leaf();
        visit(0, &node);
        let mut children = Vec::with_capacity(8);
        for (level, element) in proof.elements().enumerate() {
            let (before, after) = element.hashes.split_at(element.index as usize);
            children.clear();
            children.extend_from_slice(before);
            children.push(node);
            children.extend_from_slice(after);
            node = D::parent(&children);
            visit(level + 1, &node);
        }
        self.verify_root(node)
    }

    /// Whether `proof` claims to show leaf number `index` of this tree. No hashing.
    pub(crate) fn verify_place(
        &self,
        proof: &MerkleProof<D>,
        index: u64,
        role: Role,
    ) -> Result<(), Fault> {
        self.verify_index(proof, index, role)?;
        if proof.root() == self.root {
            return Ok(());
        }
        Err(Fault::Root {
            actual: proof.root().into(),
            expected: self.root.into(),
            tree: self.name,
        })
    }

    /// Whether a path that was hashed to `computed` ends in the root.
    pub(crate) fn verify_root(&self, computed: D) -> Result<(), Fault> {
        if computed == self.root {
            return Ok(());
        }
        Err(Fault::PathHash {
            computed: computed.into(),
            root: self.root.into(),
        })
    }

    /// Whether the path has this tree's levels and spells `index`, every digit below its arity.
    fn verify_index(&self, proof: &MerkleProof<D>, index: u64, role: Role) -> Result<(), Fault> {
        let mut levels = proof.elements();
        let mut actual = 0;
        let mut weight = 1;
        for (level, &arity) in self.arities.iter().enumerate() {
            let element = levels.next().filter(|element| element.arity() == arity);
            let Some(element) = element else {
                return Err(Fault::PathShape {
                    level,
                    expected: arity,
                });
            };
            if element.index >= arity as u64 {
                return Err(Fault::PathPosition {
                    level,
                    index: element.index,
                    arity,
                });
            }
            actual += element.index * weight;
            weight *= arity as u64;
        }
        if levels.next().is_some() {
            let level = self.arities.len();
            return Err(Fault::PathShape { level, expected: 0 });
        }
        if actual == index {
            Ok(())
        } else {
            Err(Fault::PathIndex {
                actual,
                expected: index,
                role,
            })
        }
    }
}

/// Whether `commitment` = Poseidon(comm_c, root of the replica tree).
pub(crate) fn verify_comm_r(
    name: &'static str,
    commitment: &PoseidonDomain,
    comm_c: &PoseidonDomain,
    replica_root: &PoseidonDomain,
) -> Result<(), Fault> {
    let computed = poseidon::hash_2(comm_c.to_fr(), replica_root.to_fr()).into();
    verify_commitment(name, commitment, computed)
}

/// Whether the hash of the two roots is the commitment.
pub(crate) fn verify_commitment(
    name: &'static str,
    commitment: &PoseidonDomain,
    computed: PoseidonDomain,
) -> Result<(), Fault> {
    if computed == *commitment {
        Ok(())
    } else {
        Err(Fault::Commitment {
            name,
            computed: computed.into(),
            expected: (*commitment).into(),
        })
    }
}

/// Whether a list has the length this proof type needs.
pub(crate) fn verify_count(
    what: &'static str,
    actual: usize,
    expected: usize,
) -> Result<(), Fault> {
    if actual == expected {
        Ok(())
    } else {
        Err(Fault::Count {
            what,
            actual,
            expected,
        })
    }
}
