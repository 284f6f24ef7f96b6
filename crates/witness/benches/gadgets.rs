//! Time of one call of each generator.

use std::hint::black_box;

use blstrs::Scalar as Fr;
use criterion::{Criterion, criterion_group, criterion_main};
use witness::word::Word;
use witness::{Error, Parts, Writer, merkle, sha256};

/// Runs `generate` into memory that was touched before, as a prover in its steady state does.
fn bench(c: &mut Criterion, name: &str, generate: impl Fn(&mut Writer<'_>)) {
    let mut counter = Writer::new(&mut []);
    generate(&mut counter);
    let size = counter.size();
    let mut parts = Parts::default();
    c.bench_function(name, |bencher| {
        bencher.iter(|| {
            let filled: Result<(), Error> = parts.fill(size, |writer| {
                generate(writer);
                Ok(())
            });
            assert!(filled.is_ok());
            black_box(&parts);
        });
    });
    println!("{name}: {size:?}");
}

fn gadgets(c: &mut Criterion) {
    let block: [Word; 16] =
        std::array::from_fn(|i| Word::allocated(0x9e37_79b9_u32.wrapping_mul(i as u32)));
    let variables = [Word::allocated(0x1234_5678); 8];
    let constants = sha256::initial_state();
    bench(c, "sha256 compression", |writer| {
        black_box(sha256::compress(&variables, black_box(&block), writer));
    });
    bench(c, "sha256 first compression", |writer| {
        black_box(sha256::compress(&constants, black_box(&block), writer));
    });
    bench(c, "sha256 tree level", |writer| {
        black_box(merkle::sha256_level(&[7; 32], true, &[9; 32], writer));
    });
    let siblings = [Fr::from(3); 7];
    bench(c, "poseidon tree level, 8 children", |writer| {
        black_box(merkle::oct_level(
            Fr::from(5),
            3,
            black_box(&siblings),
            writer,
        ));
    });
}

criterion_group!(benches, gadgets);
criterion_main!(benches);
