//! Disk, memory and limits of this process.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use server::Config;

use super::{Finding, State};
use crate::Context;
use crate::{memory, table};

/// A 32 GiB PoRep's request.
const LARGE_REQUEST: u64 = 51 << 20;
/// So many of them should fit.
const REQUESTS: u64 = 100;
/// Files that a daemon with a hundred connections may have open.
const FILES: u64 = 4_096;
/// Memory below which not even the smallest circuits are comfortable.
const LITTLE_MEMORY: u64 = 2 << 30;

/// Of everything here.
pub fn findings(context: &Context, config: &Config) -> Vec<Finding> {
    let mut findings = vec![
        folder(
            "store",
            &config.store.path,
            LARGE_REQUEST * REQUESTS,
            "[store] path",
        ),
        folder(
            "cache",
            context.config.cache(),
            64 << 20,
            "--cache or [cache] dir",
        ),
        available(config),
    ];
    findings.extend(files());
    findings
}

/// A folder that is written to: there, or to be made; writable; with room.
fn folder(what: &str, path: &Path, wanted: u64, key: &str) -> Finding {
    let subject = format!("{what} {}", path.display());
    let Some(nearest) = nearest(path) else {
        let remedy = format!("name another folder ({key})");
        return Finding::other(State::Bad, subject, "no part of this path exists", remedy);
    };
    if !nearest.is_dir() {
        let found = format!("{} is no folder", nearest.display());
        let remedy = format!("name another folder ({key})");
        return Finding::other(State::Bad, subject, found, remedy);
    }
    if let Err(error) = rustix::fs::access(&nearest, rustix::fs::Access::WRITE_OK) {
        let found = format!(
            "{} is not writable for this user: {error}",
            nearest.display()
        );
        let remedy = format!("give it to the daemon's user, or name another folder ({key})");
        return Finding::other(State::Bad, subject, found, remedy);
    }
    let Ok(system) = rustix::fs::statvfs(&nearest) else {
        let remedy = format!("name a folder on a local file system ({key})");
        return Finding::other(
            State::Warning,
            subject,
            "its free space is not known",
            remedy,
        );
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let found = format!("{} free", table::bytes(free));
    if free < wanted {
        let found = format!("{found}, {} should be", table::bytes(wanted));
        let remedy = format!("free space on that file system, or name another folder ({key})");
        return Finding::other(State::Warning, subject, found, remedy);
    }
    let missing = if nearest == path {
        ""
    } else {
        "; the folder will be made"
    };
    Finding::good(subject, format!("{found}{missing}"))
}

/// The path itself, or the nearest folder above it that exists.
fn nearest(path: &Path) -> Option<PathBuf> {
    let mut above = path
        .ancestors()
        .filter(|folder| !folder.as_os_str().is_empty());
    above.find(|folder| folder.exists()).map(Path::to_owned)
}

fn available(config: &Config) -> Finding {
    let total = server::config::host_memory();
    let free = memory::available().unwrap_or(0);
    let budget = config.memory.budget_bytes();
    let found = format!(
        "{}, {} available, of which units at work may hold {}",
        table::bytes(total),
        table::bytes(free),
        table::bytes(budget)
    );
    if budget > total {
        let remedy = "lower [memory] total_budget: the system would end the daemon or its workers";
        return Finding::other(State::Bad, "memory", found, remedy);
    }
    if free < LITTLE_MEMORY {
        let remedy = "end what holds it, or raise the control group's limit";
        return Finding::other(State::Warning, "memory", found, remedy);
    }
    Finding::good("memory", found)
}

/// The limits that matter.
fn files() -> Option<Finding> {
    let limit = getrlimit(Resource::Nofile).current?;
    let found = format!("{limit}");
    Some(if limit < FILES {
        let remedy = "raise it (ulimit -n, LimitNOFILE of the systemd unit)";
        Finding::other(State::Warning, "open files", found, remedy)
    } else {
        Finding::good("open files", found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_there_full_forbidden_or_to_be_made() {
        let root = tempfile::tempdir().unwrap();
        let look = |path: &Path, wanted| folder("store", path, wanted, "[store] path");
        assert_eq!(look(root.path(), 1).state, State::Good);
        let new = look(&root.path().join("a/b/c"), 1);
        assert_eq!(new.state, State::Good);
        assert!(new.finding.contains("will be made"), "{new:?}");
        let full = look(root.path(), u64::MAX);
        assert_eq!(full.state, State::Warning);
        assert!(
            full.remedy
                .is_some_and(|remedy| remedy.contains("[store] path"))
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(look(&file.path().join("a"), 1).state, State::Bad);
        assert_eq!(look(Path::new("relative/path"), 1).state, State::Bad);
    }
}
