//! How much host memory there is to give.

use std::fs;
use std::path::{Path, PathBuf};

/// Host memory for units at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// All of the machine's, or of the control group's, but the margin; at least half of it.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

impl super::Memory {
    /// Bytes for units at work on this machine.
    pub fn budget_bytes(&self) -> u64 {
        match self.total_budget {
            Budget::Bytes(bytes) => bytes,
            Budget::Auto => but_the_margin(host_memory(), self.safety_margin),
        }
    }
}

/// A machine smaller than the margin, or not much larger, gives half.
fn but_the_margin(memory: u64, margin: u64) -> u64 {
    memory.saturating_sub(margin).max(memory / 2)
}

/// Bytes of memory of this machine or of the control groups that this process is in, whichever is
/// least; 0 where the system does not tell.
pub fn host_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text));
    let group = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|text| group_limit(&text, Path::new("/sys/fs/cgroup")));
    [machine, group].into_iter().flatten().min().unwrap_or(0)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The least limit of the groups named in `/proc/self/cgroup` and all above them.
fn group_limit(memberships: &str, root: &Path) -> Option<u64> {
    let limits = memberships.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (base, file): (PathBuf, _) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let folder = base.join(path);
        let above = folder.ancestors().take_while(|f| f.starts_with(&base));
        above
            .filter_map(|folder| {
                fs::read_to_string(folder.join(file))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            })
            .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        let set = |folder: &str, file: &str, text: &str| {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        };
        set("a/b", "memory.max", "max\n");
        assert_eq!(group_limit("0::/a/b\n", root.path()), None);
        set("a", "memory.max", "1000\n");
        assert_eq!(group_limit("0::/a/b\n", root.path()), Some(1000));
        set("memory/x", "memory.limit_in_bytes", "500\n");
        let both = "5:cpu,memory:/x\n0::/a/b\n3:pids:/x\n";
        assert_eq!(group_limit(both, root.path()), Some(500));
        assert_eq!(group_limit("", root.path()), None);
    }

    #[test]
    fn a_small_machine_gives_half() {
        assert_eq!(but_the_margin(100, 5), 95);
        assert_eq!(but_the_margin(8, 5), 4);
        assert_eq!(but_the_margin(4, 5), 2);
        assert_eq!(but_the_margin(0, 5), 0);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(host_memory() > 64 << 20);
        assert_eq!(
            total("MemFree: 1 kB\nMemTotal:       16 kB\n"),
            Some(16 << 10)
        );
        assert_eq!(total("MemTotal: many\n"), None);
    }
}
