//! `cuzk params list`, `check`, `generate` and `prepare`: parameter files.

mod check;
pub mod generate;
mod list;
mod prepare;

use crate::Context;
use crate::cli::ParamsCommand;
use crate::failure::Failure;

/// Runs the command.
pub fn run(context: &Context, command: &ParamsCommand) -> Result<(), Failure> {
    match command {
        ParamsCommand::List { params } => list::run(context, params.as_deref()),
        ParamsCommand::Check { names, params } => check::run(context, names, params.as_deref()),
        ParamsCommand::Generate(args) => generate::run(context, args),
        ParamsCommand::Prepare(args) => prepare::run(context, args),
    }
}
