//! `Limbs` against `blstrs::Scalar`.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use proptest::prelude::*;

use super::*;

/// 0, 1, 2, r − 1, R-related and sparse values: where carries and borrows run furthest.
fn edges() -> Vec<Scalar> {
    let mut edges = vec![
        Scalar::ZERO,
        Scalar::ONE,
        Scalar::from(2),
        -Scalar::ONE,
        -Scalar::from(2),
        Scalar::from(u64::MAX),
        Scalar::ROOT_OF_UNITY,
        Scalar::from(2).invert().unwrap(),
    ];
    // Elements whose Montgomery words are 1, all ones in one word, and r − 1.
    for words in [
        [1, 0, 0, 0],
        [u64::MAX, 0, 0, 0],
        [0, u64::MAX, 0, 0],
        [0, 0, u64::MAX, 0],
        [u64::MAX, u64::MAX, u64::MAX, 0x73ed_a753_299d_7d47],
        [
            0xffff_ffff_0000_0000,
            0x53bd_a402_fffe_5bfe,
            0x3339_d808_09a1_d805,
            0x73ed_a753_299d_7d48,
        ],
    ] {
        edges.push(Scalar::from(blst::blst_fr { l: words }));
    }
    edges
}

fn agrees(a: Scalar, b: Scalar) {
    let (x, y) = (Limbs::from(a), Limbs::from(b));
    assert_eq!(Scalar::from(x), a);
    assert_eq!(Scalar::from(x + y), a + b);
    assert_eq!(Scalar::from(x - y), a - b);
    assert_eq!(Scalar::from(x * y), a * b);
    assert_eq!(x.sum_and_difference(y), (x + y, x - y));
}

#[test]
fn edges_agree_with_blst() {
    for a in edges() {
        for b in edges() {
            agrees(a, b);
        }
    }
}

#[test]
fn magnitudes_are_the_smaller_of_k_and_its_negative() {
    let half = Scalar::from(2).invert().unwrap();
    for a in edges().into_iter().chain([half, half - Scalar::ONE, -half]) {
        let (words, negative) = Limbs::from(a).magnitude_and_sign();
        let magnitude = Scalar::from_u64s_le(&words).unwrap();
        assert_eq!(if negative { -magnitude } else { magnitude }, a);
        assert!(words[3] <= 0x73ed_a753_299d_7d48 / 2);
    }
    assert_eq!(Limbs::from(half - Scalar::ONE).magnitude_and_sign(), {
        let mut words = [0; 4];
        for (word, bytes) in words
            .iter_mut()
            .zip((half - Scalar::ONE).to_repr().chunks(8))
        {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        (words, false)
    });
    assert!(Limbs::from(half).magnitude_and_sign().1);
}

#[test]
fn slices_are_the_same_memory() {
    let mut scalars = edges();
    let copy = scalars.clone();
    assert!(
        as_limbs(&scalars)
            .iter()
            .zip(&copy)
            .all(|(x, a)| Scalar::from(*x) == *a)
    );
    for x in as_limbs_mut(&mut scalars) {
        *x = *x + *x;
    }
    assert!(
        scalars
            .iter()
            .zip(copy)
            .all(|(twice, a)| *twice == a.double())
    );
    assert!(as_limbs(&[]).is_empty());
}

fn scalar() -> impl Strategy<Value = Scalar> {
    // Any 64 bytes reduced: uniform up to 2^−256.
    proptest::array::uniform32(any::<u8>()).prop_map(|mut bytes| {
        bytes[31] &= 0x3f;
        Scalar::from_repr_vartime(bytes).expect("below 2^254 < r")
    })
}

proptest! {
    #[test]
    fn random_elements_agree_with_blst(a in scalar(), b in scalar()) {
        agrees(a, b);
    }
}
