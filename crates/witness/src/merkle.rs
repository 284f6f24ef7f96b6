//! Steps of Merkle paths: insertion of a node among its siblings, selection, hashing.
//!
//! Order of allocation in the inclusion gadget (`PoRCircuit`), per level: the index bits, the
//! siblings, the insertion, the hash. The update circuit (`por_no_challenge_input`) has allocated
//! index bits and siblings before; there a level is insertion and hash alone.

use blstrs::Scalar as Fr;

use crate::{Writer, field, poseidon, sha256};

/// Inserts `node` at position `index` of 8 (`insert_8`). Appends two bits and 20 elements and
/// returns the children in order.
pub fn insert_8(node: Fr, index: usize, siblings: &[Fr; 7], writer: &mut Writer<'_>) -> [Fr; 8] {
    let (b0, b1, b2) = (index & 1 == 1, index & 2 == 2, index & 4 == 4);
    let [b, c, d, e, f, g, h] = *siblings;
    let a = node;
    let nor = !b0 & !b1;
    let and = b0 & b1;
    writer.bit(nor);
    writer.bit(and);
    // Each output is a cascade of choices; all intermediate choices are variables. In the gadget's
    // names, `p2_x10` is output 2 when b1 = 1 and b2 = 0, whatever b0.
    let mut pick = |condition: bool, yes: Fr, no: Fr| {
        let value = if condition { yes } else { no };
        writer.num(value);
        value
    };
    let low = pick(nor, a, b);
    let p0 = pick(b2, b, low);

    let low = pick(b0, a, b);
    let low = pick(b1, c, low);
    let p1 = pick(b2, c, low);

    let low = pick(b0, d, a);
    let low = pick(b1, low, c);
    let p2 = pick(b2, d, low);

    let low = pick(and, a, d);
    let p3 = pick(b2, e, low);

    let high = pick(nor, a, f);
    let p4 = pick(b2, high, e);

    let high = pick(b0, a, f);
    let high = pick(b1, g, high);
    let p5 = pick(b2, high, f);

    let high = pick(b0, h, a);
    let high = pick(b1, high, g);
    let p6 = pick(b2, high, g);

    let high = pick(and, a, h);
    let p7 = pick(b2, high, h);
    [p0, p1, p2, p3, p4, p5, p6, p7]
}

/// Inserts `node` left of its sibling or right of it (`insert_2`). Appends two elements and returns
/// the children in order.
pub fn insert_2(node: Fr, right: bool, sibling: Fr, writer: &mut Writer<'_>) -> [Fr; 2] {
    let children = if right {
        [sibling, node]
    } else {
        [node, sibling]
    };
    writer.nums(&children);
    children
}

/// Selects `from[index]` (`select`): a tournament over the index bits, most significant first.
/// Appends `from.len() - 1` elements. The length must be a power of two above `index`.
pub fn select(from: &[Fr], index: usize, writer: &mut Writer<'_>) -> Fr {
    debug_assert!(from.len().is_power_of_two() && index < from.len());
    let mut candidates = from;
    while candidates.len() > 1 {
        let half = candidates.len() / 2;
        let (low, high) = candidates.split_at(half);
        candidates = if index & half == 0 { low } else { high };
        writer.nums(candidates);
    }
    candidates[0]
}

/// The hash of two nodes of a SHA-256 tree (`hash_multi_leaf_circuit`, `hash2_circuit`): bits of
/// the left node, bits of the right, two compressions, the packed digest.
pub fn hash_pair(left: &[u8; 32], right: &[u8; 32], writer: &mut Writer<'_>) -> [u8; 32] {
    field::to_bits(left, writer);
    field::to_bits(right, writer);
    let [l, r] = [left, right].map(field::words);
    let message: [_; 16] = std::array::from_fn(|i| if i < 8 { l[i] } else { r[i - 8] });
    let digest = field::truncate(sha256::message(&message, writer));
    writer.num(field::element(&digest));
    digest
}

/// One level of an inclusion proof in a SHA-256 tree.
pub fn sha256_level(
    node: &[u8; 32],
    right: bool,
    sibling: &[u8; 32],
    writer: &mut Writer<'_>,
) -> [u8; 32] {
    writer.bit(right);
    writer.num(field::element(sibling));
    sha256_insert(node, right, sibling, writer)
}

/// Insertion and hash of one level of a SHA-256 tree.
pub fn sha256_insert(
    node: &[u8; 32],
    right: bool,
    sibling: &[u8; 32],
    writer: &mut Writer<'_>,
) -> [u8; 32] {
    let [l, r] = if right {
        [sibling, node]
    } else {
        [node, sibling]
    };
    writer.nums(&[field::element(l), field::element(r)]);
    hash_pair(l, r, writer)
}

/// One level of eight children of an inclusion proof in a Poseidon tree.
pub fn oct_level(node: Fr, index: usize, siblings: &[Fr; 7], writer: &mut Writer<'_>) -> Fr {
    writer.bits(index as u64 & 7, 3);
    writer.nums(siblings);
    oct_insert(node, index, siblings, writer)
}

/// Insertion and hash of one level of eight children.
pub fn oct_insert(node: Fr, index: usize, siblings: &[Fr; 7], writer: &mut Writer<'_>) -> Fr {
    let children = insert_8(node, index, siblings, writer);
    poseidon::gadget::hash_8(&children, writer)
}

/// One level of two children of an inclusion proof in a Poseidon tree.
pub fn pair_level(node: Fr, right: bool, sibling: Fr, writer: &mut Writer<'_>) -> Fr {
    writer.bit(right);
    writer.num(sibling);
    pair_insert(node, right, sibling, writer)
}

/// Insertion and hash of one level of two children.
pub fn pair_insert(node: Fr, right: bool, sibling: Fr, writer: &mut Writer<'_>) -> Fr {
    let [l, r] = insert_2(node, right, sibling, writer);
    poseidon::gadget::hash_2(l, r, writer)
}
