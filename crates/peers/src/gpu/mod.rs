//! `peers kernels --gpu`: sums and transforms on a GPU, beside those of the crate sppark.
//!
//! Both sides get the same values in the same device memory and have everything allocated
//! beforehand. Sums are timed to the result on the host, transforms and sppark's selection by events
//! around the kernels. Every result is compared before anything is timed.

#[allow(unsafe_code, reason = "sppark's functions are C functions")]
mod sppark;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuda::msm::{
    BitSelection, BitSumPlan, Choice, FullSumLimits, FullSumPlan, FullSumTerms, G1, G2,
    MultiplesPlan, ProgressionPlan, SumCurve,
};
use cuda::ntt::{NttPlan, Scale, Transform};
use cuda::{Device, DeviceSlice, Ledger, Phase, Stream};
use ff::{Field, PrimeField};
use groth16::ntt::EvaluationSet;
use group::Group;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use crate::kernels::{Kernels, Row};

const PEER: &str = "sppark";
const PHASE: Phase = Phase::SumH;
/// Memory for copies of the bases.
const BASE_BYTES: u64 = 16 << 30;
const WORK_BYTES: u64 = 60 << 30;

/// Which kernels at which sizes, as binary logarithms.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Sums in G1.
    pub g1: Vec<u32>,
    /// Sums in G2.
    pub g2: Vec<u32>,
    /// Sums of selected points in G1.
    pub bits: Vec<u32>,
    /// Transforms.
    pub ntt: Vec<u32>,
}

/// Times all of them on the first GPU.
///
/// # Errors
/// No GPU, a side that fails, or two results that differ.
pub fn measure(sizes: &Sizes, runs: usize) -> Result<Kernels> {
    ensure!(runs > 0, "at least one run is needed");
    let device = Device::open(0).context("`--gpu` needs a GPU")?;
    let mut rows = Vec::new();
    for &log_size in &sizes.ntt {
        rows.extend(transforms(&device, log_size, runs)?);
    }
    for &log_size in &sizes.g1 {
        let kernel = "G1 sum, full-size scalars";
        rows.push(sum::<G1>(&device, kernel, log_size, runs)?);
    }
    for &log_size in &sizes.bits {
        rows.push(selection(&device, log_size, runs)?);
    }
    for &log_size in &sizes.g2 {
        let kernel = "G2 sum, full-size scalars";
        rows.push(sum::<G2>(&device, kernel, log_size, runs)?);
    }
    let info = device.info();
    Ok(Kernels {
        machine: format!("{} {}", info.name, info.uuid),
        runs,
        rows,
    })
}

/// What this comparison needs of a group besides its kernels.
trait Bases: SumCurve<Affine = <Self as sppark::Curve>::Affine> + sppark::Curve {
    fn generator() -> <Self as sppark::Curve>::Affine;
    fn multiple(scalar: Scalar) -> <Self as SumCurve>::Projective;
    /// sppark's sum as a point.
    fn point(sum: <Self as sppark::Curve>::Projective) -> <Self as SumCurve>::Projective;
}

macro_rules! bases {
    ($curve:ident, $affine:ident, $projective:ident) => {
        impl Bases for $curve {
            fn generator() -> $affine {
                $affine::generator()
            }

            fn multiple(scalar: Scalar) -> $projective {
                $projective::generator() * scalar
            }

            fn point(sum: $projective) -> $projective {
                sum
            }
        }
    };
}

bases!(G1, G1Affine, G1Projective);
bases!(G2, G2Affine, G2Projective);

