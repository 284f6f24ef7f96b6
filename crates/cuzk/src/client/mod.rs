//! The client: every command that speaks to a running daemon.

pub mod args;
mod config;
mod jobs;
mod keys;
mod old;
mod show;
mod top;

use std::net::IpAddr;

use server::client::{Client, ClientError, Code, Options};
use server::{Address, BadAddress, Config};

use crate::Context;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use args::{ClientCommand, HttpArgs, Replaced, ServerArgs};

/// Runs the command.
pub fn run(context: &Context, global: &Global, command: &ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::Submit(args) => jobs::submit(context, global, args),
        ClientCommand::Wait(args) => jobs::wait(context, global, args),
        ClientCommand::Status(args) => show::status(context, global, args),
        ClientCommand::Cancel(args) => jobs::cancel(context, global, args),
        ClientCommand::Trace(args) => show::trace(context, global, args),
        ClientCommand::Metrics(args) => show::metrics(context, global, args),
        ClientCommand::Preload(args) => keys::preload(context, global, args),
        ClientCommand::Evict(args) => keys::evict(context, global, args),
        ClientCommand::Top(args) => top::run(context, global, args),
        ClientCommand::Config(command) => config::run(context, global, command),
        ClientCommand::Single(args) => old::single(context, global, args),
        ClientCommand::Batch(args) => old::batch(context, global, args),
        ClientCommand::GenVanilla(_) => Err(replaced(
            "gen-vanilla",
            "the sealing node makes vanilla proofs; `cuzk bench request` fabricates requests that \
             pass every check",
        )),
        ClientCommand::PceBench(Replaced { .. })
        | ClientCommand::PcePipeline(_)
        | ClientCommand::SlottedBench(_)
        | ClientCommand::SynthOnly(_) => Err(replaced(
            "pce-bench, pce-pipeline, slotted-bench and synth-only",
            "circuits are built in and witnesses are generated directly; `cuzk bench prove` \
             measures what a proof takes, phase by phase",
        )),
    }
}

fn replaced(what: &str, remedy: &str) -> Failure {
    let message = format!("{what} of the earlier bench tool have no counterpart here");
    Failure::new(Exit::Usage, "COMMAND_REPLACED", message, remedy)
}

/// Connects to the daemon.
fn connect(global: &Global, args: &ServerArgs) -> Result<Client, Failure> {
    let named = std::env::var("CUZK_ADDR")
        .ok()
        .filter(|text| !text.is_empty());
    let address = match (&args.addr, named) {
        (Some(address), _) => address.clone(),
        (None, Some(text)) => text.parse().map_err(|error: BadAddress| {
            let message = format!("the environment variable CUZK_ADDR: {error}");
            Failure::new(Exit::Usage, "USAGE", message, "correct it, or use --addr")
        })?,
        (None, None) => reachable(configuration(global)?.daemon.listen),
    };
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    let options = Options {
        authorities: args.tls_ca.clone(),
        identity,
        name: args.client_name.clone(),
    };
    Client::connect(&address, &options).map_err(failure)
}

/// The daemon's HTTP address.
fn http_address(global: &Global, args: &HttpArgs) -> Result<Address, Failure> {
    if let Some(address) = &args.status_addr {
        return Ok(address.clone());
    }
    let configured = configuration(global)?.daemon.status_listen;
    configured.map(reachable).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "STATUS_ADDRESS_UNKNOWN",
            "the configuration names no HTTP address of the daemon",
            "set [daemon] status_listen, or name the address with --status-addr",
        )
    })
}

fn configuration(global: &Global) -> Result<Config, Failure> {
    Config::load(global.config.as_deref()).map_err(|error| config::failure(&error))
}

/// Where an address that is listened on is reached from here.
pub fn reachable(address: Address) -> Address {
    match address {
        Address::Tcp { host, port } => {
            let host = match host.parse::<IpAddr>() {
                Ok(IpAddr::V4(ip)) if ip.is_unspecified() => "127.0.0.1".to_owned(),
                Ok(IpAddr::V6(ip)) if ip.is_unspecified() => "::1".to_owned(),
                _ => host,
            };
            Address::Tcp { host, port }
        }
        unix => unix,
    }
}

/// What a failed call ends the command with.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failure(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused {
            status,
            code,
            message,
        } => {
            let (exit, own, remedy) = match status {
                Code::InvalidArgument => (Exit::Input, "REQUEST_REFUSED", "correct the request"),
                Code::NotFound => (
                    Exit::Input,
                    "JOB_NOT_FOUND",
                    "check the name; results are kept for [store] max_age",
                ),
                Code::FailedPrecondition => (
                    Exit::Params,
                    "DAEMON_UNABLE",
                    "correct what is named above on the daemon's machine",
                ),
                Code::OutOfRange => (Exit::Input, "REQUEST_TOO_LARGE", "make the request again"),
                Code::ResourceExhausted | Code::Unavailable => {
                    (Exit::Resources, "DAEMON_BUSY", "try again later")
                }
                _ => (
                    Exit::Internal,
                    "DAEMON_FAILED",
                    "the daemon's log tells more",
                ),
            };
            let mut failure = Failure::new(exit, own, message.clone(), remedy);
            if let Some(code) = code {
                failure.cause(format!("the daemon's code is {code}"));
            }
            failure
        }
        ClientError::Unreachable { address, cause } => {
            let mut failure = Failure::new(
                Exit::Resources,
                "DAEMON_UNREACHABLE",
                format!("the daemon at {address} cannot be reached"),
                "start it with `cuzk daemon`, or name its address with --addr",
            );
            failure.cause(cause.clone());
            failure
        }
        ClientError::Lost { address, cause } => {
            let message = format!("the call to the daemon at {address} got no answer");
            let mut failure = Failure::new(Exit::Resources, "DAEMON_LOST", message, lost(cause));
            failure.cause(cause.clone());
            failure
        }
        ClientError::Http { status: 404, .. } => Failure::new(
            Exit::Input,
            "JOB_NOT_FOUND",
            error.to_string(),
            "check the name of the job",
        ),
        _ => Failure::new(
            Exit::Resources,
            "CLIENT_FAILED",
            error.to_string(),
            "see the message",
        ),
    }
}

/// What helps, by what the connection said.
fn lost(cause: &str) -> &'static str {
    // What the first bytes of TLS look like to HTTP/2, and the other way round.
    let encrypted = [
        "frame with invalid size",
        "InvalidContentType",
        "corrupt message",
    ];
    if encrypted.iter().any(|text| cause.contains(text)) {
        return "one side speaks TLS and the other does not: name the daemon's authority with \
                --tls-ca, or leave it out";
    }
    if cause.contains("certificate") {
        return "see which authority signed the daemon's certificate (--tls-ca), whether it names \
                this host, and whether the daemon asks for one of ours (--tls-cert, --tls-key)";
    }
    "see whether it still runs (its log, `cuzk status`), and try again: its jobs are kept"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_mean_every_interface_are_reached_here() {
        for (listen, reached) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.1:1", "10.0.0.1:1"),
            ("unix:///a", "unix:///a"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }
}
