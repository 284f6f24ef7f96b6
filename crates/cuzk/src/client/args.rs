//! The command line of the client: commands that speak to a running daemon.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use server::Address;

use crate::cli::parse_miner;

/// Commands that need a daemon.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Give a request to the daemon and wait for its proof
    Submit(SubmitArgs),
    /// Wait for a job of the daemon and fetch its proof
    Wait(WaitArgs),
    /// Devices, queues and keys of the daemon
    Status(ServerArgs),
    /// End a job of the daemon
    Cancel(JobArgs),
    /// A job's timeline, to be opened in Perfetto or chrome://tracing
    Trace(TraceArgs),
    /// The daemon's metrics, in Prometheus text format
    Metrics(ServerArgs),
    /// Load a circuit's proving key in the daemon
    Preload(PreloadArgs),
    /// Unload a circuit's proving key in the daemon, unless it is in use
    Evict(EvictArgs),
    /// Devices, queues and jobs of the daemon, once a second
    Top(TopArgs),
    /// The daemon's configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// As `cuzk-bench single`: prove one request with the daemon
    #[command(hide = true)]
    Single(SingleArgs),
    /// As `cuzk-bench batch`: prove one request several times with the daemon
    #[command(hide = true)]
    Batch(BatchArgs),
    /// Was part of `cuzk-bench`
    #[command(hide = true)]
    GenVanilla(Replaced),
    /// Was part of `cuzk-bench`
    #[command(hide = true)]
    PceBench(Replaced),
    /// Was part of `cuzk-bench`
    #[command(hide = true)]
    PcePipeline(Replaced),
    /// Was part of `cuzk-bench`
    #[command(hide = true)]
    SlottedBench(Replaced),
    /// Was part of `cuzk-bench`
    #[command(hide = true)]
    SynthOnly(Replaced),
}

/// Where the daemon is.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The daemon's gRPC address: host:port or unix:///path
    /// (default: CUZK_ADDR of the environment, else daemon.listen of the configuration)
    #[arg(short, long, value_name = "ADDRESS")]
    pub addr: Option<Address>,
    /// Speak TLS; the daemon's certificate is of one of the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Our certificate, PEM, where the daemon asks for one
    #[arg(long, value_name = "FILE", requires = "tls_ca", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Our name, for fair shares among clients (default: the address)
    #[arg(long, value_name = "NAME")]
    pub client_name: Option<String>,
}

/// How urgent a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    /// Whenever there is nothing else.
    Low = 1,
    /// PoRep and SnapDeals.
    Normal = 2,
    /// WindowPoSt.
    High = 3,
    /// Before the others.
    Critical = 4,
}

/// Arguments of `cuzk submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// Request file, `-` for stdin: C2 input envelope, phase-1 output, or a
    /// SubmitProofRequest as JSON; plain, gzip or zstd
    pub request: PathBuf,
    /// The miner, for requests that do not name it: f01000, t01000 or 1000
    #[arg(long, value_name = "ADDRESS", value_parser = parse_miner)]
    pub miner: Option<u64>,
    /// The sector number, for requests that do not name it
    #[arg(long, value_name = "N")]
    pub sector: Option<u64>,
    /// Name of the job: the same request under the same name is proven once
    /// (default: the request's, else a new one)
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// How urgent it is (default: by kind)
    #[arg(long, value_enum)]
    pub priority: Option<Priority>,
    /// Seconds from now after which the proof is of no use
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub deadline: Option<u64>,
    /// Return when the job is stored, and print its name; `cuzk wait` fetches the proof
    #[arg(long, conflicts_with = "out")]
    pub no_wait: bool,
    /// Write the proof bytes here, replacing the file; `-` for stdout
    /// (default: print them as hex)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `cuzk wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Name of the job
    pub job: String,
    /// Longest wait in seconds; without it, until the job ends
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub timeout: Option<u64>,
    /// Write the proof bytes here, replacing the file; `-` for stdout
    /// (default: print them as hex)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// A job of the daemon.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Name of the job
    pub job: String,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Where the daemon's HTTP side is.
#[derive(Debug, Args)]
pub struct HttpArgs {
    /// The daemon's HTTP address: host:port or unix:///path
    /// (default: daemon.status_listen of the configuration)
    #[arg(long, value_name = "ADDRESS")]
    pub status_addr: Option<Address>,
}