/// Σ s_i P_i over bases that stay, P_i = (i + 1)·G.
fn sum<C: Bases>(device: &Device, kernel: &'static str, log_size: u32, runs: usize) -> Result<Row> {
    let terms = 1usize << log_size;
    progress(kernel, log_size, "bases");
    let multiprocessors = device.info().multiprocessors;
    let limits = FullSumLimits {
        base_bytes: BASE_BYTES,
        work_bytes: WORK_BYTES,
    };
    let shape = Choice::new::<C>(terms, terms, limits, multiprocessors)
        .chosen
        .shape;
    let windows = shape.windows.clone();
    let copies = windows.copies();
    let mut ledger = Ledger::new("a sum");
    let bases = ledger.reserve("bases", terms * copies as usize, PHASE);
    let scalars = ledger.reserve::<[u8; 32]>("scalars", terms, PHASE);
    let plan = FullSumPlan::<C>::new("sum", shape, multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let (bases, scalars) = (arena.get(bases), arena.get(scalars));
    progression::<C>(device, &stream, bases.slice(0..terms))?;
    {
        let mut ledger = Ledger::new("copies of the bases");
        let plan =
            MultiplesPlan::<C>::new("copies", terms, copies, multiprocessors, &mut ledger, PHASE);
        let arena = device.arena(&ledger)?;
        let multiples = plan.bind(device, &arena)?;
        multiples.run(&stream, bases, terms, &windows)?;
        stream.synchronize()?;
    }
    let values = random_scalars(terms);
    let canonical: Vec<[u8; 32]> = values.iter().map(PrimeField::to_repr).collect();
    stream.upload(scalars, &canonical)?;
    let logarithm: Scalar = values
        .iter()
        .zip(1u64..)
        .map(|(s, i)| s * Scalar::from(i))
        .sum();
    let expected = C::multiple(logarithm);

    let full_terms = FullSumTerms {
        bases,
        scalars: scalars.cast(),
        indices: None,
    };
    let ours = plan.bind(device, &arena)?;
    let ours = || -> Result<<C as SumCurve>::Projective> {
        ours.run(&stream, &full_terms)?;
        Ok(ours.finish(&stream)?)
    };
    progress(kernel, log_size, "cuzk");
    ensure!(ours()? == expected, "our {kernel} of 2^{log_size} is wrong");
    let cuzk_s = median(runs, || wall(ours))?;
    progress(kernel, log_size, PEER);
    let theirs = sppark::Sum::<C>::new(terms)?;
    let theirs = || theirs.run(bases.slice(0..terms), scalars);
    ensure!(
        C::point(theirs()?) == expected,
        "sppark's {kernel} of 2^{log_size} is wrong"
    );
    let peer_s = median(runs, || wall(theirs))?;
    Ok(Row {
        kernel,
        log_size,
        cuzk_s,
        peer: PEER,
        peer_s,
    })
}

/// The sum of half of the points.
fn selection(device: &Device, log_size: u32, runs: usize) -> Result<Row> {
    let kernel = "G1 sum of half of the points";
    progress(kernel, log_size, "both sides");
    let len = 1usize << log_size;
    let words = len.div_ceil(64);
    let mut ledger = Ledger::new("a sum of selected points");
    let bases = ledger.reserve::<G1Affine>("bases", len, PHASE);
    let ones = ledger.reserve::<u64>("ones", words, PHASE);
    let multiprocessors = device.info().multiprocessors;
    let plan = BitSumPlan::<G1>::new("bits", len, len, multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let (bases, ones) = (arena.get(bases), arena.get(ones));
    progression::<G1>(device, &stream, bases)?;
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(log_size));
    let bits: Vec<u64> = (0..words).map(|_| rng.next_u64()).collect();
    stream.upload(ones, &bits)?;
    let logarithm: u64 = (0..len)
        .filter(|i| bits[i / 64] >> (i % 64) & 1 == 1)
        .map(|i| i as u64 + 1)
        .sum();
    let expected = G1Projective::generator() * Scalar::from(logarithm);

    let ours = plan.bind(device, &arena)?;
    let select = BitSelection {
        ones,
        mask: None,
        first_point: 0,
    };
    let ours = || -> Result<G1Projective> {
        ours.run(&stream, &select, bases)?;
        Ok(ours.finish(&stream)?)
    };
    ensure!(ours()? == expected, "our sum of selected points is wrong");
    ensure!(
        sppark::select(bases, ones)?.0 == expected,
        "sppark's sum of selected points is wrong"
    );
    Ok(Row {
        kernel,
        log_size,
        cuzk_s: median(runs, || wall(ours))?,
        peer: PEER,
        peer_s: median(runs, || Ok(sppark::select(bases, ones)?.1 * 1e-3))?,
    })
}

/// From coefficients in bit-reversed order to values, and back.
fn transforms(device: &Device, log_size: u32, runs: usize) -> Result<[Row; 2]> {
    let len = 1usize << log_size;
    let mut ledger = Ledger::new("a transform");
    let scale = Scalar::from(len as u64).invert();
    let scale: Scalar = Option::from(scale).context("a power of two is no multiple of r")?;
    let plan = NttPlan::new(log_size, &[scale], &mut ledger);
    let values = ledger.reserve::<Scalar>("values", len, PHASE);
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let values = arena.get(values);
    let ntt = plan.bind(device, &arena)?;
    let row = |kernel: &'static str, from_reversed: bool, transform: Transform| -> Result<Row> {
        let input = random_scalars(len);
        let (mut ours, mut theirs) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
        progress(kernel, log_size, "cuzk");
        stream.upload(values, &input)?;
        ntt.run(&stream, values, transform)?;
        stream.download(values, &mut ours)?;
        progress(kernel, log_size, PEER);
        stream.upload(values, &input)?;
        sppark::ntt(values, from_reversed, !from_reversed)?;
        stream.download(values, &mut theirs)?;
        ensure!(
            ours == theirs,
            "the transforms of 2^{log_size} differ: {kernel}"
        );
        Ok(Row {
            kernel,
            log_size,
            cuzk_s: median(runs, || {
                let start = stream.record()?;
                ntt.run(&stream, values, transform)?;
                let end = stream.record()?;
                Ok(f64::from(end.elapsed_ms(&start)?) * 1e-3)
            })?,
            peer: PEER,
            peer_s: median(runs, || {
                Ok(sppark::ntt(values, from_reversed, !from_reversed)? * 1e-3)
            })?,
        })
    };
    let subgroup = EvaluationSet::Subgroup;
    Ok([
        row(
            "NTT, bit-reversed coefficients to values",
            true,
            Transform::evaluate(subgroup),
        )?,
        row(
            "NTT, values to bit-reversed coefficients",
            false,
            Transform::interpolate(subgroup, Scale(1)),
        )?,
    ])
}

