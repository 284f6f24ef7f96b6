//! The command line: every command, argument and option, and nothing else.

mod bench;
mod params;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::client::args::ClientCommand;
use crate::size::Size;

pub use bench::{
    BenchCommand, BenchCompareArgs, BenchE2eArgs, BenchIdentityArgs, BenchKernelsArgs,
    BenchProveArgs,
};
pub use params::{Form, GenerateArgs, MakerArgs, ParamsCommand, PrepareArgs};

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 the proof does not verify; 2 usage; 3 bad input;
4 parameters missing, wrong or corrupt; 5 resources (memory, disk, threads,
device); 6 internal error.";

/// `cuzk`: Groth16 proofs of Filecoin sectors.
#[derive(Debug, Parser)]
#[command(
    name = "cuzk",
    version,
    about = "Make and verify the Groth16 proofs of Filecoin sectors",
    after_help = AFTER_HELP,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Options every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// With `daemon -c FILE` taken as `--config FILE`.
    #[must_use]
    pub fn with_file(mut self) -> Self {
        if let Command::Daemon(args) = &self.command
            && let Some(file) = &args.file
        {
            self.global.config = Some(file.clone());
        }
        self
    }
}

/// Options that every command takes, before or after its name.
#[derive(Debug, Args)]
pub struct Global {
    /// Print one JSON document on stdout, also for errors
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress, no tables: only the result
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// CPU threads to use (default: all)
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Folder for what cuzk remembers and for test keys; safe to delete
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Configuration file (default: /data/zk/cuzk.toml if it exists)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a request's vanilla proof, prove it, verify the proof, write it
    Prove(ProveArgs),
    /// Verify a proof against the request it was made for
    Verify(VerifyArgs),
    /// Look into request files
    #[command(subcommand)]
    Request(RequestCommand),
    /// The circuits built into this program
    #[command(subcommand)]
    Circuit(CircuitCommand),
    /// Parameter files: the proving and verifying keys
    #[command(subcommand)]
    Params(ParamsCommand),
    /// Prove and verify a bundled real 2 KiB sector, with test keys made here
    Demo(DemoArgs),
    /// What keeps this machine from proving: GPUs, keys, disk, memory, addresses
    Doctor {
        /// One part, examined more closely.
        #[command(subcommand)]
        command: Option<DoctorCommand>,
    },
    /// Fabricated requests, and what work on them costs
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Commands that speak to a running daemon
    #[command(flatten)]
    Client(ClientCommand),
    /// Serve proofs: take requests over gRPC, store them, prove them
    Daemon(DaemonArgs),
    /// The process that owns one device; the daemon starts it
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// Where a request comes from and whose sector it is.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// Request file, `-` for stdin: C2 input envelope, phase-1 output, or a
    /// SubmitProofRequest as JSON; plain, gzip or zstd
    pub request: PathBuf,
    /// The miner, for requests that do not name it: f01000, t01000 or 1000
    #[arg(long, value_name = "ADDRESS", value_parser = parse_miner)]
    pub miner: Option<u64>,
    /// The sector number, for requests that do not name it
    #[arg(long, value_name = "N")]
    pub sector: Option<u64>,
}

/// Which keys may be used.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Folder of the parameter files, the only one searched (default: see docs/cli.md)
    #[arg(long, value_name = "DIR")]
    pub params: Option<PathBuf>,
    /// Accept test keys: anyone could forge a proof for them
    #[arg(long)]
    pub allow_test_keys: bool,
}

/// What proves.
#[derive(Debug, Args)]
pub struct DeviceArgs {
    /// What proves
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    pub device: Device,
    /// Which GPU, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
    /// The most GPU memory to use, such as 16GiB (default: what is free)
    #[arg(long, value_name = "SIZE")]
    pub vram: Option<Size>,
    /// What threads do that wait for the GPU
    #[arg(long, value_enum, value_name = "HOW", default_value_t = GpuWait::Sleep)]
    pub gpu_wait: GpuWait,
}

/// What threads do that wait for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GpuWait {
    /// Sleep until it wakes them, after looking for some microseconds
    Sleep,
    /// Look all the time: each takes a processor
    Spin,
}

