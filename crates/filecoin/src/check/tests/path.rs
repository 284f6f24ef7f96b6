use super::*;
use crate::check::path::{Tree, TreeNode};
use crate::registry::SectorSize;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A path of random siblings for leaf `index`, positions taken from the index digit by digit.
fn random_path<D: TreeNode>(
    size: SectorSize,
    index: u64,
    rng: &mut impl RngCore,
) -> MerkleProof<D> {
    let mut random = || {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        crate::sha256::truncated::<D>(bytes)
    };
    let leaf = random();
    let mut root = leaf;
    let mut rest = index;
    let mut path = Vec::new();
    for arity in D::arities(size) {
        let position = rest % arity as u64;
        rest /= arity as u64;
        let hashes: Vec<D> = (1..arity).map(|_| random()).collect();
        let mut children = hashes.clone();
        children.insert(position as usize, root);
        root = D::parent(&children);
        path.push(PathElement {
            hashes,
            index: position,
        });
    }
    MerkleProof {
        data: ProofData::Single {
            root,
            leaf,
            path: InclusionPath { path },
        },
    }
}

fn every_change_is_refused<D: TreeNode + Flip>(size: SectorSize) {
    let mut rng = ChaCha8Rng::seed_from_u64(size as u64);
    let index = rng.next_u64() % size.nodes();
    let proof = random_path::<D>(size, index, &mut rng);
    let tree = Tree::new("tree", proof.root(), size);
    let verify = |proof: &MerkleProof<D>, index| tree.verify(proof, index, Role::Challenge);
    assert_eq!(verify(&proof, index), Ok(()));
    assert!(matches!(
        verify(&proof, index ^ 1),
        Err(Fault::PathIndex { .. })
    ));

    let change = |edit: &dyn Fn(&mut Vec<PathElement<D>>)| {
        let mut changed = proof.clone();
        edit(&mut parts(&mut changed).paths.swap_remove(0).path);
        verify(&changed, index).unwrap_err().code()
    };
    for level in 0..proof.elements().count() {
        let arity = D::arities(size)[level] as u64;
        for sibling in 0..arity as usize - 1 {
            assert_eq!(
                change(&|path| path[level].hashes[sibling].flip()),
                "PATH_HASH"
            );
        }
        assert_eq!(
            change(&|path| path[level].index = (path[level].index + 1) % arity),
            "PATH_INDEX"
        );
        assert_eq!(change(&|path| path[level].index = arity), "PATH_POSITION");
        assert_eq!(
            change(&|path| path[level].index = u64::MAX),
            "PATH_POSITION"
        );
        assert_eq!(
            change(&|path| shorten(&mut path[level].hashes)),
            "PATH_SHAPE"
        );
        assert_eq!(change(&|path| path[level].hashes.clear()), "PATH_SHAPE");
        assert_eq!(change(&|path| path.truncate(level)), "PATH_SHAPE");
    }
    assert_eq!(change(&|path| path.push(path[0].clone())), "PATH_SHAPE");

    let mut changed = proof.clone();
    parts(&mut changed).leaf.flip();
    assert!(matches!(
        verify(&changed, index),
        Err(Fault::PathHash { .. })
    ));
    let mut changed = proof.clone();
    parts(&mut changed).root.flip();
    assert!(matches!(verify(&changed, index), Err(Fault::Root { .. })));
}

#[test]
fn every_change_of_a_path_is_refused() {
    for size in SectorSize::ALL {
        every_change_is_refused::<PoseidonDomain>(size);
        every_change_is_refused::<Sha256Domain>(size);
    }
}
