//! Prepared keys from published ones, by transforms in the group.

mod transform;

pub use transform::{CpuGroupTransform, GroupTransform};
