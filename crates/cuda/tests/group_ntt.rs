//! Transforms of points on the device, beside their definition and the CPU's.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blstrs::{G1Affine, G1Projective, Scalar};
use cuda::GpuGroupTransform;
use ff::{Field, PrimeField};
use groth16::key::prepare::{CpuGroupTransform, GroupTransform};
use groth16::ntt::EvaluationSet;
use groth16::progress::Progress;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const SETS: [EvaluationSet; 2] = [EvaluationSet::Subgroup, EvaluationSet::Coset];

/// Points with equal, opposite and infinite ones among them, as far as there is room.
fn points(count: usize, seed: u64) -> Vec<G1Affine> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut points: Vec<G1Affine> = (0..count)
        .map(|_| G1Projective::random(&mut rng).to_affine())
        .collect();
    if count >= 8 {
        points[1] = points[0];
        points[3] = -points[2];
        points[count / 2] = points[0];
        points[count - 1] = G1Affine::identity();
    }
    points
}

/// scale/n · Σ_j ω^(−ij)·g^(−j)·points\[j\], term by term.
fn definition(points: &[G1Affine], set: EvaluationSet, scale: Scalar) -> Vec<G1Affine> {
    let n = points.len() as u64;
    let shift = (0..Scalar::S - 1 - n.ilog2()).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square());
    let shift = shift.invert().unwrap();
    let (omega, shift) = match set {
        EvaluationSet::Subgroup => (shift.square(), Scalar::ONE),
        EvaluationSet::Coset => (shift.square(), shift),
    };
    let scale = scale * Scalar::from(n).invert().unwrap();
    let value = |i: u64| {
        let step = omega.pow_vartime([i]) * shift;
        let mut factor = scale;
        let terms = points.iter().map(|point| {
            let term = point * factor;
            factor *= step;
            term
        });
        terms.sum::<G1Projective>().to_affine()
    };
    (0..n).map(value).collect()
}

#[test]
fn small_transforms_are_those_of_the_definition() {
    for device in common::devices() {
        let transform = GpuGroupTransform::on(device);
        for log in 0..=5u32 {
            for set in SETS {
                let points = points(1 << log, u64::from(log));
                let scale = Scalar::from(7 + u64::from(log)).invert().unwrap();
                let mut found = points.clone();
                transform.inverse(&mut found, set, scale).unwrap();
                assert_eq!(found, definition(&points, set, scale), "2^{log}, {set:?}");
            }
        }
    }
}

/// Also with more points than a launch takes.
#[test]
fn transforms_in_several_launches_are_the_cpus() {
    for device in common::devices() {
        let emulated = device.info().emulated;
        let (log, launch) = if emulated { (6, 30) } else { (12, 1000) };
        let done = Arc::new(Done::default());
        let transform = GpuGroupTransform::on(device)
            .with_launch_points(launch)
            .with_progress(done.clone());
        for set in SETS {
            for log in [log - 1, log] {
                let points = points(1 << log, 3);
                let [mut found, mut expected] = [points.clone(), points];
                transform.inverse(&mut found, set, -Scalar::ONE).unwrap();
                let cpu = CpuGroupTransform;
                cpu.inverse(&mut expected, set, -Scalar::ONE).unwrap();
                assert_eq!(found, expected, "2^{log}, {set:?}");
                assert_eq!(
                    done.total.load(Ordering::Relaxed),
                    done.so_far.load(Ordering::Relaxed)
                );
            }
        }
    }
}

#[derive(Default)]
struct Done {
    total: AtomicU64,
    so_far: AtomicU64,
}

impl Progress for Done {
    fn begin(&self, _: &'static str, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.so_far.store(0, Ordering::Relaxed);
    }

    fn advance(&self, amount: u64) {
        self.so_far.fetch_add(amount, Ordering::Relaxed);
    }
}

#[test]
fn other_sizes_are_refused() {
    for device in common::devices() {
        let transform = GpuGroupTransform::on(device);
        for count in [0, 3, 12] {
            let mut points = points(count, 1);
            let refused = transform.inverse(&mut points, EvaluationSet::Coset, Scalar::ONE);
            assert!(refused.is_err(), "{count} points");
        }
    }
}