impl From<GpuWait> for cuda::Waiting {
    fn from(wait: GpuWait) -> Self {
        match wait {
            GpuWait::Sleep => cuda::Waiting::Sleeps,
            GpuWait::Spin => cuda::Waiting::Spins,
        }
    }
}

/// Arguments of `cuzk prove`.
#[derive(Debug, Args)]
pub struct ProveArgs {
    /// The request.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Write the proof bytes here, replacing the file; `-` for stdout
    /// (default: print them as hex)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What proves.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Non-interactive PoRep: write each partition's proof into the folder
    /// given by --out, without the aggregate the chain asks for
    #[arg(long, requires = "out")]
    pub partitions_only: bool,
}

/// Arguments of `cuzk verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The request.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// The proof: its bytes or their hex, `-` for stdin; with
    /// --partitions-only the folder that `prove` wrote
    #[arg(long, value_name = "FILE")]
    pub proof: PathBuf,
    /// Non-interactive PoRep: verify the partitions' proofs one by one
    #[arg(long)]
    pub partitions_only: bool,
}

/// `cuzk request …`.
#[derive(Debug, Subcommand)]
pub enum RequestCommand {
    /// Say what is in a request, in words
    Show {
        /// Request file, `-` for stdin
        file: PathBuf,
    },
}

/// `cuzk circuit …`.
#[derive(Debug, Subcommand)]
pub enum CircuitCommand {
    /// A table of all circuits
    List,
    /// One circuit: counts, density, bits, templates, key sizes
    Show {
        /// Circuit name, such as porep-32g
        name: String,
    },
    /// What proving the circuit on a GPU takes: every buffer with its size and
    /// lifetime, and how the sums are done. Needs no GPU
    Plan {
        /// Circuit name, such as porep-32g
        name: String,
        /// Form of the key
        #[arg(long, value_enum, default_value_t = Form::Published)]
        form: Form,
        /// GPU memory to plan for, such as 16GiB (default: no limit)
        #[arg(long, value_name = "SIZE")]
        vram: Option<Size>,
        /// Multiprocessors of the GPU to plan for
        #[arg(long, value_name = "N", default_value_t = 132, value_parser = clap::value_parser!(u32).range(1..))]
        multiprocessors: u32,
        /// Proofs that are asked for at a time: a key that does not fit in the memory is
        /// streamed once for several of them
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        proofs: u32,
    },
}

/// `cuzk doctor …`.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Driver and GPUs, whether this program has code for them, and a proof on each
    Gpu,
}

/// Arguments of `cuzk daemon`.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The same as --config
    #[arg(short = 'c', value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
    /// Where gRPC listens, before [daemon] listen: unix:///path or host:port
    #[arg(short, long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// What is logged, before [logging] level; RUST_LOG goes before both
    #[arg(long, value_name = "FILTER")]
    pub log_level: Option<String>,
    /// What proves: auto takes the GPUs, or the CPU where there is none
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    pub device: Device,
    /// Program of the workers, for tests
    #[arg(long, value_name = "FILE", hide = true)]
    pub worker_program: Option<PathBuf>,
}

/// Options of the earlier daemon, which had no subcommands; whether each takes a value beside it.
const DAEMON_OPTIONS: [&str; 5] = ["-c", "--config", "-l", "--listen", "--log-level"];

/// The arguments, with `daemon` put in front where there is no command but only options of the
/// earlier daemon.
pub fn with_default_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut rest = arguments.iter().skip(1);
    let mut count = 0;
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let is_whole = DAEMON_OPTIONS.contains(&text.as_ref());
        let has_value = DAEMON_OPTIONS.iter().any(|option| {
            let value = text.strip_prefix(option);
            value.is_some_and(|value| !option.starts_with("--") || value.starts_with('='))
        });
        if is_whole {
            rest.next();
        } else if !has_value {
            return arguments;
        }
        count += 1;
    }
    if count > 0 {
        arguments.insert(1, "daemon".into());
    }
    arguments
}

