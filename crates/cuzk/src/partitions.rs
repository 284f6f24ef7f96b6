//! A folder with one proof file per partition.

use std::path::{Path, PathBuf};

/// The file of partition `k`: `partition-000.proof` and so on.
pub fn file(folder: &Path, k: usize) -> PathBuf {
    folder.join(format!("partition-{k:03}.proof"))
}
