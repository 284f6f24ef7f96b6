//! Times of the prover's inner parts on this machine.
//!
//! `cargo bench -p groth16 --bench kernels [-- NAME…]`, with the names of [`MEASUREMENTS`]; all
//! by default. Each line is the best of several runs, so that other load shows least.

use std::hint::black_box;
use std::time::{Duration, Instant};

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use groth16::curve::{AffinePoint, BatchAdder, Kernel, PointSum};
use groth16::msm::{Dense, sum_terms};
use groth16::ntt::{Domain, EvaluationSet};
use group::Curve;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

type Measurement = (&'static str, fn());

const MEASUREMENTS: [Measurement; 7] = [
    ("add-g1", additions::<G1Affine>),
    ("add-g2", additions::<G2Affine>),
    ("sum-g1", plain_sums::<G1Affine>),
    ("ntt", transforms),
    ("quotient", quotients),
    ("msm-g1", sums::<G1Affine>),
    ("msm-g2", sums::<G2Affine>),
];

fn main() {
    // `cargo bench` passes `--bench`.
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    println!("{} threads", rayon::current_num_threads());
    for (name, run) in MEASUREMENTS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            run();
        }
    }
}

/// The best time of `runs` runs; `prepare` is not timed.
fn best<T>(runs: u32, mut prepare: impl FnMut() -> T, mut work: impl FnMut(&mut T)) -> Duration {
    (0..runs)
        .map(|_| {
            let mut data = prepare();
            let start = Instant::now();
            work(&mut data);
            let time = start.elapsed();
            black_box(&data);
            time
        })
        .min()
        .unwrap_or_default()
}

fn group<P: AffinePoint>() -> &'static str {
    match size_of::<P>() {
        96 => "G1",
        _ => "G2",
    }
}

/// `count` points, all different: each block is the one before plus a constant point.
fn points<P: AffinePoint>(count: usize) -> Vec<P> {
    const BLOCK: usize = 1024;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = || (P::generator() * Scalar::random(&mut rng)).to_affine();
    let mut points: Vec<P> = (0..BLOCK.min(count)).map(|_| random()).collect();
    let step = vec![random(); BLOCK];
    let mut adder = BatchAdder::new();
    while points.len() < count {
        let from = points.len() - BLOCK;
        let mut next = points[from..].to_vec();
        adder.add_assign(&mut next, &step);
        next.truncate(count - points.len());
        points.extend(next);
    }
    points
}

fn random_scalars(count: usize) -> Vec<Scalar> {
    (0..count)
        .into_par_iter()
        .with_min_len(1 << 12)
        .map_init(
            || ChaCha8Rng::seed_from_u64(2),
            |rng, i| Scalar::random(rng) + Scalar::from(i as u64),
        )
        .collect()
}

fn additions<P: AffinePoint>() {
    const PAIRS: usize = 1 << 11;
    let (left, right) = (points::<P>(PAIRS), points::<P>(2 * PAIRS)[PAIRS..].to_vec());
    for kernel in Kernel::available() {
        let mut adder = BatchAdder::with_kernel(kernel);
        let time = best(300, || left.clone(), |left| adder.add_assign(left, &right));
        let each = time.as_nanos() as f64 / PAIRS as f64;
        println!(
            "{} addition, one thread, {kernel}: {each:.1} ns",
            group::<P>()
        );
    }
}

fn plain_sums<P: AffinePoint>() {
    const COUNT: usize = 1 << 18;
    let points = points::<P>(COUNT);
    for kernel in Kernel::available() {
        let sum = || PointSum::with_kernel(kernel);
        let time = best(5, sum, |sum| {
            sum.extend(&points);
            black_box(sum.finish());
        });
        let each = time.as_nanos() as f64 / COUNT as f64;
        println!(
            "{} sum, one thread, {kernel}: {each:.1} ns a point",
            group::<P>()
        );
    }
}

fn transforms() {
    for log in [16, 20, 22] {
        let domain = Domain::new(1 << log).expect("a power of two");
        let vector = random_scalars(1 << log);
        let copy = || vector.clone();
        let forward = best(4, copy, |v| domain.forward(v, EvaluationSet::Coset));
        let inverse = best(4, copy, |v| domain.inverse(v, EvaluationSet::Subgroup));
        println!("transform 2^{log}: forward {forward:.1?}, inverse {inverse:.1?}");
    }
}

fn quotients() {
    let log = 22;
    let (a, b) = (random_scalars(1 << log), random_scalars(1 << log));
    let time = best(
        2,
        || Some((a.clone(), b.clone())),
        |pair| {
            let (a, b) = pair.take().expect("filled by the preparation");
            let domain = Domain::new(1 << log).expect("a power of two");
            black_box(groth16::quotient(&domain, a, b));
        },
    );
    println!("quotient 2^{log}, roots included: {time:.1?}");
}

fn sums<P: AffinePoint>() {
    let largest = if group::<P>() == "G1" { 22 } else { 18 };
    let (points, scalars) = (points::<P>(1 << largest), random_scalars(1 << largest));
    for log in [14, 16, 18, 20, 22] {
        if log > largest {
            break;
        }
        for kernel in Kernel::available() {
            let terms = Dense::new(&points, &scalars[..1 << log]);
            let time = best(
                2,
                || (),
                |()| {
                    black_box(sum_terms(&terms, kernel, &()).expect("points from memory"));
                },
            );
            println!(
                "{} sum of products 2^{log}, {kernel}: {time:.1?}",
                group::<P>()
            );
        }
    }
}