/// Arguments of `cuzk worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The device: cpu, gpu (the first one), gpu:N or gpu:UUID
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = parse_worker_device)]
    pub device: WorkerDevice,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Folder of key files, instead of the configured ones; may be repeated
    #[arg(long = "key-folder", value_name = "DIR", conflicts_with = "params")]
    pub key_folders: Vec<PathBuf>,
    /// The most bytes of key files to keep mapped (default: the memory available)
    #[arg(long, value_name = "SIZE")]
    pub key_memory: Option<Size>,
    /// The most GPU memory to use, such as 16GiB (default: what is free)
    #[arg(long, value_name = "SIZE")]
    pub vram: Option<Size>,
    /// What threads do that wait for the GPU
    #[arg(long, value_enum, value_name = "HOW", default_value_t = GpuWait::Sleep)]
    pub gpu_wait: GpuWait,
    /// Say which GPUs there are, and end; with --json for programs
    #[arg(long)]
    pub list: bool,
}

/// A worker's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerDevice {
    /// The CPU.
    Cpu,
    /// A GPU: the first one, or the one with this number or UUID.
    Gpu(Option<String>),
}

fn parse_worker_device(text: &str) -> Result<WorkerDevice, String> {
    match text.split_once(':') {
        None if text == "cpu" => Ok(WorkerDevice::Cpu),
        None if text == "gpu" => Ok(WorkerDevice::Gpu(None)),
        Some(("gpu", which)) if !which.is_empty() => Ok(WorkerDevice::Gpu(Some(which.to_owned()))),
        _ => Err("expected cpu, gpu, gpu:0 or gpu:GPU-…".into()),
    }
}

/// Arguments of `cuzk demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Write the proof bytes here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// The best there is, and say which
    Auto,
    /// The CPU
    Cpu,
    /// A GPU
    Gpu,
}

/// Reads a miner's ID address (`f01000`, `t01000`) or bare actor number.
///
/// # Errors
/// The text that clap prints, when it is neither.
pub fn parse_miner(text: &str) -> Result<u64, String> {
    let digits = text
        .strip_prefix("f0")
        .or_else(|| text.strip_prefix("t0"))
        .unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain
        .then(|| digits.parse().ok())
        .flatten()
        .ok_or_else(|| "expected an ID address such as f01000 or t01000, or the number 1000".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_earlier_daemon_s_command_line_is_the_daemon_s() {
        let parsed = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            Cli::try_parse_from(with_default_command(words))
        };
        for line in [
            "cuzk -c /etc/cuzk.toml",
            "cuzk -c/etc/cuzk.toml -l 0.0.0.0:9820",
            "cuzk --config /etc/cuzk.toml --listen=unix:///run/cuzk.sock",
            "cuzk --config=/etc/cuzk.toml",
            "cuzk --log-level debug",
        ] {
            let cli = parsed(line).unwrap();
            assert!(matches!(cli.command, Command::Daemon(_)), "{line}");
        }
        let cli = parsed("cuzk -c /a -l [::1]:1 --log-level info").unwrap();
        let Command::Daemon(args) = cli.command else {
            panic!("{cli:?}");
        };
        assert_eq!(args.file, Some("/a".into()));
        assert_eq!(args.listen.as_deref(), Some("[::1]:1"));
        assert_eq!(args.log_level.as_deref(), Some("info"));
        // Another command stays what it is, and so does a mistake.
        let other = parsed("cuzk --config /a circuit list").unwrap();
        assert!(matches!(other.command, Command::Circuit(_)));
        for line in ["cuzk", "cuzk -x", "cuzk -c /a --quiet", "cuzk --configure"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn miners_in_every_spelling() {
        for text in ["f01000", "t01000", "1000"] {
            assert_eq!(parse_miner(text), Ok(1000));
        }
        assert_eq!(parse_miner("f00"), Ok(0));
        assert_eq!(parse_miner(&u64::MAX.to_string()), Ok(u64::MAX));
        for text in [
            "",
            "f",
            "f0",
            "f1abc",
            "f0-1",
            "+5",
            " 5",
            "18446744073709551616",
            "0x10",
        ] {
            assert!(parse_miner(text).is_err(), "{text:?}");
        }
    }
}
