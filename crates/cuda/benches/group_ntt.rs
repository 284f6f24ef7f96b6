//! Transforms of points on a GPU: compared with the multiples that the scalars' transform gives, and timed.
//!
//! `cargo bench -p cuda --features cuda --bench group_ntt -- 13 20 22` (log₂ of the number of points).

use std::error::Error;
use std::time::Instant;

use blstrs::{G1Affine, Scalar};
use cuda::{Device, GpuFixedBase, GpuGroupTransform};
use ff::Field;
use groth16::key::prepare::GroupTransform;
use groth16::ntt::{Domain, EvaluationSet, bit_reverse};
use groth16::setup::FixedBaseMultiplier;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Products of the base field of a point that is multiplied, a square counting 0.8, and how many an H200 does
/// a second.
const PRODUCTS: f64 = 1500.0;
const PEAK: f64 = 2.72e10;

fn main() {
    let device = Device::open(0).expect("a device");
    println!("{} {}", device.info().name, device.info().uuid);
    for argument in std::env::args().skip(1) {
        let Ok(log_size) = argument.parse() else {
            continue;
        };
        for set in [EvaluationSet::Subgroup, EvaluationSet::Coset] {
            match measure(&device, log_size, set) {
                Ok(line) => println!("2^{log_size}, {set:?}: {line}"),
                Err(error) => println!("2^{log_size}, {set:?}: FAILED: {error}"),
            }
        }
    }
}

fn measure(device: &Device, log_size: u32, set: EvaluationSet) -> Result<String, Box<dyn Error>> {
    let size = 1usize << log_size;
    let domain = Domain::new(size)?;
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(log_size));
    let scale = Scalar::random(&mut rng);
    let mut scalars: Vec<Scalar> = (0..size).map(|_| Scalar::random(&mut rng)).collect();
    scalars[size - 1] = Scalar::ZERO;
    let generator = GpuFixedBase::on(device.clone());
    let mut points = vec![G1Affine::generator(); size];
    generator.g1(&scalars, &mut points)?;

    let start = Instant::now();
    GpuGroupTransform::on(device.clone()).inverse(&mut points, set, scale)?;
    let seconds = start.elapsed().as_secs_f64();

    let shift = match set {
        EvaluationSet::Subgroup => Scalar::ONE,
        EvaluationSet::Coset => domain.coset_shift().invert().unwrap_or(Scalar::ZERO),
    };
    let mut factor = scale * domain.size_inverse();
    for scalar in &mut scalars {
        *scalar *= factor;
        factor *= shift;
    }
    let mut transformed = vec![Scalar::ZERO; size];
    bit_reverse(&scalars, &mut transformed);
    domain.inverse(&mut transformed, EvaluationSet::Subgroup);
    let mut expected = vec![G1Affine::generator(); size];
    generator.g1(&transformed, &mut expected)?;
    let pairs = points.iter().zip(&expected);
    let wrong = pairs.filter(|(found, expected)| found != expected).count();

    // Three of four points in every pass of radix 4, one of two in one of radix 2, and the scale in the last.
    let fours = f64::from(log_size / 2) * 0.75 + 0.25;
    let twos = f64::from(log_size % 2) * 0.5;
    let trivial = match (set, log_size % 2) {
        (EvaluationSet::Coset, _) => 0.0,
        (EvaluationSet::Subgroup, 0) => 0.75,
        (EvaluationSet::Subgroup, _) => 0.5,
    };
    let multiplied = (fours + twos - trivial) * size as f64;
    Ok(format!(
        "{wrong} wrong; {:.1} ms, {:.2} million points multiplied a second, {:.0} % of the products' peak",
        seconds * 1e3,
        multiplied / seconds / 1e6,
        100.0 * multiplied * PRODUCTS / seconds / PEAK
    ))
}
