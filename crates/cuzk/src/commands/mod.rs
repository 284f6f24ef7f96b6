//! One module per command.

pub mod bench;
mod bench_compare;
mod bench_e2e;
mod bench_identity;
mod bench_kernels;
mod bench_prove;
pub mod circuit;
pub mod demo;
pub mod doctor;
pub mod params;
pub mod plan;
pub mod prove;
pub mod request;
pub mod verify;
pub mod worker;