/// Arguments of `cuzk trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Name of the job
    pub job: String,
    /// Write the trace here, replacing the file (default: stdout)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The daemon.
    #[command(flatten)]
    pub http: HttpArgs,
}

/// Arguments of `cuzk top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Show the state once and end
    #[arg(long)]
    pub once: bool,
    /// The daemon.
    #[command(flatten)]
    pub http: HttpArgs,
}

/// Arguments of `cuzk preload`.
#[derive(Debug, Args)]
pub struct PreloadArgs {
    /// Circuit name, such as porep-32g
    #[arg(required_unless_present = "circuit_id")]
    pub circuit: Option<String>,
    /// The same, as `cuzk-bench preload` takes it
    #[arg(
        short,
        long,
        value_name = "CIRCUIT",
        conflicts_with = "circuit",
        hide = true
    )]
    pub circuit_id: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `cuzk evict`.
#[derive(Debug, Args)]
pub struct EvictArgs {
    /// Circuit name, such as porep-32g
    pub circuit: String,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `cuzk config …`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read a configuration file and name what is wrong with it or has no effect;
    /// fails on unknown keys
    Check {
        /// The file (default: as --config)
        file: Option<PathBuf>,
    },
}

/// What `cuzk-bench single` and `batch` took.
#[derive(Debug, Args)]
pub struct OldRequest {
    /// Kind of proof: porep, snap, wpost, winning
    #[arg(short = 't', long = "type")]
    pub kind: OldKind,
    /// C1 output envelope (porep)
    #[arg(long)]
    pub c1: Option<PathBuf>,
    /// Vanilla proofs: a JSON array of base64 texts, or one raw proof
    #[arg(long)]
    pub vanilla: Option<PathBuf>,
    /// Registered proof number
    #[arg(long, default_value_t = 0)]
    pub registered_proof: u64,
    /// Sector number
    #[arg(long, default_value_t = 1)]
    pub sector_num: u64,
    /// Miner
    #[arg(long, default_value_t = 1000)]
    pub miner_id: u64,
    /// Randomness, 32 bytes as hex (PoSt)
    #[arg(long, value_parser = parse_hex32)]
    pub randomness: Option<Hex32>,
    /// Commitment of the replica before, 32 bytes as hex (snap)
    #[arg(long, value_parser = parse_hex32)]
    pub comm_r_old: Option<Hex32>,
    /// Commitment of the replica after, 32 bytes as hex (snap)
    #[arg(long, value_parser = parse_hex32)]
    pub comm_r_new: Option<Hex32>,
    /// Commitment of the new data, 32 bytes as hex (snap)
    #[arg(long, value_parser = parse_hex32)]
    pub comm_d_new: Option<Hex32>,
    /// The daemon.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `cuzk single`.
#[derive(Debug, Args)]
pub struct SingleArgs {
    /// The request.
    #[command(flatten)]
    pub request: OldRequest,
    /// Number of the partition
    #[arg(long, default_value_t = 0)]
    pub partition: u32,
}

/// Arguments of `cuzk batch`.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// The request.
    #[command(flatten)]
    pub request: OldRequest,
    /// How many times
    #[arg(short, long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// So many at a time
    #[arg(short = 'j', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub concurrency: u32,
}

/// Names of kinds, as the earlier tool took them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OldKind {
    /// PoRep.
    #[value(aliases = ["porep-c2", "seal-commit"])]
    Porep,
    /// SnapDeals.
    #[value(aliases = ["snap-deals", "update"])]
    Snap,
    /// WindowPoSt.
    #[value(aliases = ["window-post", "windowpost"])]
    Wpost,
    /// WinningPoSt.
    #[value(aliases = ["winning-post", "winningpost"])]
    Winning,
}

/// Whatever arguments a command took that is no more.
#[derive(Debug, Args)]
pub struct Replaced {
    /// Ignored.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<String>,
}

/// 32 bytes.
pub type Hex32 = [u8; 32];

fn parse_hex32(text: &str) -> Result<Hex32, String> {
    let mut bytes = [0; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut bytes)
        .map(|()| bytes)
        .map_err(|_| "expected 32 bytes as 64 hex digits".into())
}
