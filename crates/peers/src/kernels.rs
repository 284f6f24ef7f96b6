//! `peers kernels`: the sums and transforms by themselves.

use std::{hint::black_box, sync::Arc, time::Instant};

use anyhow::{Result, ensure};
use bellperson::{domain::EvaluationDomain, multiexp::multiexp};
use blst::{MultiPoint, blst_p1_affine};
use blstrs::{G1Affine, G1Projective};
use ec_gpu_gen::{multiexp_cpu::FullDensity, threadpool::Worker};
use ff::{Field, PrimeField};
use groth16::{
    msm,
    ntt::{Domain, EvaluationSet},
};
use group::{Curve, Group};
use r1cs::Fr;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;
use serde::Serialize;

/// Times of all kernels at all sizes.
#[derive(Debug, Serialize)]
pub struct Kernels {
    /// Processor and cores.
    pub machine: String,
    /// How many runs each median is of.
    pub runs: usize,
    /// One row per kernel and size.
    pub rows: Vec<Row>,
}

/// One kernel at one size; seconds are medians.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What is computed.
    pub kernel: &'static str,
    /// Binary logarithm of the number of points or values.
    pub log_size: u32,
    /// Ours.
    pub cuzk_s: f64,
    /// Whose the other column is.
    pub peer: &'static str,
    /// The peer's.
    pub peer_s: f64,
}

/// Times the kernels at sizes `2^log` for each of `log_sizes`.
///
/// The sum of points with full-size scalars in G1 is compared with blst's own and with
/// bellperson's; the transform from coefficients to values with bellperson's. All have the same
/// inputs, and results are compared before anything is timed.
///
/// # Errors
/// A peer fails, or two results differ.
pub fn measure(log_sizes: &[u32], runs: usize) -> Result<Kernels> {
    ensure!(runs > 0, "at least one run is needed");
    let mut rows = Vec::new();
    for &log_size in log_sizes {
        ensure!(
            (1..=24).contains(&log_size),
            "2^{log_size}: sizes go from 2^1 to 2^24"
        );
        rows.extend(sums(log_size, runs)?);
        rows.push(transform(log_size, runs)?);
    }
    Ok(Kernels {
        machine: crate::measure::machine(),
        runs,
        rows,
    })
}

fn sums(log_size: u32, runs: usize) -> Result<[Row; 2]> {
    let (points, scalars) = inputs(1 << log_size);
    // Each side gets points and scalars in the form that it takes, made before the clock starts.
    let plain: Vec<blst_p1_affine> = points.iter().map(|point| *point.as_ref()).collect();
    let bytes: Vec<u8> = scalars.iter().flat_map(PrimeField::to_repr).collect();
    let shared = Arc::new(points.clone());
    let reprs = Arc::new(
        scalars
            .par_iter()
            .map(PrimeField::to_repr)
            .collect::<Vec<_>>(),
    );
    let worker = Worker::new();

    let ours = || msm::sum(&points[..], &scalars);
    let blst = || plain[..].mult(&bytes, 255);
    let bellperson = || {
        let source = (shared.clone(), 0);
        multiexp(
            &worker,
            source,
            FullDensity,
            reprs.clone(),
            &mut no_kernel(),
        )
        .wait()
    };
    let expected = blst();
    ensure!(
        *ours()?.as_ref() == expected,
        "our sum at 2^{log_size} is not blst's"
    );
    ensure!(
        *bellperson()?.as_ref() == expected,
        "bellperson's sum at 2^{log_size} is not blst's"
    );

    let cuzk_s = median(runs, ours);
    let row = |peer, peer_s| Row {
        kernel: "G1 sum, full-size scalars",
        log_size,
        cuzk_s,
        peer,
        peer_s,
    };
    Ok([
        row("blst", median(runs, blst)),
        row("bellperson", median(runs, bellperson)),
    ])
}

/// bellperson asks for a GPU kernel even where it has none.
fn no_kernel() -> bellperson::gpu::LockedMultiexpKernel<G1Affine> {
    bellperson::gpu::LockedMultiexpKernel::new(false)
}

fn transform(log_size: u32, runs: usize) -> Result<Row> {
    let coefficients = scalars(1 << log_size);
    let worker = Worker::new();
    let domain = Domain::new(1 << log_size)?;
    let mut kernel = None;
    let mut theirs = EvaluationDomain::from_coeffs(coefficients.clone())?;
    let mut ours = coefficients;

    // Ours leaves the values in bit-reversed order, where the prover wants them.
    theirs.fft(&worker, &mut kernel)?;
    domain.forward(&mut ours, EvaluationSet::Subgroup);
    let reversed = |index: usize| index.reverse_bits() >> (usize::BITS - log_size);
    let values: &[Fr] = theirs.as_ref();
    ensure!(
        (0..values.len()).all(|index| values[index] == ours[reversed(index)]),
        "our transform at 2^{log_size} is not bellperson's"
    );

    let cuzk_s = median(runs, || {
        domain.forward(black_box(&mut ours), EvaluationSet::Subgroup);
    });
    let peer_s = median(runs, || theirs.fft(&worker, &mut kernel));
    Ok(Row {
        kernel: "transform, values from coefficients",
        log_size,
        cuzk_s,
        peer: "bellperson",
        peer_s,
    })
}

/// Median wall time of `runs` calls in seconds, after the caller's warm-up.
fn median<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[(runs - 1) / 2]
}

/// Points and scalars that are the same in every run.
fn inputs(count: usize) -> (Vec<G1Affine>, Vec<Fr>) {
    let scalars = scalars(count);
    // Steps of one random point: distinct, and no worse for a sum than random ones.
    let step = G1Projective::generator() * scalars[0];
    let mut point = G1Projective::identity();
    let mut points = vec![G1Affine::default(); count];
    for chunk in points.chunks_mut(1 << 14) {
        let projective: Vec<G1Projective> = chunk
            .iter()
            .map(|_| {
                point += step;
                point
            })
            .collect();
        G1Projective::batch_normalize(&projective, chunk);
    }
    (points, scalars)
}

fn scalars(count: usize) -> Vec<Fr> {
    let mut rng = ChaCha20Rng::seed_from_u64(count as u64);
    (0..count).map(|_| Fr::random(&mut rng)).collect()
}

impl Kernels {
    /// Prints the table, or JSON.
    ///
    /// # Errors
    /// Never but for a closed standard output.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!("kernels, {}, medians of {}", self.machine, self.runs);
        println!(
            "{:<42} {:>5} {:>13} {:>13} {:>13} {:>7}",
            "kernel", "size", "cuzk", "peer", "", "ratio"
        );
        for row in &self.rows {
            println!(
                "{:<42} 2^{:<3} {:>10.3} ms {:>13} {:>10.3} ms {:>7.2}",
                row.kernel,
                row.log_size,
                row.cuzk_s * 1e3,
                row.peer,
                row.peer_s * 1e3,
                row.peer_s / row.cuzk_s
            );
        }
        Ok(())
    }
}
