//! `cuzk`: make and verify the Groth16 proofs of Filecoin sectors.

#![forbid(unsafe_code)]

mod cli;
mod client;
mod commands;
mod config;
mod daemon;
mod device;
mod failure;
mod input;
mod keys;
mod logging;
mod memory;
mod outfile;
mod output;
mod partitions;
mod phases;
mod progress;
mod proving;
mod size;
mod table;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use config::Config;
use failure::{Exit, Failure};
use output::Output;
use progress::Progress;

/// What every command works with.
struct Context {
    config: Config,
    output: Output,
    progress: Progress,
}

fn main() -> ExitCode {
    let arguments = cli::with_default_command(std::env::args_os());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.with_file(),
        Err(error) => return usage(&error),
    };
    let output = Output::new(cli.global.json, cli.global.quiet);
    match caught(|| run(cli, output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.fail(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(cli: Cli, output: Output) -> Result<(), Failure> {
    let config = Config::load(&cli.global)?;
    for warning in &config.warnings {
        output.remark(&format!("warning: {warning}"));
    }
    if let Some(threads) = cli.global.threads {
        set_threads(threads)?;
    }
    let context = Context {
        config,
        output,
        progress: Progress::new(cli.global.quiet),
    };
    match cli.command {
        Command::Prove(args) => commands::prove::run(&context, &args),
        Command::Verify(args) => commands::verify::run(&context, &args),
        Command::Request(command) => commands::request::run(&context, &command),
        Command::Circuit(command) => commands::circuit::run(&context, &command),
        Command::Params(command) => commands::params::run(&context, &command),
        Command::Demo(args) => commands::demo::run(&context, &args),
        Command::Doctor { command } => commands::doctor::run(&context, command.as_ref()),
        Command::Bench(command) => commands::bench::run(&context, &command),
        Command::Client(command) => client::run(&context, &cli.global, &command),
        Command::Daemon(args) => daemon::run(&context, &args),
        Command::Worker(args) => commands::worker::run(&context, &args),
    }
}

fn set_threads(threads: u16) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.into())
        .build_global()
        .map_err(|e| {
            Failure::new(
                Exit::Resources,
                "THREADS",
                format!("cannot start {threads} threads"),
                "ask for fewer with --threads, or raise the limit (ulimit -u, cgroup pids.max)",
            )
            .because(&e)
        })
}

/// Runs `work`; a panic, which is always a defect, becomes an internal failure.
fn caught(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    static PANIC: Mutex<Option<String>> = Mutex::new(None);
    panic::set_hook(Box::new(|info| {
        let mut last = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(info.to_string());
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let text = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut failure = Failure::new(
            Exit::Internal,
            "PANIC",
            "an internal check failed; no result was written",
            "this is a defect: please report it with the command line and the cause above",
        );
        failure.cause(text.unwrap_or_else(|| "unknown panic".into()));
        Err(failure)
    })
}

/// Prints help, version or what is wrong with the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    let help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if help || !std::env::args_os().any(|a| a == "--json") {
        let _ = error.print();
        return if help {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(Exit::Usage as u8)
        };
    }
    let text = error.to_string();
    let (first, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let failure = Failure::new(Exit::Usage, "USAGE", message, "see cuzk --help");
    Output::new(true, false).fail(&failure);
    ExitCode::from(Exit::Usage as u8)
}
