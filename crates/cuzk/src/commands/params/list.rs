//! `cuzk params list`: the key files there are. Their lengths are looked at, their
//! contents are not: that is `params check`.

use std::fs;
use std::path::{Path, PathBuf};

use filecoin::CircuitId;
use groth16::key::{KeyCounts, KeyStore, SideFile};
use serde::Serialize;

use crate::Context;
use crate::failure::Failure;
use crate::table::{self, Align, Table};

/// Runs the command.
pub fn run(context: &Context, only: Option<&Path>) -> Result<(), Failure> {
    let mut folders = context.config.key_folders(only, true);
    if only.is_none() {
        folders.push(KeyStore::prepared_folder(context.config.cache()));
    }
    let mut found = Vec::new();
    for folder in &folders {
        for id in CircuitId::all() {
            found.extend(Entry::find(folder, id)?);
        }
    }
    let text = text(&folders, &found);
    let document = Document {
        schema: "cuzk.params-list/1",
        folders,
        keys: found,
    };
    context.output.show(&document, &text)
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    folders: Vec<PathBuf>,
    keys: Vec<Entry>,
}

/// The files of one key in one folder.
#[derive(Serialize)]
struct Entry {
    circuit: &'static str,
    folder: PathBuf,
    test_key: bool,
    params: FileState,
    vk: FileState,
    /// Prepared keys of this circuit, of whatever source.
    prepared: Vec<FileState>,
}

#[derive(Serialize)]
struct FileState {
    name: String,
    bytes: Option<u64>,
    expected_bytes: u64,
}

impl FileState {
    fn of(folder: &Path, name: String, expected_bytes: u64) -> Self {
        let bytes = fs::metadata(folder.join(&name)).ok().map(|m| m.len());
        Self {
            name,
            bytes,
            expected_bytes,
        }
    }

    fn text(&self) -> String {
        match self.bytes {
            None => "missing".into(),
            Some(n) if n == self.expected_bytes => table::bytes(n),
            Some(n) => format!("wrong length: {n} B, not {} B", self.expected_bytes),
        }
    }
}

impl Entry {
    /// The key of this circuit in `folder`, if one of its files is there.
    fn find(folder: &Path, id: CircuitId) -> Result<Option<Self>, Failure> {
        let stem = id.params_stem();
        let names = ["params", "vk"].map(|extension| format!("{stem}.{extension}"));
        let prepared = prepared_names(folder, id);
        if prepared.is_empty() && !names.iter().any(|name| folder.join(name).exists()) {
            return Ok(None);
        }
        let counts = KeyCounts::of(&*id.compiled()?);
        let [params, vk] = names;
        Ok(Some(Self {
            circuit: id.name(),
            folder: folder.to_owned(),
            test_key: folder.join(SideFile::name(&stem)).exists(),
            params: FileState::of(folder, params, counts.params_bytes()),
            vk: FileState::of(folder, vk, counts.vk_bytes()),
            prepared: prepared
                .into_iter()
                .map(|name| FileState::of(folder, name, counts.prepared_bytes()))
                .collect(),
        }))
    }

    /// The prepared keys' lengths, in words.
    fn prepared_text(&self) -> String {
        let states: Vec<String> = self.prepared.iter().map(FileState::text).collect();
        match states.is_empty() {
            true => "none".to_owned(),
            false => states.join(", "),
        }
    }
}

/// Names of the prepared keys of this circuit in `folder`, in order.
fn prepared_names(folder: &Path, id: CircuitId) -> Vec<String> {
    let start = format!("cuzk-{}-", id.name());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&start) && name.ends_with(".key"))
        .collect();
    names.sort();
    names
}

fn text(folders: &[PathBuf], found: &[Entry]) -> String {
    let mut text = String::from("folders searched, in order:\n");
    for folder in folders {
        let state = if folder.is_dir() {
            ""
        } else {
            "  (does not exist)"
        };
        text.push_str(&format!("  {}{state}\n", folder.display()));
    }
    if found.is_empty() {
        text.push_str("no parameter files found\n");
        return text;
    }
    let columns =
        ["circuit", ".params", ".vk", "prepared", "kind", "folder"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for entry in found {
        let kind = if entry.test_key {
            "test key"
        } else {
            "not checked"
        };
        table.row([
            entry.circuit.into(),
            entry.params.text(),
            entry.vk.text(),
            entry.prepared_text(),
            kind.into(),
            entry.folder.display().to_string(),
        ]);
    }
    text + "\n" + &table.render()
}
