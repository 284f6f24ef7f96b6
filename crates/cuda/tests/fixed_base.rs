//! Multiples of the generators on the device, beside the host's.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuda::GpuFixedBase;
use ff::Field;
use groth16::BackendError;
use groth16::setup::FixedBaseMultiplier;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Scalars at the limits of the digits, then random ones.
fn scalars(count: usize) -> Vec<Scalar> {
    let half = (Scalar::ONE + Scalar::ONE).invert().unwrap();
    let mut scalars = vec![
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        // (r + 1)/2 and (r − 1)/2: where the sign changes.
        half,
        half - Scalar::ONE,
        Scalar::ZERO,
    ];
    let mut power = Scalar::ONE;
    for _ in 0..254 {
        power = power.double();
        scalars.extend([power, -power, power - Scalar::ONE]);
    }
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    scalars.resize_with(count.max(scalars.len()), || Scalar::random(&mut rng));
    scalars.truncate(count);
    scalars
}

/// Compares with the generator's own multiplication.
fn check_g1(
    count: usize,
    multiply: impl Fn(&[Scalar], &mut [G1Affine]) -> Result<(), BackendError>,
) {
    let scalars = scalars(count);
    let mut found = vec![G1Affine::generator(); count];
    multiply(&scalars, &mut found).unwrap();
    for (i, (found, scalar)) in found.iter().zip(&scalars).enumerate() {
        let expected = (G1Projective::generator() * scalar).to_affine();
        assert_eq!(*found, expected, "multiple {i} of {count}: {scalar}");
    }
}

/// The same.
fn check_g2(
    count: usize,
    multiply: impl Fn(&[Scalar], &mut [G2Affine]) -> Result<(), BackendError>,
) {
    let scalars = scalars(count);
    let mut found = vec![G2Affine::generator(); count];
    multiply(&scalars, &mut found).unwrap();
    for (i, (found, scalar)) in found.iter().zip(&scalars).enumerate() {
        let expected = (G2Projective::generator() * scalar).to_affine();
        assert_eq!(*found, expected, "multiple {i} of {count}: {scalar}");
    }
}

#[test]
fn multiples_are_those_of_the_host() {
    for device in common::devices() {
        let device = GpuFixedBase::on(device);
        for count in [0, 1, 33, 801] {
            check_g1(count, |scalars, out| device.g1(scalars, out));
        }
        for count in [0, 5, 128, 385] {
            check_g2(count, |scalars, out| device.g2(scalars, out));
        }
    }
}

/// With the table that a small one makes, in windows that divide 255 and that do not.
#[test]
fn wide_windows_give_the_same() {
    for device in common::devices() {
        for width in [5, 10, 11] {
            let device = GpuFixedBase::on(device.clone()).with_window_bits(width);
            check_g1(140, |scalars, out| device.g1(scalars, out));
        }
        let device = GpuFixedBase::on(device).with_window_bits(9);
        check_g2(130, |scalars, out| device.g2(scalars, out));
    }
}

/// More than a chunk, and not a multiple of it: an arithmetic progression of scalars, whose multiples
/// the host adds up.
#[test]
fn several_chunks_come_back_in_order() {
    for device in common::devices() {
        let emulated = device.info().emulated;
        let device = GpuFixedBase::on(device);
        let count = if emulated { 25_000 } else { 5_000_001 };
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let [first, step] = [(); 2].map(|()| Scalar::random(&mut rng));
        let mut scalar = first;
        let scalars: Vec<Scalar> = (0..count)
            .map(|_| {
                let this = scalar;
                scalar += step;
                this
            })
            .collect();
        let mut found = vec![G1Affine::identity(); count];
        device.g1(&scalars, &mut found).unwrap();
        let step = G1Projective::generator() * step;
        let mut expected = G1Projective::generator() * first;
        for (i, found) in found.iter().enumerate() {
            assert_eq!(G1Projective::from(*found), expected, "multiple {i}");
            expected += step;
        }
    }
}
