//! Witnesses by synthesis through the reference proof crates.
