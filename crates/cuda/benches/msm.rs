//! Group sums on a GPU: sizes, times of the stages, and every result checked.
//!
//! `cargo bench -p cuda --features cuda --bench msm -- full 20 22`, `… full 26 copies=1`,
//! `… skewed 22`, `… bits 26`. Bases are (i + 1)·G, so that a sum is known in closed form. `… check 10`
//! runs every kind once with and without copies of the bases, and is what compute-sanitizer is for.

use std::time::Instant;

use blstrs::{G1Affine, G1Projective, Scalar};
use cuda::msm::sample::{ScalarKind, selected_sum, word};
use cuda::msm::{
    BitSelection, BitSumPlan, Choice, FullSumLimits, FullSumPlan, FullSumTerms, G1, Mask,
    MultiplesPlan, Profile, ProgressionPlan,
};
use cuda::{Arena, Device, DeviceSlice, Ledger, Phase, Stream};
use group::Group;
use group::prime::PrimeCurveAffine;

type Failure = Box<dyn std::error::Error>;

/// sppark 0.1.16 on the H200, scalars and points on the device: log₂ of the size and ms.
const SPPARK_FULL: [(u32, f64); 5] = [
    (20, 20.9),
    (22, 53.9),
    (24, 155.5),
    (26, 558.0),
    (27, 1099.0),
];
const SPPARK_BITS: [(u32, f64); 3] = [(24, 4.48), (26, 17.15), (27, 34.07)];

const PHASE: Phase = Phase::SumH;

fn main() {
    let mut args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let copies = args.iter().position(|arg| arg.starts_with("copies="));
    let copies = copies.map(|at| {
        args.remove(at)["copies=".len()..]
            .parse()
            .expect("a number")
    });
    let Some((kind, sizes)) = args.split_first() else {
        return;
    };
    let device = Device::open(0).expect("a device");
    println!("{} {}", device.info().name, device.info().uuid);
    let mut failed = false;
    for size in sizes {
        let log_size: u32 = size.parse().expect("log2 of a size");
        let runs = if log_size >= 25 { 3 } else { 9 };
        let copies = copies.unwrap_or(1);
        let result = match kind.as_str() {
            "full" => full(&device, log_size, copies, &[ScalarKind::Uniform], runs),
            "skewed" => full(&device, log_size, copies, &ScalarKind::ALL, runs),
            "bits" => bits(&device, log_size, 7),
            "check" => check(&device, log_size),
            other => panic!("{other} is neither full, skewed, bits nor check"),
        };
        if let Err(error) = result {
            println!("2^{log_size}: FAILED: {error}");
            failed = true;
        }
    }
    if failed {
        std::process::exit(1);
    }
}

fn check(device: &Device, log_size: u32) -> Result<(), Failure> {
    for copies in [1, 64] {
        full(device, log_size, copies, &ScalarKind::ALL, 0)?;
    }
    bits(device, log_size, 0)
}

/// The median, the first and the least of some times; the first does not count.
fn summary(times: &[f64]) -> String {
    let mut counted = times[1..].to_vec();
    counted.sort_by(f64::total_cmp);
    match counted.get(counted.len() / 2) {
        None => "once".to_owned(),
        Some(median) => format!(
            "median {median:.2} ms (first {:.2}, min {:.2})",
            times[0], counted[0]
        ),
    }
}

/// How many of the results are right, or a failure if not all.
fn count_right(right: usize, all: usize) -> Result<String, Failure> {
    if right == all {
        Ok(format!("{right} of {all} right"))
    } else {
        Err(format!("{right} of {all} right").into())
    }
}

fn stages(profile: &Profile) -> Result<String, Failure> {
    let stages = profile.stages()?;
    let text: Vec<String> = stages
        .iter()
        .map(|(name, ms)| format!("{name} {ms:.2}"))
        .collect();
    Ok(text.join(", "))
}

