//! Merkle trees over a sector's nodes that fit in memory whatever the sector size.

use std::collections::BTreeMap;

use filecoin::merkle::{InclusionPath, MerkleProof, PathElement, ProofData};
use filecoin::{Domain, PoseidonDomain, SectorSize, Sha256Domain, poseidon, sha256};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use rayon::prelude::*;

/// A node of one of the two kinds of tree.
pub trait Node: Domain {
    /// Children of a node on each level, lowest level first.
    fn arities(size: SectorSize) -> Vec<usize>;

    /// Hash of all children.
    fn parent(children: &[Self]) -> Self;

    /// A proof from the steps of all levels.
    fn proof(
        steps: Vec<PathElement<Self>>,
        root: Self,
        leaf: Self,
        size: SectorSize,
    ) -> MerkleProof<Self>;

    /// A random node below 2^254.
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        bytes[31] &= 0x3f;
        Self::from_bytes(bytes).expect("invariant: 254 bits are a node of either kind")
    }
}

impl Node for Sha256Domain {
    fn arities(size: SectorSize) -> Vec<usize> {
        vec![2; size.log2_nodes() as usize]
    }

    fn parent(children: &[Self]) -> Self {
        sha256::hash_pair(&children[0], &children[1])
    }

    fn proof(
        path: Vec<PathElement<Self>>,
        root: Self,
        leaf: Self,
        _: SectorSize,
    ) -> MerkleProof<Self> {
        let path = InclusionPath { path };
        MerkleProof {
            data: ProofData::Single { root, leaf, path },
        }
    }
}

impl Node for PoseidonDomain {
    fn arities(size: SectorSize) -> Vec<usize> {
        let tree = size.tree();
        let mut arities = vec![tree.base_arity; tree.base_levels];
        arities.extend([tree.sub_arity, tree.top_arity].iter().filter(|&&a| a > 0));
        arities
    }

    fn parent(children: &[Self]) -> Self {
        match children {
            [a, b] => poseidon::hash_2(a.to_fr(), b.to_fr()).into(),
            _ => poseidon::hash_8(&std::array::from_fn(|i| children[i].to_fr())).into(),
        }
    }

    fn proof(
        mut base: Vec<PathElement<Self>>,
        root: Self,
        leaf: Self,
        size: SectorSize,
    ) -> MerkleProof<Self> {
        let above = base.split_off(size.tree().base_levels);
        let mut above = above
            .into_iter()
            .map(|step| InclusionPath { path: vec![step] });
        let base_proof = InclusionPath { path: base };
        let data = match (above.next(), above.next()) {
            (None, _) => ProofData::Single {
                root,
                leaf,
                path: base_proof,
            },
            (Some(sub_proof), None) => ProofData::Sub {
                base_proof,
                sub_proof,
                root,
                leaf,
            },
            (Some(sub_proof), Some(top_proof)) => ProofData::Top {
                base_proof,
                sub_proof,
                top_proof,
                root,
                leaf,
            },
        };
        MerkleProof { data }
    }
}

/// A tree that can be opened at some leafs.
pub trait Tree<D> {
    /// Its root.
    fn root(&self) -> D;

    /// The node of this number on a level; level 0 is the leafs.
    ///
    /// # Panics
    /// If the tree does not hold it.
    fn node(&self, level: usize, number: u64) -> D;

    /// The inclusion proof of a leaf.
    ///
    /// # Panics
    /// If the tree cannot be opened there.
    fn open(&self, leaf: u64, size: SectorSize) -> MerkleProof<D>
    where
        D: Node,
    {
        let mut number = leaf;
        let steps = D::arities(size)
            .into_iter()
            .enumerate()
            .map(|(level, arity)| {
                let (parent, index) = (number / arity as u64, number % arity as u64);
                let first = parent * arity as u64;
                number = parent;
                PathElement {
                    hashes: (0..arity as u64)
                        .filter(|&i| i != index)
                        .map(|i| self.node(level, first + i))
                        .collect(),
                    index,
                }
            })
            .collect();
        D::proof(steps, self.root(), self.node(0, leaf), size)
    }
}

/// A whole tree whose leafs are equal within blocks of 2^k: below the blocks' size a level has one
/// distinct node per block. It can be opened everywhere, so its root may be fixed before the
/// challenges are known.
pub struct BlockTree<D> {
    /// Per level, how many consecutive nodes are equal, and one of each such run.
    levels: Vec<(u64, Vec<D>)>,
}

