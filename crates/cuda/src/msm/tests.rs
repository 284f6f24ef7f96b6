#[cfg(feature = "emulation")]
mod sums;
