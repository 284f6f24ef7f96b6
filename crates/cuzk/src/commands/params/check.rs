//! `cuzk params check`: key files read through, with every check that proving asks for.

use std::path::Path;

use filecoin::CircuitId;
use groth16::key::{KeyError, KeySpec, KeyStore};
use serde::Serialize;

use crate::Context;
use crate::commands::circuit;
use crate::failure::{ErrorBody, Exit, Failure};
use crate::keys::{self, KeyDocument};
use crate::progress::Meter;

/// Runs the command: all named circuits, or all of which a file is found.
pub fn run(context: &Context, names: &[String], only: Option<&Path>) -> Result<(), Failure> {
    let store = KeyStore {
        folders: context.config.key_folders(only, true),
        cache: Some(context.config.cache().to_owned()),
        // This says what a key is; it makes no use of it.
        allow_test_keys: true,
    };
    let named = names
        .iter()
        .map(|name| circuit::parse(name))
        .collect::<Result<Vec<_>, _>>()?;
    let specs = if named.is_empty() {
        present(&store)?
    } else {
        specs(&named)?
    };
    let mut outcomes = Vec::new();
    for spec in &specs {
        outcomes.push((spec, check(context, &store, spec)));
    }
    report(context, &outcomes)
}

fn specs(ids: &[CircuitId]) -> Result<Vec<KeySpec>, Failure> {
    ids.iter()
        .map(|&id| Ok(id.key_spec(&*id.compiled()?)))
        .collect()
}

/// The circuits of which some folder holds a key file.
fn present(store: &KeyStore) -> Result<Vec<KeySpec>, Failure> {
    let exists = |id: &CircuitId| {
        let stem = id.params_stem();
        let files = ["params", "vk"].map(|extension| format!("{stem}.{extension}"));
        store
            .folders
            .iter()
            .any(|folder| files.iter().any(|file| folder.join(file).exists()))
    };
    let ids: Vec<CircuitId> = CircuitId::all().filter(exists).collect();
    if ids.is_empty() {
        let folders: Vec<String> = store
            .folders
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        return Err(Failure::new(
            Exit::Params,
            "PARAMS_MISSING",
            format!("there are no parameter files in {}", folders.join(", ")),
            "fetch them with `lotus fetch-params` or `curio fetch-params`, or name their folder with --params",
        ));
    }
    specs(&ids)
}

/// What all files of a key are, if they are in order: the parameter file, the prepared key, or
/// both, and the verifying key.
fn check(context: &Context, store: &KeyStore, spec: &KeySpec) -> Result<Vec<KeyDocument>, Failure> {
    let meter = Meter::new(&context.progress, &format!("{} key", spec.circuit));
    let prepared = store.prepared_key(spec, &meter)?;
    let published = match store.published_key(spec, &meter) {
        Err(KeyError::Missing(_)) if prepared.is_some() => None,
        other => Some(other?),
    };
    let vk = keys::verifying_key(store, spec)?;
    Ok(published
        .iter()
        .chain(&prepared)
        .map(|key| KeyDocument::new(&key.path, key.trust))
        .chain([KeyDocument::new(&vk.path, vk.trust)])
        .collect())
}

type Outcome<'a> = (&'a KeySpec, Result<Vec<KeyDocument>, Failure>);

fn report(context: &Context, outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let mut text = String::new();
    let mut failed = None;
    for (spec, outcome) in outcomes {
        match outcome {
            Ok(files) => {
                for file in files {
                    text.push_str(&format!(
                        "{}: {} is in order: {}\n",
                        spec.circuit, file.path, file.words
                    ));
                }
            }
            Err(failure) => {
                failed = Some(failure.exit);
                text.push_str(&format!("{}: not usable\n{failure}\n", spec.circuit));
            }
        }
    }
    let keys = outcomes
        .iter()
        .map(|(spec, outcome)| EntryDocument {
            circuit: &spec.circuit,
            files: outcome.as_ref().ok(),
            error: outcome.as_ref().err().map(Failure::body),
        })
        .collect();
    context.output.show(
        &Document {
            schema: "cuzk.params-check/1",
            keys,
        },
        &text,
    )?;
    failed.map_or(Ok(()), |exit| Err(Failure::reported(exit)))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    keys: Vec<EntryDocument<'a>>,
}

#[derive(Serialize)]
struct EntryDocument<'a> {
    circuit: &'a str,
    files: Option<&'a Vec<KeyDocument>>,
    error: Option<ErrorBody<'a>>,
}
