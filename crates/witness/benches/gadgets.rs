//! Time of one call of each generator.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use witness::word::Word;
use witness::{Size, Writer, sha256};

fn compress(c: &mut Criterion) {
    let size = Size {
        bits: 1 << 20,
        ..Size::default()
    };
    for (name, state) in [
        ("variables", [Word::allocated(0x1234_5678); 8]),
        ("first block", sha256::initial_state()),
    ] {
        let block: [Word; 16] = std::array::from_fn(|i| Word::allocated(0x9e37_79b9u32.wrapping_mul(i as u32)));
        c.bench_function(&format!("sha256 compression, {name}"), |bencher| {
            let mut parts = Writer::new(Size::default()).finish().ok();
            bencher.iter(|| {
                let old = parts.take().unwrap_or(witness::Parts {
                    inputs: vec![],
                    bits: vec![],
                    dense: vec![],
                });
                let mut writer = Writer::reuse(size, old);
                black_box(sha256::compress(&state, black_box(&block), &mut writer));
                black_box(&writer);
            });
        });
    }
}

criterion_group!(benches, compress);
criterion_main!(benches);