/// Fills `bases` with (i + 1)·G.
fn progression<C: Bases>(
    device: &Device,
    stream: &Stream,
    bases: DeviceSlice<<C as sppark::Curve>::Affine>,
) -> Result<()> {
    let mut ledger = Ledger::new("bases");
    let multiprocessors = device.info().multiprocessors;
    let plan = ProgressionPlan::<C>::new("bases", bases.len(), multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    Ok(plan
        .bind(device, &arena)?
        .run(stream, bases, C::generator())?)
}

fn random_scalars(count: usize) -> Vec<Scalar> {
    // One random value and its powers: as good as random ones here, and made in no time.
    let mut rng = ChaCha20Rng::seed_from_u64(count as u64);
    let ratio = Scalar::random(&mut rng);
    std::iter::successors(Some(ratio), |scalar| Some(scalar * ratio))
        .take(count)
        .collect()
}

/// Says on standard error what is at work.
fn progress(kernel: &str, log_size: u32, side: &str) {
    eprintln!("kernels --gpu: {kernel}, 2^{log_size}: {side}");
}

/// Wall time of one call in seconds.
fn wall<T>(work: impl Fn() -> Result<T>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The median of `runs` times after one that is not counted.
fn median(runs: usize, time: impl Fn() -> Result<f64>) -> Result<f64> {
    time()?;
    let mut times = (0..runs).map(|_| time()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[(runs - 1) / 2])
}