/// (i + 1)·G for all of `bases`, checked at a few places.
fn fill(device: &Device, stream: &Stream, bases: DeviceSlice<G1Affine>) -> Result<(), Failure> {
    let mut ledger = Ledger::new("bases");
    let multiprocessors = device.info().multiprocessors;
    let plan =
        ProgressionPlan::<G1>::new("bases", bases.len(), multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    let start = Instant::now();
    plan.bind(device, &arena)?
        .run(stream, bases, G1Affine::generator())?;
    let last = bases.len() - 1;
    for i in [
        0,
        1,
        2,
        3,
        30,
        31,
        32,
        1000,
        last / 2,
        last / 2 + 1,
        last.saturating_sub(1),
        last,
    ]
    .into_iter()
    .filter(|&i| i < bases.len())
    {
        let mut point = [G1Affine::identity()];
        stream.download(bases.slice(i..i + 1), &mut point)?;
        let expected = G1Projective::generator() * Scalar::from(i as u64 + 1);
        if G1Projective::from(point[0]) != expected {
            return Err(format!("base {i} is {:?}, not {expected:?}", point[0]).into());
        }
    }
    println!(
        "  {} bases in {:.2} s",
        bases.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn full(
    device: &Device,
    log_size: u32,
    copies: u64,
    kinds: &[ScalarKind],
    runs: usize,
) -> Result<(), Failure> {
    let terms = 1usize << log_size;
    let multiprocessors = device.info().multiprocessors;
    let limits = FullSumLimits {
        base_bytes: copies * 96 * terms as u64,
        work_bytes: 60 << 30,
    };
    let choice = Choice::new::<G1>(terms, terms, limits, multiprocessors);
    print!("{choice}");
    let windows = choice.chosen.shape.windows.clone();
    let mut ledger = Ledger::new("the sum");
    let base_slot = ledger.reserve("bases", terms * windows.copies() as usize, PHASE);
    let scalar_slot = ledger.reserve::<[u64; 4]>("scalars", terms, PHASE);
    let plan = FullSumPlan::<G1>::new(
        "sum",
        choice.chosen.shape,
        multiprocessors,
        &mut ledger,
        PHASE,
    );
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let bases = arena.get(base_slot);
    fill(device, &stream, bases.slice(0..terms))?;
    copy_bases(device, &stream, bases, terms, &windows)?;
    let sum = plan.bind(device, &arena)?;

    for kind in kinds {
        let scalar_slice = arena.get(scalar_slot);
        let expected = G1Projective::generator() * kind.upload(&stream, scalar_slice)?;
        let terms = FullSumTerms {
            bases,
            scalars: scalar_slice.cast(),
            indices: None,
        };
        let mut times = Vec::new();
        let mut right = 0;
        for _ in 0..runs + 1 {
            let start = Instant::now();
            sum.run(&stream, &terms)?;
            let result = sum.finish(&stream)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            right += usize::from(result == expected);
        }
        let mut profile = Profile::on();
        sum.run_profiled(&stream, &terms, &mut profile)?;
        right += usize::from(sum.finish(&stream)? == expected);
        let mut parts = Profile::of_parts();
        sum.run_profiled(&stream, &terms, &mut parts)?;
        right += usize::from(sum.finish(&stream)? == expected);
        println!("  parts: {}", stages(&parts)?);
        let sppark = SPPARK_FULL.iter().find(|(size, _)| *size == log_size);
        println!(
            "2^{log_size} {}: {}, {}, sppark {:?}; {}",
            kind.name(),
            count_right(right, runs + 3)?,
            summary(&times),
            sppark.map(|(_, ms)| ms),
            stages(&profile)?
        );
    }
    Ok(())
}

fn copy_bases(
    device: &Device,
    stream: &Stream,
    bases: DeviceSlice<G1Affine>,
    points: usize,
    windows: &cuda::msm::Windows,
) -> Result<(), Failure> {
    let mut ledger = Ledger::new("copies");
    let plan = MultiplesPlan::<G1>::new(
        "copies",
        points,
        windows.copies(),
        device.info().multiprocessors,
        &mut ledger,
        PHASE,
    );
    let arena: Arena = device.arena(&ledger)?;
    let start = Instant::now();
    plan.bind(device, &arena)?
        .run(stream, bases, points, windows)?;
    stream.synchronize()?;
    println!(
        "  {} copies in {:.2} s",
        windows.copies(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn bits(device: &Device, log_size: u32, runs: usize) -> Result<(), Failure> {
    let variables = 1usize << log_size;
    let words = variables / 64;
    let mut ledger = Ledger::new("the sum");
    let base_slot = ledger.reserve("bases", variables, PHASE);
    let ones_slot = ledger.reserve::<u64>("ones", words, PHASE);
    let mask_slot = ledger.reserve::<u64>("mask", words, PHASE);
    let rank_slot = ledger.reserve::<u32>("ranks", words, PHASE);
    let plan = BitSumPlan::<G1>::new(
        "bits",
        variables,
        variables,
        device.info().multiprocessors,
        &mut ledger,
        PHASE,
    );
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let bases = arena.get(base_slot);
    fill(device, &stream, bases)?;
    let sum = plan.bind(device, &arena)?;

    let random: Vec<u64> = (0..words as u64).map(|i| word(i, 0)).collect();
    let mask: Vec<u64> = (0..words as u64).map(|i| word(i, 1) | word(i, 2)).collect();
    let mut rank = 0;
    let ranks: Vec<u32> = mask
        .iter()
        .map(|word| {
            rank += word.count_ones();
            rank - word.count_ones()
        })
        .collect();
    stream.upload(arena.get(mask_slot), &mask)?;
    stream.upload(arena.get(rank_slot), &ranks)?;
    let masks = Mask {
        words: arena.get(mask_slot),
        ranks: arena.get(rank_slot),
    };
    let cases = [
        ("half ones", random.clone(), None),
        ("half ones, 3/4 present", random, Some(masks)),
        ("all ones", vec![u64::MAX; words], None),
        ("none", vec![0; words], None),
    ];
    for (kind, ones, masked) in cases {
        stream.upload(arena.get(ones_slot), &ones)?;
        let mask = masked.map(|_| mask.as_slice());
        let expected = G1Projective::generator() * selected_sum(&ones, mask);
        let selection = BitSelection {
            ones: arena.get(ones_slot),
            mask: masked,
            first_point: 0,
        };
        let mut times = Vec::new();
        let mut right = 0;
        for _ in 0..runs + 1 {
            let start = Instant::now();
            sum.run(&stream, &selection, bases)?;
            right += usize::from(sum.finish(&stream)? == expected);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let mut profile = Profile::on();
        sum.run_profiled(&stream, &selection, bases, &mut profile)?;
        let mut parts = Profile::of_parts();
        sum.run_profiled(&stream, &selection, bases, &mut parts)?;
        println!("  parts: {}", stages(&parts)?);
        let sppark = SPPARK_BITS.iter().find(|(size, _)| *size == log_size);
        println!(
            "2^{log_size} bits, {kind}: {}, {}, sppark (half ones) {:?}; {}",
            count_right(right, runs + 1)?,
            summary(&times),
            sppark.map(|(_, ms)| ms),
            stages(&profile)?
        );
    }
    Ok(())
}
