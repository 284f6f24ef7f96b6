//! `cuzk request show FILE`: what is in a request, in words. Its vanilla proof is not checked.

use filecoin::Hints;
use filecoin::request::Description;
use serde::Serialize;

use crate::Context;
use crate::cli::RequestCommand;
use crate::failure::Failure;
use crate::input;
use crate::table;

/// Runs the command.
pub fn run(context: &Context, command: &RequestCommand) -> Result<(), Failure> {
    let RequestCommand::Show { file } = command;
    let decoded = input::decode(context.output, file, Hints::default())?;
    let request = decoded.describe();
    let lines: Vec<(&str, String)> = request
        .facts
        .iter()
        .map(|f| (f.label, f.text.clone()))
        .collect();
    let text = table::pairs(&lines);
    let warnings = decoded.warnings.iter().map(ToString::to_string).collect();
    context.output.show(
        &Document {
            schema: "cuzk.request/1",
            request,
            warnings,
        },
        &text,
    )
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    request: Description,
    warnings: Vec<String>,
}
