//! Sums over G2 on a GPU: times of the stages, and every result checked.
//!
//! `cargo bench -p cuda --features cuda --bench msm_g2 -- 20 22`, `… copies=8 20`. Bases are
//! (i + 1)·G, so that a sum is known in closed form.

use std::time::Instant;

use blstrs::{G2Affine, G2Projective, Scalar};
use cuda::msm::{
    Choice, FullSumLimits, FullSumPlan, FullSumTerms, G2, MultiplesPlan, Profile, ProgressionPlan,
};
use cuda::{Device, Ledger, Phase};
use ff::{Field, PrimeField};
use group::Group;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const PHASE: Phase = Phase::SumBG2;
const RUNS: usize = 9;

/// sppark 0.1.16 on the H200, scalars and points on the device: log₂ of the size and ms.
const SPPARK: [(u32, f64); 2] = [(20, 49.0), (22, 139.0)];

fn main() {
    let mut copies = None;
    let device = Device::open(0).expect("a device");
    println!("{} {}", device.info().name, device.info().uuid);
    for argument in std::env::args().skip(1) {
        if let Some(number) = argument.strip_prefix("copies=") {
            copies = number.parse().ok();
        } else if let Ok(log_size) = argument.parse()
            && let Err(error) = measure(&device, log_size, copies.unwrap_or(64))
        {
            println!("2^{log_size}: FAILED: {error}");
        }
    }
}

fn measure(device: &Device, log_size: u32, copies: u64) -> Result<(), Box<dyn std::error::Error>> {
    let terms = 1usize << log_size;
    let multiprocessors = device.info().multiprocessors;
    let limits = FullSumLimits {
        base_bytes: copies * 192 * terms as u64,
        work_bytes: 60 << 30,
    };
    let choice = Choice::new::<G2>(terms, terms, limits, multiprocessors);
    print!("{choice}");
    let shape = choice.chosen.shape;
    let windows = shape.windows.clone();
    let mut ledger = Ledger::new("the sum");
    let base_slot = ledger.reserve("bases", terms * windows.copies() as usize, PHASE);
    let scalar_slot = ledger.reserve::<[u8; 32]>("scalars", terms, PHASE);
    let progression =
        ProgressionPlan::<G2>::new("bases", terms, multiprocessors, &mut ledger, PHASE);
    let multiples = MultiplesPlan::<G2>::new(
        "copies",
        terms,
        windows.copies(),
        multiprocessors,
        &mut ledger,
        PHASE,
    );
    let plan = FullSumPlan::<G2>::new("sum", shape, multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let bases = arena.get(base_slot);
    let progression = progression.bind(device, &arena)?;
    progression.run(&stream, bases.slice(0..terms), G2Affine::generator())?;
    let start = Instant::now();
    let multiples = multiples.bind(device, &arena)?;
    multiples.run(&stream, bases, terms, &windows)?;
    stream.synchronize()?;
    println!(
        "  {} copies of the bases in {:.2} s",
        windows.copies(),
        start.elapsed().as_secs_f64()
    );

    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(log_size));
    let scalars: Vec<Scalar> = (0..terms).map(|_| Scalar::random(&mut rng)).collect();
    let logarithm: Scalar = scalars
        .iter()
        .zip(1u64..)
        .map(|(scalar, i)| scalar * Scalar::from(i))
        .sum();
    let expected = G2Projective::generator() * logarithm;
    let canonical: Vec<[u8; 32]> = scalars.iter().map(PrimeField::to_repr).collect();
    stream.upload(arena.get(scalar_slot), &canonical)?;
    let terms = FullSumTerms {
        bases,
        scalars: arena.get(scalar_slot).cast(),
        indices: None,
    };
    let sum = plan.bind(device, &arena)?;
    let mut times = Vec::new();
    let mut right = 0;
    for _ in 0..=RUNS {
        let start = Instant::now();
        sum.run(&stream, &terms)?;
        let result = sum.finish(&stream)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        right += usize::from(result == expected);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    let mut profile = Profile::on();
    sum.run_profiled(&stream, &terms, &mut profile)?;
    let stages: Vec<String> = profile
        .stages()?
        .iter()
        .map(|(name, ms)| format!("{name} {ms:.2}"))
        .collect();
    let peer = SPPARK.iter().find(|(size, _)| *size == log_size);
    println!(
        "G2 2^{log_size}: {right} of {} right, median {:.2} ms (min {:.2}), sppark {:?}; {}",
        RUNS + 1,
        times[RUNS / 2],
        times[0],
        peer.map(|(_, ms)| ms),
        stages.join(", ")
    );
    Ok(())
}
