//! The cuzk proving engine: command line.

fn main() {}
