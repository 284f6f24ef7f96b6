//! Multiples of the generators on a GPU: compared with those of all threads, and how many a second.
//!
//! `cargo bench -p cuda --features cuda --bench fixed_base -- 20 24` (log₂ of the number of points).

use std::time::Instant;

use blstrs::{G1Affine, G2Affine, Scalar};
use cuda::{Device, GpuFixedBase};
use ff::Field;
use groth16::BackendError;
use groth16::setup::FixedBaseMultiplier;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

/// Mixed additions of a multiple, and how many of them an H200 does a second when they are all it does
/// (sppark's, operands in registers).
const G1_ADDITIONS: (f64, f64) = (13.0, 2.68e9);
const G2_ADDITIONS: (f64, f64) = (15.0, 8.83e8);

/// Points that are compared one by one with the host's.
const COMPARED: usize = 1 << 15;

fn main() {
    let device = Device::open(0).expect("a device");
    println!("{} {}", device.info().name, device.info().uuid);
    let multiplier = GpuFixedBase::on(device);
    for argument in std::env::args().skip(1) {
        let Ok(log_size) = argument.parse::<u32>() else {
            continue;
        };
        for count in [(1usize << log_size) - 3, 1 << log_size] {
            let scalars = scalars(count);
            report("G1", count, G1_ADDITIONS, || {
                g1(&multiplier, &scalars).map_err(|error| error.to_string())
            });
            report("G2", count, G2_ADDITIONS, || {
                g2(&multiplier, &scalars).map_err(|error| error.to_string())
            });
        }
    }
}

/// 0, 1, −1, then random ones.
fn scalars(count: usize) -> Vec<Scalar> {
    let pieces = (0..count.div_ceil(4096)).into_par_iter();
    let random = pieces.flat_map_iter(|piece| {
        let mut rng = ChaCha20Rng::seed_from_u64(piece as u64);
        let left = (count - piece * 4096).min(4096);
        (0..left)
            .map(move |_| Scalar::random(&mut rng))
            .collect::<Vec<_>>()
    });
    let mut scalars: Vec<Scalar> = random.collect();
    scalars[..3].copy_from_slice(&[Scalar::ZERO, Scalar::ONE, -Scalar::ONE]);
    scalars
}

/// Seconds of the second run, and how many points are wrong of those that were compared.
fn g1(multiplier: &GpuFixedBase, scalars: &[Scalar]) -> Result<(f64, usize), BackendError> {
    let mut points = vec![G1Affine::generator(); scalars.len()];
    multiplier.g1(scalars, &mut points)?;
    let start = Instant::now();
    multiplier.g1(scalars, &mut points)?;
    let seconds = start.elapsed().as_secs_f64();
    let wrong = |i: &usize| points[*i] != G1Affine::from(G1Affine::generator() * scalars[*i]);
    Ok((seconds, compared(scalars.len()).filter(wrong).count()))
}

fn g2(multiplier: &GpuFixedBase, scalars: &[Scalar]) -> Result<(f64, usize), BackendError> {
    let mut points = vec![G2Affine::generator(); scalars.len()];
    multiplier.g2(scalars, &mut points)?;
    let start = Instant::now();
    multiplier.g2(scalars, &mut points)?;
    let seconds = start.elapsed().as_secs_f64();
    let wrong = |i: &usize| points[*i] != G2Affine::from(G2Affine::generator() * scalars[*i]);
    Ok((seconds, compared(scalars.len()).filter(wrong).count()))
}

/// The first, the last, and others evenly spread.
fn compared(count: usize) -> impl ParallelIterator<Item = usize> {
    let step = (count / COMPARED).max(1);
    let spread = (0..count / step).into_par_iter().map(move |i| i * step);
    spread.chain((count.saturating_sub(COMPARED / 4)..count).into_par_iter())
}

fn report(
    group: &str,
    count: usize,
    (additions, peak): (f64, f64),
    run: impl FnOnce() -> Result<(f64, usize), String>,
) {
    match run() {
        Ok((seconds, wrong)) => println!(
            "{group}, {count} points: {wrong} wrong; {:.1} ms, {:.1} million points/s, {:.0} % of the additions' peak",
            seconds * 1e3,
            count as f64 / seconds / 1e6,
            100.0 * additions * count as f64 / seconds / peak
        ),
        Err(error) => println!("{group}, {count} points: FAILED: {error}"),
    }
}
