//! The CUDA backend.
//!
//! Without features the crate holds the host logic alone: plans of memory, cost models, programs.
//! The feature `cuda` adds the kernels, built by nvcc, and the driver, opened at run time; the
//! feature `emulation` builds the same kernels for the host, and `Device::emulated` runs them, so
//! that whole pipelines are tested where there is no GPU.
//!
//! Work on a device is *planned, then run*: a plan names every buffer in a [`Ledger`] before
//! anything is allocated; an [`Arena`] takes all of them at once; running only launches.

mod backend;
mod device;
mod error;
pub mod evaluate;
mod fatbin;
mod fixed_base;
mod group_ntt;
#[cfg(feature = "cuda")]
mod images;
pub mod measure;
pub mod msm;
pub mod ntt;
pub mod points;
pub mod rates;
mod topic;

pub use backend::{
    ChunkSummary, DualRunError, GpuBackend, MemoryUse, PlanError, PlanTarget, ProofPlan,
    ResidentCircuit, SelfTest, SelfTestError, Streaming, SumChoice, dual_run, self_test,
};
pub use device::{
    Arena, Device, DeviceProperties, DeviceSlice, Event, Kernel, Ledger, LedgerEntry, Lifetime,
    PairBuffers, Params, Phase, PinnedBuffer, Pod, Slot, SortedPairs, Stream, Traffic, Waiting,
    scan_temp_bytes, sort_temp_bytes,
};
pub use error::{CudaError, DriverVersion, Result};
pub use fatbin::Target;
pub use fixed_base::GpuFixedBase;
pub use group_ntt::GpuGroupTransform;
pub use topic::Topic;

/// The targets that every kernel of this build has code for; none in a build without `cuda`.
pub fn built_targets() -> Vec<Target> {
    #[cfg(feature = "cuda")]
    return images::targets().0;
    #[cfg(not(feature = "cuda"))]
    Vec::new()
}
