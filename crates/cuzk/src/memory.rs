//! How much memory this process may still take: the machine's, its control
//! groups' and its own limits, whichever is least.

use std::fs;
use std::path::{Path, PathBuf};

use crate::phases::kibibytes;

/// Bytes that can still be allocated without the process being killed or refused;
/// `None` where the system does not tell.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|t| kibibytes(&t, "MemAvailable:"));
    let groups = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|t| group_limit(&t, Path::new("/sys/fs/cgroup")));
    [machine, groups, address_space()]
        .into_iter()
        .flatten()
        .min()
}

/// What `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let used = kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(limit.saturating_sub(used))
}

/// What the control groups named in `/proc/self/cgroup` leave, every parent counted.
fn group_limit(memberships: &str, root: &Path) -> Option<u64> {
    let left = memberships.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (base, max, used) = match controllers {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            c if c.split(',').any(|c| c == "memory") => (
                root.join("memory"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => return None,
        };
        let mut folder: PathBuf = base.join(path);
        let mut least: Option<u64> = None;
        while folder.starts_with(&base) {
            if let Some(n) = group_left(&folder, max, used) {
                least = Some(least.map_or(n, |l| l.min(n)));
            }
            if !folder.pop() {
                break;
            }
        }
        least
    });
    left.min()
}

/// Limit minus use of one group; file cache that can be dropped does not count as use.
fn group_left(folder: &Path, max: &str, used: &str) -> Option<u64> {
    let number = |name: &str| {
        fs::read_to_string(folder.join(name))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let (max, used) = (number(max)?, number(used)?);
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = stat
        .lines()
        .find_map(|l| l.strip_prefix("inactive_file "))
        .and_then(|n| n.trim().parse().ok());
    Some(max.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_group_of_the_chain_counts() {
        let root = tempfile::tempdir().unwrap();
        group(
            &root.path().join("a"),
            &[("memory.max", "1000\n"), ("memory.current", "700\n")],
        );
        group(
            &root.path().join("a/b"),
            &[("memory.max", "max\n"), ("memory.current", "10\n")],
        );
        assert_eq!(group_limit("0::/a/b\n", root.path()), Some(300));
        group(
            &root.path().join("a"),
            &[("memory.stat", "anon 1\ninactive_file 200\n")],
        );
        assert_eq!(group_limit("0::/a/b\n", root.path()), Some(500));
        assert_eq!(group_limit("0::/\n", root.path()), None);
    }

    #[test]
    fn version_one_groups_count_too() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("memory.limit_in_bytes", "50\n"),
            ("memory.usage_in_bytes", "60\n"),
        ];
        group(&root.path().join("memory/x"), &files);
        assert_eq!(
            group_limit("3:cpu:/x\n4:memory,hugetlb:/x\n", root.path()),
            Some(0)
        );
    }

    #[test]
    fn linux_tells() {
        if Path::new("/proc/meminfo").exists() {
            assert!(available().is_some_and(|n| n > 0));
        }
    }
}
