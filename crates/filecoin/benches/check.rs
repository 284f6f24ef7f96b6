//! The vanilla check of full-size requests: `cargo bench -p filecoin --features test-support`.
//!
//! The sectors are synthetic: as many paths, columns and labels as real ones, made from nothing.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use filecoin::registered::{RegisteredPostProof, RegisteredSealProof, RegisteredUpdateProof};
use filecoin::registry::ProofKind;
use filecoin::support::sectors;
use filecoin::{Request, check, public_inputs};

fn requests() -> Vec<(&'static str, Request)> {
    let seal = RegisteredSealProof::from_number(8).expect("a seal type");
    let update = RegisteredUpdateProof::from_number(3).expect("an update type");
    let window = RegisteredPostProof::from_number(ProofKind::Window, 13).expect("a window type");
    let winning = RegisteredPostProof::from_number(ProofKind::Winning, 3).expect("a winning type");
    vec![
        (
            "porep-32g, 10 partitions",
            Request::Porep(sectors::porep(seal, 1)),
        ),
        (
            "snap-32g, 16 partitions",
            Request::Snap(sectors::snap(update, 1)),
        ),
        (
            "wpost-32g, 50 of 2349 sectors",
            Request::Window(sectors::post(window, 50, 0, 1)),
        ),
        (
            "winning-32g",
            Request::Winning(sectors::post(winning, 1, 0, 1)),
        ),
    ]
}

/// One thread, so that a time is core time.
fn bench(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread");
    let mut group = criterion.benchmark_group("one core");
    group.sample_size(10);
    for (name, request) in requests() {
        group.bench_function(format!("check {name}"), |bencher| {
            let run = || pool.install(|| check(&request, &()).expect("a valid request"));
            bencher.iter_batched(|| (), |()| run(), BatchSize::PerIteration);
        });
        group.bench_function(format!("public inputs of {name}"), |bencher| {
            bencher.iter(|| public_inputs(&request).expect("a valid request"));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
