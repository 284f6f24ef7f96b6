//! Sums against their definition, on every kernel and several numbers of threads.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::*;

/// Σ k_i·P_i, term by term.
fn naive<P: AffinePoint>(points: &[P], scalars: &[Scalar]) -> P::Curve {
    points
        .iter()
        .zip(scalars)
        .fold(P::Curve::identity(), |sum, (point, scalar)| {
            sum + *point * *scalar
        })
}

/// Σ k_i·[`points`]_i through their known logarithms: (Σ k_i·(i + 1))·G.
fn by_logarithms<P: AffinePoint>(scalars: &[Scalar]) -> P::Curve {
    let sum: Scalar = (1..).zip(scalars).map(|(i, k)| Scalar::from(i) * k).sum();
    P::generator() * sum
}

/// Points that are consecutive multiples of the generator: sums of neighbours meet again.
fn points<P: AffinePoint>(count: usize) -> Vec<P> {
    let generator = P::generator();
    let mut multiples = Vec::with_capacity(count);
    let mut next = P::Curve::generator();
    for _ in 0..count {
        multiples.push(next.to_affine());
        next += generator;
    }
    multiples
}

/// One list of scalars for every kind of skew.
fn scalar_lists(count: usize, rng: &mut ChaCha8Rng) -> Vec<(&'static str, Vec<Scalar>)> {
    let one = Scalar::random(&mut *rng);
    let mut list = |name, make: &mut dyn FnMut(&mut ChaCha8Rng) -> Scalar| {
        (name, (0..count).map(|_| make(rng)).collect())
    };
    let top = Scalar::from(2).pow_vartime([254]);
    vec![
        list("random", &mut |rng| Scalar::random(rng)),
        list("all equal", &mut |_| one),
        list("zeros", &mut |_| Scalar::ZERO),
        list("ones", &mut |_| Scalar::ONE),
        list("0 or 1", &mut |rng| {
            Scalar::from(u64::from(rng.next_u32() & 1))
        }),
        list("90 % zeros", &mut |rng| {
            if rng.next_u32() % 10 == 0 {
                Scalar::random(rng)
            } else {
                Scalar::ZERO
            }
        }),
        list("r − 1", &mut |_| -Scalar::ONE),
        list("top bit", &mut |_| top),
        list("small", &mut |rng| {
            Scalar::from(u64::from(rng.next_u32() % 100))
        }),
    ]
}

fn check<P: AffinePoint>(sizes: &[usize]) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for &size in sizes {
        let points = points::<P>(size);
        for (name, scalars) in scalar_lists(size, &mut rng) {
            let expected = by_logarithms::<P>(&scalars);
            if size < 300 {
                assert_eq!(expected, naive(&points, &scalars));
            }
            for kernel in Kernel::available() {
                let terms = Dense::new(points.as_slice(), &scalars);
                let sum = sum_terms(&terms, kernel, &()).unwrap();
                assert_eq!(sum, expected, "{size} terms, {name}, {kernel:?}");
            }
        }
    }
}

#[test]
fn g1_sums_of_every_skew() {
    check::<G1Affine>(&[0, 1, 2, 3, 255, 1000, 4097]);
}

#[test]
fn g2_sums_of_every_skew() {
    check::<G2Affine>(&[0, 1, 2, 3, 255, 1000]);
}

#[test]
fn any_number_of_threads_gives_the_same_sum() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let points = points::<G1Affine>(20_001);
    let scalars: Vec<Scalar> = (0..points.len())
        .map(|_| Scalar::random(&mut rng))
        .collect();
    let expected = by_logarithms::<G1Affine>(&scalars);
    for threads in [1, 2, 3, 5, 16] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        assert_eq!(pool.install(|| sum(&points, &scalars)).unwrap(), expected);
    }
}

/// Equal points fill their buckets with doublings; opposite ones empty them again.
#[test]
fn equal_and_opposite_points() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let point = (G1Affine::generator() * Scalar::random(&mut rng)).to_affine();
    let mut points = vec![point; 3000];
    let scalars: Vec<Scalar> = (0..3000).map(|_| Scalar::random(&mut rng)).collect();
    let total: Scalar = scalars.iter().sum();
    assert_eq!(sum(&points, &scalars).unwrap(), point * total);

    for (i, point) in points.iter_mut().enumerate() {
        if i % 2 == 1 {
            *point = -*point;
        }
    }
    let equal = vec![scalars[0]; 3000];
    assert!(bool::from(sum(&points, &equal).unwrap().is_identity()));

    points.fill(G1Affine::default());
    assert!(bool::from(sum(&points, &scalars).unwrap().is_identity()));
}

/// Counts what it is told.
#[derive(Default)]
struct Count(AtomicUsize);

impl Progress for Count {
    fn begin(&self, _stage: &'static str, _total: u64) {}

    fn advance(&self, amount: u64) {
        self.0.fetch_add(amount as usize, Ordering::Relaxed);
    }
}

#[test]
fn progress_counts_every_chunk_and_errors_stop_the_sum() {
    let points = points::<G1Affine>(5000);
    let scalars = vec![Scalar::from(7); 5000];
    let terms = Dense::new(&points, &scalars);
    let count = Count::default();
    sum_terms(&terms, Kernel::detect(), &count).unwrap();
    assert_eq!(count.0.into_inner(), Terms::<G1Affine>::chunks(&terms));

    // One point fewer than scalars.
    let error = sum(&points[1..], &scalars).unwrap_err();
    assert!(matches!(error, KeyError::Range { .. }));
}
