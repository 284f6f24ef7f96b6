//! `cuzk config check`.

use std::path::Path;

use serde::Serialize;
use server::Config;
use server::config::{DEFAULT_FILE, Error};

use super::args::ConfigCommand;
use crate::Context;
use crate::cli::Global;
use crate::failure::{Exit, Failure};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    unknown: Vec<String>,
    without_effect: Vec<String>,
    listen: String,
    status_listen: Option<String>,
    store: &'a Path,
    memory_budget_bytes: u64,
}

/// Runs the command.
pub fn run(context: &Context, global: &Global, command: &ConfigCommand) -> Result<(), Failure> {
    let ConfigCommand::Check { file } = command;
    let named = file.as_deref().or(global.config.as_deref());
    let config = Config::load(named).map_err(|error| failure(&error))?;
    let texts = |unknown: bool| -> Vec<String> {
        let warnings = config.warnings.iter();
        let wanted = warnings.filter(|warning| warning.is_unknown() == unknown);
        wanted.map(ToString::to_string).collect()
    };
    let document = Document {
        schema: "cuzk.config/1",
        file: named
            .unwrap_or(Path::new(DEFAULT_FILE))
            .display()
            .to_string(),
        unknown: texts(true),
        without_effect: texts(false),
        listen: config.daemon.listen.to_string(),
        status_listen: config
            .daemon
            .status_listen
            .as_ref()
            .map(ToString::to_string),
        store: &config.store.path,
        memory_budget_bytes: config.memory.budget_bytes(),
    };
    let mut text = String::new();
    for warning in document.unknown.iter().chain(&document.without_effect) {
        text.push_str(&format!("{warning}\n"));
    }
    text.push_str(&format!(
        "{}: {} unknown keys, {} keys without effect\n",
        document.file,
        document.unknown.len(),
        document.without_effect.len()
    ));
    context.output.show(&document, &text)?;
    if document.unknown.is_empty() {
        Ok(())
    } else {
        Err(Failure::reported(Exit::Usage))
    }
}

/// What a configuration that cannot be used ends the command with.
pub fn failure(error: &Error) -> Failure {
    let text = error.to_string();
    let (message, remedy) = text
        .rsplit_once("; ")
        .unwrap_or((&text, "correct the file"));
    Failure::new(Exit::Usage, "CONFIG_INVALID", message, remedy)
}
