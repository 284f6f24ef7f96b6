//! Side-by-side benchmarks against the reference implementation.

fn main() {}