impl<D: Node> BlockTree<D> {
    /// The tree over a sector's nodes with these leafs, one per block. Their number is a power of
    /// two that divides the number of nodes.
    pub fn new(blocks: Vec<D>, size: SectorSize) -> Self {
        let mut levels = vec![(size.nodes() / blocks.len() as u64, blocks)];
        for arity in D::arities(size) {
            let (run, nodes) = levels.last().expect("invariant: never empty");
            let parents_per_run = run / arity as u64;
            let next = if parents_per_run > 0 {
                // All children of a node are equal.
                let parents = nodes.par_iter().map(|node| D::parent(&vec![*node; arity]));
                (parents_per_run, parents.collect())
            } else {
                let runs = arity / *run as usize;
                let parents = nodes.par_chunks(runs).map(|runs_of_parent| {
                    let children: Vec<D> = runs_of_parent
                        .iter()
                        .flat_map(|node| vec![*node; *run as usize])
                        .collect();
                    D::parent(&children)
                });
                (1, parents.collect())
            };
            levels.push(next);
        }
        Self { levels }
    }
}

impl<D: Node> Tree<D> for BlockTree<D> {
    fn root(&self) -> D {
        self.node(self.levels.len() - 1, 0)
    }

    fn node(&self, level: usize, number: u64) -> D {
        let (run, nodes) = &self.levels[level];
        nodes[(number / run) as usize]
    }
}

/// The part of a tree around some leafs; all other nodes next to the paths are random.
pub struct SparseTree<D> {
    levels: Vec<BTreeMap<u64, D>>,
}

impl<D: Node> SparseTree<D> {
    /// The tree with these leafs.
    pub fn new(leafs: BTreeMap<u64, D>, size: SectorSize, rng: &mut ChaCha8Rng) -> Self {
        let mut levels = vec![leafs];
        for arity in D::arities(size) {
            let level = levels.last_mut().expect("invariant: never empty");
            let mut numbers: Vec<u64> = level.keys().map(|number| number / arity as u64).collect();
            numbers.dedup();
            for &number in &numbers {
                let first = number * arity as u64;
                for child in first..first + arity as u64 {
                    level.entry(child).or_insert_with(|| D::random(rng));
                }
            }
            let level = &*level;
            let parents: Vec<(u64, D)> = numbers
                .into_par_iter()
                .map(|number| {
                    let first = number * arity as u64;
                    let children: Vec<D> = level
                        .range(first..first + arity as u64)
                        .map(|(_, node)| *node)
                        .collect();
                    (number, D::parent(&children))
                })
                .collect();
            levels.push(parents.into_iter().collect());
        }
        Self { levels }
    }
}

impl<D: Node> Tree<D> for SparseTree<D> {
    fn root(&self) -> D {
        self.node(self.levels.len() - 1, 0)
    }

    fn node(&self, level: usize, number: u64) -> D {
        self.levels[level][&number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    /// Hashes a path up to a root.
    fn root_of<D: Node>(proof: &MerkleProof<D>) -> D {
        proof.elements().fold(proof.leaf(), |node, step| {
            let mut children = step.hashes.clone();
            children.insert(step.index as usize, node);
            D::parent(&children)
        })
    }

    /// All leafs hashed level by level.
    fn plain_root<D: Node>(mut row: Vec<D>, size: SectorSize) -> D {
        for arity in D::arities(size) {
            row = row.chunks(arity).map(D::parent).collect();
        }
        row[0]
    }

    fn block_trees<D: Node>() {
        let size = SectorSize::KiB2;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for log in 0..=6 {
            let blocks: Vec<D> = (0..1 << log).map(|_| D::random(&mut rng)).collect();
            let leafs: Vec<D> = (0..64).map(|i| blocks[i >> (6 - log)]).collect();
            let tree = BlockTree::new(blocks, size);
            assert_eq!(tree.root(), plain_root(leafs.clone(), size));
            for (i, leaf) in leafs.iter().enumerate() {
                let proof = tree.open(i as u64, size);
                assert_eq!(proof.leaf_index(), Some(i as u64));
                assert_eq!(proof.leaf(), *leaf);
                assert_eq!(root_of(&proof), tree.root());
            }
        }
    }

    #[test]
    fn block_trees_are_the_trees_of_all_their_leafs() {
        block_trees::<Sha256Domain>();
        block_trees::<PoseidonDomain>();
    }

    fn openings<D: Node>(size: SectorSize) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let last = size.nodes() - 1;
        let leafs: BTreeMap<u64, D> = [0, 1, 7, last / 3, last / 3 + 1, last]
            .into_iter()
            .map(|number| (number, D::random(&mut rng)))
            .collect();
        let tree = SparseTree::new(leafs.clone(), size, &mut rng);
        let blocks = BlockTree::new((0..32).map(|_| D::random(&mut rng)).collect(), size);
        for (number, leaf) in leafs {
            let proof = tree.open(number, size);
            assert_eq!(proof.leaf_index(), Some(number));
            assert_eq!(proof.leaf(), leaf);
            assert_eq!(root_of(&proof), tree.root());
            assert_eq!(root_of(&blocks.open(number, size)), blocks.root());
        }
    }

    #[test]
    fn trees_of_all_sizes_open() {
        for size in SectorSize::ALL {
            openings::<Sha256Domain>(size);
            openings::<PoseidonDomain>(size);
        }
    }
}
