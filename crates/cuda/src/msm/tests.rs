#[cfg(feature = "emulation")]
mod emulated;
