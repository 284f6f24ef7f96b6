//! The arithmetic of the device, operation by operation, beside blst's: edge values against edge
//! values, and random ones.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use std::fmt::Debug;

use common::oracle::{Field, Fp, Fp2, Fr, G1, G2, Group};
use cuda::{Device, DeviceSlice, Ledger, Lifetime, Params, Pod, Topic};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

#[repr(C)]
#[derive(Clone, Copy)]
struct FieldLawsParams {
    x: u64,
    y: u64,
    out: u64,
    flags: u64,
    len: u32,
    padding: u32,
}

// SAFETY: the layout of FieldLawsParams in kernels/laws/field.cuh.
unsafe impl Params for FieldLawsParams {}

#[repr(C)]
#[derive(Clone, Copy)]
struct GroupLawsParams {
    p: u64,
    q: u64,
    zp: u64,
    zq: u64,
    out: u64,
    flags: u64,
    len: u32,
    padding: u32,
}

// SAFETY: the layout of GroupLawsParams in kernels/laws/group.cuh.
unsafe impl Params for GroupLawsParams {}

/// How many random elements besides the pairs of edge values; a GPU takes more of them.
fn random_count(device: &Device, emulated: usize) -> usize {
    if device.info().emulated {
        emulated
    } else {
        1 << 16
    }
}

#[test]
fn fp_is_blsts() {
    field_laws::<Fp>("laws_fp", 1500);
}

#[test]
fn fr_is_blsts() {
    field_laws::<Fr>("laws_fr", 1500);
}

#[test]
fn fp2_is_blsts() {
    field_laws::<Fp2>("laws_fp2", 500);
}

#[test]
fn g1_is_blsts() {
    group_laws::<G1>("laws_g1", 120);
}

#[test]
fn g2_is_blsts() {
    group_laws::<G2>("laws_g2", 60);
}

fn field_laws<F: Field>(kernel: &'static str, emulated: usize) {
    for device in common::devices() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (mut x, mut y): (Vec<F>, Vec<F>) = pairs(&F::edges()).into_iter().unzip();
        for _ in 0..random_count(&device, emulated) {
            x.push(F::random(&mut rng));
            y.push(F::random(&mut rng));
        }
        let operations = F::OPERATIONS.len();
        let (out, flags) = run_field(&device, kernel, &x, &y, operations);
        for (operation, (name, expected)) in F::OPERATIONS.iter().enumerate() {
            let found = &out[operation * x.len()..][..x.len()];
            for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                assert_eq!(
                    found[i],
                    expected(x, y),
                    "{kernel} on {}: {name}, element {i}, x = {x:x?}, y = {y:x?}",
                    device.info().name
                );
            }
        }
        for (i, (x, y)) in x.iter().zip(&y).enumerate() {
            let expected = u32::from(*x == F::zero()) | u32::from(x == y) << 1;
            assert_eq!(flags[i], expected, "{kernel}: flags of element {i}");
        }
    }
}

fn run_field<F: Field>(
    device: &Device,
    kernel: &'static str,
    x: &[F],
    y: &[F],
    operations: usize,
) -> (Vec<F>, Vec<u32>) {
    let len = x.len();
    let mut ledger = Ledger::new("a test");
    let slots = [(); 2].map(|()| ledger.reserve::<F>("inputs", len, Lifetime::RESIDENT));
    let out = ledger.reserve::<F>("out", operations * len, Lifetime::RESIDENT);
    let flags = ledger.reserve::<u32>("flags", len, Lifetime::RESIDENT);
    let arena = device.arena(&ledger).unwrap();
    let stream = device.stream().unwrap();
    let inputs = slots.map(|slot| arena.get(slot));
    stream.upload(inputs[0], x).unwrap();
    stream.upload(inputs[1], y).unwrap();
    let params = FieldLawsParams {
        x: inputs[0].ptr(),
        y: inputs[1].ptr(),
        out: arena.get(out).ptr(),
        flags: arena.get(flags).ptr(),
        len: len as u32,
        padding: 0,
    };
    let kernel = device.kernel(Topic::Laws, kernel).unwrap();
    let blocks = len.div_ceil(256) as u32;
    stream.launch(&kernel, blocks, 256, 0, &params).unwrap();
    (
        downloaded(&stream, arena.get(out)),
        downloaded(&stream, arena.get(flags)),
    )
}

