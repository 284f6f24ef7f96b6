//! Which kernel sources there are, and what each depends on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of `kernels/` that hold no topic.
const NOT_TOPICS: [&str; 2] = ["common", "cub"];

/// One `.cu` file.
pub struct Source {
    /// The folder, which names the topic.
    #[allow(dead_code, reason = "read with the feature `cuda` only")]
    pub topic: String,
    /// The file's stem.
    #[allow(dead_code, reason = "read with the feature `cuda` only")]
    pub name: String,
    pub path: PathBuf,
}

/// All sources, in a fixed order.
pub fn list(kernels: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for topic in fs::read_dir(kernels)? {
        let topic = topic?;
        let name = topic.file_name().to_string_lossy().into_owned();
        if !topic.file_type()?.is_dir() || NOT_TOPICS.contains(&name.as_str()) {
            continue;
        }
        for file in fs::read_dir(topic.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "cu") {
                sources.push(Source {
                    topic: name.clone(),
                    name: path
                        .file_stem()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                    path,
                });
            }
        }
    }
    sources.sort_by(|x, y| x.path.cmp(&y.path));
    Ok(sources)
}
