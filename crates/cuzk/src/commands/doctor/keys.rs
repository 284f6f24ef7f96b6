//! Parameter files: which there are, whole, readable, and known.

use std::fs::{self, File};
use std::path::Path;

use filecoin::CircuitId;
use groth16::DeviceKind;
use groth16::key::{KeySpec, KeyStore, SideFile};
use server::Config;

use super::{Finding, State};
use crate::Context;
use crate::table;

/// Of the folders and of every key in them.
pub fn findings(context: &Context, config: &Config) -> Vec<Finding> {
    let store = store(context, config);
    let mut findings: Vec<Finding> = store.folders.iter().filter_map(|f| folder(f)).collect();
    let mut found = 0;
    for id in CircuitId::all() {
        let Some(finding) = key(&store, config, id) else {
            continue;
        };
        found += 1;
        findings.push(finding);
    }
    if found == 0 {
        let searched: Vec<_> = store
            .folders
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        findings.push(Finding::other(
            State::Bad,
            "parameters",
            format!("none in {}", searched.join(", ")),
            "set [srs] param_cache to the folder that holds the v28-….params files; `cuzk params \
             check NAME` says where a missing one is fetched from",
        ));
    }
    findings
}

/// Where the daemon looks, in its order.
fn store(context: &Context, config: &Config) -> KeyStore {
    let allow_test_keys = config.srs.allow_test_keys;
    let mut folders = vec![config.srs.param_cache.clone()];
    for folder in context.config.key_folders(None, allow_test_keys) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    KeyStore {
        folders,
        cache: Some(context.config.cache().to_owned()),
        allow_test_keys,
    }
}

/// A folder that is there and cannot be searched.
fn folder(path: &Path) -> Option<Finding> {
    let error = fs::read_dir(path).err()?;
    (error.kind() != std::io::ErrorKind::NotFound).then(|| {
        let remedy = "let this user read it: the daemon's user needs read and search permission";
        let subject = format!("folder {}", path.display());
        Finding::other(State::Bad, subject, error.to_string(), remedy)
    })
}

/// A circuit's key, if a file of it is anywhere.
fn key(store: &KeyStore, config: &Config, id: CircuitId) -> Option<Finding> {
    let subject = format!("key {id}");
    let compiled = id.compiled().ok()?;
    let spec = id.key_spec(&compiled);
    let params = store.locate_params(&spec);
    if params.is_err() && store.locate_vk(&spec).is_err() {
        return None;
    }
    let path = match params {
        Ok(path) => path,
        Err(error) => return Some(Finding::failure(State::Bad, subject, &error.into())),
    };
    if let Err(finding) = whole(&subject, &path, &spec) {
        return Some(*finding);
    }
    let is_test = path
        .parent()
        .is_some_and(|folder| folder.join(SideFile::name(&spec.stem)).exists());
    // The small file of the pair tells at once whether it is the published key.
    if let Err(error) = store.verifying_key(&spec) {
        let state = if is_test { State::Warning } else { State::Bad };
        return Some(Finding::failure(state, subject, &error.into()));
    }
    let unit = worker::unit_bytes(&compiled, DeviceKind::Cpu);
    let budget = config.memory.budget_bytes();
    let about = format!(
        "{}, {}",
        path.display(),
        table::bytes(spec.counts.params_bytes())
    );
    if unit > budget {
        return Some(Finding::other(
            State::Warning,
            subject,
            format!(
                "{about}; a unit on the CPU needs {} and [memory] total_budget gives {}: refused there",
                table::bytes(unit),
                table::bytes(budget)
            ),
            "raise [memory] total_budget, prove it on a GPU, or give the machine more memory",
        ));
    }
    Some(match (is_test, store.remembers(&path)) {
        (true, _) => Finding::other(
            State::Warning,
            subject,
            format!("{about}; a test key: anyone could forge its proofs"),
            "only for tests; remove it from production folders",
        ),
        (false, true) => {
            Finding::good(subject, format!("{about}; its digest is the published one"))
        }
        (false, false) => Finding::other(
            State::Warning,
            subject,
            format!("{about}; not yet read through, which the first proof would wait for"),
            format!("run `cuzk params check {id}` as the daemon's user"),
        ),
    })
}

/// Whether the file can be read and has the length that the circuit asks for.
fn whole(subject: &str, path: &Path, spec: &KeySpec) -> Result<(), Box<Finding>> {
    let bad =
        |found: String, remedy: &str| Box::new(Finding::other(State::Bad, subject, found, remedy));
    let length = File::open(path)
        .and_then(|file| file.metadata())
        .map(|data| data.len());
    let expected = spec.counts.params_bytes();
    match length {
        Err(error) => Err(bad(
            format!("{} cannot be opened: {error}", path.display()),
            "let this user read it",
        )),
        Ok(length) if length != expected => Err(bad(
            format!("{} has {length} bytes, not {expected}", path.display()),
            "fetch it again: it is cut off, or another file",
        )),
        Ok(_) => Ok(()),
    }
}