fn group_laws<G: Group>(kernel: &'static str, emulated: usize) {
    for device in common::devices() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (mut p, mut q): (Vec<G>, Vec<G>) = pairs(&G::edges(&mut rng)).into_iter().unzip();
        for _ in 0..random_count(&device, emulated) / 16 {
            p.push(G::random(&mut rng));
            q.push(G::random(&mut rng));
        }
        let len = p.len();
        let mut ledger = Ledger::new("a test");
        let points = [(); 2].map(|()| ledger.reserve::<G>("points", len, Lifetime::RESIDENT));
        let scales = [(); 2].map(|()| ledger.reserve::<G::Base>("z", len, Lifetime::RESIDENT));
        let out = ledger.reserve::<G>("out", G::OPERATIONS.len() * len, Lifetime::RESIDENT);
        let flags = ledger.reserve::<u32>("flags", len, Lifetime::RESIDENT);
        let arena = device.arena(&ledger).unwrap();
        let stream = device.stream().unwrap();
        stream.upload(arena.get(points[0]), &p).unwrap();
        stream.upload(arena.get(points[1]), &q).unwrap();
        for (i, slot) in scales.iter().enumerate() {
            // Every third pair has z = 1, where equal points have equal coordinates.
            let z = (0..len).map(|k| match (k + i) % 3 {
                0 => G::Base::one(),
                _ => G::Base::random(&mut rng),
            });
            let z: Vec<G::Base> = z.collect();
            stream.upload(arena.get(*slot), &z).unwrap();
        }
        let params = GroupLawsParams {
            p: arena.get(points[0]).ptr(),
            q: arena.get(points[1]).ptr(),
            zp: arena.get(scales[0]).ptr(),
            zq: arena.get(scales[1]).ptr(),
            out: arena.get(out).ptr(),
            flags: arena.get(flags).ptr(),
            len: len as u32,
            padding: 0,
        };
        let handle = device.kernel(Topic::Laws, kernel).unwrap();
        let blocks = len.div_ceil(128) as u32;
        stream.launch(&handle, blocks, 128, 0, &params).unwrap();
        let out = downloaded(&stream, arena.get(out));
        let flags = downloaded(&stream, arena.get(flags));
        for (operation, (name, expected)) in G::OPERATIONS.iter().enumerate() {
            for (i, (p, q)) in p.iter().zip(&q).enumerate() {
                assert_eq!(
                    out[operation * len + i],
                    expected(p, q),
                    "{kernel} on {}: {name}, element {i}, p = {p:?}, q = {q:?}",
                    device.info().name
                );
            }
        }
        for (i, (p, q)) in p.iter().zip(&q).enumerate() {
            let infinite = *p == G::infinity();
            let expected = u32::from(p == q) | u32::from(infinite) << 1 | u32::from(!infinite) << 2;
            assert_eq!(flags[i], expected, "{kernel}: flags of element {i}, {p:?}");
        }
    }
}

/// Every ordered pair.
fn pairs<T: Copy>(values: &[T]) -> Vec<(T, T)> {
    values
        .iter()
        .flat_map(|x| values.iter().map(|y| (*x, *y)))
        .collect()
}

fn downloaded<T: Pod + Default + Debug>(stream: &cuda::Stream, slice: DeviceSlice<T>) -> Vec<T> {
    let mut values = vec![T::default(); slice.len()];
    stream.download(slice, &mut values).unwrap();
    values
}
