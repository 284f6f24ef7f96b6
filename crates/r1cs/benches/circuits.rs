//! Loading, evaluation and transposed products of recorded circuits, on all cores.

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use ff::Field;
use r1cs::{CompiledCircuit, Fr, Matrix, PackedWitness};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A random assignment; what it satisfies does not matter for the time.
fn witness(circuit: &CompiledCircuit, rng: &mut ChaCha8Rng) -> PackedWitness {
    let layout = circuit.layout();
    let mut inputs = vec![Fr::ONE];
    inputs.resize_with(circuit.shape().inputs, || Fr::random(&mut *rng));
    let mut bits: Vec<u64> = (0..layout.bit_count().div_ceil(64))
        .map(|_| rng.next_u64())
        .collect();
    if let (Some(last), tail @ 1..) = (bits.last_mut(), layout.bit_count() % 64) {
        *last &= (1 << tail) - 1;
    }
    let dense = (0..layout.dense_count())
        .map(|_| Fr::random(&mut *rng))
        .collect();
    PackedWitness::from_parts(circuit, inputs, bits, dense).expect("lengths of the circuit")
}

fn circuits(c: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../filecoin/circuits");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for name in ["porep-2k", "winning-2k", "winning-32g"] {
        let bytes = std::fs::read(folder.join(name).with_extension("r1cs")).expect("recorded");
        let circuit = CompiledCircuit::from_bytes(&bytes).expect("a compiled circuit");
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        group.bench_function("load", |b| b.iter(|| CompiledCircuit::from_bytes(&bytes)));
        let w = witness(&circuit, &mut rng);
        let rows = circuit.shape().constraints;
        let mut out = vec![Fr::ZERO; rows];
        let values: Vec<Fr> = (0..rows).map(|_| Fr::random(&mut rng)).collect();
        for m in Matrix::ALL {
            group.bench_function(format!("evaluate {m:?}"), |b| {
                b.iter(|| circuit.evaluate(m, &w, &mut out));
            });
            group.bench_function(format!("columns {m:?}"), |b| {
                b.iter(|| circuit.columns_at(m, &values));
            });
        }
        group.finish();
    }
    let bytes = std::fs::read(folder.join("porep-32g.r1cs")).expect("recorded");
    c.bench_function("porep-32g/load", |b| {
        b.iter(|| CompiledCircuit::from_bytes(&bytes));
    });
}

criterion_group!(benches, circuits);
criterion_main!(benches);
