//! Batch addition against `blst`'s projective addition, on every kernel of this processor.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field as _;
use group::{Curve, Group};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::batch_add::BLOCK;
use super::*;

fn random_points<P: AffinePoint>(count: usize, seed: u64) -> Vec<P> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|_| (P::generator() * Scalar::random(&mut rng)).to_affine())
        .collect()
}

fn plus<P: AffinePoint>(left: P, right: P) -> P {
    (left.to_curve() + right).to_affine()
}

/// Pairs of every case, in an order that puts every case beside every other.
fn pairs_of_every_case<P: AffinePoint>(count: usize, seed: u64) -> (Vec<P>, Vec<P>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let points = random_points::<P>(64, seed + 1);
    (0..count)
        .map(|_| {
            let p = points[rng.next_u32() as usize % 64];
            let q = points[rng.next_u32() as usize % 64];
            match rng.next_u32() % 9 {
                0 => (p, p),
                1 => (p, -p),
                2 => (p, P::identity()),
                3 => (P::identity(), q),
                4 => (P::identity(), P::identity()),
                // An operand whose double is the other one: the next sum meets a tangent.
                5 => (p, plus(p, p)),
                _ => (p, q),
            }
        })
        .unzip()
}

fn adds_as_projective<P: AffinePoint>() {
    for kernel in Kernel::available() {
        let mut adder = BatchAdder::<P>::with_kernel(kernel);
        for count in [0, 1, 2, 7, 8, 9, 31, 255, BLOCK - 1, BLOCK, BLOCK + 1, 2500] {
            let (left, right) = pairs_of_every_case::<P>(count, count as u64);
            let expected: Vec<P> = left.iter().zip(&right).map(|(p, q)| plus(*p, *q)).collect();
            let mut sums = left.clone();
            adder.add_assign(&mut sums, &right);
            assert_eq!(sums, expected, "{kernel:?}, {count} pairs");
        }
    }
}

/// A block of a single case has no general pair to hide behind.
fn adds_blocks_of_one_case<P: AffinePoint>() {
    let points = random_points::<P>(100, 5);
    let none = vec![P::identity(); 100];
    let negative: Vec<P> = points.iter().map(|p| -*p).collect();
    let double: Vec<P> = points.iter().map(|p| plus(*p, *p)).collect();
    for kernel in Kernel::available() {
        let mut adder = BatchAdder::<P>::with_kernel(kernel);
        let mut check = |left: &[P], right: &[P], sum: &[P]| {
            let mut left = left.to_vec();
            adder.add_assign(&mut left, right);
            assert_eq!(left, sum, "{kernel:?}");
        };
        check(&points, &points, &double);
        check(&points, &negative, &none);
        check(&none, &points, &points);
        check(&points, &none, &points);
        check(&none, &none, &none);
    }
}

fn picks_scatters_and_folds<P: AffinePoint>() {
    let points = random_points::<P>(300, 9);
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let mut pick = || Pick::new(rng.next_u32() as usize % 300, rng.next_u32() % 2 == 1);
    let taken = |pick: Pick| {
        let p = points[pick.index()];
        if pick.is_negative() { -p } else { p }
    };
    for kernel in Kernel::available() {
        let mut adder = BatchAdder::<P>::with_kernel(kernel);
        for count in [0, 1, 100, 1500] {
            let picks: Vec<Pick> = (0..count).map(|_| pick()).collect();
            let start = random_points::<P>(count, 11);

            let mut acc = start.clone();
            adder.add_picks(&mut acc, &points, &picks);
            for i in 0..count {
                assert_eq!(acc[i], plus(start[i], taken(picks[i])));
            }

            // Every third accumulator, in falling order.
            let targets: Vec<u32> = (0..count as u32).rev().step_by(3).collect();
            let mut acc = start.clone();
            adder.scatter_picks(&mut acc, &targets, &points, &picks[..targets.len()]);
            let mut expected = start.clone();
            for (&target, &pick) in targets.iter().zip(&picks) {
                expected[target as usize] = plus(expected[target as usize], taken(pick));
            }
            assert_eq!(acc, expected);

            let pairs: Vec<(Pick, Pick)> = picks.iter().map(|&left| (left, pick())).collect();
            let mut out = vec![P::identity(); count];
            adder.pair_up(&mut out, &points, &pairs);
            for (sum, (left, right)) in out.iter().zip(pairs) {
                assert_eq!(*sum, plus(taken(left), taken(right)));
            }

            let folds: Vec<(u32, u32)> =
                (0..count as u32 / 2).map(|i| (2 * i + 1, 2 * i)).collect();
            let mut folded = start.clone();
            adder.fold_pairs(&mut folded, &folds);
            for (into, from) in folds {
                let (into, from) = (into as usize, from as usize);
                assert_eq!(folded[into], plus(start[into], start[from]));
                assert_eq!(folded[from], start[from]);
            }
        }
    }
}

fn sums_streams<P: AffinePoint>() {
    let points = random_points::<P>(2500, 21);
    for kernel in Kernel::available() {
        let mut sum = PointSum::<P>::with_kernel(kernel);
        for count in [0, 1, 2, 33, 1023, 1024, 1025, 2500] {
            let expected = points[..count]
                .iter()
                .fold(P::Curve::identity(), |sum, p| sum + *p);
            sum.extend(&points[..count / 2]);
            for point in &points[count / 2..count] {
                sum.push(*point);
            }
            assert_eq!(sum.finish(), expected, "{kernel:?}, {count} points");
        }
        // All equal: every addition in the tree is a doubling.
        sum.extend(&[points[0]; 1537]);
        assert_eq!(sum.finish(), points[0].to_curve() * Scalar::from(1537));
    }
}

#[test]
fn g1_adds_as_projective() {
    adds_as_projective::<G1Affine>();
}

#[test]
fn g2_adds_as_projective() {
    adds_as_projective::<G2Affine>();
}

#[test]
fn blocks_of_one_case() {
    adds_blocks_of_one_case::<G1Affine>();
    adds_blocks_of_one_case::<G2Affine>();
}

#[test]
fn picks_and_scatters() {
    picks_scatters_and_folds::<G1Affine>();
    picks_scatters_and_folds::<G2Affine>();
}

#[test]
fn streams() {
    sums_streams::<G1Affine>();
    sums_streams::<G2Affine>();
}
