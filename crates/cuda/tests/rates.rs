//! The chains of operations that rates are measured with, link by link beside blst's.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use common::oracle::{Field, Fp, Fp2, Fr};
use cuda::{Ledger, Lifetime, Topic, rates::RateParams};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Threads, more than a block has.
const LEN: usize = 300;

fn chain<F: Field>(kernel: &'static str, link: impl Fn(F, F) -> F) {
    for device in common::devices() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut values: Vec<F> = (0..LEN).map(|_| F::random(&mut rng)).collect();
        let others: Vec<F> = (0..LEN).map(|_| F::random(&mut rng)).collect();
        let mut ledger = Ledger::new("a test");
        let slots = [(); 2].map(|()| ledger.reserve::<F>("values", LEN, Lifetime::RESIDENT));
        let arena = device.arena(&ledger).unwrap();
        let stream = device.stream().unwrap();
        stream.upload(arena.get(slots[0]), &values).unwrap();
        stream.upload(arena.get(slots[1]), &others).unwrap();
        let params = RateParams {
            values: arena.get(slots[0]).ptr(),
            others: arena.get(slots[1]).ptr(),
            len: LEN as u32,
            iterations: 7,
        };
        let handle = device.kernel(Topic::Rates, kernel).unwrap();
        let threads = handle.threads_max();
        let blocks = LEN.div_ceil(threads as usize) as u32;
        stream.launch(&handle, blocks, threads, 0, &params).unwrap();
        let mut found = vec![F::default(); LEN];
        stream.download(arena.get(slots[0]), &mut found).unwrap();
        for _ in 0..7 {
            for (value, other) in values.iter_mut().zip(&others) {
                *value = link(*value, *other);
            }
        }
        assert_eq!(found, values, "{kernel} on {}", device.info().name);
    }
}

/// The operation of that name.
fn operation<F: Field>(name: &str) -> fn(&F, &F) -> F {
    F::OPERATIONS.iter().find(|(n, _)| *n == name).unwrap().1
}

fn chains<F: Field>(multiply: &'static str, square: &'static str) {
    chain::<F>(multiply, |x, y| operation("multiply")(&x, &y));
    chain::<F>(square, |x, y| operation("square")(&x, &y));
}

fn inverses<F: Field>(inverse: &'static str) {
    let (invert, add) = (operation::<F>("invert"), operation::<F>("add"));
    chain::<F>(inverse, |x, y| add(&invert(&x, &x), &y));
}

#[test]
fn chains_end_where_blsts_do() {
    chains::<Fp>("rate_fp_multiply", "rate_fp_square");
    chains::<Fr>("rate_fr_multiply", "rate_fr_square");
    chains::<Fp2>("rate_fp2_multiply", "rate_fp2_square");
    inverses::<Fp>("rate_fp_inverse");
    inverses::<Fr>("rate_fr_inverse");
}
